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

/* ---- columns of an edge ---- */

/* A sum has its mean beside it. */
static int columns_of(uint8_t kind) { return kind == BASIN_FACT_SUM ? 2 : 1; }

int64_t basin_facts_width(const basin_facts *facts) {
    int64_t width = 0;
    for (int64_t i = 0; i < facts->count; i++) width += columns_of(facts->kind[i]);
    return width;
}

/* Amounts and ages spread over decades. */
static float compress(double x) { return (float)copysign(log1p(fabs(x)), x); }

void basin_facts_columns(float *column, const basin_facts *facts, const float *fact) {
    double count = fact[0] > 0 ? (double)fact[0] : 1;
    for (int64_t i = 0; i < facts->count; i++) {
        double x = (double)fact[i];
        switch ((basin_fact_kind)facts->kind[i]) {
        case BASIN_FACT_COUNT:
        case BASIN_FACT_LAST: *column++ = compress(x); break;
        case BASIN_FACT_SUM:
            *column++ = compress(x);
            *column++ = compress(x / count);
            break;
        case BASIN_FACT_DATE: *column++ = compress(facts->time < 0 ? x : facts->now - x); break;
        case BASIN_FACT_TIME: *column++ = compress(fmax(facts->now - x, 0)); break;
        case BASIN_FACT_KIND: *column++ = (float)(x / count); break;
        }
    }
}

/* Which fact a column is of, and which of its columns. */
static int64_t fact_of(const basin_facts *facts, int64_t *column) {
    int64_t i = 0;
    *column %= basin_facts_width(facts);
    for (; *column >= columns_of(facts->kind[i]); i++) *column -= columns_of(facts->kind[i]);
    return i;
}

double basin_facts_value(const basin_facts *facts, int64_t column, double x) {
    return facts->kind[fact_of(facts, &column)] == BASIN_FACT_KIND ? x
                                                                   : copysign(expm1(fabs(x)), x);
}

void basin_nodes_fact_name(char text[BASIN_FACT_TEXT], const basin_network *network, int64_t fact) {
    const basin_facts *facts = &network->facts;
    bool leaves = fact >= basin_facts_width(facts);
    int64_t i = fact_of(facts, &fact);
    const char *name = facts->name.text + facts->name.at[i];
    uint8_t kind = facts->kind[i];
    bool age = kind == BASIN_FACT_TIME || (kind == BASIN_FACT_DATE && facts->time >= 0);
    bool mean = kind == BASIN_FACT_SUM && fact;
    int stem = (int)strlen(name) - (int)strlen(age ? " last" : mean ? " sum" : "");
    snprintf(text, BASIN_FACT_TEXT, "%.*s%s of edges%s", stem < 180 ? stem : 180, name,
             age    ? " age"
             : mean ? " mean"
                    : "",
             !network->directed ? ""
             : leaves           ? " that go"
                                : " that come");
}

/* ---- columns of a node ---- */

int64_t basin_node_facts_width(const basin_network *network, int relations) {
    return basin_facts_width(&network->facts) * relations * (network->directed ? 2 : 1);
}

/* Sums facts over the edges in each node's row, or with `leaving` those in whose row it is. */
static void total(float *sum /* [N, facts] */, const basin_network *n, const basin_relation *r,
                  bool leaving) {
    const basin_facts *facts = &n->facts;
    memset(sum, 0, (size_t)(n->nodes * facts->count) * sizeof *sum);
    for (int64_t i = 0; i < n->nodes; i++)
        for (int64_t e = r->row[i]; e < r->row[i + 1]; e++) {
            int64_t node = leaving ? r->col[e] : i;
            basin_facts_merge(sum + node * facts->count, r->fact + e * facts->count, facts);
        }
}

void basin_node_facts_columns(float *x, float *fact, const basin_facts *facts) {
    /* Without times which edge is the last is chance. */
    for (int64_t i = 0; i < facts->count && facts->time < 0; i++)
        if (facts->kind[i] == BASIN_FACT_LAST || facts->kind[i] == BASIN_FACT_DATE) fact[i] = 0;
    if (fact[0] == 0 && facts->time >= 0) fact[facts->time] = (float)facts->now;
    basin_facts_columns(x, facts, fact);
}

basin_status basin_node_facts_fill(float *x, int64_t stride, const basin_network *network,
                                   const int *relation, int relations, basin_error *error) {
    const basin_facts *facts = &network->facts;
    int64_t width = basin_facts_width(facts);
    BASIN_SCRATCH_RAW(float, sum, network->nodes * facts->count, "totals of edges", error);
    for (int r = 0; r < relations; r++)
        for (int leaving = 0; leaving <= network->directed; leaving++, x += width) {
            total(sum, network, &network->relation[relation[r]], leaving);
            for (int64_t i = 0; i < network->nodes; i++)
                basin_node_facts_columns(x + i * stride, sum + i * facts->count, facts);
        }
    return BASIN_OK;
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
