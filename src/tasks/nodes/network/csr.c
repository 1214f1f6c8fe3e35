/* CSR relations from lists of edges: a counting sort by node, rows sorted, equal entries merged in
 * place. Beyond the edges it takes one int64_t per node and one int32_t per entry. */
#include <inttypes.h>

#include "base/parallel.h"
#include "base/sort.h"
#include "basin/random.h"
#include "tasks/nodes/network/network.h"

/* ---- parts: what a set of nodes induces, and mini-batches of sampled neighbourhoods. The table of
 * places is calloc'ed and touched only where the part is. ---- */

typedef struct part {
    const basin_network *whole;
    int32_t *place; /* [N] 1 + number in the part, 0 where the node is not in it */
    int64_t *node;  /* [count] of the whole */
    size_t count, capacity;
} part;

static basin_status part_add(part *p, int64_t node, basin_error *error) {
    if (p->place[node]) return BASIN_OK;
    BASIN_TRY(BASIN_GROW(&p->node, &p->capacity, p->count + 1, "a part of a network", error));
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

static void part_end(part *p) { BASIN_FREE(p->place, p->node); }

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
    to->features = from->features;
    to->splits = from->splits;
    to->directed = from->directed, to->both = from->both;
    BASIN_TRY(BASIN_NEW_RAW(&to->origin, n, "a network", error));
    for (int64_t i = 0; i < n; i++) to->origin[i] = from->origin ? from->origin[node[i]] : node[i];
    size_t width = (size_t)from->features * sizeof *from->feature;
    BASIN_TRY(copy_rows((void **)&to->feature, from->feature, node, n, N, 1, width, error));
    width = sizeof *from->label;
    BASIN_TRY(copy_rows((void **)&to->label, from->label, node, n, N, 1, width, error));
    BASIN_TRY(copy_rows((void **)&to->train, from->train, node, n, N, from->splits, 1, error));
    BASIN_TRY(copy_rows((void **)&to->val, from->val, node, n, N, from->splits, 1, error));
    BASIN_TRY(copy_rows((void **)&to->test, from->test, node, n, N, from->splits, 1, error));
    for (int64_t i = 0; from->id.count && i < n; i++)
        BASIN_TRY(basin_names_add(&to->id, from->id.text + from->id.at[node[i]], error));
    return BASIN_OK;
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
    basin_parallel_for(keep_some, &all, count, 256, 0);
    for (int64_t i = 0; i < count; i++) r->row[i + 1] += r->row[i];
    r->edges = r->row[count];
    BASIN_TRY(BASIN_NEW_RAW(&r->col, r->edges, "a network", error));
    basin_parallel_for(keep_some, &all, count, 256, 0);
    BASIN_TRY(basin_relation_tidy(r, count, error));
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
    int32_t
        *edge; /* [count, 2] places in the part: the node that is seen, and the one that sees it */
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
    BASIN_TRY(BASIN_GROW(&w->edge, &w->capacity, 2 * (w->count + 1), "a part of a network", error));
    w->edge[2 * w->count] = p->place[seen] - 1;
    w->edge[2 * w->count + 1] = (int32_t)sees;
    w->count++;
    return BASIN_OK;
}

/* A separate stream for every node, step, relation and draw: splitmix's finaliser over them. */
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
    int64_t widest = 1;
    size_t begin = 0;
    for (int s = 0; s < spec->steps; s++) widest = basin_int_max(widest, spec->fanout[s]);
    BASIN_SCRATCH_RAW(int64_t, chosen, widest, "a sample", error);
    for (int s = 0; s < spec->steps; s++) {
        size_t end = p->count; /* those that the step before reached */
        for (size_t i = begin; i < end; i++)
            for (int r = 0; r < basin_network_walked(p->whole); r++)
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
    for (int r = 0; r < basin_network_walked(network); r++) {
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
    *batch = NULL;
    BASIN_SCRATCH(walked, w, network->relations, "a sample", error);
    BASIN_TRY(part_start(&p, network, target, count, error));
    basin_status status = sample(&n, &p, w, spec, error);
    for (int r = 0; r < network->relations; r++) free(w[r].edge);
    if (!status) *batch = n, n = NULL;
    return status;
}

static int64_t from_at(const basin_edges *e, int64_t i) {
    return basin_whole_at(e->from, e->dtype, i * e->stride);
}

static int64_t to_at(const basin_edges *e, int64_t i) {
    return basin_whole_at(e->to, e->dtype, i * e->stride);
}

basin_status basin_network_new_relation(basin_relation **relation, basin_network *network,
                                        const char *name, basin_error *error) {
    if (basin_network_relation(network, name) >= 0)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: two relations are called '%s'",
                          network->path, name);
    basin_relation *grown =
        realloc(network->relation, (size_t)(network->relations + 1) * sizeof *grown);
    if (grown) network->relation = grown;
    char *copy = grown ? basin_string_copy(name) : NULL;
    if (!copy) return basin_fail_memory(error, "relations");
    *relation = &grown[network->relations++];
    **relation = (basin_relation){.name = copy};
    return BASIN_OK;
}

static basin_status check_edges(const basin_network *n, const char *name, const basin_edges *e,
                                basin_error *error) {
    for (int64_t i = 0; i < e->count; i++) {
        int64_t u = from_at(e, i), v = to_at(e, i);
        if (u < 0 || u >= n->nodes || v < 0 || v >= n->nodes)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: edge %" PRId64 " of '%s' joins nodes %" PRId64 " and %" PRId64
                              ", expected numbers from 0 to %" PRId64,
                              n->path, i, name, u, v, n->nodes - 1);
    }
    return BASIN_OK;
}

typedef struct scattering {
    int64_t *at;  /* [nodes] the rows' counters */
    int32_t *col; /* NULL: entries are counted only */
    const basin_edges *edges;
    bool directed;
} scattering;

static void put_entry(const scattering *s, int64_t row, int64_t entry) {
    int64_t k = __atomic_fetch_add(&s->at[row], 1, __ATOMIC_RELAXED);
    if (s->col) s->col[k] = (int32_t)entry;
}

static void scatter_some(const void *context, int64_t first, int64_t last) {
    const scattering *s = context;
    const basin_edges *e = s->edges;
    for (int64_t i = first; i < last; i++) {
        int64_t u = from_at(e, i), v = to_at(e, i);
        put_entry(s, v, u);
        if (!s->directed && u != v) put_entry(s, u, v);
    }
}

/* Sorts a row and merges equal entries: short ones by insertion. Returns how many are left. */
static int64_t sort_row(int32_t *a, int64_t n) {
    enum { SHORT = 40 };
    int64_t kept = n > 0;
    for (int64_t i = 1; i < n && n <= SHORT; i++) {
        int32_t x = a[i];
        int64_t j = i;
        for (; j > 0 && a[j - 1] > x; j--) a[j] = a[j - 1];
        a[j] = x;
    }
    if (n > SHORT) qsort(a, (size_t)n, sizeof *a, basin_compare_int32);
    for (int64_t i = 1; i < n; i++)
        if (a[i] != a[kept - 1]) a[kept++] = a[i];
    return kept;
}

/* Moves the rows, of which `kept` says how much is left, together. */
static basin_status close_gaps(basin_relation *r, const int64_t *kept, int64_t nodes,
                               basin_error *error) {
    int64_t end = 0, from = 0;
    for (int64_t i = 0; i < nodes; i++) {
        int64_t next = r->row[i + 1];
        if (end != from) memmove(r->col + end, r->col + from, (size_t)kept[i] * sizeof *r->col);
        r->row[i] = end;
        end += kept[i];
        from = next;
    }
    r->row[nodes] = end;
    if (end == r->edges) return BASIN_OK;
    int32_t *shrunk = realloc(r->col, (size_t)(end ? end : 1) * sizeof *shrunk);
    if (!shrunk) return basin_fail_memory(error, "edges");
    r->col = shrunk;
    r->edges = end;
    return BASIN_OK;
}

typedef struct tidying {
    const basin_relation *relation;
    int64_t *kept; /* [rows] entries that are left */
} tidying;

static void tidy_rows(const void *context, int64_t first, int64_t last) {
    const tidying *t = context;
    const int64_t *row = t->relation->row;
    for (int64_t i = first; i < last; i++)
        t->kept[i] = sort_row(t->relation->col + row[i], row[i + 1] - row[i]);
}

basin_status basin_relation_tidy(basin_relation *relation, int64_t nodes, basin_error *error) {
    BASIN_SCRATCH_RAW(int64_t, kept, nodes, "edges", error);
    basin_parallel_for(tidy_rows, &(tidying){relation, kept}, nodes, 256, 0);
    return close_gaps(relation, kept, nodes, error);
}

basin_status basin_network_add_relation(basin_network *network, const char *name,
                                        const basin_edges *edges,
                                        const basin_network_options *options, basin_error *error) {
    const basin_network_options *o = basin_network_options_or(options);
    basin_relation *r;
    int64_t nodes = network->nodes;
    if (edges->count < 0 || edges->count > INT64_MAX / 32 ||
        (edges->dtype != BASIN_I32 && edges->dtype != BASIN_I64))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: %" PRId64 " edges of type %s, expected I32 or I64", network->path,
                          edges->count, basin_dtype_name(edges->dtype));
    /* both ways, in one array of nodes and another beside it while rows are sorted */
    double bytes = 8.0 * (double)edges->count + 16.0 * (double)nodes;
    BASIN_TRY(basin_memory_check(bytes, o->memory, network->path, BASIN_NO_MEMORY, error));
    BASIN_TRY(check_edges(network, name, edges, error));
    BASIN_TRY(basin_network_new_relation(&r, network, name, error));
    if (o->directed) network->directed = true;
    BASIN_TRY(BASIN_NEW(&r->row, nodes + 2, "a network", error));
    /* row[i + 2] counts row i; after the sums row[i + 1] is its start, after placing its end */
    scattering s = {r->row + 2, NULL, edges, o->directed};
    basin_parallel_for(scatter_some, &s, edges->count, 0, 0);
    r->row[1] = 0; /* counts to starts */
    for (int64_t i = 1; i <= nodes; i++) r->row[i + 1] += r->row[i];
    r->edges = r->row[nodes + 1];
    BASIN_TRY(BASIN_NEW_RAW(&r->col, r->edges, "a network", error));
    s.at = r->row + 1, s.col = r->col;
    basin_parallel_for(scatter_some, &s, edges->count, 0, 0);
    return basin_relation_tidy(r, nodes, error);
}

basin_status basin_network_add_union(basin_network *network, basin_error *error) {
    int64_t nodes = network->nodes, at = 0;
    int others = network->relations;
    basin_relation *r;
    if (basin_network_relation(network, "homo") >= 0) return BASIN_OK;
    BASIN_TRY(basin_network_new_relation(&r, network, "homo", error));
    for (int k = 0; k < others; k++) r->edges += network->relation[k].edges;
    BASIN_TRY(BASIN_NEW(&r->row, nodes + 1, "a network", error));
    BASIN_TRY(BASIN_NEW_RAW(&r->col, r->edges, "a network", error));
    for (int64_t i = 0; i < nodes; i++) {
        for (int k = 0; k < others; k++) {
            const basin_relation *o = &network->relation[k];
            size_t count = (size_t)(o->row[i + 1] - o->row[i]);
            memcpy(r->col + at, o->col + o->row[i], count * sizeof *r->col);
            at += (int64_t)count;
        }
        r->row[i + 1] = at;
    }
    BASIN_TRY(basin_relation_tidy(r, nodes, error));
    BASIN_TRY(basin_relation_alloc_facts(r, &network->facts, error));
    for (int k = 0; k < others; k++)
        basin_relation_merge_facts(r, &network->relation[k], nodes, &network->facts);
    return BASIN_OK;
}

basin_status basin_relation_turn(basin_relation *back, int64_t **entry, const basin_relation *from,
                                 int64_t nodes, basin_error *error) {
    back->edges = from->edges;
    BASIN_TRY(BASIN_NEW(&back->row, nodes + 2, "the edges of a graph", error));
    BASIN_TRY(BASIN_NEW_RAW(&back->col, from->edges, "the edges of a graph", error));
    if (entry) BASIN_TRY(BASIN_NEW_RAW(entry, from->edges, "the edges of a graph", error));
    int64_t *next = back->row + 1; /* where a node's next entry goes; its row begins there later */
    for (int64_t e = 0; e < from->edges; e++) next[from->col[e] + 1]++;
    for (int64_t i = 0; i < nodes; i++) next[i + 1] += next[i];
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t e = from->row[i]; e < from->row[i + 1]; e++) {
            int64_t at = next[from->col[e]]++;
            back->col[at] = (int32_t)i;
            if (entry) (*entry)[at] = e;
        }
    return BASIN_OK;
}

/* ---- as pairs ---- */

/* Row q of the pairs: the row of the relation without its loop, or with one in its place. */
static int64_t pair_row(int32_t *key, const basin_relation *r, int64_t q, basin_self_loops self) {
    int64_t n = 0;
    bool put = self != BASIN_SELF_LOOPS_ADD;
    for (int64_t e = r->row[q]; e < r->row[q + 1]; e++) {
        int32_t k = r->col[e];
        if (k == q && self != BASIN_SELF_LOOPS_KEEP) continue;
        if (!put && k > q) key[n++] = (int32_t)q, put = true;
        if (n && key[n - 1] == k) continue; /* attention knows a pair or it does not */
        key[n++] = k;
    }
    if (!put) key[n++] = (int32_t)q;
    return n;
}

static void pairs_by_key(basin_pairs *p) {
    int64_t n = p->pairs, keys = p->keys;
    memset(p->column, 0, (size_t)(keys + 1) * sizeof *p->column);
    for (int64_t e = 0; e < n; e++) p->column[p->key[e] + 1]++;
    for (int64_t k = 0; k < keys; k++) p->column[k + 1] += p->column[k];
    for (int64_t q = 0; q < p->queries; q++)
        for (int32_t e = p->row[q]; e < p->row[q + 1]; e++) {
            int32_t at = p->column[p->key[e]]++;
            p->query[at] = (int32_t)q;
            p->pair[at] = e;
        }
    memmove(p->column + 1, p->column, (size_t)keys * sizeof *p->column);
    p->column[0] = 0;
}

basin_status basin_network_pairs(basin_pairs *pairs, const basin_network *network, int relation,
                                 basin_self_loops self, int64_t room, int64_t halo,
                                 basin_error *error) {
    const basin_relation *r = &network->relation[relation];
    int64_t nodes = network->nodes, keys = room + halo;
    int64_t max = r->edges + (self == BASIN_SELF_LOOPS_ADD ? nodes : 0);
    *pairs = (basin_pairs){.queries = nodes, .keys = keys};
    if (max > INT32_MAX)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %" PRId64 " edges in '%s', more than 2^31",
                          network->path, max, r->name);
    pairs->row = basin_array_new((size_t)nodes + 1, sizeof(int32_t));
    pairs->column = basin_array_new((size_t)keys + 1, sizeof(int32_t));
    pairs->key = basin_array_new((size_t)max, sizeof(int32_t));
    pairs->query = basin_array_new((size_t)max, sizeof(int32_t));
    pairs->pair = basin_array_new((size_t)max, sizeof(int32_t));
    if (!pairs->row || !pairs->column || !pairs->key || !pairs->query || !pairs->pair) {
        basin_pairs_free(pairs);
        return basin_fail_memory(error, "pairs of nodes");
    }
    pairs->row[0] = 0;
    for (int64_t q = 0; q < nodes; q++)
        pairs->row[q + 1] =
            pairs->row[q] + (int32_t)pair_row(pairs->key + pairs->row[q], r, q, self);
    pairs->pairs = pairs->row[nodes];
    for (int64_t e = 0; e < pairs->pairs && halo; e++)
        if (pairs->key[e] >= nodes) pairs->key[e] += (int32_t)(room - nodes);
    pairs_by_key(pairs);
    return BASIN_OK;
}

/* ---- how alike neighbours are ---- */

void basin_network_homophily(double *all, double *anomalies, const basin_network *network,
                             int relation) {
    const int32_t *label = network->label;
    const basin_relation *r = &network->relation[relation];
    int64_t both = 0, equal = 0, anomalous = 0, alike = 0;
    for (int64_t i = 0; label && i < network->nodes; i++)
        for (int64_t e = r->row[i]; e < r->row[i + 1]; e++) {
            int32_t k = r->col[e], y = label[i], z = label[k];
            if (k == i || y < 0 || z < 0) continue;
            both++;
            equal += y == z;
            anomalous += y == 1;
            alike += y == 1 && z == 1;
        }
    *all = both ? (double)equal / (double)both : NAN;
    *anomalies = anomalous ? (double)alike / (double)anomalous : NAN;
}
