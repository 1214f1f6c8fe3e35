/* The one table of features of a network's nodes; see nodes.h. */
#include "base/parallel.h"
#include "tasks/nodes/near.h"

basin_status basin_node_table_begin(basin_node_table *t, const basin_network *network, bool degree,
                                    bool facts, basin_error *error) {
    t->network = network, t->degree = degree;
    t->facts = facts ? basin_node_facts_width(network, t->relations) : 0;
    t->own = (network->feature ? network->features : 0) + (degree ? t->relations : 0) + t->facts;
    if (t->own > 0) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: no features; needs some, or degree, which makes one", network->path);
}

/* ---- a node's own columns ---- */

/* Features and logarithms of degrees. */
static void fill_plain(float *x, const basin_node_table *t, const float *feature, int64_t node) {
    int64_t F = t->network->feature ? t->network->features : 0;
    if (F) memcpy(x, feature, (size_t)F * sizeof *x);
    for (int r = 0; r < t->relations && t->degree; r++)
        x[F + r] = (float)log1p((double)basin_node_list(t, t->relation[r], node).count);
}

basin_status basin_node_table_own(float *x, int64_t stride, const basin_node_table *t,
                                  basin_error *error) {
    const basin_network *n = t->network;
    for (int64_t i = 0; i < n->nodes; i++)
        fill_plain(x + i * stride, t, n->feature ? n->feature + i * n->features : NULL, i);
    if (!t->facts) return BASIN_OK;
    return basin_node_facts_fill(x + t->own - t->facts, stride, n, t->relation, t->relations,
                                 error);
}

void basin_node_table_own_row(float *x, float *total, const basin_node_table *t, int64_t node) {
    const basin_near_graph *g = t->grown;
    const basin_facts *facts = &g->base->facts;
    fill_plain(x, t, g->base->feature ? basin_near_feature(g, node) : NULL, node);
    x += t->own - t->facts;
    for (int r = 0; r < t->relations && t->facts; r++)
        for (int leaving = 0; leaving <= g->base->directed; leaving++) {
            basin_near_list list = basin_near_sees(g, t->relation[r], node, leaving);
            memset(total, 0, (size_t)facts->count * sizeof *total);
            for (int64_t i = 0; i < list.count; i++)
                basin_facts_merge(total, basin_near_fact(&list, i, facts->count), facts);
            basin_node_facts_columns(x, total, facts);
            x += basin_facts_width(facts);
        }
}

/* ---- means over neighbours ---- */

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

/* to += row; scores of trees spend most of their time here. */
static inline void add_row(float *to, const float *row, int64_t columns) {
    int64_t c = 0;
    for (; c + 4 <= columns; c += 4) *(four *)(to + c) += *(const four *)(row + c);
    for (; c < columns; c++) to[c] += row[c];
}

void basin_neighbour_mean(float *mean, const basin_node_table *t, int64_t block, int relation,
                          int64_t node) {
    basin_near_list list = basin_node_list(t, relation, node);
    int64_t count = 0, at = block * t->own;
    memset(mean, 0, (size_t)t->own * sizeof *mean);
    for (int64_t i = 0; i < list.count; i++) {
        if (list.col[i] == node) continue;
        add_row(mean, basin_node_row(t, list.col[i]) + at, t->own);
        count++;
    }
    for (int64_t c = 0; c < t->own && count; c++) mean[c] /= (float)count;
}

void basin_node_table_mean(float *mean, const basin_node_table *t, int64_t block, int64_t node) {
    basin_neighbour_mean(mean, t, t->chain < 0 ? 0 : block - 1, basin_node_table_along(t, block),
                         node);
}

typedef struct block_means {
    const basin_node_table *table;
    int64_t block;
} block_means;

static void take_some(const void *context, int64_t first, int64_t last) {
    const block_means *m = context;
    const basin_node_table *t = m->table;
    for (int64_t i = first; i < last; i++)
        basin_node_table_mean(t->row + i * t->stride + m->block * t->own, t, m->block, i);
}

void basin_node_table_means(const basin_node_table *t, int64_t block, int threads) {
    basin_parallel_for(take_some, &(block_means){t, block}, t->network->nodes, 256, threads);
}

void basin_node_table_row(float *x, const basin_node_table *t, int64_t node) {
    bool changed = t->grown && t->grown->changes;
    int64_t copied = t->own * (changed ? 1 : 1 + t->means);
    memcpy(x, basin_node_row(t, node), (size_t)copied * sizeof *x);
    for (int64_t b = 1; b <= t->means && changed; b++)
        basin_node_table_mean(x + b * t->own, t, b, node);
}

/* ---- a graph in parts ---- */

basin_status basin_node_tables_fetch(basin_parts *parts, const basin_node_table *first, size_t step,
                                     basin_error *error) {
    BASIN_FREE_AT_EXIT float **row = NULL;
    basin_status status = BASIN_NEW_RAW(&row, parts->count, "rows of parts", error);
    BASIN_TRY(basin_ranks_agree(parts->ranks, status, error));
    for (int64_t k = 0; k < parts->count; k++)
        row[k] = ((const basin_node_table *)((const char *)first + (size_t)k * step))->row;
    return basin_parts_fetch(parts, row, first->stride, error);
}
