/* Reductions of rows, sums over rows, softmax and layer norm of one row. Blocks of four vectors
 * meet in double: the error of a long sum does not grow with its length. */
#ifndef BASIN_BACKEND_CPU_SIMD_ROWS_BODY_H
#define BASIN_BACKEND_CPU_SIMD_ROWS_BODY_H

#include <math.h>

#include "engine/backend/cpu/simd/simd.h"
#include "engine/backend/cpu/simd/vector_function.h"
#include "engine/backend/cpu/simd/vector_math.h"

enum { SUM_BLOCK = 2048, UNROLL = 4 * VECTOR_LANES };

VECTOR_INLINE vfloat block_lanes(const float *x, int64_t n) {
    vfloat s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    int64_t i = 0;
    for (; i + UNROLL <= n; i += UNROLL) {
        s0 += vector_load(x + i);
        s1 += vector_load(x + i + VECTOR_LANES);
        s2 += vector_load(x + i + 2 * VECTOR_LANES);
        s3 += vector_load(x + i + 3 * VECTOR_LANES);
    }
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES) s0 += vector_load(x + i);
    if (i < n) s0 += vector_load_part(x + i, n - i, 0.0f);
    return (s0 + s1) + (s2 + s3);
}

static float block_sum(const float *x, int64_t n) { return vector_sum(block_lanes(x, n)); }

static float row_sum(const float *x, int64_t n) {
    double total = 0;
    for (int64_t i = 0; i < n; i += SUM_BLOCK)
        total += block_sum(x + i, n - i < SUM_BLOCK ? n - i : SUM_BLOCK);
    return (float)total;
}

static float block_dot(const float *x, const float *y, int64_t n) {
    vfloat s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    int64_t i = 0;
    for (; i + UNROLL <= n; i += UNROLL) {
        s0 += vector_load(x + i) * vector_load(y + i);
        s1 += vector_load(x + i + VECTOR_LANES) * vector_load(y + i + VECTOR_LANES);
        s2 += vector_load(x + i + 2 * VECTOR_LANES) * vector_load(y + i + 2 * VECTOR_LANES);
        s3 += vector_load(x + i + 3 * VECTOR_LANES) * vector_load(y + i + 3 * VECTOR_LANES);
    }
    for (; i < n; i += VECTOR_LANES)
        s0 += vector_load_part(x + i, n - i, 0.0f) * vector_load_part(y + i, n - i, 0.0f);
    return vector_sum((s0 + s1) + (s2 + s3));
}

static float row_dot(const float *x, const float *y, int64_t n) {
    double total = 0;
    for (int64_t i = 0; i < n; i += SUM_BLOCK)
        total += block_dot(x + i, y + i, n - i < SUM_BLOCK ? n - i : SUM_BLOCK);
    return (float)total;
}

static float row_max(const float *x, int64_t n) {
    vfloat m0 = vector_all(-INFINITY), m1 = m0, m2 = m0, m3 = m0;
    int64_t i = 0;
    for (; i + 4 * VECTOR_LANES <= n; i += 4 * VECTOR_LANES) {
        m0 = vector_row_max(m0, vector_load(x + i));
        m1 = vector_row_max(m1, vector_load(x + i + VECTOR_LANES));
        m2 = vector_row_max(m2, vector_load(x + i + 2 * VECTOR_LANES));
        m3 = vector_row_max(m3, vector_load(x + i + 3 * VECTOR_LANES));
    }
    for (; i < n; i += VECTOR_LANES)
        m0 = vector_row_max(m0, vector_load_part(x + i, n - i, -INFINITY));
    return vector_largest_nan(vector_row_max(vector_row_max(m0, m1), vector_row_max(m2, m3)));
}

/* Lane r becomes what vector_sum makes of v[r], to the bit: halves of vectors meet in its order. */
VECTOR_INLINE vfloat sum_each(vfloat v[VECTOR_LANES]) {
#pragma GCC unroll 4
    for (int half = VECTOR_LANES / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int r = 0; r < half; r++)
            v[r] = vector_weave_low(v[r], v[r + half]) + vector_weave_high(v[r], v[r + half]);
    return v[0];
}

/* to[i] of each of the rows [rows, n] that lie one after the other. */
static void row_sums(float *to, const float *x, int64_t rows, int64_t n) {
    int64_t i = 0;
    for (; i + VECTOR_LANES <= rows && n <= SUM_BLOCK; i += VECTOR_LANES) {
        vfloat v[VECTOR_LANES];
#pragma GCC unroll 16
        for (int r = 0; r < VECTOR_LANES; r++) v[r] = block_lanes(x + (i + r) * n, n);
        vector_store(to + i, sum_each(v) + 0.0f); /* as row_sum: no -0 */
    }
    for (; i < rows; i++) to[i] = row_sum(x + i * n, n);
}

static void row_maxima(float *to, const float *x, int64_t rows, int64_t n) {
    for (int64_t i = 0; i < rows; i++) to[i] = row_max(x + i * n, n);
}

static void axpy(float *y, float a, const float *x, int64_t n) {
    vfloat va = vector_all(a);
    int64_t i = 0;
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES)
        vector_store(y + i, va * vector_load(x + i) + vector_load(y + i));
    if (i == n) return;
    vfloat sum = va * vector_load_part(x + i, n - i, 0.0f) + vector_load_part(y + i, n - i, 0.0f);
    vector_store_part(y + i, sum, n - i);
}

/* Adds eight rows to `to` in one pass, in pairs. */
static void add_eight(float *to, const float *x, int64_t stride, int64_t n) {
    for (int64_t j = 0; j < n; j += VECTOR_LANES) {
        vfloat v[8];
        int64_t left = n - j;
        for (int r = 0; r < 8; r++) v[r] = vector_load_part(x + r * stride + j, left, 0.0f);
        vfloat sum = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
        vector_store_part(to + j, vector_load_part(to + j, left, 0.0f) + sum, left);
    }
}

static void sum_rows(float *to, const float *x, int64_t rows, int64_t stride, int64_t n) {
    int64_t i = 0;
    for (int64_t j = 0; j < n; j++) to[j] = 0.0f;
    for (; i + 8 <= rows; i += 8) add_eight(to, x + i * stride, stride, n);
    for (; i < rows; i++) axpy(to, 1.0f, x + i * stride, n);
}

static void max_rows(float *to, const float *x, int64_t rows, int64_t stride, int64_t n) {
    for (int64_t j = 0; j < n; j += VECTOR_LANES) {
        vfloat max = vector_all(-INFINITY);
        for (int64_t i = 0; i < rows; i++)
            max = vector_max_nan(max, vector_load_part(x + i * stride + j, n - j, 0.0f));
        vector_store_part(to + j, max, n - j);
    }
}

/* Writes exp(x - max) to `to` (if not NULL) and returns its sum; no x is above `max`. */
VECTOR_INLINE float exp_row(float *to, const float *x, float max, int64_t n) {
    vfloat sum = {0}, shift = vector_all(max);
    int64_t i = 0;
    for (; i + 4 * VECTOR_LANES <= n; i += 4 * VECTOR_LANES) { /* four at once, added in order */
        vfloat e0 = vector_exp_below(vector_load(x + i) - shift);
        vfloat e1 = vector_exp_below(vector_load(x + i + VECTOR_LANES) - shift);
        vfloat e2 = vector_exp_below(vector_load(x + i + 2 * VECTOR_LANES) - shift);
        vfloat e3 = vector_exp_below(vector_load(x + i + 3 * VECTOR_LANES) - shift);
        if (to) {
            vector_store(to + i, e0);
            vector_store(to + i + VECTOR_LANES, e1);
            vector_store(to + i + 2 * VECTOR_LANES, e2);
            vector_store(to + i + 3 * VECTOR_LANES, e3);
        }
        sum = (((sum + e0) + e1) + e2) + e3;
    }
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES) {
        vfloat e = vector_exp_below(vector_load(x + i) - shift);
        if (to) vector_store(to + i, e);
        sum += e;
    }
    if (i < n) {
        vfloat e = vector_exp_below(vector_load_part(x + i, n - i, -INFINITY) - shift);
        if (to) vector_store_part(to + i, e, n - i);
        sum += e;
    }
    return vector_sum(sum);
}

static float row_logsumexp(const float *x, int64_t n) {
    float max = row_max(x, n);
    if (isinf(max)) return max;
    return max + logf(exp_row(NULL, x, max, n));
}

static void row_softmax(float *to, float *lse, const float *x, int64_t n) {
    float max = row_max(x, n), sum = exp_row(to, x, max, n), inverse = 1.0f / sum;
    if (lse) *lse = isinf(max) ? max : max + logf(sum);
    int64_t i = 0;
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES)
        vector_store(to + i, vector_load(to + i) * inverse);
    for (; i < n; i++) to[i] *= inverse;
}

typedef struct moments {
    float mean, inverse; /* inverse = 1 / sqrt(var + epsilon) */
} moments;

static moments row_moments(const float *x, float epsilon, int64_t n) {
    float mean = row_sum(x, n) / (float)n;
    vfloat s0 = {0}, s1 = {0}, centre = vector_all(mean);
    int64_t i = 0;
    for (; i + 2 * VECTOR_LANES <= n; i += 2 * VECTOR_LANES) {
        vfloat d0 = vector_load(x + i) - centre, d1 = vector_load(x + i + VECTOR_LANES) - centre;
        s0 += d0 * d0;
        s1 += d1 * d1;
    }
    for (; i < n; i += VECTOR_LANES) {
        vfloat d = vector_load_part(x + i, n - i, mean) - centre;
        s0 += d * d;
    }
    return (moments){mean, 1.0f / sqrtf(vector_sum(s0 + s1) / (float)n + epsilon)};
}

/* *to += x, of up to `left` lanes. */
VECTOR_INLINE void add_part(float *to, vfloat x, int64_t left) {
    vector_store_part(to, vector_load_part(to, left, 0.0f) + x, left);
}

/* The same with a gain, by which c is multiplied in the sums; also dgain += c n. */
static void gain_sums(float *sum_c, float *sum_cn, float *ddelta, float *dgain, const float *x,
                      const float *gain, const float *c, moments m, int64_t n) {
    vfloat s0 = {0}, s1 = {0}, centre = vector_all(m.mean);
    for (int64_t i = 0, left = n; i < n; i += VECTOR_LANES, left = n - i) {
        vfloat v = vector_load_part(c + i, left, 0.0f);
        vfloat d = vector_load_part(x + i, left, 0.0f) - centre;
        if (ddelta) add_part(ddelta + i, v, left);
        if (dgain) add_part(dgain + i, v * (d * m.inverse), left);
        v = v * vector_load_part(gain + i, left, 0.0f);
        s0 += v;
        s1 += v * d;
    }
    *sum_c = vector_sum(s0);
    *sum_cn = vector_sum(s1) * m.inverse;
}

/* The sums of c and of c n over the row, n = (x - mean) inverse; ddelta += c on the way. */
static void norm_sums(float *sum_c, float *sum_cn, float *ddelta, const float *x, const float *c,
                      moments m, int64_t n) {
    vfloat s0 = {0}, s1 = {0}, centre = vector_all(m.mean);
    int64_t i = 0;
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES) {
        vfloat v = vector_load(c + i);
        s0 += v;
        s1 += v * (vector_load(x + i) - centre);
        if (ddelta) vector_store(ddelta + i, vector_load(ddelta + i) + v);
    }
    if (i < n) {
        vfloat v = vector_load_part(c + i, n - i, 0.0f);
        s0 += v;
        s1 += v * (vector_load_part(x + i, n - i, 0.0f) - centre);
        if (ddelta) add_part(ddelta + i, v, n - i);
    }
    *sum_c = vector_sum(s0);
    *sum_cn = vector_sum(s1) * m.inverse;
}

static float row_norm_reverse(float *dx, float *ddelta, float *dgain, const float *x, float gamma,
                              const float *gain, const float *c, float epsilon, int64_t n) {
    moments m = row_moments(x, epsilon, n);
    float sum_c, sum_cn;
    if (gain)
        gain_sums(&sum_c, &sum_cn, ddelta, dgain, x, gain, c, m, n);
    else
        norm_sums(&sum_c, &sum_cn, ddelta, x, c, m, n);
    if (!dx) return sum_cn;
    vfloat centre = vector_all(m.mean), slope = vector_all(m.inverse * sum_cn / (float)n);
    vfloat mean_c = vector_all(sum_c / (float)n), scale = vector_all(gamma * m.inverse);
    for (int64_t i = 0; i < n; i += VECTOR_LANES) {
        int64_t left = n - i;
        vfloat d = vector_load_part(x + i, left, 0.0f) - centre;
        vfloat v = vector_load_part(c + i, left, 0.0f);
        if (gain) v = v * vector_load_part(gain + i, left, 0.0f);
        vector_store_part(dx + i, scale * (v - mean_c - d * slope), left);
    }
    return sum_cn;
}

/* Numbers between float and bfloat16, which is the upper half of a float, and what is stored so at
 * once. Rounding is to the nearest, ties to even; NaN stays NaN. */

static void widen(float *to, const uint16_t *x, int64_t n) {
    int64_t i = 0;
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES) vector_store(to + i, vector_widen(x + i));
    for (; i < n; i++) to[i] = widen_one(x[i]);
}

static void narrow(uint16_t *to, const float *x, int64_t n) {
    int64_t i = 0;
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES) vector_narrow(to + i, vector_load(x + i));
    if (i < n) vector_narrow_part(to + i, vector_load_part(x + i, n - i, 0.0F), n - i);
}

/* `narrow` is a constant wherever this is inlined. */
VECTOR_INLINE void norm_row(void *g, const float *x, float gamma, const float *gain,
                            const float *delta, float epsilon, int64_t n, bool narrow) {
    moments m = row_moments(x, epsilon, n);
    vfloat centre = vector_all(m.mean), scale = vector_all(gamma * m.inverse);
    for (int64_t i = 0, left = n; i < n; i += VECTOR_LANES, left = n - i) {
        vfloat y = (vector_load_part(x + i, left, 0.0F) - centre) * scale;
        if (gain) y = y * vector_load_part(gain + i, left, 0.0F);
        y = y + vector_load_part(delta + i, left, 0.0F);
        if (narrow)
            vector_narrow_part((uint16_t *)g + i, y, left);
        else
            vector_store_part((float *)g + i, y, left);
    }
}

static void row_norm(float *g, const float *x, float gamma, const float *gain, const float *delta,
                     float epsilon, int64_t n) {
    norm_row(g, x, gamma, gain, delta, epsilon, n, false);
}

static void row_norm_narrow(uint16_t *g, const float *x, float gamma, const float *gain,
                            const float *delta, float epsilon, int64_t n) {
    norm_row(g, x, gamma, gain, delta, epsilon, n, true);
}

/* What becomes of a finished tile of a product, in one pass; see basin_finish. */

/* Up to VECTOR_LANES elements. The flags are constants wherever this is inlined. */
VECTOR_INLINE void finish_vector(const basin_finish *f, const float *tile, int64_t at, int64_t n,
                                 bool narrow, bool other, bool masks, bool relu) {
    vfloat value = f->alpha * vector_load_part(tile, n, 0.0F), x = {0};
    if (other && narrow) x = vector_widen_part((const uint16_t *)f->other + at, n);
    if (other && !narrow) x = vector_load_part((const float *)f->other + at, n, 0.0F);
    if (other && masks) value = vector_select(x > 0.0F, value, (vfloat){0});
    if (other && !masks) value += f->beta * x;
    if (relu) value = vector_max((vfloat){0}, value); /* NaN stays */
    if (narrow)
        vector_narrow_part((uint16_t *)f->to + at, value, n);
    else
        vector_store_part((float *)f->to + at, value, n);
}

VECTOR_INLINE void finish_rows(const basin_finish *f, const float *tile, int64_t tile_row,
                               int64_t first, int64_t rows, int64_t cols, bool narrow, bool other,
                               bool masks, bool relu) {
    const basin_finish own = *f; /* which stores do not change */
    for (int64_t r = 0; r < rows; r++, first += own.row, tile += tile_row) {
        int64_t i = 0;
        for (; i + VECTOR_LANES <= cols; i += VECTOR_LANES)
            finish_vector(&own, tile + i, first + i, VECTOR_LANES, narrow, other, masks, relu);
        if (i < cols)
            finish_vector(&own, tile + i, first + i, cols - i, narrow, other, masks, relu);
    }
}

/* Whether or not `moved` is requested, the same bits go to `to`. */
static void finish_steps(const basin_finish *f, const float *tile, int64_t tile_row, int64_t first,
                         int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++, first += f->row, tile += tile_row) {
        const float *other = (const float *)f->other + first, step = f->step[r * f->step_row];
        for (int64_t i = 0; i < cols; i += VECTOR_LANES) {
            vfloat x = vector_load_part(other + i, cols - i, 0.0F);
            vfloat force = f->alpha * vector_load_part(tile + i, cols - i, 0.0F) + f->beta * x;
            vfloat next = step * force + x;
            vector_store_part((float *)f->to + first + i, next, cols - i);
            if (f->moved) vector_store_part(f->moved + first + i, vector_abs(next - x), cols - i);
        }
    }
}

#define FINISH(NARROW, OTHER, MASKS, RELU)                                                         \
    finish_rows(f, tile, tile_row, first, rows, cols, NARROW, OTHER, MASKS, RELU)

static void finish(const basin_finish *f, const float *tile, int64_t tile_row, int64_t first,
                   int64_t rows, int64_t cols) {
    if (f->step)
        finish_steps(f, tile, tile_row, first, rows, cols);
    else if (f->narrow && !f->other && f->relu)
        FINISH(true, false, false, true);
    else if (f->narrow && !f->other)
        FINISH(true, false, false, false);
    else if (f->narrow && f->masks)
        FINISH(true, true, true, false);
    else if (f->narrow)
        FINISH(true, true, false, f->relu);
    else if (!f->other)
        FINISH(false, false, false, f->relu);
    else if (f->masks)
        FINISH(false, true, true, false);
    else
        FINISH(false, true, false, f->relu);
}
#undef FINISH

/* Over the pairs of a CSR row: w[p, h] = x[h] . z[key[p], h], to[h] = sum of w z. */

static void pair_dot(float *w, const float *x, const float *z, const int32_t *key, int64_t pairs,
                     int64_t heads, int64_t width) {
    for (int64_t p = 0; p < pairs; p++) {
        const float *zk = z + key[p] * heads * width;
        for (int64_t h = 0; h < heads; h++) {
            const float *a = x + h * width, *b = zk + h * width;
            vfloat s0 = {0}, s1 = {0};
            int64_t i = 0;
            for (; i + 2 * VECTOR_LANES <= width; i += 2 * VECTOR_LANES) {
                s0 += vector_load(a + i) * vector_load(b + i);
                s1 += vector_load(a + i + VECTOR_LANES) * vector_load(b + i + VECTOR_LANES);
            }
            for (; i < width; i += VECTOR_LANES)
                s0 += vector_load_part(a + i, width - i, 0.0f) *
                      vector_load_part(b + i, width - i, 0.0f);
            w[p * heads + h] = vector_sum(s0 + s1);
        }
    }
}

/* Up to four vectors of one head's sum, held in registers over all pairs. */
VECTOR_INLINE void pair_sum_part(float *to, const float *w, const float *z, const int32_t *pair,
                                 const int32_t *key, int64_t pairs, int64_t heads, int64_t row,
                                 int64_t left) {
    vfloat sum[4] = {{0}};
    for (int64_t p = 0; p < pairs; p++) {
        float weight = w[(pair ? pair[p] : p) * heads];
        const float *from = z + key[p] * row;
        for (int i = 0; i < 4; i++)
            if (i * VECTOR_LANES < left)
                sum[i] += weight *
                          vector_load_part(from + i * VECTOR_LANES, left - i * VECTOR_LANES, 0.0f);
    }
    for (int i = 0; i < 4; i++)
        if (i * VECTOR_LANES < left)
            vector_store_part(to + i * VECTOR_LANES, sum[i], left - i * VECTOR_LANES);
}

static void pair_sum(float *to, const float *w, const float *z, const int32_t *pair,
                     const int32_t *key, int64_t pairs, int64_t heads, int64_t width) {
    enum { PART = 4 * VECTOR_LANES };
    int64_t row = heads * width;
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < width; i += PART) {
            int64_t left = width - i, at = h * width + i;
            if (left >= PART)
                pair_sum_part(to + at, w + h, z + at, pair, key, pairs, heads, row, PART);
            else
                pair_sum_part(to + at, w + h, z + at, pair, key, pairs, heads, row, left);
        }
}

#endif
