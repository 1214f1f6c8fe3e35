/* Parts of a network: what a set of nodes induces, and mini-batches of sampled neighbourhoods.
 *
 * A table of all nodes says which place each has in the part. It is asked for in zeros and only
 * touched where the part is, so that small parts of large networks stay cheap. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/team/team.h"
#include "base/try.h"
#include "basin/random.h"
#include "data/network/network.h"

typedef struct part {
    const basin_network *whole;
    int32_t *place; /* [N] 1 + number in the part, 0 where the node is not in it */
    int64_t *node;  /* [count] of the whole */
    size_t count, capacity;
} part;

static basin_status part_add(part *p, int64_t node, basin_error *error) {
    if (p->place[node]) return BASIN_OK;
    if (!basin_array_reserve((void **)&p->node, &p->capacity, p->count + 1, sizeof *p->node))
        return basin_fail_memory(error, "a part of a network");
    p->node[p->count++] = node;
    p->place[node] = (int32_t)p->count;
    return BASIN_OK;
}

static basin_status part_start(part *p, const basin_network *whole, const int64_t *node,
                               int64_t count, basin_error *error) {
    *p = (part){.whole = whole};
    BASIN_TRY(BASIN_NEW(&p->place, whole->nodes, "a network", error));
    for (int64_t i = 0; i < count; i++) {
        if (node[i] < 0 || node[i] >= whole->nodes || p->place[node[i]])
            return basin_fail(
                error, BASIN_BAD_VALUE, "%s: node %" PRId64 " is %s in a part of %" PRId64 " nodes",
                whole->path, node[i], node[i] < 0 || node[i] >= whole->nodes ? "none" : "twice",
                whole->nodes);
        BASIN_TRY(part_add(p, node[i], error));
    }
    return BASIN_OK;
}

static void part_end(part *p) {
    free(p->place);
    free(p->node);
}

/* ---- what belongs to nodes ---- */

basin_status basin_network_copy_head(basin_network *to, const basin_network *from,
                                     basin_error *error) {
    to->features = from->features;
    to->splits = from->splits;
    to->directed = from->directed;
    if (from->note && !(to->note = basin_string_copy(from->note)))
        return basin_fail_memory(error, "a network");
    if (from->schema) BASIN_TRY(basin_schema_copy(&to->schema, from->schema, error));
    BASIN_TRY(basin_names_copy(&to->column, &from->column, error));
    return basin_names_copy(&to->class_name, &from->class_name, error);
}

/* Rows of `width` bytes of the nodes, of `tables` tables [N, width]; NULL where there is none. */
static basin_status copy_rows(void **to, const void *from, const int64_t *node, int64_t count,
                              int64_t nodes, int64_t tables, size_t width, basin_error *error) {
    size_t rows = (size_t)count * (size_t)tables;
    if (!from) return BASIN_OK;
    if (!(*to = basin_array_new(rows, width))) return basin_fail_memory(error, "a network");
    char *at = *to;
    for (int64_t k = 0; k < tables; k++)
        for (int64_t i = 0; i < count; i++, at += width)
            memcpy(at, (const char *)from + (size_t)(k * nodes + node[i]) * width, width);
    return BASIN_OK;
}

basin_status basin_network_copy_nodes(basin_network *to, const basin_network *from,
                                      const int64_t *node, basin_error *error) {
    int64_t n = to->nodes, N = from->nodes;
    basin_names_builder id = {0};
    basin_status status = BASIN_OK;
    to->features = from->features;
    to->splits = from->splits;
    to->directed = from->directed;
    BASIN_TRY(BASIN_NEW_RAW(&to->origin, n, "a network", error));
    for (int64_t i = 0; i < n; i++) to->origin[i] = from->origin ? from->origin[node[i]] : node[i];
    size_t width = (size_t)from->features * sizeof *from->feature;
    BASIN_TRY(copy_rows((void **)&to->feature, from->feature, node, n, N, 1, width, error));
    width = sizeof *from->label;
    BASIN_TRY(copy_rows((void **)&to->label, from->label, node, n, N, 1, width, error));
    BASIN_TRY(copy_rows((void **)&to->train, from->train, node, n, N, from->splits, 1, error));
    BASIN_TRY(copy_rows((void **)&to->val, from->val, node, n, N, from->splits, 1, error));
    BASIN_TRY(copy_rows((void **)&to->test, from->test, node, n, N, from->splits, 1, error));
    for (int64_t i = 0; from->id.count && i < n && !status; i++) {
        const char *text = from->id.text + from->id.at[node[i]];
        status = basin_names_add(&id, text, strlen(text), error);
    }
    to->id = id.names;
    return status;
}

/* ---- edges among the nodes of a part ---- */

typedef struct inducing {
    const part *part;
    const basin_relation *from, *to;
} inducing;

/* Counts the edges of each node, or where there is a place for them copies them. */
static void keep_some(const void *context, int64_t first, int64_t last) {
    const inducing *all = context;
    const part *p = all->part;
    const basin_relation *from = all->from, *to = all->to;
    for (int64_t i = first; i < last; i++) {
        int64_t kept = 0, end = from->row[p->node[i] + 1];
        for (int64_t e = from->row[p->node[i]]; e < end; e++) {
            int32_t at = p->place[from->col[e]];
            if (at && to->col) to->col[to->row[i] + kept] = at - 1;
            kept += at != 0;
        }
        if (!to->col) to->row[i + 1] = kept;
    }
}

static basin_status induce_relation(basin_network *n, const part *p, const basin_relation *from,
                                    basin_error *error) {
    basin_relation *r;
    BASIN_TRY(basin_network_new_relation(&r, n, from->name, error));
    int64_t count = (int64_t)p->count;
    BASIN_TRY(BASIN_NEW(&r->row, p->count + 1, "a network", error));
    inducing all = {p, from, r};
    basin_team_run_all(keep_some, &all, count, 256);
    for (int64_t i = 0; i < count; i++) r->row[i + 1] += r->row[i];
    r->edges = r->row[count];
    BASIN_TRY(BASIN_NEW_RAW(&r->col, r->edges, "a network", error));
    basin_team_run_all(keep_some, &all, count, 256);
    BASIN_TRY(basin_relation_tidy(r, count, false, error));
    return basin_relation_copy_facts(r, from, p->node, count, &n->facts, error);
}

static basin_status part_network(basin_network **network, const part *p, bool edges,
                                 basin_error *error) {
    BASIN_TRY(basin_network_new(network, p->whole->path, (int64_t)p->count, error));
    BASIN_TRY(basin_network_copy_nodes(*network, p->whole, p->node, error));
    BASIN_TRY(basin_names_copy(&(*network)->column, &p->whole->column, error));
    BASIN_TRY(basin_facts_copy(&(*network)->facts, &p->whole->facts, error));
    for (int r = 0; edges && r < p->whole->relations; r++)
        BASIN_TRY(induce_relation(*network, p, &p->whole->relation[r], error));
    return BASIN_OK;
}

basin_status basin_network_induce(basin_network **result, const basin_network *network,
                                  const int64_t *node, int64_t count, basin_error *error) {
    BASIN_AT_EXIT(part_end) part p;
    BASIN_NETWORK_AT_EXIT basin_network *n = NULL;
    *result = NULL;
    BASIN_TRY(part_start(&p, network, node, count, error));
    BASIN_TRY(part_network(&n, &p, true, error));
    *result = n, n = NULL;
    return BASIN_OK;
}

/* ---- sampled neighbourhoods ---- */

typedef struct walked {
    int32_t *edge; /* [count, 2] places in the part: who is seen, who sees */
    size_t count, capacity;
} walked;

/* `take` different numbers below `count`, in `chosen`: Floyd's way, one draw each. */
static void choose(int64_t *chosen, int64_t take, int64_t count, basin_random *random) {
    for (int64_t k = 0; k < take; k++) {
        int64_t last = count - take + k;
        int64_t t = (int64_t)basin_random_below(random, (uint64_t)last + 1);
        for (int64_t j = 0; j < k; j++)
            if (chosen[j] == t) {
                t = last;
                break;
            }
        chosen[k] = t;
    }
}

static basin_status walk_edge(walked *w, part *p, int32_t seen, int64_t sees, basin_error *error) {
    BASIN_TRY(part_add(p, seen, error));
    if (!basin_array_reserve((void **)&w->edge, &w->capacity, 2 * (w->count + 1), sizeof *w->edge))
        return basin_fail_memory(error, "a part of a network");
    w->edge[2 * w->count] = p->place[seen] - 1;
    w->edge[2 * w->count + 1] = (int32_t)sees;
    w->count++;
    return BASIN_OK;
}

/* A stream of its own for every node, step, relation and draw: splitmix's finaliser over them. */
static uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t x = a + 0x9e3779b97f4a7c15u * (b + 1);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static basin_status walk_node(walked *w, part *p, int64_t *chosen, int64_t at, int relation,
                              int step, const basin_sample_spec *spec, basin_error *error) {
    const basin_relation *r = &p->whole->relation[relation];
    int64_t node = p->node[at], fanout = spec->fanout[step];
    int64_t first = r->row[node], count = r->row[node + 1] - first;
    bool all = fanout <= 0 || fanout >= count;
    int64_t take = all ? count : fanout;
    if (!all) {
        uint64_t stream =
            mix(mix(spec->stream, (uint64_t)node), (uint64_t)step << 32 | (uint32_t)relation);
        basin_random random = basin_random_start(spec->seed, stream, 0);
        choose(chosen, take, count, &random);
    }
    for (int64_t k = 0; k < take; k++)
        BASIN_TRY(walk_edge(w, p, r->col[first + (all ? k : chosen[k])], at, error));
    return BASIN_OK;
}

static basin_status walk(walked *w /* [relations] */, part *p, const basin_sample_spec *spec,
                         basin_error *error) {
    BASIN_FREE_AT_EXIT int64_t *chosen = NULL;
    int64_t widest = 1;
    size_t begin = 0;
    for (int s = 0; s < spec->steps; s++) widest = basin_int_max(widest, spec->fanout[s]);
    BASIN_TRY(BASIN_NEW_RAW(&chosen, widest, "a sample", error));
    for (int s = 0; s < spec->steps; s++) {
        size_t end = p->count; /* those that the step before reached */
        for (size_t i = begin; i < end; i++)
            for (int r = 0; r < p->whole->relations; r++)
                BASIN_TRY(walk_node(&w[r], p, chosen, (int64_t)i, r, s, spec, error));
        begin = end;
    }
    return BASIN_OK;
}

static basin_status sample(basin_network **batch, part *p, walked *w, const basin_sample_spec *spec,
                           basin_error *error) {
    const basin_network *network = p->whole;
    BASIN_TRY(walk(w, p, spec, error));
    BASIN_TRY(part_network(batch, p, false, error));
    for (int r = 0; r < network->relations; r++) {
        basin_edges edges = {w[r].edge, w[r].edge ? w[r].edge + 1 : NULL, BASIN_I32, 2,
                             (int64_t)w[r].count};
        basin_network_options o = {.directed = network->directed};
        BASIN_TRY(basin_network_add_relation(*batch, network->relation[r].name, &edges, &o, error));
        BASIN_TRY(basin_relation_copy_facts(&(*batch)->relation[r], &network->relation[r], p->node,
                                            (int64_t)p->count, &network->facts, error));
    }
    return BASIN_OK;
}

basin_status basin_network_sample(basin_network **batch, const basin_network *network,
                                  const int64_t *target, int64_t count,
                                  const basin_sample_spec *spec, basin_error *error) {
    BASIN_AT_EXIT(part_end) part p = {0};
    BASIN_NETWORK_AT_EXIT basin_network *n = NULL;
    BASIN_FREE_AT_EXIT walked *w = NULL;
    *batch = NULL;
    BASIN_TRY(BASIN_NEW(&w, network->relations, "a sample", error));
    BASIN_TRY(part_start(&p, network, target, count, error));
    basin_status status = sample(&n, &p, w, spec, error);
    for (int r = 0; r < network->relations; r++) free(w[r].edge);
    if (!status) *batch = n, n = NULL;
    return status;
}
