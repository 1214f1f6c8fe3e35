/* Softmax attention with values and its derivatives on the device (equations: backend/values.h).
 * For .cu files only.
 *
 * Both sides are one computation. With the own rows X = q, tq, c, tc and the streamed ones Y = k,
 * tk, v, tv, or by key the other way round, a pair has
 *
 *     s = X0 . Y0    x = X1 . Y0 + X0 . Y1    g = X2 . Y2    y = X3 . Y2 + X2 . Y3
 *
 * from which follow p, tp, ds and tds, and the own rows of the two results are sums over Y of
 *
 *     tds Y0 + ds Y1 (gq, gk)        tp Y2 + p Y3 (gc, gv)
 *
 * and of the orders before, ds Y0 and p Y2. What p, tp, ds and tds need to know of a query is found
 * first, by a pass over its scores only. */
#ifndef BASIN_BACKEND_CUDA_ATTENTION_VALUES_H
#define BASIN_BACKEND_CUDA_ATTENTION_VALUES_H

#include "engine/backend/cuda/attention/attention.h"
extern "C" {
#include "engine/backend/values.h"
}

/* The last is also by query and needs no stats: o, or its tangent where there is no c; only on
 * warpgroup products. */
enum basin_values_stage {
    BASIN_VALUES_STATS,
    BASIN_VALUES_BY_QUERY,
    BASIN_VALUES_BY_KEY,
    BASIN_VALUES_AT_ONCE,
};

/* Per query and head: p = 2^(z - maximum) share, z in units of log 2; means of ts, g; sum of u. */
struct __align__(16) basin_values_stats {
    float maximum, share, mean, d, sum, unused[3];
};

struct basin_values_launch {
    const void *x[4], *y[4]; /* T; NULL: absent */
    basin_values_steps of_x[2], of_y[2];
    void *out[2];                /* T, like X0 and X2; NULL: not requested */
    void *o;                     /* T, like X2: at once, what out[1] is the tangent of; by query, of
                                    the first order, with `level` */
    int width[2];                /* of tables 0 and 1, 2 and 3 */
    int own, other, heads, each; /* rows; heads of queries, and how many share one of keys */
    int blocks;                  /* of own rows, for each entry and head */
    int64_t tasks;
    float scale;
    const float *bias, *tbias;
    basin_bias_steps of_bias, of_tbias;
    float *slope; /* [batch, H, queries, keys] or NULL; list: [batch, pairs, H] */
    basin_values_stats *stats;
    float *level; /* [batch H, rows]: p = 2^(z - level); at once writes it, by query, of the first
                     order, it and o give the stats that by key reads; NULL */
    const uint32_t *keep; /* dropout: bits of [batch H, words, rows], set where p stays; NULL */
    int words, rows;      /* even; queries and more, a multiple of 64 */
    float kept;           /* what p is multiplied by there */
    bool second, values, causal, exclude_self, vectors; /* values: tables 2 and 3 count */
    int64_t pairs;
    const int32_t *row, *key, *column, *query, *pair; /* of the own side and the other; rows form */
};

/* The running sums of a query; ts and g are relative to one key's, so that little cancels. */
struct basin_values_sums {
    float maximum, total, mean, d, sum, ts0, g0;

    BASIN_METHOD void begin(float ts, float g) {
        maximum = basin_minus_infinity(), total = mean = d = sum = 0, ts0 = ts, g0 = g;
    }
    BASIN_METHOD void raise(float z) {
        if (z <= maximum) return;
        float fade = basin_exp2(maximum - z);
        total *= fade, mean *= fade, d *= fade, sum *= fade, maximum = z;
    }
    /* A pair whose score is at most `maximum`, to which it was raised. */
    BASIN_METHOD void add(float z, float ts, float g, float tg) {
        float e = basin_exp2(z - (maximum == basin_minus_infinity() ? 0 : maximum));
        total += e, mean += e * (ts - ts0), d += e * (g - g0);
        sum += e * ((ts - ts0) * (g - g0) + tg);
    }
    /* Those of a lane that has other keys of the same query. */
    BASIN_METHOD void merge(int lanes) {
        basin_values_sums o = *this;
        o.maximum = __shfl_xor_sync(~0u, maximum, lanes),
        o.total = __shfl_xor_sync(~0u, total, lanes);
        o.mean = __shfl_xor_sync(~0u, mean, lanes), o.d = __shfl_xor_sync(~0u, d, lanes);
        o.sum = __shfl_xor_sync(~0u, sum, lanes);
        float top = fmaxf(maximum, o.maximum);
        if (top == basin_minus_infinity()) return;
        raise(top), o.raise(top);
        total += o.total, mean += o.mean, d += o.d, sum += o.sum;
    }
    BASIN_METHOD basin_values_stats end() const {
        float share = total == 0 ? 0 : 1 / total;
        float a = mean * share, b = d * share;
        return {total == 0 ? 0 : maximum, share, ts0 + a, g0 + b, sum * share - a * b, {}};
    }
};

/* The score of a query and a key, in units of log 2, and ts, with their biases; minus infinity
 * where they do not form a pair. */
BASIN_DEVICE void basin_values_pair(float &s, float &x, const basin_values_launch &p, int entry,
                                    int h, int i, int j, bool there) {
    there = there && (!p.causal || j <= i) && (!p.exclude_self || i != j);
    const basin_bias_steps &of = p.of_bias, &along = p.of_tbias;
    if (p.bias && there)
        s += p.bias[entry * of.batch + h * of.head + i * of.query + j] * BASIN_LOG2_E;
    if (p.tbias && there) x += p.tbias[entry * along.batch + h * along.head + i * along.query + j];
    if (!there) s = basin_minus_infinity();
}

/* What dropout multiplies p of a query and a key of a head by. */
BASIN_DEVICE float basin_values_mask(const basin_values_launch &p, int64_t head, int64_t query,
                                     int64_t key) {
    return p.keep[(head * p.words + key / 32) * p.rows + query] >> key % 32 & 1 ? p.kept : 0;
}

/* s, x, g, y of a pair become p, tp, ds and tds; x is ts. */
BASIN_DEVICE void basin_values_finish(float &s, float &x, float &g, float &y,
                                      const basin_values_stats &of) {
    float p = basin_exp2(s - of.maximum) * of.share, ts = x - of.mean, slope = g - of.d;
    float u = p * (ts * slope + y);
    s = p, x = p * ts, g = p * slope, y = u - p * of.sum;
}

/* Tiles on tensor cores, of heads up to 128 wide, in three precisions. */
size_t basin_values_bytes_bf16(int width, bool second);
size_t basin_values_bytes_f32(int width, bool second);
size_t basin_values_bytes_tf32(int width, bool second);
cudaError_t basin_values_launch_bf16(const basin_values_launch *p, basin_values_stage stage,
                                     cudaStream_t stream);
cudaError_t basin_values_launch_f32(const basin_values_launch *p, basin_values_stage stage,
                                    cudaStream_t stream);
cudaError_t basin_values_launch_tf32(const basin_values_launch *p, basin_values_stage stage,
                                     cudaStream_t stream);
/* The same on warpgroup products: bfloat16 on sm_90, up to 64 wide; stats are 16 bytes each. */
cudaError_t basin_values_launch_sm90(const basin_values_launch *p, basin_values_stage stage,
                                     cudaStream_t stream);
bool basin_values_has_sm90();    /* whether the driver knows what these take */
enum { BASIN_VALUES_ROWS = 64 }; /* own rows of a block */

#endif
