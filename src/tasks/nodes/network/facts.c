/* Facts of edges: how parallel rows become one, how facts follow edges into unions, parts. */
#include "base/parallel.h"
#include "base/sort.h"
#include "tasks/nodes/network/network.h"

basin_status basin_facts_copy(basin_facts *copy, const basin_facts *facts, basin_error *error) {
    *copy = (basin_facts){.count = facts->count, .time = facts->time, .now = facts->now};
    if (!facts->count) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(&copy->kind, facts->count, "facts of edges", error));
    memcpy(copy->kind, facts->kind, (size_t)facts->count);
    return basin_names_copy(&copy->name, &facts->name, error);
}

static bool is_newer(const float *to, const float *later, const basin_facts *facts) {
    bool none = to[0] == 0; /* the count */
    return none || facts->time < 0 || later[facts->time] >= to[facts->time];
}

static void merge(float *to, const float *later, bool newer, const basin_facts *facts) {
    bool none = to[0] == 0;
    for (int64_t i = 0; i < facts->count; i++) switch ((basin_fact_kind)facts->kind[i]) {
        case BASIN_FACT_COUNT:
        case BASIN_FACT_SUM:
        case BASIN_FACT_SQUARES:
        case BASIN_FACT_ROUND:
        case BASIN_FACT_KIND: to[i] += later[i]; break;
        case BASIN_FACT_MAX: to[i] = none ? later[i] : fmaxf(to[i], later[i]); break;
        case BASIN_FACT_FIRST:
        case BASIN_FACT_MIN: to[i] = none ? later[i] : fminf(to[i], later[i]); break;
        case BASIN_FACT_LAST:
        case BASIN_FACT_DATE:
        case BASIN_FACT_TIME: to[i] = newer ? later[i] : to[i]; break;
        }
}

void basin_facts_merge(float *to, const float *later, const basin_facts *facts) {
    merge(to, later, is_newer(to, later, facts), facts);
}

void basin_network_forget_facts(basin_network *network) {
    basin_facts_free(&network->facts);
    for (int r = 0; r < network->relations; r++) {
        basin_relation *relation = &network->relation[r];
        if (!relation->fact_mapped) free(relation->fact);
        relation->fact = NULL;
    }
}

basin_status basin_relation_alloc_facts(basin_relation *relation, const basin_facts *facts,
                                        basin_error *error) {
    size_t count;
    if (!facts->count) return BASIN_OK;
    if (basin_size_multiply(&count, (size_t)relation->edges, (size_t)facts->count))
        relation->fact = calloc(count + 1, sizeof *relation->fact);
    if (relation->fact) return BASIN_OK;
    return basin_fail_memory(error, "facts of edges");
}

typedef struct taking {
    const basin_relation *to, *from;
    const int64_t *node; /* of `from`, by number in `to`; NULL: the same */
    const basin_facts *facts;
} taking;

static void merge_some(const void *context, int64_t first, int64_t last) {
    const taking *t = context;
    int64_t count = t->facts->count;
    for (int64_t i = first; i < last; i++)
        for (int64_t e = t->from->row[i]; e < t->from->row[i + 1]; e++) {
            int64_t at = basin_relation_find(t->to, i, t->from->col[e]);
            basin_facts_merge(t->to->fact + at * count, t->from->fact + e * count, t->facts);
        }
}

void basin_relation_merge_facts(basin_relation *to, const basin_relation *from, int64_t nodes,
                                const basin_facts *facts) {
    taking t = {to, from, NULL, facts};
    if (!facts->count || !from->fact) return;
    basin_parallel_for(merge_some, &t, nodes, 256, 0);
}

static void copy_some(const void *context, int64_t first, int64_t last) {
    const taking *t = context;
    const basin_relation *part = t->to, *whole = t->from;
    int64_t count = t->facts->count;
    for (int64_t i = first; i < last; i++)
        for (int64_t e = part->row[i]; e < part->row[i + 1]; e++) {
            int64_t other = t->node[part->col[e]];
            int64_t from = basin_relation_find(whole, t->node[i], (int32_t)other);
            memcpy(part->fact + e * count, whole->fact + from * count,
                   (size_t)count * sizeof *part->fact);
        }
}

basin_status basin_relation_copy_facts(basin_relation *part, const basin_relation *whole,
                                       const int64_t *node, int64_t nodes, const basin_facts *facts,
                                       basin_error *error) {
    if (!whole->fact) return BASIN_OK;
    BASIN_TRY(basin_relation_alloc_facts(part, facts, error));
    taking t = {part, whole, node, facts};
    basin_parallel_for(copy_some, &t, nodes, 256, 0);
    return BASIN_OK;
}

/* ---- rows of a table: those of one edge count in the order of time, then of their numbers, in
 * whatever order the table has them ---- */

typedef struct edge_row {
    double time; /* 0 where rows have none */
    const float *number;
    int64_t numbers;
} edge_row;

static int compare_rows(const void *a, const void *b) {
    const edge_row *x = a, *y = b;
    if (x->time != y->time) return BASIN_COMPARE(x->time, y->time);
    for (int64_t i = 0; i < x->numbers; i++)
        if (x->number[i] != y->number[i]) return BASIN_COMPARE(x->number[i], y->number[i]);
    return 0;
}

typedef struct adding {
    const basin_network *network;
    basin_relation *relation;
    const basin_edges *edges;
    const float *cell;    /* [rows, cells] of the schema */
    const double *time;   /* [rows]; NULL: rows have none */
    int64_t *head, *next; /* [entries], [rows] 1 + the rows of each entry; 0: no more */
} adding;

/* Two digits and zeros: 1500, 25, 0.3. */
static bool is_round(float x) {
    double digits = fabs((double)x);
    if (digits > 0) digits /= pow(10, floor(log10(digits)) - 1);
    return fabs(digits - nearbyint(digits)) < 1e-5 * digits;
}

/* MAX, MIN, SQUARES, ROUND of one row. */
static float *fill_extremes(float *fact, float x) {
    static const float limit = 1e16f; /* squares of more of them would not add up */
    *fact++ = x, *fact++ = x;
    *fact++ = fminf(fabsf(x), limit) * fminf(fabsf(x), limit);
    *fact++ = is_round(x);
    return fact;
}

static void schema_fill_facts(float *fact, const basin_schema *schema, const float *cell) {
    *fact++ = 1;
    for (size_t i = 0; i < schema->edges.columns; i++) {
        const basin_schema_column *c = &schema->edges.column[i];
        const float *from = cell + c->first;
        int64_t width = basin_schema_width(c);
        bool twice = c->type == BASIN_COLUMN_NUMBER && !c->time; /* sum and last */
        for (int64_t k = 0; k < width; k++) *fact++ = from[k];
        if (twice) *fact++ = *from;
        if (twice && schema->extremes) fact = fill_extremes(fact, *from);
        if (c->time && schema->extremes) *fact++ = *from;
    }
}

/* When an edge that is there was last: what rounds to the same float is not before it. */
static double time_of(const float *fact, const basin_facts *facts) {
    if (fact[0] == 0 || facts->time < 0) return -INFINITY;
    float time = fact[facts->time];
    return ((double)time + (double)nextafterf(time, -INFINITY)) / 2;
}

/* The entry that has a row's facts: of an undirected edge that at the lower node, which the other
 * is a copy of. */
static int64_t entry_of(const adding *a, int64_t row) {
    int64_t u = basin_whole_at(a->edges->from, a->edges->dtype, row * a->edges->stride);
    int64_t v = basin_whole_at(a->edges->to, a->edges->dtype, row * a->edges->stride);
    bool turn = !a->network->directed && u < v;
    return basin_relation_find(a->relation, turn ? u : v, (int32_t)(turn ? v : u));
}

static void list_rows(adding *a) {
    for (int64_t i = 0; i < a->edges->count; i++) {
        int64_t at = entry_of(a, i);
        a->next[i] = a->head[at];
        a->head[at] = i + 1;
    }
}

/* Merges `count` rows into the facts of an entry. */
static void merge_rows(const adding *a, float *to, edge_row *row, int64_t count, float *scratch) {
    const basin_facts *facts = &a->network->facts;
    double last = a->time ? time_of(to, facts) : 0;
    qsort(row, (size_t)count, sizeof *row, compare_rows);
    for (int64_t i = 0; i < count; i++) {
        schema_fill_facts(scratch, a->network->schema, row[i].number);
        bool newer = a->time ? row[i].time >= last : is_newer(to, scratch, facts);
        if (newer) last = row[i].time;
        merge(to, scratch, newer, facts);
    }
}

static basin_status merge_entries(const adding *a, basin_error *error) {
    const basin_relation *r = a->relation;
    BASIN_FREE_AT_EXIT edge_row *row = NULL;
    size_t capacity = 0;
    int64_t F = a->network->facts.count, cells = a->network->schema->cells;
    BASIN_SCRATCH_RAW(float, scratch, F, "facts of edges", error);
    for (int64_t v = 0; v < a->network->nodes; v++)
        for (int64_t e = r->row[v]; e < r->row[v + 1]; e++) {
            int64_t count = 0, u = r->col[e];
            for (int64_t i = a->head[e]; i; i = a->next[i - 1]) {
                BASIN_TRY(BASIN_GROW(&row, &capacity, (size_t)count + 1, "facts of edges", error));
                row[count++] =
                    (edge_row){a->time ? a->time[i - 1] : 0, a->cell + (i - 1) * cells, cells};
            }
            if (!count) continue;
            merge_rows(a, r->fact + e * F, row, count, scratch);
            if (a->network->directed || u == v) continue;
            int64_t other = basin_relation_find(r, u, (int32_t)v);
            memcpy(r->fact + other * F, r->fact + e * F, (size_t)F * sizeof *r->fact);
        }
    return BASIN_OK;
}

basin_status basin_network_add_facts(basin_network *network, basin_relation *relation,
                                     const basin_edges *edges, const float *cell,
                                     const double *time, basin_error *error) {
    adding a = {network, relation, edges, cell, time, NULL, NULL};
    if (!relation->fact) BASIN_TRY(basin_relation_alloc_facts(relation, &network->facts, error));
    BASIN_SCRATCH(int64_t, head, relation->edges, "facts of edges", error);
    BASIN_SCRATCH_RAW(int64_t, next, edges->count, "facts of edges", error);
    a.head = head, a.next = next;
    list_rows(&a);
    return merge_entries(&a, error);
}
