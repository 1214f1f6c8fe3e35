/* Energy attention over a CSR list: packing, cutting and summing, for both of its forms. */
#include "engine/backend/cpu/attention/attention.h"

#include <math.h>

#include "base/sort.h"
#include "engine/core/team/team.h"

/* A CSR list of pairs seen from one of its two sides, and how its work is cut: into chunks of equal
 * size, whatever the degrees; a node's part in a chunk is a fragment. One that begins its node owns
 * the node's slot, one that continues it the chunk's extra slot, nodes + chunk, merged in order:
 * the result does not depend on the threads. A fragment is cut into runs whose other ends lie in
 * one block of nodes, which fits the second-level cache: all visit block 0, then block 1, ... */

enum { PAIRS_MAX_CHUNKS = 128 };

typedef struct pair_list {
    int64_t nodes, others, count;
    const int32_t *start;  /* [nodes + 1] */
    const int32_t *other;  /* [count] node at the other end */
    int64_t piece, chunks; /* pairs in a chunk, number of chunks */
    int64_t block, blocks; /* other nodes in a block, number of blocks */
    int32_t *cut;          /* [nodes + chunks, blocks + 1] ends of runs; unused with one block */
} pair_list;

typedef struct pair_fragment {
    int64_t node, slot;
    int64_t begin, end; /* pairs; none left when equal */
} pair_fragment;

enum {
    MIN_PIECE = 1024,          /* pairs; fewer are not worth a thread */
    BLOCK_BYTES = 1024 * 1024, /* about half of a second-level cache */
    MIN_RUN = 16,              /* pairs of an average run; shorter ones cost more than misses do */
};

static int64_t block_count(int64_t pairs, int64_t nodes, int64_t others, int64_t row_bytes) {
    int64_t requested = basin_int_ceil(others * row_bytes, BLOCK_BYTES);
    int64_t max = nodes > 0 ? pairs / (nodes * MIN_RUN) : 1;
    if (requested > max) requested = max;
    return requested > 1 ? requested : 1;
}

/* `row_bytes`: what a pair reads of its other node. `cut` is set by the caller afterwards. */
static pair_list pairs_cut(const int32_t *start, const int32_t *other, int64_t nodes,
                           int64_t others, int64_t row_bytes) {
    int64_t count = start[nodes], piece = basin_int_ceil(count, PAIRS_MAX_CHUNKS);
    if (piece < MIN_PIECE) piece = MIN_PIECE;
    int64_t blocks = block_count(count, nodes, others, row_bytes);
    return (pair_list){.nodes = nodes,
                       .others = others,
                       .count = count,
                       .start = start,
                       .other = other,
                       .piece = piece,
                       .chunks = basin_int_ceil(count, piece),
                       .block = basin_int_ceil(others, blocks),
                       .blocks = blocks};
}

/* The maximum number of elements of `cut` for `pairs` pairs. */
static size_t cut_size(int64_t pairs, int64_t nodes, int64_t others, int64_t row_bytes) {
    int64_t blocks = block_count(pairs, nodes, others, row_bytes);
    return blocks > 1 ? (size_t)((nodes + PAIRS_MAX_CHUNKS) * (blocks + 1)) : 0;
}

/* The fragment at pair `begin`, in the first node from `node` on that has one. */
static pair_fragment fragment_at(const pair_list *pairs, int64_t chunk, int64_t node,
                                 int64_t begin) {
    int64_t first = chunk * pairs->piece, last = first + pairs->piece;
    if (last > pairs->count) last = pairs->count;
    if (begin >= last) return (pair_fragment){.node = node, .begin = last, .end = last};
    while (pairs->start[node + 1] <= begin) node++;
    int64_t end = pairs->start[node + 1];
    return (pair_fragment){.node = node,
                           .slot = pairs->start[node] < first ? pairs->nodes + chunk : node,
                           .begin = begin,
                           .end = end < last ? end : last};
}

static pair_fragment fragment_first(const pair_list *pairs, int64_t chunk) {
    int64_t begin = chunk * pairs->piece, low = 0, high = pairs->nodes;
    while (high - low > 1) { /* start[low] <= begin < start[high] */
        int64_t middle = (low + high) / 2;
        if (pairs->start[middle] <= begin)
            low = middle;
        else
            high = middle;
    }
    return fragment_at(pairs, chunk, low, begin);
}

static void fragment_next(pair_fragment *fragment, const pair_list *pairs, int64_t chunk) {
    *fragment = fragment_at(pairs, chunk, fragment->node, fragment->end);
}

/* The node whose pairs continue into this chunk from the one before, or -1. */
static int64_t continued(const pair_list *pairs, int64_t chunk) {
    pair_fragment first = fragment_first(pairs, chunk);
    return first.begin < first.end && first.slot >= pairs->nodes ? first.node : -1;
}

/* The first of pairs at .. end whose other node is `limit` or later; runs are long. */
static int64_t run_end(const int32_t *other, int64_t at, int64_t end, int64_t limit) {
    int64_t step = 1;
    while (at + step <= end && other[at + step - 1] < limit) at += step, step *= 2;
    int64_t last = at + step - 1 < end ? at + step - 1 : end;
    while (at < last) {
        int64_t middle = (at + last) / 2;
        if (other[middle] < limit)
            at = middle + 1;
        else
            last = middle;
    }
    return at;
}

static void find_runs(const void *context, int64_t begin, int64_t end) {
    const pair_list *pairs = context;
    for (int64_t chunk = begin; chunk < end; chunk++)
        for (pair_fragment f = fragment_first(pairs, chunk); f.begin < f.end;
             fragment_next(&f, pairs, chunk)) {
            int32_t *cut = pairs->cut + f.slot * (pairs->blocks + 1);
            int64_t at = f.begin;
            cut[0] = (int32_t)at;
            for (int64_t b = 1; b < pairs->blocks; b++) {
                at = run_end(pairs->other, at, f.end, b * pairs->block);
                cut[b] = (int32_t)at;
            }
            cut[pairs->blocks] = (int32_t)f.end;
        }
}

/* Fills `cut`. */
static void pairs_find_runs(const pair_list *pairs, int threads) {
    if (pairs->blocks > 1) basin_parallel_for(find_runs, pairs, pairs->chunks, 1, threads);
}

/* The run of a fragment in a block: itself, with begin and end narrowed. */
static pair_fragment fragment_run(pair_fragment fragment, const pair_list *pairs, int64_t block) {
    if (pairs->blocks > 1) {
        const int32_t *cut = pairs->cut + fragment.slot * (pairs->blocks + 1) + block;
        fragment.begin = cut[0];
        fragment.end = cut[1];
    }
    return fragment;
}

/* A run's operands, packed. Slots are those of BASIN_OP_ATTENTION_FORCE and _REVERSE. */
typedef struct edge_run {
    const basin_attention *at;
    const basin_attention_kernels *kernels;
    basin_attention_mode mode;
    int threads;
    int64_t heads, width;
    int64_t padded; /* width rounded up to ATTENTION_ALIGN */
    int64_t parts;  /* 1, or 2 in reverse where a row is (Q | A) or (K | B) */
    int64_t plane;  /* capacity in pairs: the distance between heads in what is kept of a pair */
    pair_list rows, columns;
    float *query;   /* [H, queries, parts * padded] */
    float *key;     /* [H, keys, parts * padded] */
    float *key_sum; /* [H, slots of columns, padded] where dk or gk is requested */
} edge_run;

/* The number of slices of the preparation and of the sums over short rows. */
enum { SLICES = 64 };
static int64_t slice(int64_t number, int64_t count) { return number * count / SLICES; }

static int64_t row_bytes(const edge_run *e) {
    return e->parts * e->padded * (int64_t)sizeof(float);
}

/* Everything but what points into the workspace. */
static edge_run edges_new(const basin_attention *at, int threads) {
    int64_t align = ATTENTION_ALIGN;
    return (edge_run){.at = at,
                      .kernels = basin_attention_kernels_find(),
                      .mode = at->mode,
                      .threads = threads,
                      .heads = at->pattern.heads,
                      .width = at->pattern.width,
                      .padded = (at->pattern.width + align - 1) / align * align,
                      .parts = at->mode == BASIN_ATTENTION_REVERSE ? 2 : 1,
                      .plane = (at->pattern.pairs + align - 1) / align * align};
}

/* Packed rows, sums over columns and the cuts of both sides. */
static void edges_lay_out(edge_run *e, basin_arena *arena) {
    const basin_attention_pattern *p = &e->at->pattern;
    int64_t stride = e->parts * e->padded, key_slots = p->keys + PAIRS_MAX_CHUNKS;
    size_t cuts = cut_size(e->plane, p->queries, p->keys, row_bytes(e));
    e->query = basin_arena_floats(arena, e->heads * p->queries * stride);
    e->key = basin_arena_floats(arena, e->heads * p->keys * stride);
    e->rows.cut = basin_arena_take(arena, (int64_t)cuts, sizeof(int32_t));
    if (!e->at->out_key) return;
    e->key_sum = basin_arena_floats(arena, e->heads * key_slots * e->padded);
    cuts = cut_size(e->plane, p->keys, p->queries, row_bytes(e));
    e->columns.cut = basin_arena_take(arena, (int64_t)cuts, sizeof(int32_t));
}

/* Cuts the pairs, which reads row and column. */
static void edges_cut(edge_run *e) {
    const basin_attention_pattern *p = &e->at->pattern;
    e->rows = pairs_cut(p->row, p->key, p->queries, p->keys, row_bytes(e));
    if (e->at->out_key)
        e->columns = pairs_cut(p->column, p->query, p->keys, p->queries, row_bytes(e));
}

/* to[h, node, part] = from[node, h], padded with zeros; all zeros for NULL. */
static void pack(float *to, const float *from, const edge_run *e, int64_t nodes, int64_t part,
                 int64_t first, int64_t last) {
    int64_t end = slice(last, nodes);
    for (int64_t node = slice(first, nodes); node < end; node++)
        for (int64_t h = 0; h < e->heads; h++) {
            float *row = to + ((h * nodes + node) * e->parts + part) * e->padded;
            int64_t filled = from ? e->width : 0;
            if (from)
                memcpy(row, from + (node * e->heads + h) * e->width,
                       (size_t)e->width * sizeof *row);
            memset(row + filled, 0, (size_t)(e->padded - filled) * sizeof *row);
        }
}

/* Slices first .. last - 1 of filling x, and below of packing. */
static void fill(float *x, int64_t count, float value, int64_t first, int64_t last) {
    int64_t end = slice(last, count);
    for (int64_t i = slice(first, count); i < end; i++) x[i] = value;
}

static void edges_pack(const edge_run *e, int64_t first, int64_t last) {
    const basin_attention_pattern *p = &e->at->pattern;
    int64_t sums = e->heads * (p->keys + e->columns.chunks) * e->padded;
    pack(e->query, e->at->q, e, p->queries, 0, first, last);
    pack(e->key, e->at->k, e, p->keys, 0, first, last);
    if (e->parts == 2) {
        pack(e->query, e->at->a, e, p->queries, 1, first, last);
        pack(e->key, e->at->b, e, p->keys, 1, first, last);
    }
    if (e->key_sum) fill(e->key_sum, sums, 0, first, last);
}

/* What else comes before the first pass. */
static void edges_find_runs(const edge_run *e) {
    pairs_find_runs(&e->rows, e->threads);
    if (e->at->out_key) pairs_find_runs(&e->columns, e->threads);
}

typedef void chunk_function(const void *context, int64_t head, int64_t block, int64_t chunk);

/* One block of what each_chunk does. */
typedef struct pass {
    const void *context;
    chunk_function *chunk;
    int64_t chunks, block;
} pass;

static void run_pass(const void *context, int64_t first, int64_t last) {
    const pass *p = context;
    for (int64_t i = first; i < last; i++)
        p->chunk(p->context, i / p->chunks, p->block, i % p->chunks);
}

/* Does `chunk` for every block, head and chunk: a block's rows of a head stay in cache. */
static void each_chunk(const void *context, chunk_function *chunk, const edge_run *e,
                       const pair_list *pairs) {
    for (int64_t block = 0; block < pairs->blocks; block++) {
        pass p = {context, chunk, pairs->chunks, block};
        basin_parallel_for(run_pass, &p, e->heads * pairs->chunks, 1, e->threads);
    }
}

/* sums[h, node] += sums[h, extra slot] for the nodes that are cut by chunks. */
static void fold_slots(float *sums, const edge_run *e, const pair_list *pairs) {
    int64_t slots = pairs->nodes + pairs->chunks;
    for (int64_t chunk = 0; chunk < pairs->chunks; chunk++) {
        int64_t node = continued(pairs, chunk);
        for (int64_t h = 0; node >= 0 && h < e->heads; h++) {
            float *to = sums + (h * slots + node) * e->padded;
            const float *from = sums + (h * slots + pairs->nodes + chunk) * e->padded;
            for (int64_t i = 0; i < e->padded; i++) to[i] += from[i];
        }
    }
}

typedef struct writing {
    float *out;
    const float *sums;
    const edge_run *edges;
    int64_t slots;
} writing;

static void write_nodes(const void *context, int64_t first, int64_t last) {
    const writing *w = context;
    const edge_run *e = w->edges;
    for (int64_t node = first; node < last; node++)
        for (int64_t h = 0; h < e->heads; h++)
            memcpy(w->out + (node * e->heads + h) * e->width,
                   w->sums + (h * w->slots + node) * e->padded, (size_t)e->width * sizeof *w->out);
}

/* out[node, h] = sums[h, node], the extra slots folded in. */
static void edges_write(float *out, float *sums, const edge_run *e, const pair_list *pairs) {
    writing w = {out, sums, e, pairs->nodes + pairs->chunks};
    fold_slots(sums, e, pairs);
    basin_parallel_for(write_nodes, &w, pairs->nodes, 0, e->threads);
}

/* Energy attention over a CSR list of pairs without scale and mix: two passes over the pairs.
 *
 *     rows      r, c, the running log-sum-exp and the sums for dQ or gQ, each key's row read once
 *     columns   dK or gK, from the r and c that were kept */

enum { EXPECTED = 256 }; /* pairs of a run whose numbers are fetched ahead */

typedef struct fused {
    edge_run edges;
    float *rc;                        /* [H, plane, parts] r, or (r, c) */
    basin_attention_state *state;     /* [H, slots of rows] */
    basin_attention_summary *summary; /* [H, queries] */
    float *query_sum;                 /* [H, slots of rows, parts * padded] */
} fused;

static size_t lay_out(fused *f, void *workspace) {
    edge_run *e = &f->edges;
    int64_t queries = e->at->pattern.queries, slots = queries + PAIRS_MAX_CHUNKS;
    basin_arena a = {.base = workspace};
    edges_lay_out(e, &a);
    f->rc = basin_arena_floats(&a, e->heads * e->plane * e->parts);
    f->state = basin_arena_take(&a, e->heads * slots, sizeof *f->state);
    f->summary = basin_arena_take(&a, e->heads * queries, sizeof *f->summary);
    f->query_sum = basin_arena_floats(&a, e->heads * slots * e->parts * e->padded);
    return a.used;
}

static void prepare_slices(const void *context, int64_t first, int64_t last) {
    const fused *f = context;
    const edge_run *e = &f->edges;
    int64_t slots = e->heads * (e->rows.nodes + e->rows.chunks);
    int64_t end = slice(last, slots);
    fill(f->query_sum, slots * e->parts * e->padded, 0, first, last);
    for (int64_t i = slice(first, slots); i < end; i++)
        f->state[i] = (basin_attention_state){.max = -INFINITY};
    edges_pack(e, first, last);
}

/* Prefetches the numbers of the run after `fragment`'s: runs of one block lie far apart. */
static void expect(const pair_list *pairs, pair_fragment fragment, int64_t block, int64_t chunk,
                   const int32_t *pair) {
    fragment_next(&fragment, pairs, chunk);
    if (fragment.begin == fragment.end) return;
    pair_fragment run = fragment_run(fragment, pairs, block);
    if (run.end - run.begin > EXPECTED) run.end = run.begin + EXPECTED;
    for (int64_t i = run.begin; i < run.end; i += 16) {
        __builtin_prefetch(pairs->other + i, 0, 2);
        if (pair) __builtin_prefetch(pair + i, 0, 2);
    }
}

static void row_chunk(const void *context, int64_t h, int64_t block, int64_t chunk) {
    const fused *f = context;
    const edge_run *e = &f->edges;
    const pair_list *rows = &e->rows;
    int64_t stride = e->parts * e->padded, slots = rows->nodes + rows->chunks;
    const float *key = e->key + h * rows->others * stride;
    for (pair_fragment g = fragment_first(rows, chunk); g.begin < g.end;
         fragment_next(&g, rows, chunk)) {
        pair_fragment run = fragment_run(g, rows, block);
        expect(rows, g, block, chunk, NULL);
        int64_t slot = h * slots + g.slot;
        const float *query = e->query + (h * rows->nodes + g.node) * stride;
        float *rc = f->rc + (h * e->plane + run.begin) * e->parts;
        (e->parts == 2 ? e->kernels->reverse_row : e->kernels->force_row)(
            f->state + slot, f->query_sum + slot * stride, rc, query, key, rows->other + run.begin,
            run.end - run.begin, e->padded, e->at->beta[h]);
    }
}

/* Adds a later part's sums to a row's, both under the larger most (reverse: its center). */
static void merge(basin_attention_state *to, float *to_sum, basin_attention_state from,
                  const float *from_sum, const edge_run *e, float beta) {
    float max = fmaxf(to->max, from.max);
    float keep = expf(to->max - max), add = expf(from.max - max);
    float shift = from.center - to->center;
    to->max = max;
    to->total = to->total * keep + from.total * add;
    to->slope = to->slope * keep + from.slope * add;
    to->gain = to->gain * keep + (from.gain + shift * from.total) * add;
    to->gain_slope = to->gain_slope * keep + (from.gain_slope + shift * from.slope) * add;
    for (int64_t i = 0; i < e->padded; i++) {
        float more = from_sum[i];
        if (e->parts == 2) {
            more += beta * shift * from_sum[e->padded + i];
            to_sum[e->padded + i] = to_sum[e->padded + i] * keep + from_sum[e->padded + i] * add;
        }
        to_sum[i] = to_sum[i] * keep + more * add;
    }
}

static void merge_rows(const fused *f) {
    const edge_run *e = &f->edges;
    int64_t slots = e->rows.nodes + e->rows.chunks, stride = e->parts * e->padded;
    for (int64_t chunk = 0; chunk < e->rows.chunks; chunk++) {
        int64_t node = continued(&e->rows, chunk);
        for (int64_t h = 0; node >= 0 && h < e->heads; h++) {
            int64_t to = h * slots + node, from = h * slots + e->rows.nodes + chunk;
            merge(f->state + to, f->query_sum + to * stride, f->state[from],
                  f->query_sum + from * stride, e, e->at->beta[h]);
        }
    }
}

/* Writes what a query's sums come to: lse or gw, dQ or gQ, the summary for the columns; and leaves
 * the query's share of dbeta or gbeta in its state's slope. */
static void close_row(const fused *f, int64_t node, int64_t h) {
    const edge_run *e = &f->edges;
    int64_t slot = h * (e->rows.nodes + e->rows.chunks) + node, at = node * e->heads + h;
    basin_attention_state *s = f->state + slot;
    bool reverse = e->mode == BASIN_ATTENTION_REVERSE, any = s->total != 0;
    float beta = e->at->beta[h], w = e->at->w[at], inverse = any ? 1 / s->total : 0;
    float offset = s->gain * inverse, mean = s->center + offset, scale = beta * w * inverse;
    const float *sum = f->query_sum + slot * e->parts * e->padded;
    float *out = e->at->out_query ? e->at->out_query + at * e->width : NULL;
    f->summary[h * e->rows.nodes + node] =
        (basin_attention_summary){.max = any ? s->max : 0, .weight = scale, .mean = mean};
    if (reverse) {
        if (e->at->gw) e->at->gw[at] = beta * mean;
        s->slope = w * mean + scale * (s->gain_slope - offset * s->slope);
        for (int64_t i = 0; out && i < e->width; i++)
            out[i] = scale * (sum[i] - beta * offset * sum[e->padded + i]);
    } else {
        if (e->at->lse) e->at->lse[at] = any ? s->max + logf(s->total) : 0;
        s->slope *= w * inverse;
        for (int64_t i = 0; out && i < e->width; i++) out[i] = scale * sum[i];
    }
}

static void close_nodes(const void *context, int64_t first, int64_t last) {
    const fused *f = context;
    for (int64_t node = first; node < last; node++)
        for (int64_t h = 0; h < f->edges.heads; h++) close_row(f, node, h);
}

static void add_slopes(const void *context, int64_t first, int64_t last) {
    const fused *f = context;
    const edge_run *e = &f->edges;
    int64_t slots = e->rows.nodes + e->rows.chunks;
    for (int64_t h = first; h < last; h++) {
        double sum = 0;
        for (int64_t node = 0; node < e->rows.nodes; node++)
            sum += f->state[h * slots + node].slope;
        e->at->out_beta[h] = (float)sum;
    }
}

static void close_rows(const fused *f) {
    const edge_run *e = &f->edges;
    merge_rows(f);
    basin_parallel_for(close_nodes, f, e->rows.nodes, 0, e->threads);
    if (e->at->out_beta) basin_parallel_for(add_slopes, f, e->heads, 1, e->threads);
}

static void column_chunk(const void *context, int64_t h, int64_t block, int64_t chunk) {
    const fused *f = context;
    const edge_run *e = &f->edges;
    const pair_list *columns = &e->columns;
    int64_t stride = e->parts * e->padded, slots = columns->nodes + columns->chunks;
    for (pair_fragment g = fragment_first(columns, chunk); g.begin < g.end;
         fragment_next(&g, columns, chunk)) {
        pair_fragment run = fragment_run(g, columns, block);
        expect(columns, g, block, chunk, e->at->pattern.pair);
        (e->parts == 2 ? e->kernels->reverse_column : e->kernels->force_column)(
            e->key_sum + (h * slots + g.slot) * e->padded, f->rc + h * e->plane * e->parts,
            e->at->pattern.pair + run.begin, f->summary + h * columns->others,
            e->query + h * columns->others * stride, columns->other + run.begin,
            run.end - run.begin, e->padded, e->at->beta[h]);
    }
}

size_t basin_attention_fused(const basin_attention *at, int threads, void *workspace) {
    fused f = {.edges = edges_new(at, threads)};
    edge_run *e = &f.edges;
    if (!workspace) return lay_out(&f, NULL);
    edges_cut(e);
    size_t bytes = lay_out(&f, workspace);
    basin_parallel_for(prepare_slices, &f, SLICES, 0, threads);
    edges_find_runs(e);
    each_chunk(&f, row_chunk, e, &e->rows);
    close_rows(&f);
    if (!at->out_key) return bytes;
    each_chunk(&f, column_chunk, e, &e->columns);
    edges_write(at->out_key, e->key_sum, e, &e->columns);
    return bytes;
}

/* Energy attention over a CSR list with short rows, as molecules have: no packing, all heads at
 * once, a row or column per thread; fixed slices, so sums have one order. */

enum { SHORT = 16 }; /* pairs of an average row */

bool basin_attention_is_short(const basin_attention *at) {
    const basin_attention_pattern *p = &at->pattern;
    int64_t lanes = basin_attention_kernels_find()->lanes;
    return at->mode != BASIN_ATTENTION_VALUE && !at->mix && !at->out_mix &&
           p->pairs <= SHORT * p->queries && p->heads <= lanes && lanes % p->heads == 0 &&
           p->width % ATTENTION_ALIGN == 0;
}

typedef struct brief {
    basin_attention_short s;
    const basin_attention_kernels *kernels;
    int64_t queries, keys;
    float *partial; /* [SLICES, ATTENTION_ALIGN] of dbeta, in lanes */
    float *zeros;   /* [H, Y] for a or b that is none */
} brief;

static size_t edges_short_lay_out(brief *b, const basin_attention *at, void *workspace) {
    const basin_attention_pattern *p = &at->pattern;
    basin_arena a = {.base = workspace};
    b->s.t = basin_arena_floats(&a, p->pairs * p->heads);
    b->s.e = basin_arena_floats(&a, p->pairs * p->heads);
    b->s.gs =
        at->mode == BASIN_ATTENTION_REVERSE ? basin_arena_floats(&a, p->pairs * p->heads) : b->s.t;
    b->partial = basin_arena_floats(&a, SLICES * ATTENTION_ALIGN);
    b->zeros = basin_arena_floats(&a, p->heads * p->width);
    return a.used;
}

static void run_rows(const void *context, int64_t first, int64_t last) {
    const brief *b = context;
    for (int64_t i = first; i < last; i++)
        b->kernels->short_rows(&b->s, i * b->queries / SLICES, (i + 1) * b->queries / SLICES,
                               b->partial + i * ATTENTION_ALIGN);
}

static void run_columns(const void *context, int64_t first, int64_t last) {
    const brief *b = context;
    b->kernels->short_columns(&b->s, first * b->keys / SLICES, last * b->keys / SLICES);
}

static void add_partials(float *out, const brief *b) {
    for (int64_t h = 0; h < b->s.heads; h++) {
        float sum = 0;
        for (int64_t i = 0; i < SLICES; i++)
            for (int64_t lane = h; lane < b->kernels->lanes; lane += b->s.heads)
                sum += b->partial[i * ATTENTION_ALIGN + lane];
        out[h] = sum;
    }
}

static void take_operands(brief *b, const basin_attention *at, bool reverse) {
    const basin_attention_pattern *p = &at->pattern;
    basin_attention_short *s = &b->s;
    int64_t row = p->heads * p->width;
    for (int64_t i = 0; i < row; i++) b->zeros[i] = 0;
    s->reverse = reverse, s->added = at->added;
    s->heads = p->heads, s->width = p->width;
    s->row = p->row, s->key = p->key, s->column = p->column, s->query = p->query, s->pair = p->pair;
    s->q = at->q, s->k = at->k, s->beta = at->beta, s->scale = at->scale, s->w = at->w;
    s->a = reverse && at->a ? at->a : b->zeros, s->a_step = reverse && at->a ? row : 0;
    s->b = reverse && at->b ? at->b : b->zeros, s->b_step = reverse && at->b ? row : 0;
    s->lse = at->lse, s->gw = at->gw;
    s->dscale = at->out_scale;
    s->out_query = at->out_query, s->out_key = at->out_key;
}

size_t basin_attention_brief(const basin_attention *at, int threads, void *workspace) {
    brief b = {.kernels = basin_attention_kernels_find(),
               .queries = at->pattern.queries,
               .keys = at->pattern.keys};
    size_t bytes = edges_short_lay_out(&b, at, workspace);
    if (!workspace) return bytes;
    take_operands(&b, at, at->mode == BASIN_ATTENTION_REVERSE);
    basin_parallel_for(run_rows, &b, SLICES, 1, threads);
    if (at->out_beta) add_partials(at->out_beta, &b);
    if (at->out_key) basin_parallel_for(run_columns, &b, SLICES, 1, threads);
    return bytes;
}

/* Energy attention over a CSR list of pairs with any scale and mix, pass by pass:
 *
 *     dots      r, c for every pair and head
 *     weigh     lse and gw of every query; r <- beta t, c <- beta gs; dbeta, dscale, dmix
 *     gather    dQ, gQ along rows; dK, gK along columns */

enum { GATHERED = 256 }; /* pairs of a column whose weights are fetched at once */

typedef struct mixed {
    edge_run edges;
    float *r, *c;              /* [H, plane] */
    float *max, *total, *gain; /* [slots of rows, H] */
    float *query_sum;          /* [H, slots of rows, padded] */
    float *partial;            /* [chunks, shares] of dbeta and dmix, each in lanes */
    int64_t shares;
    float *scratch; /* [threads, scratch_size] */
    int64_t scratch_size;
} mixed;

static size_t edges_mixed_lay_out(mixed *m, int threads, void *workspace) {
    edge_run *e = &m->edges;
    int64_t slots = e->at->pattern.queries + PAIRS_MAX_CHUNKS;
    basin_arena a = {.base = workspace};
    edges_lay_out(e, &a);
    m->r = basin_arena_floats(&a, e->heads * e->plane);
    if (e->parts == 2) m->c = basin_arena_floats(&a, e->heads * e->plane);
    m->max = basin_arena_floats(&a, slots * e->heads);
    m->total = basin_arena_floats(&a, slots * e->heads);
    m->gain = basin_arena_floats(&a, slots * e->heads);
    if (e->at->out_query) m->query_sum = basin_arena_floats(&a, e->heads * slots * e->padded);
    m->shares = (e->heads + e->heads * e->heads) * ATTENTION_ALIGN;
    m->partial = basin_arena_floats(&a, PAIRS_MAX_CHUNKS * m->shares);
    m->scratch_size = ATTENTION_PLANES * e->heads * ATTENTION_TILE;
    m->scratch = basin_arena_floats(&a, threads * m->scratch_size);
    return a.used;
}

static void edges_mixed_prepare_slices(const void *context, int64_t first, int64_t last) {
    const mixed *m = context;
    const edge_run *e = &m->edges;
    int64_t states = (e->rows.nodes + e->rows.chunks) * e->heads;
    fill(m->max, states, -INFINITY, first, last);
    fill(m->total, states, 0, first, last);
    fill(m->gain, states, 0, first, last);
    if (m->query_sum) fill(m->query_sum, states * e->padded, 0, first, last);
    fill(m->partial, e->rows.chunks * m->shares, 0, first, last);
    edges_pack(e, first, last);
}

static void dots_chunk(const void *context, int64_t h, int64_t block, int64_t chunk) {
    const mixed *m = context;
    const edge_run *e = &m->edges;
    const pair_list *rows = &e->rows;
    int64_t stride = e->parts * e->padded;
    const float *key = e->key + h * rows->others * stride;
    for (pair_fragment f = fragment_first(rows, chunk); f.begin < f.end;
         fragment_next(&f, rows, chunk)) {
        pair_fragment run = fragment_run(f, rows, block);
        const float *query = e->query + (h * rows->nodes + f.node) * stride;
        const int32_t *other = rows->other + run.begin;
        int64_t at = h * e->plane + run.begin, n = run.end - run.begin;
        if (e->parts == 2)
            e->kernels->dot_two(m->r + at, m->c + at, query, key, other, n, e->padded);
        else
            e->kernels->dot(m->r + at, query, key, other, n, e->padded);
    }
}

/* The pairs of a fragment as the pointwise kernels take them; state from `slot`. */
static basin_attention_row row_of(const mixed *m, pair_fragment f, int64_t slot, int64_t chunk) {
    const edge_run *e = &m->edges;
    const basin_attention *at = e->at;
    float *dscale = at->out_scale, *dmix = at->out_mix;
    float *partial = m->partial + chunk * m->shares;
    int64_t heads = e->heads;
    return (basin_attention_row){
        .heads = heads,
        .pairs = f.end - f.begin,
        .plane = e->plane,
        .scale_stride = heads,
        .self = -1,
        .beta = at->beta,
        .mix = at->mix,
        .added = at->added,
        .scale = at->scale ? at->scale + f.begin * heads : NULL,
        .w = at->w ? at->w + f.node * heads : NULL,
        .r = m->r + f.begin,
        .c = m->c ? m->c + f.begin : NULL,
        .max = m->max + slot * heads,
        .total = m->total + slot * heads,
        .gain = m->gain + slot * heads,
        .dscale = dscale ? dscale + f.begin * heads : NULL,
        .dbeta = e->at->out_beta ? partial : NULL,
        .dmix = dmix ? partial + heads * ATTENTION_ALIGN : NULL,
        .scratch = m->scratch + basin_parallel_place() * m->scratch_size,
    };
}

/* Folds the extra slots into the nodes they continue. */
static void merge_states(const mixed *m) {
    const edge_run *e = &m->edges;
    for (int64_t chunk = 0; chunk < e->rows.chunks; chunk++) {
        int64_t node = continued(&e->rows, chunk);
        for (int64_t h = 0; node >= 0 && h < e->heads; h++) {
            int64_t to = node * e->heads + h, from = (e->rows.nodes + chunk) * e->heads + h;
            float max = fmaxf(m->max[to], m->max[from]);
            float keep = expf(m->max[to] - max), add = expf(m->max[from] - max);
            m->total[to] = m->total[to] * keep + m->total[from] * add;
            m->gain[to] = m->gain[to] * keep + m->gain[from] * add;
            m->max[to] = max;
        }
    }
}

static bool is_split(const pair_list *rows, pair_fragment f) {
    return f.begin > rows->start[f.node] || f.end < rows->start[f.node + 1];
}

/* Rows within one chunk are finished; the others keep their state so far. */
static void weigh_chunk(const mixed *m, int64_t chunk) {
    const edge_run *e = &m->edges;
    for (pair_fragment f = fragment_first(&e->rows, chunk); f.begin < f.end;
         fragment_next(&f, &e->rows, chunk)) {
        basin_attention_row row = row_of(m, f, f.slot, chunk);
        bool partly = e->mode == BASIN_ATTENTION_VALUE || is_split(&e->rows, f);
        (partly ? e->kernels->measure : e->kernels->complete)(&row);
    }
}

static void finish_split(const mixed *m, int64_t chunk) {
    const edge_run *e = &m->edges;
    for (pair_fragment f = fragment_first(&e->rows, chunk); f.begin < f.end;
         fragment_next(&f, &e->rows, chunk)) {
        if (!is_split(&e->rows, f)) continue;
        basin_attention_row row = row_of(m, f, f.node, chunk);
        e->kernels->finish(&row);
    }
}

/* out[i] = the sum over chunks and lanes of number `from + i`. */
static void edges_mixed_add_partials(float *out, const mixed *m, int64_t from, int64_t count) {
    for (int64_t i = 0; out && i < count; i++) {
        float sum = 0;
        for (int64_t chunk = 0; chunk < m->edges.rows.chunks; chunk++) {
            const float *lane = m->partial + chunk * m->shares + (from + i) * ATTENTION_ALIGN;
            for (int64_t j = 0; j < ATTENTION_ALIGN; j++) sum += lane[j];
        }
        out[i] = sum;
    }
}

static void edges_mixed_close_rows(const void *context, int64_t first, int64_t last) {
    const mixed *m = context;
    const edge_run *e = &m->edges;
    float *lse = e->at->lse, *gw = e->at->gw;
    for (int64_t i = first; i < last; i++) {
        bool any = m->total[i] != 0;
        if (lse) lse[i] = any ? m->max[i] + logf(m->total[i]) : 0;
        if (gw) gw[i] = any ? m->gain[i] / m->total[i] : 0;
    }
}

static void weigh_chunks(const void *context, int64_t first, int64_t last) {
    for (int64_t chunk = first; chunk < last; chunk++) weigh_chunk(context, chunk);
}

static void finish_chunks(const void *context, int64_t first, int64_t last) {
    for (int64_t chunk = first; chunk < last; chunk++) finish_split(context, chunk);
}

static void weigh(const mixed *m) {
    const edge_run *e = &m->edges;
    basin_parallel_for(weigh_chunks, m, e->rows.chunks, 1, e->threads);
    merge_states(m);
    basin_parallel_for(edges_mixed_close_rows, m, e->rows.nodes * e->heads, 0, e->threads);
    if (e->mode == BASIN_ATTENTION_VALUE) return;
    basin_parallel_for(finish_chunks, m, e->rows.chunks, 1, e->threads);
    edges_mixed_add_partials(e->at->out_beta, m, 0, e->heads);
    edges_mixed_add_partials(e->at->out_mix, m, e->heads, e->heads * e->heads);
}

static void edges_mixed_row_chunk(const void *context, int64_t h, int64_t block, int64_t chunk) {
    const mixed *m = context;
    const edge_run *e = &m->edges;
    const pair_list *rows = &e->rows;
    const float *key = e->key + h * rows->others * e->parts * e->padded;
    float *sums = m->query_sum + h * (rows->nodes + rows->chunks) * e->padded;
    for (pair_fragment f = fragment_first(rows, chunk); f.begin < f.end;
         fragment_next(&f, rows, chunk)) {
        pair_fragment run = fragment_run(f, rows, block);
        float *sum = sums + f.slot * e->padded;
        const int32_t *other = rows->other + run.begin;
        int64_t at = h * e->plane + run.begin, n = run.end - run.begin;
        if (e->parts == 2)
            e->kernels->gather_two(sum, m->c + at, m->r + at, key, other, n, e->padded);
        else
            e->kernels->gather(sum, m->r + at, key, other, n, e->padded);
    }
}

/* The weights of a column's pairs lie apart in r and c: fetch some, use them, go on. */
static void column_run(const mixed *m, float *sum, int64_t h, pair_fragment run) {
    const edge_run *e = &m->edges;
    const float *query = e->query + h * e->columns.others * e->parts * e->padded;
    const float *r = m->r + h * e->plane, *c = m->c ? m->c + h * e->plane : NULL;
    float t[GATHERED], gs[GATHERED];
    for (int64_t begin = run.begin; begin < run.end; begin += GATHERED) {
        int64_t n = run.end - begin < GATHERED ? run.end - begin : GATHERED;
        const int32_t *pair = e->at->pattern.pair + begin, *other = e->columns.other + begin;
        for (int64_t i = 0; i < n; i++) t[i] = r[pair[i]];
        if (e->parts == 2) {
            for (int64_t i = 0; i < n; i++) gs[i] = c[pair[i]];
            e->kernels->gather_two(sum, gs, t, query, other, n, e->padded);
        } else {
            e->kernels->gather(sum, t, query, other, n, e->padded);
        }
    }
}

static void edges_mixed_column_chunk(const void *context, int64_t h, int64_t block, int64_t chunk) {
    const mixed *m = context;
    const edge_run *e = &m->edges;
    const pair_list *columns = &e->columns;
    float *sums = e->key_sum + h * (columns->nodes + columns->chunks) * e->padded;
    for (pair_fragment f = fragment_first(columns, chunk); f.begin < f.end;
         fragment_next(&f, columns, chunk))
        column_run(m, sums + f.slot * e->padded, h, fragment_run(f, columns, block));
}

size_t basin_attention_mixed(const basin_attention *at, int threads, void *workspace) {
    mixed m = {.edges = edges_new(at, threads)};
    edge_run *e = &m.edges;
    if (!workspace) return edges_mixed_lay_out(&m, threads, NULL);
    edges_cut(e);
    size_t bytes = edges_mixed_lay_out(&m, threads, workspace);
    basin_parallel_for(edges_mixed_prepare_slices, &m, SLICES, 0, threads);
    edges_find_runs(e);
    each_chunk(&m, dots_chunk, e, &e->rows);
    weigh(&m);
    if (at->out_query) {
        each_chunk(&m, edges_mixed_row_chunk, e, &e->rows);
        edges_write(at->out_query, m.query_sum, e, &e->rows);
    }
    if (at->out_key) {
        each_chunk(&m, edges_mixed_column_chunk, e, &e->columns);
        edges_write(at->out_key, e->key_sum, e, &e->columns);
    }
    return bytes;
}
