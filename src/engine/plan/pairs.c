/* Building CSR lists of pairs from edges, by two counting sorts; see include/basin/pairs.h. */
#include "basin/pairs.h"

#include "base/try.h"

static basin_status check_edges(int64_t queries, int64_t keys, const int32_t *edge, int64_t count,
                                int flags, basin_error *error) {
    bool square = (flags & (BASIN_PAIRS_BOTH_WAYS | BASIN_PAIRS_ADD_SELF)) != 0;
    if (queries < 0 || keys < 0 || queries > INT32_MAX || keys > INT32_MAX || count < 0 ||
        count > (INT32_MAX - queries) / 2)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%lld queries, %lld keys, %lld edges: more than 2^31 pairs or nodes",
                          (long long)queries, (long long)keys, (long long)count);
    if (square && queries != keys)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "edges both ways or to oneself between %lld "
                          "queries and %lld keys, which must be equal",
                          (long long)queries, (long long)keys);
    for (int64_t i = 0; i < count; i++)
        if (edge[2 * i] < 0 || edge[2 * i] >= queries || edge[2 * i + 1] < 0 ||
            edge[2 * i + 1] >= keys)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "edge %lld joins %d and %d, expected numbers below %lld and %lld",
                              (long long)i, edge[2 * i], edge[2 * i + 1], (long long)queries,
                              (long long)keys);
    return BASIN_OK;
}

/* The edges with their reverses and self pairs, as two columns of `*total` numbers. */
static int64_t expand(int32_t *from, int32_t *to, int64_t queries, const int32_t *edge,
                      int64_t count, int flags) {
    int64_t n = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t q = edge[2 * i], k = edge[2 * i + 1];
        if (q == k && (flags & (BASIN_PAIRS_DROP_SELF | BASIN_PAIRS_ADD_SELF))) continue;
        from[n] = q, to[n++] = k;
        if (q != k && (flags & BASIN_PAIRS_BOTH_WAYS)) from[n] = k, to[n++] = q;
    }
    if (flags & BASIN_PAIRS_ADD_SELF)
        for (int64_t i = 0; i < queries; i++) from[n] = to[n] = (int32_t)i, n++;
    return n;
}

/* Stable sort of `n` items by bucket: order[start[b] ..] are the items of bucket b. */
static void counting_sort(int32_t *order, int32_t *start, const int32_t *bucket, int64_t n,
                          int64_t buckets) {
    memset(start, 0, (size_t)(buckets + 1) * sizeof *start);
    for (int64_t i = 0; i < n; i++) start[bucket[i] + 1]++;
    for (int64_t b = 0; b < buckets; b++) start[b + 1] += start[b];
    for (int64_t i = 0; i < n; i++) order[start[bucket[i]]++] = (int32_t)i;
    for (int64_t b = buckets; b > 0; b--) start[b] = start[b - 1];
    start[0] = 0;
}

static size_t max_pairs(int64_t queries, int64_t count, int flags) {
    int64_t max = (flags & BASIN_PAIRS_BOTH_WAYS ? 2 : 1) * count;
    return (size_t)(flags & BASIN_PAIRS_ADD_SELF ? max + queries : max);
}

typedef struct scratch {
    int32_t *from, *to, *by_key, *start;
} scratch;

static void scratch_free(scratch *s) { BASIN_FREE(s->from, s->to, s->by_key, s->start); }

/* Sorts by key, then stably by query: keys ascend within a query and equal pairs are neighbours. */
static void fill(basin_pairs *p, scratch *s, int64_t n) {
    counting_sort(s->by_key, p->column, s->to, n, p->keys);
    for (int64_t i = 0; i < n; i++) p->query[i] = s->from[s->by_key[i]];
    counting_sort(p->pair, s->start, p->query, n, p->queries);
    int64_t kept = 0;
    for (int64_t q = 0; q < p->queries; q++) {
        p->row[q] = (int32_t)kept;
        for (int64_t i = s->start[q]; i < s->start[q + 1]; i++) {
            int32_t key = s->to[s->by_key[p->pair[i]]];
            if (kept > p->row[q] && p->key[kept - 1] == key) continue;
            p->key[kept++] = key;
        }
    }
    p->row[p->queries] = (int32_t)kept;
    p->pairs = kept;
    counting_sort(p->pair, p->column, p->key, kept, p->keys);
    for (int64_t q = 0; q < p->queries; q++)
        for (int64_t i = p->row[q]; i < p->row[q + 1]; i++) s->from[i] = (int32_t)q;
    for (int64_t i = 0; i < kept; i++) p->query[i] = s->from[p->pair[i]];
}

basin_status basin_pairs_new(basin_pairs *pairs, int64_t queries, int64_t keys, const int32_t *edge,
                             int64_t count, int flags, basin_error *error) {
    *pairs = (basin_pairs){.queries = queries, .keys = keys};
    BASIN_TRY(check_edges(queries, keys, edge, count, flags, error));
    size_t max = max_pairs(queries, count, flags), word = sizeof(int32_t);
    BASIN_AT_EXIT(scratch_free)
    scratch s = {basin_array_new(max, word), basin_array_new(max, word), basin_array_new(max, word),
                 basin_array_new((size_t)queries + 1, word)};
    pairs->row = basin_array_new((size_t)queries + 1, word);
    pairs->column = basin_array_new((size_t)keys + 1, word);
    pairs->key = basin_array_new(max, word);
    pairs->query = basin_array_new(max, word);
    pairs->pair = basin_array_new(max, word);
    if (s.from && s.to && s.by_key && s.start && pairs->row && pairs->column && pairs->key &&
        pairs->query && pairs->pair) {
        fill(pairs, &s, expand(s.from, s.to, queries, edge, count, flags));
        return BASIN_OK;
    }
    basin_pairs_free(pairs);
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a list of %lld edges",
                      (long long)count);
}

void basin_pairs_free(basin_pairs *pairs) {
    BASIN_FREE(pairs->row, pairs->key, pairs->column, pairs->query, pairs->pair);
    *pairs = (basin_pairs){0};
}

static basin_expr declare(basin_graph *graph, const char *name, const char *part, int64_t count) {
    char full[256];
    int length = snprintf(full, sizeof full, "%s.%s", name, part);
    if (length < 0 || (size_t)length >= sizeof full)
        return basin_graph_fail(graph, BASIN_BAD_VALUE,
                                "the name '%s.%s' of a pair list is longer than 255 characters",
                                name, part);
    return basin_index(graph, full, BASIN_SHAPE(count));
}

basin_pattern basin_pairs_declare(basin_graph *graph, const char *name, int64_t queries,
                                  int64_t keys, int64_t capacity) {
    return (basin_pattern){.row = declare(graph, name, "row", queries + 1),
                           .key = declare(graph, name, "key", capacity),
                           .column = declare(graph, name, "column", keys + 1),
                           .query = declare(graph, name, "query", capacity),
                           .pair = declare(graph, name, "pair", capacity)};
}

/* Writes `count` numbers into an index input of at least that length, and fills the remainder with
 * `rest`. */
static basin_status write_part(basin_plan *plan, basin_expr input, const int32_t *number,
                               int64_t count, int32_t rest, basin_error *error) {
    basin_shape shape = basin_expr_shape(input);
    if (shape.rank == 1 && shape.dim[0] == count) {
        basin_tensor view = basin_tensor_view(number, BASIN_I32, shape);
        return basin_plan_write(plan, input, &view, error);
    }
    if (shape.rank != 1 || shape.dim[0] < count)
        return basin_fail(error, BASIN_BAD_SHAPE, "'%s' has room for %lld numbers, got %lld",
                          basin_expr_name(input), (long long)basin_shape_count(shape),
                          (long long)count);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor padded = {0};
    BASIN_TRY(basin_tensor_new(&padded, BASIN_I32, shape, error));
    memcpy(padded.data, number, (size_t)count * sizeof *number);
    for (int64_t i = count; i < shape.dim[0]; i++) ((int32_t *)padded.data)[i] = rest;
    return basin_plan_write(plan, input, &padded, error);
}

/* Tokens past the last have no pairs: their rows begin and end where all pairs end. */
basin_status basin_pairs_write(basin_plan *plan, const basin_pattern *pattern,
                               const basin_pairs *pairs, basin_error *error) {
    int64_t n = pairs->pairs;
    int32_t end = (int32_t)n;
    BASIN_TRY(write_part(plan, pattern->row, pairs->row, pairs->queries + 1, end, error));
    BASIN_TRY(write_part(plan, pattern->key, pairs->key, n, 0, error));
    BASIN_TRY(write_part(plan, pattern->column, pairs->column, pairs->keys + 1, end, error));
    BASIN_TRY(write_part(plan, pattern->query, pairs->query, n, 0, error));
    return write_part(plan, pattern->pair, pairs->pair, n, 0, error);
}
