/* Facts of edges: how parallel rows become one, how facts follow edges into unions, parts. */
#include "base/parallel.h"
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
    for (int64_t i = 0; i < facts->count; i++) switch ((basin_fact_kind)facts->kind[i]) {
        case BASIN_FACT_COUNT:
        case BASIN_FACT_SUM:
        case BASIN_FACT_KIND: to[i] += later[i]; break;
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

typedef struct adding {
    basin_relation *relation;
    const basin_facts *facts;
    double *last; /* [edges] the latest time of each; NULL: rows have none */
} adding;

static void add_row(const adding *a, int64_t node, int64_t other, const float *fact, double time) {
    int64_t at = basin_relation_find(a->relation, node, (int32_t)other);
    if (at < 0) return; /* a loop that was dropped */
    float *to = a->relation->fact + at * a->facts->count;
    bool newer = a->last ? time >= a->last[at] : is_newer(to, fact, a->facts);
    if (a->last && newer) a->last[at] = time;
    merge(to, fact, newer, a->facts);
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
    }
}

/* When an edge that is there was last: what rounds to the same float is not before it. */
static double time_of(const float *fact, const basin_facts *facts) {
    if (fact[0] == 0 || facts->time < 0) return -INFINITY;
    float time = fact[facts->time];
    return ((double)time + (double)nextafterf(time, -INFINITY)) / 2;
}

basin_status basin_network_add_facts(basin_network *network, basin_relation *relation,
                                     const basin_edges *edges, const float *fact, const float *cell,
                                     const double *time, basin_error *error) {
    adding a = {relation, &network->facts, NULL};
    BASIN_FREE_AT_EXIT double *last = NULL;
    if (!relation->fact) BASIN_TRY(basin_relation_alloc_facts(relation, a.facts, error));
    BASIN_SCRATCH_RAW(float, row, a.facts->count, "facts of edges", error);
    if (time) BASIN_TRY(BASIN_NEW_RAW(&last, relation->edges, "facts of edges", error));
    for (int64_t e = 0; e < relation->edges && last; e++)
        last[e] = time_of(relation->fact + e * a.facts->count, a.facts);
    a.last = last;
    for (int64_t i = 0; i < edges->count; i++) {
        int64_t u = basin_whole_at(edges->from, edges->dtype, i * edges->stride);
        int64_t v = basin_whole_at(edges->to, edges->dtype, i * edges->stride);
        const float *one = fact ? fact + i * a.facts->count : row;
        if (!fact) schema_fill_facts(row, network->schema, cell + i * network->schema->cells);
        add_row(&a, v, u, one, time ? time[i] : 0);
        if (!network->directed && u != v) add_row(&a, u, v, one, time ? time[i] : 0);
    }
    return BASIN_OK;
}
