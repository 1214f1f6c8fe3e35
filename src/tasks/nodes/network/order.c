/* The order of nodes that results depend on: that of their ids, whatever order the rows of a table
 * have. Sums over neighbours and training nodes, splits and samples follow it. Numbers inside an id
 * compare as numbers, so that a2 is before a10; nodes without ids stay in their order. */
#include "base/sort.h"
#include "tasks/nodes/network/network.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Compares two runs of digits as numbers of any length, and moves past them. */
static int compare_digits(const char **a, const char **b) {
    const char *x = *a, *y = *b;
    while (*x == '0' && is_digit(x[1])) x++;
    while (*y == '0' && is_digit(y[1])) y++;
    size_t m = strspn(x, "0123456789"), n = strspn(y, "0123456789");
    *a = x + m, *b = y + n;
    return m != n ? BASIN_COMPARE(m, n) : memcmp(x, y, m);
}

int basin_id_compare(const char *a, const char *b) {
    const char *x = a, *y = b;
    while (*x && *y) {
        bool digits = is_digit(*x) && is_digit(*y);
        int found = digits ? compare_digits(&x, &y) : (unsigned char)*x - (unsigned char)*y;
        if (found) return found;
        if (!digits) x++, y++;
    }
    return *x || *y ? (*x != 0) - (*y != 0) : strcmp(a, b); /* equal but for leading zeros */
}

typedef struct named {
    const char *id;
    int64_t node;
} named;

static int by_id(const void *a, const void *b) {
    return basin_id_compare(((const named *)a)->id, ((const named *)b)->id);
}

basin_status basin_network_find_order(basin_network *n, basin_error *error) {
    int64_t count = n->id.count, sorted = 1;
    while (sorted < count &&
           basin_id_compare(n->id.text + n->id.at[sorted - 1], n->id.text + n->id.at[sorted]) < 0)
        sorted++;
    if (sorted >= count) return BASIN_OK;
    BASIN_SCRATCH_RAW(named, list, count, "the order of nodes", error);
    for (int64_t i = 0; i < count; i++) list[i] = (named){n->id.text + n->id.at[i], i};
    qsort(list, (size_t)count, sizeof *list, by_id);
    free(n->order);
    BASIN_TRY(BASIN_NEW_RAW(&n->order, count, "the order of nodes", error));
    for (int64_t i = 0; i < count; i++) n->order[i] = list[i].node;
    return BASIN_OK;
}

static basin_status copy_rest(basin_network *to, const basin_network *from, basin_error *error) {
    if (from->schema) BASIN_TRY(basin_schema_copy(&to->schema, from->schema, error));
    BASIN_TRY(basin_names_copy(&to->class_name, &from->class_name, error));
    to->knows = from->knows;
    if (from->known) BASIN_TRY(BASIN_NEW_RAW(&to->known, to->nodes, "known labels", error));
    for (int64_t i = 0; i < to->nodes && to->known; i++)
        to->known[i] = from->known[from->order ? from->order[i] : i];
    if (!from->since) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(&to->since, to->nodes, "times of nodes", error));
    for (int64_t i = 0; i < to->nodes; i++)
        to->since[i] = from->since[from->order ? from->order[i] : i];
    return BASIN_OK;
}

basin_status basin_network_ordered(basin_network **copy, const basin_network *network,
                                   basin_error *error) {
    *copy = NULL;
    return network->order ? basin_network_as_is(copy, network, error) : BASIN_OK;
}

basin_status basin_network_as_is(basin_network **copy, const basin_network *network,
                                 basin_error *error) {
    BASIN_FREE_AT_EXIT int64_t *all = NULL;
    *copy = NULL;
    if (!network->order) BASIN_TRY(BASIN_NEW_RAW(&all, network->nodes, "a network", error));
    for (int64_t i = 0; i < network->nodes && all; i++) all[i] = i;
    BASIN_TRY(
        basin_network_induce(copy, network, all ? all : network->order, network->nodes, error));
    basin_status status = copy_rest(*copy, network, error);
    if (status) basin_network_close(*copy), *copy = NULL;
    return status;
}

basin_status basin_rows_reorder(void *rows, const int64_t *order, int64_t nodes, size_t width,
                                bool restore, basin_error *error) {
    if (!order || !rows) return BASIN_OK;
    size_t bytes = (size_t)nodes * width;
    BASIN_SCRATCH_RAW(char, copy, bytes, "rows of nodes", error);
    memcpy(copy, rows, bytes);
    for (int64_t i = 0; i < nodes; i++) {
        size_t from = (size_t)order[i] * width, to = (size_t)i * width;
        memcpy((char *)rows + (restore ? from : to), copy + (restore ? to : from), width);
    }
    return BASIN_OK;
}
