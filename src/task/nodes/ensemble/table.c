/* The table that trees read, made row by row; see ensemble.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/team/team.h"
#include "task/nodes/ensemble/ensemble.h"
#include "task/nodes/inputs.h"

static basin_status find_relations(basin_tree_table *t, const basin_nodes_ensemble *ensemble,
                                   basin_error *error) {
    for (int i = 0; i < ensemble->relations; i++) {
        int found = -1;
        for (int r = 0; r < t->network->relations && found < 0; r++)
            if (!strcmp(t->network->relation[r].name, ensemble->relation[i])) found = r;
        /* A network of one relation has no other to be mistaken for. */
        if (found < 0 && ensemble->relations == 1) found = basin_network_main_relation(t->network);
        if (found < 0)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: no relation '%s', which the detector was trained with",
                              t->network->path, ensemble->relation[i]);
        t->relation[t->relations++] = found;
    }
    return BASIN_OK;
}

static const basin_relation *relation_of(const basin_tree_table *t, int r) {
    return &t->network->relation[t->relation[r]];
}

static void fill_raw(const basin_tree_table *t, int64_t features) {
    for (int64_t i = 0; i < t->network->nodes; i++) {
        float *row = t->raw + i * t->own;
        if (features)
            memcpy(row, t->network->feature + i * features, (size_t)features * sizeof *row);
        for (int64_t c = features; c < t->own - t->facts; c++) {
            const int64_t *at = relation_of(t, (int)(c - features))->row + i;
            row[c] = (float)log1p((double)(at[1] - at[0]));
        }
    }
}

static void fill_near(const void *context, int64_t first, int64_t last, int place) {
    const basin_tree_table *t = context;
    int64_t stride = t->relations * t->own;
    (void)place;
    for (int64_t i = first; i < last; i++)
        for (int r = 0; r < t->relations; r++)
            basin_neighbour_mean(t->near + i * stride + r * t->own, t->raw, t->own, t->own,
                                 relation_of(t, r), i);
}

/* Rows of all nodes, and of their neighbours' means. */
static basin_status allocate(basin_tree_table *t, size_t memory, basin_error *error) {
    size_t rows = (size_t)(t->network->nodes + t->halo), cells;
    bool fits = basin_size_multiply(&cells, rows, (size_t)(t->own * (1 + t->relations)));
    double gib = fits ? (double)cells * sizeof(float) / (1 << 30) : INFINITY;
    if (!fits || (memory && cells > memory / sizeof(float)))
        return basin_fail(error, BASIN_NO_MEMORY,
                          "%s: the inputs of trees take %.3g GiB of %.3g allowed; wanted more "
                          "memory, or trees 0",
                          t->network->path, gib, (double)memory / (1 << 30));
    t->raw = basin_array_new(rows * (size_t)t->own, sizeof *t->raw);
    t->near = basin_array_new(rows * (size_t)(t->own * t->relations), sizeof *t->near);
    if (t->raw && t->near) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the inputs of trees");
}

static basin_status allocate_labels(basin_tree_table *t, const basin_nodes_ensemble *ensemble,
                                    basin_error *error) {
    size_t N = (size_t)(t->network->nodes + t->halo);
    if (!ensemble->known.count) return BASIN_OK;
    t->rate = ensemble->rate;
    t->label = basin_array_new(N, 1);
    bool room = t->label;
    for (int r = 0; r < t->relations; r++) {
        t->sums[r].anomalous = basin_array_new(N, sizeof *t->sums[r].anomalous);
        t->sums[r].count = basin_array_new(N, sizeof *t->sums[r].count);
        room = room && t->sums[r].anomalous && t->sums[r].count;
    }
    return room ? BASIN_OK : basin_fail(error, BASIN_NO_MEMORY, "out of memory for known labels");
}

void basin_tree_table_sum_labels(basin_tree_table *t) {
    for (int r = 0; r < t->relations && t->label; r++)
        basin_known_sums_fill(&t->sums[r], t->label, relation_of(t, r), t->network->nodes);
}

void basin_tree_table_take_means(basin_tree_table *table) {
    basin_team_run_all(fill_near, table, table->network->nodes, 256);
}

basin_status basin_tree_table_begin(basin_tree_table *table, const basin_network *network,
                                    int64_t halo, const basin_nodes_ensemble *ensemble,
                                    size_t memory, basin_error *error) {
    int64_t features = network->feature ? network->features : 0;
    *table = (basin_tree_table){.network = network, .halo = halo};
    basin_status status = find_relations(table, ensemble, error);
    table->facts = ensemble->facts ? basin_node_facts_width(network, table->relations) : 0;
    table->own = features + (ensemble->degree ? table->relations : 0) + table->facts;
    table->plain = table->own * (1 + 2 * table->relations);
    table->columns = table->plain + (ensemble->known.count ? 2 * table->relations : 0);
    if (!status && table->own < 1)
        status =
            basin_fail(error, BASIN_BAD_VALUE,
                       "%s: no features; wanted some, or degree, which makes one", network->path);
    if (!status) status = allocate(table, memory, error);
    if (!status) status = allocate_labels(table, ensemble, error);
    if (!status) fill_raw(table, features);
    if (!status && table->facts)
        status = basin_node_facts_fill(table->raw + table->own - table->facts, table->own, network,
                                       table->relation, table->relations, error);
    if (status) basin_tree_table_close(table);
    return status;
}

basin_status basin_tree_table_open(basin_tree_table *table, const basin_network *network,
                                   const basin_nodes_ensemble *ensemble, size_t memory,
                                   basin_error *error) {
    basin_status status = basin_tree_table_begin(table, network, 0, ensemble, memory, error);
    if (status) return status;
    if (table->label)
        table->known = basin_known_labels_find(table->label, &ensemble->known, network);
    basin_tree_table_sum_labels(table);
    basin_tree_table_take_means(table);
    return BASIN_OK;
}

void basin_tree_table_close(basin_tree_table *table) {
    free(table->raw);
    free(table->near);
    free(table->label);
    for (int r = 0; r < BASIN_TREE_RELATIONS; r++)
        free(table->sums[r].anomalous), free(table->sums[r].count);
    *table = (basin_tree_table){0};
}

typedef struct rows_wanted {
    float *x;
    const basin_tree_table *table;
    const int64_t *node; /* NULL: from `first` on */
    int64_t first;
} rows_wanted;

static void fill_rows(const void *context, int64_t begin, int64_t end, int place) {
    const rows_wanted *w = context;
    const basin_tree_table *t = w->table;
    int64_t own = t->own, stride = t->relations * own;
    (void)place;
    for (int64_t i = begin; i < end; i++) {
        int64_t n = w->node ? w->node[i] : w->first + i;
        float *row = w->x + i * t->columns;
        memcpy(row, t->raw + n * own, (size_t)own * sizeof *row);
        memcpy(row + own, t->near + n * stride, (size_t)stride * sizeof *row);
        for (int r = 0; r < t->relations; r++)
            basin_neighbour_mean(row + own + stride + r * own, t->near + r * own, stride, own,
                                 relation_of(t, r), n);
        for (int r = 0; r < t->relations && t->label; r++)
            basin_known_shares(row + t->plain + 2 * r, &t->sums[r], t->label, relation_of(t, r),
                               t->network->directed, n, t->rate);
    }
}

void basin_tree_table_rows(float *x, const basin_tree_table *t, const int64_t *node, int64_t first,
                           int64_t rows) {
    rows_wanted w = {x, t, node, first};
    basin_team_run_all(fill_rows, &w, rows, 64);
}

static basin_status rows_of_whole(const basin_tree_source *source, float *x, const int64_t *node,
                                  int64_t rows, basin_error *error) {
    (void)error;
    basin_tree_table_rows(x, source->table, node, 0, rows);
    return BASIN_OK;
}

basin_tree_source basin_tree_source_of(const basin_tree_table *table) {
    return (basin_tree_source){table->network, table, rows_of_whole};
}
