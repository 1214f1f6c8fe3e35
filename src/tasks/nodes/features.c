/* The one table of features of a network's nodes; see nodes.h. */
#include "base/parallel.h"
#include "base/sort.h"
#include "tasks/nodes/near.h"

basin_status basin_node_table_begin(basin_node_table *t, const basin_network *network, bool degree,
                                    bool facts, basin_error *error) {
    t->network = network;
    t->facts = facts ? basin_node_facts_width(network, t->relations, true) : 0;
    t->degrees = degree ? network->both ? 3 : t->relations : 0;
    t->own = (network->feature ? network->features : 0) + t->degrees + t->facts;
    if (t->own > 0) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: no features; needs some, or degree, which makes one", network->path);
}

/* ---- columns of an edge ---- */

/* A sum has its mean beside it; extremes are of nodes. */
static int columns_of(uint8_t kind) {
    return kind >= BASIN_FACT_MAX ? 0 : kind == BASIN_FACT_SUM ? 2 : 1;
}

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
        default: break;
        }
    }
}

/* ---- extremes: columns of nodes, after those that edges have ---- */

/* Most edges whose last times lie within a day, and within a week. */
enum { BURSTS = 2 };

static int64_t extremes_width(const basin_facts *facts) {
    int64_t width = 0;
    for (int64_t i = 0; i < facts->count; i++) {
        width += facts->kind[i] >= BASIN_FACT_MAX;
        if (facts->kind[i] == BASIN_FACT_FIRST) width += BURSTS;
    }
    return width;
}

/* Numbers are days, or seconds or milliseconds since 1970 where they are that large. */
static double day_of(const basin_facts *facts) {
    return facts->now > 1e11 ? 86400e3 : facts->now > 1e8 ? 86400 : 1;
}

/* The latest times of a node's edges. */
enum { LATEST = 1024 };
typedef struct times {
    float time[2 * LATEST];
    int count;
} times;

static void sort_times(times *t) {
    qsort(t->time, (size_t)t->count, sizeof *t->time, basin_compare_float);
    if (t->count <= LATEST) return;
    memmove(t->time, t->time + t->count - LATEST, LATEST * sizeof *t->time);
    t->count = LATEST;
}

static int max_within(const times *t, double span) {
    int max = 0;
    for (int first = 0, last = 0; last < t->count; last++) {
        while ((double)t->time[last] - (double)t->time[first] >= span) first++;
        max = max > last - first + 1 ? max : last - first + 1;
    }
    return max;
}

static void fill_extremes(float *column, const basin_facts *facts, const float *fact, times *t) {
    double count = fact[0] > 0 ? (double)fact[0] : 1;
    for (int64_t i = 0; i < facts->count; i++) {
        double x = (double)fact[i], mean;
        switch ((basin_fact_kind)facts->kind[i]) {
        case BASIN_FACT_MAX:
        case BASIN_FACT_MIN: *column++ = compress(x); break;
        case BASIN_FACT_SQUARES: /* the sum is four before; rounding leaves a trace of the mean */
            mean = (double)fact[i - 4] / count, x = x / count - mean * mean;
            *column++ = compress(x > 1e-6 * mean * mean ? sqrt(x) : 0);
            break;
        case BASIN_FACT_ROUND: *column++ = (float)(x / count); break;
        case BASIN_FACT_FIRST:
            *column++ = compress(fact[0] > 0 ? fmax(facts->now - x, 0) : 0);
            sort_times(t);
            *column++ = compress(max_within(t, day_of(facts)));
            *column++ = compress(max_within(t, 7 * day_of(facts)));
            break;
        default: break;
        }
    }
}

/* ---- what columns are ---- */

/* Which fact column `*column` of a node is of, and which of its columns; *side: of edges that come,
 * that go, or of all. */
static int64_t fact_of(const basin_network *n, int64_t *column, int *side) {
    const basin_facts *facts = &n->facts;
    int64_t width = basin_facts_width(facts), more = extremes_width(facts), i = 0;
    int64_t ways = 1 + (n->directed || n->both), apart = ways * (width + more);
    *side = ways == 1 ? BASIN_HOMO : BASIN_COME;
    if (*column >= apart) *column -= apart, ways = 1, *side = BASIN_HOMO; /* of both ways */
    bool extreme = *column >= width * ways;
    if (extreme) *column -= width * ways, width = more;
    if (*column >= width) *side = BASIN_GO;
    for (*column %= width;; i++) {
        uint8_t kind = facts->kind[i];
        int64_t own = !extreme                   ? columns_of(kind)
                      : kind == BASIN_FACT_FIRST ? 1 + BURSTS
                                                 : kind >= BASIN_FACT_MAX;
        if (*column < own) return i;
        *column -= own;
    }
}

double basin_facts_value(const basin_network *network, int64_t column, double x) {
    int side;
    uint8_t kind = network->facts.kind[fact_of(network, &column, &side)];
    bool share = kind == BASIN_FACT_KIND || kind == BASIN_FACT_ROUND;
    return share ? x : copysign(expm1(fabs(x)), x);
}

/* What comes before "of edges", and how much of the fact's name is the column's. */
static int name_fact(const char **what, const basin_facts *facts, int64_t fact, int64_t column) {
    const char *name = facts->name.text + facts->name.at[fact];
    int length = (int)strlen(name);
    *what = "";
    switch ((basin_fact_kind)facts->kind[fact]) {
    case BASIN_FACT_FIRST:
        *what = column == 1 ? "most in a day" : column == 2 ? "most in a week" : " age";
        return column ? 0 : length;
    case BASIN_FACT_DATE:
    case BASIN_FACT_TIME:
        if (facts->kind[fact] == BASIN_FACT_DATE && facts->time < 0) return length;
        *what = " age";
        return length - (int)strlen(" last");
    case BASIN_FACT_SUM:
        if (!column) return length;
        *what = " mean";
        return length - (int)strlen(" sum");
    default: return length;
    }
}

void basin_nodes_fact_name(char text[BASIN_FACT_TEXT], const basin_network *network, int64_t fact) {
    const basin_facts *facts = &network->facts;
    static const char *const which[] = {"", " that come", " that go"};
    const char *what;
    int side;
    int64_t i = fact_of(network, &fact, &side);
    int stem = name_fact(&what, facts, i, fact);
    snprintf(text, BASIN_FACT_TEXT, "%.*s%s of edges%s", stem < 180 ? stem : 180,
             facts->name.text + facts->name.at[i], what, which[side]);
}

/* ---- columns of a node ---- */

/* Ways in which a node's edges are summed up: all, or those that come, that go, and all. */
static int ways_of(const basin_network *n) { return n->both ? 3 : 1 + n->directed; }

int64_t basin_node_facts_width(const basin_network *network, int relations, bool extremes) {
    int64_t width = basin_facts_width(&network->facts);
    if (extremes) width += extremes_width(&network->facts);
    return width * relations * ways_of(network);
}

/* The columns of one way, of the edges of a list; `total` has room for their facts. */
static void fill_facts(float *x, float *total, const basin_network *n, const basin_near_list *list,
                       int way, bool extremes) {
    const basin_facts *facts = &n->facts;
    int64_t F = facts->count, width = basin_facts_width(facts), more = extremes_width(facts);
    int64_t apart = way < 2 ? ways_of(n) < 2 ? 1 : 2 : 1; /* ways side by side with this one */
    times t = {.count = 0};
    if (way == 2) x += 2 * (width + more), way = 0;
    extremes = extremes && more;
    memset(total, 0, (size_t)F * sizeof *total);
    for (int64_t i = 0; i < list->count; i++) {
        const float *fact = basin_near_fact(list, i, F);
        basin_facts_merge(total, fact, facts);
        if (!extremes || facts->time < 0) continue;
        if (t.count == 2 * LATEST) sort_times(&t);
        t.time[t.count++] = fact[facts->time];
    }
    /* Without times which edge is the last is chance. */
    for (int64_t i = 0; i < F && facts->time < 0; i++)
        if (facts->kind[i] == BASIN_FACT_LAST || facts->kind[i] == BASIN_FACT_DATE) total[i] = 0;
    if (total[0] == 0 && facts->time >= 0) total[facts->time] = (float)facts->now;
    basin_facts_columns(x + way * width, facts, total);
    if (extremes) fill_extremes(x + apart * width + way * more, facts, total, &t);
}

/* Which relation has the edges of a way. */
static int side_of(const basin_network *n, int relation, int way) {
    static const int side[] = {BASIN_COME, BASIN_GO, BASIN_HOMO};
    return n->both ? side[way] : relation;
}

basin_status basin_node_facts_fill(float *x, int64_t stride, const basin_network *n,
                                   const int *relation, int relations, bool extremes,
                                   basin_error *error) {
    int64_t width = basin_node_facts_width(n, 1, extremes);
    BASIN_SCRATCH_RAW(float, total, n->facts.count, "totals of edges", error);
    for (int k = 0; k < relations * ways_of(n); k++) {
        int way = k % ways_of(n), r = k / ways_of(n);
        const basin_relation *own = &n->relation[side_of(n, relation[r], way)];
        BASIN_AT_EXIT(basin_relation_free) basin_relation back = {0};
        BASIN_FREE_AT_EXIT int64_t *entry = NULL;
        bool turns = way && n->directed;
        if (turns) BASIN_TRY(basin_relation_turn(&back, &entry, own, n->nodes, error));
        const int64_t *row = turns ? back.row : own->row;
        for (int64_t i = 0; i < n->nodes; i++) {
            basin_near_list list = {.count = row[i + 1] - row[i],
                                    .fact = own->fact,
                                    .first = row[i],
                                    .entry = turns ? entry + row[i] : NULL};
            fill_facts(x + i * stride + r * width, total, n, &list, way, extremes);
        }
    }
    return BASIN_OK;
}

/* ---- a node's own columns ---- */

/* Features and logarithms of degrees. */
static void fill_plain(float *x, const basin_node_table *t, const float *feature, int64_t node) {
    int64_t F = t->network->feature ? t->network->features : 0;
    if (F) memcpy(x, feature, (size_t)F * sizeof *x);
    for (int r = 0; r < t->degrees; r++) {
        int along = t->network->both ? r : t->relation[r];
        x[F + r] = (float)log1p((double)basin_node_list(t, along, node).count);
    }
}

basin_status basin_node_table_own(float *x, int64_t stride, const basin_node_table *t,
                                  basin_error *error) {
    const basin_network *n = t->network;
    for (int64_t i = 0; i < n->nodes; i++)
        fill_plain(x + i * stride, t, n->feature ? n->feature + i * n->features : NULL, i);
    if (!t->facts) return BASIN_OK;
    return basin_node_facts_fill(x + t->own - t->facts, stride, n, t->relation, t->relations, true,
                                 error);
}

void basin_node_table_own_row(float *x, float *total, const basin_node_table *t, int64_t node) {
    const basin_near_graph *g = t->grown;
    fill_plain(x, t, g->base->feature ? basin_near_feature(g, node) : NULL, node);
    x += t->own - t->facts;
    for (int r = 0; r < t->relations && t->facts; r++, x += t->facts / t->relations)
        for (int way = 0; way < ways_of(g->base); way++) {
            int side = side_of(g->base, t->relation[r], way);
            basin_near_list list = basin_near_sees(g, side, node, way && g->base->directed);
            fill_facts(x, total, g->base, &list, way, true);
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
