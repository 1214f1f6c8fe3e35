/* What trees read of a network, whole or in parts; see nodes.h. */
#include "base/parallel.h"
#include "tasks/nodes/near.h"

static basin_status find_relations(basin_node_table *t, const basin_nodes_ensemble *ensemble,
                                   basin_error *error) {
    char one[256];
    for (const char *name = ensemble->relations; *name && t->relations < BASIN_TREE_RELATIONS;) {
        size_t length = strcspn(name, "\n");
        snprintf(one, sizeof one, "%.*s", (int)length, name);
        int found = basin_network_relation(t->network, one);
        /* A network of one relation has no other to be mistaken for. */
        if (found < 0 && !strchr(ensemble->relations, '\n'))
            found = basin_network_main_relation(t->network);
        if (found < 0)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: no relation '%s', which the detector was trained with",
                              t->network->path, one);
        t->relation[t->relations++] = found;
        name += length + (name[length] == '\n');
    }
    return BASIN_OK;
}

/* ---- shares of known labels ---- */

static int8_t label_of(const basin_tree_table *t, int64_t node) {
    return t->node.grown ? basin_near_known(t->node.grown, node) : t->label[node];
}

float *basin_known_sums(const basin_tree_table *t, int r, int64_t node) {
    return basin_node_row(&t->node, node) + t->node.own * (1 + t->node.means) + 2 * r;
}

void basin_known_sums_fill(const basin_tree_table *t, int64_t node) {
    for (int r = 0; r < t->node.relations && t->label; r++) {
        basin_near_list list = basin_node_list(&t->node, t->node.relation[r], node);
        float *sum = basin_known_sums(t, r, node);
        sum[0] = sum[1] = 0;
        for (int64_t i = 0; i < list.count; i++) {
            int8_t label = label_of(t, list.col[i]);
            if (list.col[i] != node && label >= 0) sum[0] += label, sum[1]++;
        }
    }
}

/* How often `other` is in a list: edges may have been kept several times. */
static int64_t times(const basin_node_table *t, const basin_near_list *list, int64_t other) {
    int64_t first = basin_near_place(t->grown, list, other), end = first;
    while (end < list->count && list->col[end] == other) end++;
    return end - first;
}

void basin_known_shares(float share[2], const basin_tree_table *t, int r, int64_t node) {
    const double strength = 2; /* nodes of the usual rate that are added to the known ones */
    int relation = t->node.relation[r];
    basin_near_list list = basin_node_list(&t->node, relation, node);
    const float *sums = basin_known_sums(t, r, node);
    int8_t label = label_of(t, node);
    double sum = 0, count = 0;
    share[0] = (float)((sums[0] + t->rate * strength) / (sums[1] + strength));
    for (int64_t e = 0, next; e < list.count; e = next) {
        int64_t j = list.col[e];
        for (next = e + 1; next < list.count && list.col[next] == j;) next++;
        if (j == node) continue;
        double edges = (double)(next - e), own = 0;
        if (label >= 0 && t->node.network->directed) {
            basin_near_list back = basin_node_list(&t->node, relation, j);
            own = (double)times(&t->node, &back, node);
        } else if (label >= 0) {
            own = edges;
        }
        const float *theirs = basin_known_sums(t, r, j);
        double anomalous = theirs[0] - own * fmax(label, 0);
        sum += edges * (anomalous + t->rate * strength) / (theirs[1] - own + strength);
        count += edges;
    }
    share[1] = (float)(count > 0 ? sum / count : t->rate);
}

/* ---- opening ---- */

/* Rows of all nodes: own columns, with space for means and sums. */
static basin_status table_begin(basin_tree_table *table, const basin_network *network, int64_t halo,
                                const basin_nodes_ensemble *e, size_t memory, basin_error *error) {
    basin_node_table *t = &table->node;
    size_t rows = (size_t)(network->nodes + halo), cells;
    *table = (basin_tree_table){.node = {.network = network, .halo = halo, .chain = -1}};
    BASIN_TRY(find_relations(t, e, error));
    BASIN_TRY(basin_node_table_begin(t, network, e->degree, e->facts, error));
    t->means = t->relations;
    t->stride = t->own * (1 + t->means) + (e->known.count ? 2 * t->relations : 0);
    table->plain = t->own * (1 + 2 * t->relations);
    table->columns = table->plain + (e->known.count ? 2 * t->relations : 0);
    table->rate = e->rate;
    bool fits = basin_size_multiply(&cells, rows, (size_t)t->stride);
    if (!fits || (memory && cells > memory / sizeof(float)))
        return basin_fail(error, BASIN_NO_MEMORY,
                          "%s: the inputs of trees take %.3g GiB of %.3g allowed; needs more "
                          "memory, or trees 0",
                          network->path,
                          fits ? (double)cells * sizeof(float) / (1 << 30) : INFINITY,
                          (double)memory / (1 << 30));
    BASIN_TRY(BASIN_NEW_RAW(&t->row, cells, "the inputs of trees", error));
    if (e->known.count) BASIN_TRY(BASIN_NEW_RAW(&table->label, rows, "known labels", error));
    return basin_node_table_own(t->row, t->stride, t, error);
}

/* Means and sums over neighbours, whose own columns and labels are there. */
static void take_neighbours(const basin_tree_table *t) {
    for (int64_t b = 1; b <= t->node.means; b++) basin_node_table_means(&t->node, b, 0);
    for (int64_t i = 0; i < t->node.network->nodes; i++) basin_known_sums_fill(t, i);
}

basin_status basin_tree_table_open(basin_tree_table *table, const basin_network *network,
                                   const basin_nodes_ensemble *ensemble, size_t memory,
                                   basin_error *error) {
    BASIN_TRY_OR(table_begin(table, network, 0, ensemble, memory, error),
                 basin_tree_table_close(table));
    if (table->label && network->known) {
        memcpy(table->label, network->known, (size_t)network->nodes);
        table->known = network->knows;
    } else if (table->label) {
        table->known = basin_known_labels_find(table->label, &ensemble->known, network);
    }
    take_neighbours(table);
    return BASIN_OK;
}

void basin_tree_table_close(basin_tree_table *table) {
    BASIN_FREE(table->node.row, table->label);
    *table = (basin_tree_table){0};
}

typedef struct rows_needed {
    float *x;
    const basin_tree_table *table;
    const int64_t *node; /* NULL: from `first` on */
    int64_t first;
} rows_needed;

static void fill_rows(const void *context, int64_t begin, int64_t end) {
    const rows_needed *w = context;
    const basin_tree_table *t = w->table;
    int64_t own = t->node.own, R = t->node.relations;
    for (int64_t i = begin; i < end; i++) {
        int64_t n = w->node ? w->node[i] : w->first + i;
        float *row = w->x + i * t->columns;
        basin_node_table_row(row, &t->node, n);
        for (int r = 0; r < R; r++)
            basin_neighbour_mean(row + (1 + R + r) * own, &t->node, 1 + r, t->node.relation[r], n);
        for (int r = 0; r < R && t->label; r++) basin_known_shares(row + t->plain + 2 * r, t, r, n);
    }
}

void basin_tree_table_rows(float *x, const basin_tree_table *t, const int64_t *node, int64_t first,
                           int64_t rows) {
    rows_needed w = {x, t, node, first};
    basin_parallel_for(fill_rows, &w, rows, 64, 0);
}

/* ---- a graph in parts: rows of halos are fetched in between; bits are those of the whole ---- */

/* A label travels as a number, in the place of a sum that is not there yet. */
static float *label_place(const basin_tree_table *t, int64_t node) {
    return t->node.row + (node + 1) * t->node.stride - 1;
}

/* Every rank knows the labels of all nodes, by their ids or numbers in the whole graph. */
static basin_status place_labels(basin_tree_tables *t, const basin_nodes_ensemble *e,
                                 basin_error *error) {
    BASIN_FREE_AT_EXIT int8_t *all = NULL;
    if (!e->known.count) return BASIN_OK;
    basin_status status = e->known.named ? basin_parts_name_nodes(t->parts, error) : BASIN_OK;
    if (!status) status = BASIN_NEW_RAW(&all, t->network->nodes, "trees of parts", error);
    BASIN_TRY(basin_ranks_agree(t->parts->ranks, status, error));
    int64_t known = basin_known_labels_find(all, &e->known, t->network);
    for (basin_tree_table *one = t->table; one < t->table + t->count; one++) {
        const basin_network *n = one->node.network;
        one->known = known;
        for (int64_t i = 0; i < n->nodes; i++) *label_place(one, i) = (float)all[n->origin[i]];
    }
    return BASIN_OK;
}

/* Whether a node of the halo sees a part's is known only where edges go both ways. */
static basin_status begin_parts(basin_tree_tables *t, const basin_nodes_ensemble *e, size_t memory,
                                basin_error *error) {
    const basin_parts *p = t->parts;
    if (e->known.count && p->face->directed)
        return basin_fail(
            error, BASIN_UNSUPPORTED,
            "%s: a directed graph in parts, and trees that look at known labels; needs "
            "the whole graph, or a detector that was trained with labels false",
            p->face->path);
    BASIN_TRY(BASIN_NEW(&t->table, p->count, "trees of parts", error));
    for (; t->count < p->count; t->count++)
        BASIN_TRY(table_begin(&t->table[t->count], p->part[t->count]->network,
                              p->part[t->count]->halo, e, memory / (size_t)p->count, error));
    return BASIN_OK;
}

static basin_status open_parts(basin_tree_tables *t, const basin_nodes_ensemble *e, size_t memory,
                               basin_error *error) {
    basin_status status = begin_parts(t, e, memory, error);
    BASIN_TRY(basin_ranks_agree(t->parts->ranks, status, error));
    BASIN_TRY(place_labels(t, e, error));
    BASIN_TRY(basin_node_tables_fetch(t->parts, &t->table->node, sizeof *t->table, error));
    for (basin_tree_table *one = t->table; one < t->table + t->count; one++) {
        for (int64_t i = 0; i < one->node.network->nodes + one->node.halo && one->label; i++)
            one->label[i] = (int8_t)*label_place(one, i);
        take_neighbours(one);
    }
    return basin_node_tables_fetch(t->parts, &t->table->node, sizeof *t->table, error);
}

basin_status basin_tree_tables_open(basin_tree_tables *t, const basin_network *network,
                                    basin_parts *parts, const basin_nodes_ensemble *ensemble,
                                    size_t memory, basin_error *error) {
    basin_status status;
    *t = (basin_tree_tables){.network = parts ? parts->face : network, .parts = parts};
    if (parts) {
        status = open_parts(t, ensemble, memory, error);
    } else {
        status = BASIN_NEW(&t->table, 1, "the inputs of trees", error);
        if (!status) status = basin_tree_table_open(t->table, network, ensemble, memory, error);
        t->count = 1;
    }
    if (status) basin_tree_tables_close(t);
    return status;
}

/* Also the table whose opening failed. */
void basin_tree_tables_close(basin_tree_tables *t) {
    int64_t max = t->parts ? t->parts->count : t->count;
    for (int64_t k = 0; k < max && t->table; k++) basin_tree_table_close(&t->table[k]);
    free(t->table);
    *t = (basin_tree_tables){0};
}

/* Rows of this rank's chosen nodes, one part after the other; free both. */
static basin_status pack_rows(float **mine, uint8_t **chosen, const basin_tree_tables *t,
                              const int64_t *node, int64_t rows, basin_error *error) {
    int64_t columns = t->table[0].columns, own = 0;
    BASIN_TRY(BASIN_NEW(chosen, t->network->nodes, "trees of parts", error));
    BASIN_SCRATCH_RAW(int64_t, local, t->parts->max_nodes, "trees of parts", error);
    for (int64_t i = 0; i < rows; i++) (*chosen)[node[i]] = 1;
    for (int pass = 0; pass < 2; pass++) {
        if (pass) BASIN_TRY(BASIN_NEW_RAW(mine, own * columns, "trees of parts", error));
        own = 0;
        for (int64_t k = 0; k < t->count; k++) {
            const basin_network *n = t->table[k].node.network;
            int64_t count = 0;
            for (int64_t i = 0; i < n->nodes; i++)
                if ((*chosen)[n->origin[i]]) local[count++] = i;
            if (pass) basin_tree_table_rows(*mine + own * columns, &t->table[k], local, 0, count);
            own += count;
        }
    }
    return BASIN_OK;
}

basin_status basin_tree_tables_rows(float *x, const basin_tree_tables *t, const int64_t *node,
                                    int64_t rows, basin_error *error) {
    BASIN_FREE_AT_EXIT uint8_t *chosen = NULL;
    BASIN_FREE_AT_EXIT float *mine = NULL;
    if (!t->parts) {
        basin_tree_table_rows(x, t->table, node, 0, rows);
        return BASIN_OK;
    }
    basin_status status = pack_rows(&mine, &chosen, t, node, rows, error);
    BASIN_TRY(basin_ranks_agree(t->parts->ranks, status, error));
    return basin_parts_gather_packed(x, t->parts, mine, chosen,
                                     (size_t)t->table[0].columns * sizeof *x, error);
}
