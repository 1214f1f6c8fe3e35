/* Scores of a block of pairs in registers: the running largest of a row, weights, what a query's
 * row comes to. As in attention/mma.h, a thread sees c[4] of each 16 x 8: rows g and g + 8, columns
 * 2t and 2t + 1. See attention/dense.h. */
#ifndef BASIN_BACKEND_CUDA_ATTENTION_DENSE_ROWS_H
#define BASIN_BACKEND_CUDA_ATTENTION_DENSE_ROWS_H

#include "engine/backend/cuda/attention/attention.h"

/* One launch: one side of all (batch entry, head)s. Node n of side x, head h, entry b is at
 * (b * own + n) * step_x + h * width; summaries are [batch, H, queries]. */
struct basin_dense_launch {
    const void *x, *x2, *y, *y2; /* T; x2, y2: reverse, or NULL */
    void *out;                   /* T, like x; NULL: not requested */
    const float *beta, *w;
    float *lse, *gw; /* [batch, queries, H], or NULL */
    float *slope;    /* [batch, queries, H]: shares of dbeta or gbeta, or NULL */
    basin_cuda_summary
        *summary; /* written by query, read by key; NULL where there is no key side */
    int own, other, heads, width, blocks; /* nodes on either side; blocks of own rows per head */
    int64_t tasks;                        /* batch * heads * blocks */
    int64_t step_x, step_x2, step_y, step_y2, step_out; /* elements from a node to the next */
    bool exclude_self;
    int order; /* causal: 1 where streamed rows come up to the own one, -1 from it on; 0: all */
    bool vectors, pairs; /* heads begin at 16 bytes; in the result, at two elements */
};

BASIN_DEVICE float basin_quad_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
BASIN_DEVICE float basin_quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

/* The rows g and g + 8 of a warp's 16, as a thread sees them; sums are over its own columns until
 * basin_dense_total adds those of the four threads that share the rows. */
struct basin_dense_rows {
    float maximum[2], total[2], gain[2], slope[2];
};

/* Whether the pair of own row `row` and streamed row `column` counts. */
struct basin_dense_bounds {
    int row, column; /* of the first score */
    int other, order;
    bool exclude_self, whole; /* whole: no score of this block is left out */
    BASIN_METHOD bool holds(int j, int e) const {
        int t = threadIdx.x % 4, g = threadIdx.x % 32 / 4;
        int m = row + g + e / 2 * 8, n = column + j * 8 + 2 * t + e % 2;
        return n < other && !(exclude_self && m == n) && (m - n) * order >= 0;
    }
};

template <int COLUMNS>
BASIN_DEVICE basin_dense_bounds basin_dense_bounds_of(const basin_dense_launch &p, int row,
                                                      int column) {
    bool inside = column + COLUMNS <= p.other;
    bool diagonal = p.exclude_self && row < column + COLUMNS && column < row + 16;
    bool ordered = p.order == 0 || (p.order > 0 ? column + COLUMNS <= row + 1 : row + 15 <= column);
    return {row, column, p.other, p.order, p.exclude_self, inside && !diagonal && ordered};
}

/* Whether causal order leaves out the whole block. */
template <int COLUMNS>
BASIN_DEVICE bool basin_dense_outside(const basin_dense_launch &p, int row, int column) {
    return p.order > 0 ? column > row + 15 : p.order < 0 && column + COLUMNS <= row;
}

/* Takes scores r into the running largest; returns the factor of what was summed so far. */
template <int COLUMNS>
BASIN_DEVICE void basin_dense_raise(float factor[2], basin_dense_rows &s, const float (*r)[4],
                                    float beta, const basin_dense_bounds &in) {
    float maximum[2] = {s.maximum[0], s.maximum[1]};
    BASIN_UNROLL (j, COLUMNS / 8)
        BASIN_UNROLL (e, 4)
            if (in.whole || in.holds(j, e)) maximum[e / 2] = fmaxf(maximum[e / 2], r[j][e] * beta);
    BASIN_UNROLL (i, 2) {
        maximum[i] = basin_quad_max(maximum[i]);
        factor[i] = s.maximum[i] == maximum[i] ? 1.0f : basin_exp2(s.maximum[i] - maximum[i]);
        s.maximum[i] = maximum[i];
    }
}

/* 2^(beta r - maximum), 0 where the pair is left out; maximum is -infinity only if all are. */
BASIN_DEVICE float basin_dense_weight(float r, float beta, float maximum,
                                      const basin_dense_bounds &in, int j, int e) {
    return in.whole || in.holds(j, e) ? basin_exp2(fmaf(r, beta, -maximum)) : 0.0f;
}

/* ---- a block of scores, by query ---- */

/* The force: r becomes 2^(z - maximum), the sums follow. */
template <int COLUMNS>
BASIN_DEVICE void basin_dense_force(float factor[2], float (*r)[4], basin_dense_rows &s, float beta,
                                    const basin_dense_bounds &in) {
    basin_dense_raise<COLUMNS>(factor, s, r, beta, in);
    BASIN_UNROLL (i, 2) s.total[i] *= factor[i], s.slope[i] *= factor[i];
    BASIN_UNROLL (j, COLUMNS / 8)
        BASIN_UNROLL (e, 4) {
            float weight = basin_dense_weight(r[j][e], beta, s.maximum[e / 2], in, j, e);
            s.total[e / 2] += weight;
            s.slope[e / 2] = fmaf(weight, r[j][e], s.slope[e / 2]);
            r[j][e] = weight;
        }
}

/* The reverse, first time: the mean of c. */
template <int COLUMNS>
BASIN_DEVICE void basin_dense_mean(const float (*r)[4], const float (*c)[4], basin_dense_rows &s,
                                   float beta, const basin_dense_bounds &in) {
    float factor[2];
    basin_dense_raise<COLUMNS>(factor, s, r, beta, in);
    BASIN_UNROLL (i, 2) s.total[i] *= factor[i], s.gain[i] *= factor[i];
    BASIN_UNROLL (j, COLUMNS / 8)
        BASIN_UNROLL (e, 4) {
            float weight = basin_dense_weight(r[j][e], beta, s.maximum[e / 2], in, j, e);
            s.total[e / 2] += weight;
            s.gain[e / 2] = fmaf(weight, c[j][e], s.gain[e / 2]);
        }
}

/* The reverse, second time: r becomes P, c becomes P beta (c - mean); both lack w. */
template <int COLUMNS>
BASIN_DEVICE void basin_dense_reverse(float (*r)[4], float (*c)[4], basin_dense_rows &s, float beta,
                                      const basin_dense_bounds &in) {
    BASIN_UNROLL (j, COLUMNS / 8)
        BASIN_UNROLL (e, 4) {
            int i = e / 2;
            float P = s.total[i] *
                      basin_dense_weight(r[j][e], beta * BASIN_LOG2_E, s.maximum[i], in, j, e);
            float gs = P * beta * (c[j][e] - s.gain[i]);
            s.slope[i] = fmaf(gs, r[j][e], s.slope[i]);
            r[j][e] = P;
            c[j][e] = gs;
        }
}

/* ---- a block of scores, by key: columns are queries ---- */

template <int COLUMNS, basin_cuda_mode MODE>
BASIN_DEVICE void basin_dense_by_key(float (*r)[4], float (*c)[4],
                                     const basin_cuda_summary *summary, float beta,
                                     const basin_dense_bounds &in) {
    int t = threadIdx.x % 4;
    BASIN_UNROLL (j, COLUMNS / 8)
        BASIN_UNROLL (side, 2) {
            float4 q = *(const float4 *)&summary[j * 8 + 2 * t + side]; /* maximum, weight, mean */
#pragma unroll
            for (int e = side; e < 4; e += 2) {
                float weight = basin_dense_weight(r[j][e], beta * BASIN_LOG2_E, q.x, in, j, e);
                r[j][e] = weight * q.y;
                if (MODE == BASIN_CUDA_REVERSE) c[j][e] = r[j][e] * beta * (c[j][e] - q.z);
            }
        }
}

/* Closes a query's row: lse or gw, its share of dbeta or gbeta, the summary, the factor of dq. In
 * reverse, `total` and `gain` are 1 / total and the mean already. */
template <basin_cuda_mode MODE>
BASIN_DEVICE void basin_dense_close(float factor[2], const basin_dense_launch &p,
                                    basin_dense_rows &s, int entry, int head, int row) {
    float beta = p.beta[head];
    for (int i = 0; i < 2; i++) {
        int query = row + i * 8;
        float slope = basin_quad_sum(s.slope[i]);
        float total = MODE == BASIN_CUDA_REVERSE ? s.total[i] : basin_quad_sum(s.total[i]);
        bool any = total > 0, there = query < p.own && threadIdx.x % 4 == 0;
        int64_t at = ((int64_t)entry * p.own + query) * p.heads + head;
        float w = query < p.own && p.w ? p.w[at] : 0.0f;
        float inverse = MODE == BASIN_CUDA_REVERSE ? total : any ? 1.0f / total : 0.0f;
        factor[i] = MODE == BASIN_CUDA_REVERSE ? beta * w : beta * w * inverse;
        if (!there) continue;
        if (p.lse) p.lse[at] = any ? s.maximum[i] * BASIN_LN_2 + logf(total) : 0.0f;
        if (p.gw) p.gw[at] = beta * s.gain[i];
        if (p.slope)
            p.slope[at] =
                MODE == BASIN_CUDA_REVERSE ? w * (s.gain[i] + slope) : w * inverse * slope;
        if (p.summary)
            p.summary[((int64_t)entry * p.heads + head) * p.own + query] = {
                any ? s.maximum[i] : 0.0f, w * inverse,
                MODE == BASIN_CUDA_REVERSE ? s.gain[i] : 0.0f, 0.0f};
    }
}

/* Between the two passes of the reverse: 1 / total and mean of c, the same in all four threads. */
BASIN_DEVICE void basin_dense_between(basin_dense_rows &s) {
    for (int i = 0; i < 2; i++) {
        float total = basin_quad_sum(s.total[i]), gain = basin_quad_sum(s.gain[i]);
        s.total[i] = total > 0 ? 1.0f / total : 0.0f;
        s.gain[i] = gain * s.total[i];
    }
}

/* Energy attention over all pairs of long sequences: the launch. See attention/stream_sm90a.cu. */

enum { BASIN_STREAM_ROWS = 64 }; /* own rows of a block */

/* Whether there is a kernel for these sizes here. Rows read begin at multiples of 16 bytes,
 * results' at 4. The summaries' memory is what these kernels exchange. */
bool basin_stream_fits(const basin_cuda *cuda, const basin_cuda_heads *at);
cudaError_t basin_stream_start(const basin_dense_launch *p, basin_cuda_mode mode, bool by_key,
                               cudaStream_t stream);

/* Energy attention over all pairs of a picture's tokens: the launch. See strip_sm90a.cu. */

/* Node n, head h, entry b of q is at (b * queries + n) * step.q + h * width, and so on. */
struct basin_strip_launch {
    const void *q, *k, *a, *b; /* a, b: reverse, or NULL */
    void *out_q, *out_k;       /* NULL: not requested */
    const float *beta, *w;     /* w: not of a value */
    float *lse, *gw, *slope;   /* [batch, queries, H]; slope: shares of dbeta or gbeta; or NULL */
    int queries, keys, heads, width;
    bool exclude_self;
    bool bytes, five; /* results are bytes, five: e5m2, else e4m3, of numbers times the scale */
    float scale;
    basin_cuda_steps step;
};

/* Whether there is a kernel for these sizes on this device. Rows that are read must begin at
 * multiples of 16 bytes, those of results at multiples of 8. */
bool basin_strip_fits(const basin_cuda *cuda, const basin_cuda_heads *at);
cudaError_t basin_strip_start(const basin_strip_launch *p, basin_kind kind, basin_cuda_mode mode,
                              int64_t blocks, cudaStream_t stream);

#endif
