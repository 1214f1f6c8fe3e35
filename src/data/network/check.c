/* Checking a network number by number. What a reader built was looked at on the way; what is mapped
 * may hold anything, so that opening one ends here. One pass over the file, by all threads. */
#include <inttypes.h>
#include <math.h>

#include "base/team/team.h"
#include "data/network/network.h"

/* What the searches below look at. */
typedef struct checked {
    const basin_network *network;
    const basin_relation *relation;
} checked;

static int64_t find_bad_row(const void *context, int64_t first, int64_t last) {
    const basin_relation *r = ((const checked *)context)->relation;
    for (int64_t i = first; i < last; i++)
        if (r->row[i + 1] < r->row[i] || r->row[i + 1] > r->edges || r->row[i] < 0) return i;
    return last;
}

basin_status basin_network_check_rows(const basin_network *n, const basin_relation *r,
                                      basin_error *error) {
    int64_t bad = basin_team_find(find_bad_row, &(checked){n, r}, n->nodes, 0);
    if (bad == n->nodes) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: row %" PRId64 " of '%s' runs from %" PRId64 " to %" PRId64 " of %" PRId64
                      " edges",
                      n->path, bad, r->name, r->row[bad], r->row[bad + 1], r->edges);
}

static int64_t find_bad_column(const void *context, int64_t first, int64_t last) {
    const basin_relation *r = ((const checked *)context)->relation;
    int64_t nodes = ((const checked *)context)->network->nodes;
    for (int64_t e = first; e < last; e++)
        if (r->col[e] < 0 || r->col[e] >= nodes) return e;
    return last;
}

static basin_status check_columns(const basin_network *n, const basin_relation *r,
                                  basin_error *error) {
    int64_t bad = basin_team_find(find_bad_column, &(checked){n, r}, r->edges, 0);
    if (bad == r->edges) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: edge %" PRId64 " of '%s' leads to node %d, wanted 0 to %" PRId64,
                      n->path, bad, r->name, r->col[bad], n->nodes - 1);
}

static int64_t find_disorder(const void *context, int64_t first, int64_t last) {
    const basin_relation *r = ((const checked *)context)->relation;
    for (int64_t i = first; i < last; i++)
        for (int64_t e = r->row[i] + 1; e < r->row[i + 1]; e++)
            if (r->col[e - 1] > r->col[e]) return i;
    return last;
}

/* Searches and pairs rely on the order; equal entries are edges that were kept twice. */
static basin_status check_order(const basin_network *n, const basin_relation *r,
                                basin_error *error) {
    int64_t bad = basin_team_find(find_disorder, &(checked){n, r}, n->nodes, 4096);
    if (bad == n->nodes) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: the neighbours of node %" PRId64 " in '%s' are not in ascending order",
                      n->path, bad, r->name);
}

static int64_t find_no_number(const void *context, int64_t first, int64_t last) {
    const float *x = context;
    for (int64_t i = first; i < last; i++)
        if (!isfinite(x[i])) return i;
    return last;
}

static basin_status check_facts(const basin_network *n, const basin_relation *r,
                                basin_error *error) {
    int64_t count = r->fact ? r->edges * n->facts.count : 0;
    int64_t bad = basin_team_find(find_no_number, r->fact, count, 0);
    if (bad == count) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: edge %" PRId64 " of '%s' carries %g for %s, wanted a number", n->path,
                      bad / n->facts.count, r->name, (double)r->fact[bad],
                      n->facts.name.text + n->facts.name.at[bad % n->facts.count]);
}

static basin_status check_relation(const basin_network *n, const basin_relation *r,
                                   basin_error *error) {
    basin_status status = basin_network_check_rows(n, r, error);
    if (!status) status = check_columns(n, r, error);
    if (!status) status = check_facts(n, r, error);
    return status ? status : check_order(n, r, error);
}

static basin_status check_names(const basin_network *n, const basin_names *names, const char *what,
                                basin_error *error) {
    for (int64_t i = 0; i < names->count; i++) {
        int64_t begin = names->at[i], end = names->at[i + 1];
        if (begin < 0 || end <= begin || end > names->at[names->count] || names->text[end - 1] != 0)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: %s %" PRId64 " runs from byte %" PRId64 " to %" PRId64, n->path,
                              what, i, begin, end);
    }
    return BASIN_OK;
}

static basin_status check_labels(const basin_network *n, basin_error *error) {
    for (int64_t i = 0; n->label && i < n->nodes; i++)
        if (n->label[i] < -1 || n->label[i] > INT16_MAX)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: the label of node %" PRId64 " is %d, wanted -1, 0, 1, ...",
                              n->path, i, n->label[i]);
    return BASIN_OK;
}

static basin_status check_masks(const basin_network *n, basin_error *error) {
    static const char *const name[] = {"train", "val", "test"};
    const uint8_t *mask[] = {n->train, n->val, n->test};
    for (int m = 0; m < 3; m++)
        for (int64_t i = 0; mask[m] && i < n->splits * n->nodes; i++)
            if (mask[m][i] > 1)
                return basin_fail(error, BASIN_BAD_FILE,
                                  "%s: node %" PRId64 " of split %" PRId64
                                  " has %d in the %s mask, wanted 0 or 1",
                                  n->path, i % n->nodes, i / n->nodes, mask[m][i], name[m]);
    return BASIN_OK;
}

basin_status basin_network_check_nodes(const basin_network *network, basin_error *error) {
    basin_status status = check_names(network, &network->id, "id", error);
    if (!status) status = check_names(network, &network->column, "column name", error);
    if (!status) status = check_names(network, &network->class_name, "class name", error);
    if (!status) status = check_labels(network, error);
    return status ? status : check_masks(network, error);
}

basin_status basin_network_check_tables(const basin_network *network, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int r = 0; r < network->relations && !status; r++)
        status = check_relation(network, &network->relation[r], error);
    return status ? status : basin_network_check_nodes(network, error);
}

int64_t basin_network_first_gap(const basin_network *network) {
    int64_t count = network->feature ? network->nodes * network->features : 0;
    int64_t bad = basin_team_find(find_no_number, network->feature, count, 0);
    return bad == count ? -1 : bad;
}

basin_status basin_network_fail_gap(const basin_network *network, int64_t at, basin_error *error) {
    int64_t node = at / network->features, column = at % network->features;
    char text[BASIN_NODE_TEXT];
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: feature %" PRId64 "%s%s of node %s is %s, wanted a number (the option "
                      "missing: zero or mean fills such gaps)",
                      network->path, column, network->column.count ? " " : "",
                      network->column.count ? network->column.text + network->column.at[column]
                                            : "",
                      basin_network_id(network, node, text),
                      isnan(network->feature[at]) ? "missing or NaN" : "infinite");
}

basin_status basin_network_check(const basin_network *network, basin_error *error) {
    basin_status status = basin_network_check_tables(network, error);
    int64_t gap = status ? -1 : basin_network_first_gap(network);
    return gap < 0 ? status : basin_network_fail_gap(network, gap, error);
}
