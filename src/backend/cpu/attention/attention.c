/* Energy attention: all pairs or a list of them. See attention.h. */
#include <string.h>

#include "backend/cpu/attention/attention.h"
#include "backend/cpu/cpu.h"
#include "backend/shape.h"
#include "base/sort.h"
#include "base/team/team.h"

/* A list without scale and mix takes fewer passes. */
static bool is_fused(const basin_attention *at) {
    if (at->scale || at->mix) return false;
    return at->mode != BASIN_ATTENTION_VALUE && !at->out_scale && !at->out_mix;
}

size_t basin_attention_workspace(const basin_attention *at, int threads) {
    if (!at->pattern.row) return basin_attention_dense_workspace(at, threads);
    if (basin_attention_is_short(at)) return basin_attention_short_workspace(at);
    if (is_fused(at)) return basin_attention_fused_workspace(at);
    return basin_attention_mixed_workspace(at, threads);
}

enum { THREAD_WORK = 100000 }; /* multiplications of one product that are worth another thread */

/* Small problems take fewer threads; results do not depend on how many. */
int basin_attention_threads(const basin_attention *at, int threads) {
    const basin_attention_pattern *p = &at->pattern;
    double pairs = p->row ? p->row[p->queries] : (double)p->batch * (double)(p->queries * p->keys);
    double worth = 1 + pairs * (double)(p->heads * p->width) / THREAD_WORK;
    return worth < threads ? (int)worth : threads;
}

void basin_attention_run(const basin_attention *at, int threads, void *workspace) {
    threads = basin_attention_threads(at, threads);
    if (!at->pattern.row)
        basin_attention_dense(at, threads, workspace);
    else if (basin_attention_is_short(at))
        basin_attention_short_run(at, threads, workspace);
    else if (is_fused(at))
        basin_attention_fused(at, threads, workspace);
    else
        basin_attention_mixed(at, threads, workspace);
}

/* ---- The attention calls of a plan ---- */

/* The operands and the pattern; in and out as in the frame. */
static basin_attention describe(const basin_call *call, const void *const *in, void *const *out) {
    const basin_shape *q = &call->in[BASIN_ATT_Q].shape, *k = &call->in[BASIN_ATT_K].shape;
    basin_attention at = {.q = in[BASIN_ATT_Q], .k = in[BASIN_ATT_K], .beta = in[BASIN_ATT_BETA]};
    at.pattern = (basin_attention_pattern){.batch = basin_shape_last(q, 4),
                                           .parts = call->parts,
                                           .queries = basin_shape_last(q, 3),
                                           .keys = basin_shape_last(k, 3),
                                           .heads = basin_shape_last(q, 2),
                                           .width = basin_shape_last(q, 1),
                                           .exclude_self = call->attr.exclude_self,
                                           .causal = call->attr.causal,
                                           .row = in[BASIN_ATT_ROW],
                                           .key = in[BASIN_ATT_KEY],
                                           .column = in[BASIN_ATT_COLUMN],
                                           .query = in[BASIN_ATT_QUERY],
                                           .pair = in[BASIN_ATT_PAIR]};
    if (at.pattern.row) at.pattern.pairs = call->in[BASIN_ATT_KEY].shape.dim[0];
    at.scale = in[BASIN_ATT_SCALE], at.mix = in[BASIN_ATT_MIX], at.w = in[BASIN_ATT_W];
    at.a = in[BASIN_ATT_A], at.b = in[BASIN_ATT_B], at.added = call->attr.added;
    at.mode = call->op == BASIN_OP_ATTENTION         ? BASIN_ATTENTION_VALUE
              : call->op == BASIN_OP_ATTENTION_FORCE ? BASIN_ATTENTION_FORCE
                                                     : BASIN_ATTENTION_REVERSE;
    if (at.mode == BASIN_ATTENTION_REVERSE) {
        at.out_query = out[BASIN_ATT_GQ], at.out_key = out[BASIN_ATT_GK], at.gw = out[BASIN_ATT_GW];
        at.out_beta = out[BASIN_ATT_GBETA], at.out_scale = out[BASIN_ATT_GSCALE];
        at.out_mix = out[BASIN_ATT_GMIX];
    } else {
        at.lse = out[BASIN_ATT_LSE], at.out_query = out[BASIN_ATT_DQ],
        at.out_key = out[BASIN_ATT_DK];
        at.out_beta = out[BASIN_ATT_DBETA], at.out_scale = out[BASIN_ATT_DSCALE];
        at.out_mix = out[BASIN_ATT_DMIX];
    }
    return at;
}

/* Where the tokens are bfloat16 and there are kernels for such; elsewhere they are widened. */
static bool is_narrow(const basin_call *call, const basin_attention *at) {
    return call->in[BASIN_ATT_Q].kind == BASIN_NARROW && basin_attention_narrow_fits(at);
}

static basin_attention_narrow narrow_of(const basin_attention *at) {
    basin_attention_narrow n = {.at = at, .q = (const uint16_t *)at->q};
    n.k = (const uint16_t *)at->k, n.a = (const uint16_t *)at->a, n.b = (const uint16_t *)at->b;
    n.by_query = (uint16_t *)at->out_query;
    n.by_key = (uint16_t *)at->out_key;
    return n;
}

size_t basin_cpu_attention_workspace(const basin_call *call, int threads) {
    float there; /* the size depends on which operands there are, not on where they lie */
    const void *in[BASIN_MAX_IN] = {0};
    void *out[BASIN_MAX_OUT] = {0};
    for (int i = 0; i < call->ins; i++)
        if (call->in[i].block >= 0) in[i] = &there;
    for (int i = 0; i < call->outs; i++)
        if (call->out[i].block >= 0) out[i] = &there;
    basin_attention at = describe(call, in, out);
    basin_attention_narrow n = narrow_of(&at);
    if (is_narrow(call, &at)) return basin_attention_narrow_workspace(&n, threads);
    return basin_cpu_widened_bytes(call) + basin_attention_workspace(&at, threads);
}

/* The multipliers of pairs beyond the last row are padding: their gradient is 0. */
static void clear_padding(float *gradient /* [pairs, H] */, const basin_attention_pattern *at) {
    if (!gradient || !at->row) return;
    int64_t used = at->row[at->queries];
    memset(gradient + used * at->heads, 0,
           (size_t)((at->pairs - used) * at->heads) * sizeof(float));
}

void basin_cpu_attention(const basin_frame *frame) {
    const void *in[BASIN_MAX_IN];
    void *out[BASIN_MAX_OUT];
    basin_attention at = describe(frame->call, frame->in, frame->out);
    if (is_narrow(frame->call, &at)) {
        basin_attention_narrow n = narrow_of(&at);
        basin_attention_narrow_run(&n, frame->threads, frame->workspace);
        return;
    }
    void *workspace = basin_cpu_widen(in, out, frame);
    at = describe(frame->call, in, out);
    basin_attention_run(&at, frame->threads, workspace);
    clear_padding(at.out_scale, &at.pattern);
    basin_cpu_narrow(frame, out);
}

/* ---- How the work over a CSR list is cut ---- */

enum {
    MIN_PIECE = 1024,          /* pairs; fewer are not worth a thread */
    BLOCK_BYTES = 1024 * 1024, /* about half of a second-level cache */
    MIN_RUN = 16,              /* pairs of an average run; shorter ones cost more than misses do */
};

static int64_t block_count(int64_t pairs, int64_t nodes, int64_t others, int64_t row_bytes) {
    int64_t wanted = basin_int_ceil(others * row_bytes, BLOCK_BYTES);
    int64_t most = nodes > 0 ? pairs / (nodes * MIN_RUN) : 1;
    if (wanted > most) wanted = most;
    return wanted > 1 ? wanted : 1;
}

basin_cpu_pairs basin_cpu_pairs_cut(const int32_t *start, const int32_t *other, int64_t nodes,
                                    int64_t others, int64_t row_bytes) {
    int64_t count = start[nodes], piece = basin_int_ceil(count, PAIRS_MAX_CHUNKS);
    if (piece < MIN_PIECE) piece = MIN_PIECE;
    int64_t blocks = block_count(count, nodes, others, row_bytes);
    return (basin_cpu_pairs){.nodes = nodes,
                             .others = others,
                             .count = count,
                             .start = start,
                             .other = other,
                             .piece = piece,
                             .chunks = basin_int_ceil(count, piece),
                             .block = basin_int_ceil(others, blocks),
                             .blocks = blocks};
}

size_t basin_cpu_pairs_cut_size(int64_t pairs, int64_t nodes, int64_t others, int64_t row_bytes) {
    int64_t blocks = block_count(pairs, nodes, others, row_bytes);
    return blocks > 1 ? (size_t)((nodes + PAIRS_MAX_CHUNKS) * (blocks + 1)) : 0;
}

/* The fragment at pair `begin`, in the first node from `node` on that has one. */
static basin_cpu_fragment fragment_at(const basin_cpu_pairs *pairs, int64_t chunk, int64_t node,
                                      int64_t begin) {
    int64_t first = chunk * pairs->piece, last = first + pairs->piece;
    if (last > pairs->count) last = pairs->count;
    if (begin >= last) return (basin_cpu_fragment){.node = node, .begin = last, .end = last};
    while (pairs->start[node + 1] <= begin) node++;
    int64_t end = pairs->start[node + 1];
    return (basin_cpu_fragment){.node = node,
                                .slot = pairs->start[node] < first ? pairs->nodes + chunk : node,
                                .begin = begin,
                                .end = end < last ? end : last};
}

basin_cpu_fragment basin_cpu_fragment_first(const basin_cpu_pairs *pairs, int64_t chunk) {
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

void basin_cpu_fragment_next(basin_cpu_fragment *fragment, const basin_cpu_pairs *pairs,
                             int64_t chunk) {
    *fragment = fragment_at(pairs, chunk, fragment->node, fragment->end);
}

int64_t basin_cpu_pairs_continued(const basin_cpu_pairs *pairs, int64_t chunk) {
    basin_cpu_fragment first = basin_cpu_fragment_first(pairs, chunk);
    return first.begin < first.end && first.slot >= pairs->nodes ? first.node : -1;
}

/* The first of pairs at .. end whose other node is `limit` or later, by steps that double, then by
 * halves: runs are long. */
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

static void find_runs(const void *context, int64_t begin, int64_t end, int place) {
    const basin_cpu_pairs *pairs = context;
    (void)place;
    for (int64_t chunk = begin; chunk < end; chunk++)
        for (basin_cpu_fragment f = basin_cpu_fragment_first(pairs, chunk); f.begin < f.end;
             basin_cpu_fragment_next(&f, pairs, chunk)) {
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

void basin_cpu_pairs_find_runs(const basin_cpu_pairs *pairs, int threads) {
    if (pairs->blocks > 1) basin_team_run(find_runs, pairs, pairs->chunks, 1, threads);
}

/* Products over the pairs of a CSR pattern: w[p, h] = x[q, h] . z[k, h], and
 * out[q, h] = sum over its pairs of w[p, h] z[k, h], or the same by keys. Rows are dealt to threads
 * in chunks of about equally many pairs; a row is summed by one thread, in the order of its pairs.
 */

enum { IN_ROW = 2, IN_KEY, IN_COLUMN, IN_QUERY, IN_PAIR, CHUNKS = 256 };

/* The first row of chunk i: the first that starts at or after its share of the pairs. */
static int64_t chunk_first(const int32_t *row, int64_t rows, int64_t i) {
    if (i >= CHUNKS) return rows;
    int64_t low = 0, high = rows, wanted = (int64_t)row[rows] * i / CHUNKS;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (row[middle] >= wanted)
            high = middle;
        else
            low = middle + 1;
    }
    return i == 0 ? 0 : low;
}

static void dot_chunks(const basin_frame *frame, int64_t first, int64_t last) {
    const basin_call *call = frame->call;
    const basin_shape *shape = &call->in[0].shape;
    const float *x = frame->in[0]; /* [rows, heads, width] */
    const float *z = frame->in[1]; /* [keys, heads, width] */
    const int32_t *row = frame->in[IN_ROW], *key = frame->in[IN_KEY];
    float *w = frame->out[0]; /* [pairs, heads] */
    int64_t rows = call->in[IN_ROW].shape.dim[0] - 1, end = chunk_first(row, rows, last);
    int64_t heads = shape->dim[shape->rank - 2], width = shape->dim[shape->rank - 1];
    for (int64_t q = chunk_first(row, rows, first); q < end; q++)
        frame->simd->pair_dot(w + row[q] * heads, x + q * heads * width, z, key + row[q],
                              row[q + 1] - row[q], heads, width);
}

void basin_cpu_pair_dot(const basin_frame *frame) {
    const basin_call *call = frame->call;
    const basin_shape *shape = &call->in[0].shape;
    const int32_t *row = frame->in[IN_ROW];
    float *w = frame->out[0]; /* [pairs, heads] */
    int64_t rows = call->in[IN_ROW].shape.dim[0] - 1, pairs = call->in[IN_KEY].shape.dim[0];
    int64_t heads = shape->dim[shape->rank - 2], width = shape->dim[shape->rank - 1];
    basin_cpu_share(frame, dot_chunks, CHUNKS, pairs * heads * width);
    memset(w + row[rows] * heads, 0, (size_t)((pairs - row[rows]) * heads) * sizeof *w);
}

static void sum_chunks(const basin_frame *frame, int64_t first, int64_t last) {
    const basin_call *call = frame->call;
    const basin_shape *shape = &call->in[1].shape;
    bool by_key = call->attr.transpose_a;
    const float *w = frame->in[0]; /* [pairs, heads] */
    const float *z = frame->in[1]; /* [keys, heads, width], by key [queries, heads, width] */
    const int32_t *row = frame->in[by_key ? IN_COLUMN : IN_ROW];
    const int32_t *other = frame->in[by_key ? IN_QUERY : IN_KEY];
    const int32_t *pair = by_key ? frame->in[IN_PAIR] : NULL;
    float *out = frame->out[0]; /* [rows, heads, width] */
    int64_t rows = call->in[by_key ? IN_COLUMN : IN_ROW].shape.dim[0] - 1;
    int64_t heads = shape->dim[shape->rank - 2], width = shape->dim[shape->rank - 1];
    int64_t end = chunk_first(row, rows, last);
    for (int64_t q = chunk_first(row, rows, first); q < end; q++)
        frame->simd->pair_sum(out + q * heads * width, w + (pair ? 0 : row[q] * heads), z,
                              pair ? pair + row[q] : NULL, other + row[q], row[q + 1] - row[q],
                              heads, width);
}

void basin_cpu_pair_sum(const basin_frame *frame) {
    const basin_call *call = frame->call;
    const basin_shape *shape = &call->in[1].shape;
    int side = call->attr.transpose_a ? IN_COLUMN : IN_ROW;
    const int32_t *row = frame->in[side];
    int64_t pairs = row[call->in[side].shape.dim[0] - 1];
    int64_t heads = shape->dim[shape->rank - 2], width = shape->dim[shape->rank - 1];
    basin_cpu_share(frame, sum_chunks, CHUNKS, pairs * heads * width);
}
