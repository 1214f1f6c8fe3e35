/* Energy attention: all pairs or a list of them. See attention.h. */
#include <string.h>

#include "engine/backend/cpu/attention/attention.h"
#include "engine/backend/cpu/cpu.h"
#include "engine/backend/shape.h"

/* A list without scale and mix takes fewer passes. */
static bool is_fused(const basin_attention *at) {
    if (at->scale || at->mix) return false;
    return at->mode != BASIN_ATTENTION_VALUE && !at->out_scale && !at->out_mix;
}

static basin_attention_form *form_of(const basin_attention *at) {
    if (!at->pattern.row) return basin_attention_dense;
    if (basin_attention_is_short(at)) return basin_attention_brief;
    return is_fused(at) ? basin_attention_fused : basin_attention_mixed;
}

size_t basin_attention_workspace(const basin_attention *at, int threads) {
    return form_of(at)(at, threads, NULL);
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
    form_of(at)(at, basin_attention_threads(at, threads), workspace);
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
    return call->in[BASIN_ATT_Q].kind == BASIN_NARROW && !call->attr.widens &&
           basin_attention_narrow_fits(at);
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
    if (is_narrow(call, &at)) return basin_attention_narrow(&at, threads, NULL);
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
        basin_attention_narrow(&at, frame->threads, frame->workspace);
        return;
    }
    void *workspace = basin_cpu_widen(in, out, frame);
    at = describe(frame->call, in, out);
    basin_attention_run(&at, frame->threads, workspace);
    clear_padding(at.out_scale, &at.pattern);
    basin_cpu_narrow(frame, out);
}

/* Products over the pairs of a CSR pattern: w[p, h] = x[q, h] . z[k, h], and
 * out[q, h] = sum over its pairs of w[p, h] z[k, h], or the same by keys. Rows are dealt to threads
 * in chunks of about equally many pairs; a row is summed by one thread, in the order of its pairs.
 */

enum { IN_ROW = 2, IN_KEY, IN_COLUMN, IN_QUERY, IN_PAIR, CHUNKS = 256 };

/* The first row of chunk i: the first that starts at or after its share of the pairs. */
static int64_t chunk_first(const int32_t *row, int64_t rows, int64_t i) {
    if (i >= CHUNKS) return rows;
    int64_t low = 0, high = rows, target = (int64_t)row[rows] * i / CHUNKS;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (row[middle] >= target)
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
