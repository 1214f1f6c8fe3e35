/* The fused passes over a list for one head without scale and mix: along rows with a running
 * softmax, along columns from the kept scores. Rows of a block of KEYS pairs stay in the
 * first-level cache between dot products and sums. */
#ifndef BASIN_BACKEND_CPU_ATTENTION_KERNELS_FUSED_H
#define BASIN_BACKEND_CPU_ATTENTION_KERNELS_FUSED_H

#include <math.h>

#include "engine/backend/cpu/attention/kernels_products.h"

/* z = beta r, minus infinity past the last pair. */
VECTOR_INLINE void block_scores(float *z, const float *r, float beta, int64_t keys) {
    for (int i = 0; i < KEYS; i += L) vector_store(z + i, beta * vector_load(r + i));
    for (int64_t i = keys; i < KEYS; i++) z[i] = -INFINITY;
}

static void scale_row(float *x, float factor, int64_t count) {
    for (int64_t i = 0; i < count; i += L) vector_store(x + i, factor * vector_load(x + i));
}

/* Raises the state's most to z's and returns by how much older sums fade; rows fade here. */
VECTOR_INLINE float raise_max(basin_attention_state *state, float *sum, const float *z,
                              int64_t count) {
    vfloat top = vector_load(z);
    for (int i = L; i < KEYS; i += L) top = vector_max(vector_load(z + i), top);
    if (!vector_any_above(top, state->max)) return 1;
    float max = vector_largest(top), fade = expf(state->max - max);
    state->max = max;
    scale_row(sum, fade, count);
    return fade;
}

static void force_row(basin_attention_state *state, float *sum, float *rc, const float *x,
                      const float *rows, const int32_t *index, int64_t n, int64_t width,
                      float beta) {
    float r[KEYS], z[KEYS], e[KEYS];
    vfloat total = {0}, slope = {0};
    for (int64_t first = 0; first < n; first += KEYS) {
        int64_t keys = n - first < KEYS ? n - first : KEYS;
        dot_block(r, x, rows, index + first, keys, width);
        store_block(rc + first, r, keys);
        block_scores(z, r, beta, keys);
        float fade = raise_max(state, sum, z, width);
        if (fade != 1) {
            state->total *= fade, state->slope *= fade;
            total *= fade, slope *= fade;
        }
        for (int i = 0; i < KEYS; i += L) {
            vfloat p = vector_exp(vector_load(z + i) - state->max);
            vector_store(e + i, p);
            total += p;
            slope += p * vector_load(r + i);
        }
        gather_rows(sum, e, rows, index + first, keys, width);
    }
    state->total += vector_sum(total);
    state->slope += vector_sum(slope);
}

/* rc[i] = (r[i], c[i]) */
VECTOR_INLINE void store_pairs(float *rc, const float *r, const float *c, int64_t keys) {
    float both[2 * KEYS];
    for (int i = 0; i < KEYS; i += L) {
        vfloat a = vector_load(r + i), b = vector_load(c + i);
        vector_store(both + 2 * i, vector_weave_low(a, b));
        vector_store(both + 2 * i + L, vector_weave_high(a, b));
    }
    for (int i = 0; i < 2 * KEYS; i += L)
        vector_store_part(rc + i, vector_load(both + i), 2 * keys - i);
}

/* The mean of c under the weights of a row's first block. */
static float early_mean(const float *z, const float *c, float max, int64_t keys) {
    float total = 0, sum = 0;
    for (int64_t i = 0; i < keys; i++) {
        float e = expf(z[i] - max);
        total += e;
        sum += e * c[i];
    }
    return sum / total;
}

static void reverse_row(basin_attention_state *state, float *sum, float *rc, const float *x,
                        const float *rows, const int32_t *index, int64_t n, int64_t width,
                        float beta) {
    float r[KEYS], c[KEYS], z[KEYS], e[KEYS], d[KEYS];
    vfloat total = {0}, slope = {0}, gain = {0}, gain_slope = {0};
    for (int64_t first = 0; first < n; first += KEYS) {
        int64_t keys = n - first < KEYS ? n - first : KEYS;
        bool opens = state->max == -INFINITY;
        dot_two_block(r, c, x, rows, index + first, keys, width);
        store_pairs(rc + 2 * first, r, c, keys);
        block_scores(z, r, beta, keys);
        float fade = raise_max(state, sum, z, 2 * width);
        if (fade != 1) {
            state->total *= fade, state->slope *= fade;
            state->gain *= fade, state->gain_slope *= fade;
            total *= fade, slope *= fade, gain *= fade, gain_slope *= fade;
        }
        if (opens) state->center = early_mean(z, c, state->max, keys);
        for (int i = 0; i < KEYS; i += L) {
            vfloat p = vector_exp(vector_load(z + i) - state->max);
            vfloat score = vector_load(r + i), part = p * (vector_load(c + i) - state->center);
            vector_store(e + i, p);
            vector_store(d + i, beta * part);
            total += p;
            slope += p * score;
            gain += part;
            gain_slope += part * score;
        }
        gather_three_rows(sum, e, d, rows, index + first, keys, width);
    }
    state->total += vector_sum(total);
    state->slope += vector_sum(slope);
    state->gain += vector_sum(gain);
    state->gain_slope += vector_sum(gain_slope);
}

/* The pair after this one in its row is some columns away: fetched in time, still there. */
enum { LINE = 16 };

/* Asks for what the next block of a column reads of its pairs. */
VECTOR_INLINE void fetch_pairs(const float *rc, const int32_t *pair,
                               const basin_attention_summary *summary, const int32_t *index,
                               int64_t n, int64_t parts) {
    if (n > KEYS) n = KEYS;
    for (int64_t i = 0; i < n; i++) {
        __builtin_prefetch(rc + parts * (int64_t)pair[i], 0, 3);
        __builtin_prefetch(summary + index[i], 0, 3);
    }
}

static void force_column(float *sum, const float *rc, const int32_t *pair,
                         const basin_attention_summary *summary, const float *rows,
                         const int32_t *index, int64_t n, int64_t width, float beta) {
    float z[KEYS] = {0}, t[KEYS] = {0};
    for (int64_t first = 0; first < n; first += KEYS) {
        int64_t keys = n - first < KEYS ? n - first : KEYS;
        for (int64_t i = 0; i < keys; i++) {
            const basin_attention_summary *query = summary + index[first + i];
            const float *from = rc + pair[first + i];
            __builtin_prefetch(from + LINE, 0, 2);
            z[i] = beta * from[0] - query->max;
            t[i] = query->weight;
        }
        for (int i = 0; i < KEYS; i += L)
            vector_store(t + i, vector_load(t + i) * vector_exp(vector_load(z + i)));
        fetch_pairs(rc, pair + first + keys, summary, index + first + keys, n - first - keys, 1);
        gather_rows(sum, t, rows, index + first, keys, width);
    }
}

static void reverse_column(float *sum, const float *rc, const int32_t *pair,
                           const basin_attention_summary *summary, const float *rows,
                           const int32_t *index, int64_t n, int64_t width, float beta) {
    float z[KEYS] = {0}, c[KEYS] = {0}, t[KEYS] = {0}, gs[KEYS];
    for (int64_t first = 0; first < n; first += KEYS) {
        int64_t keys = n - first < KEYS ? n - first : KEYS;
        for (int64_t i = 0; i < keys; i++) {
            const basin_attention_summary *query = summary + index[first + i];
            const float *from = rc + 2 * (int64_t)pair[first + i];
            __builtin_prefetch(from + LINE, 0, 2);
            z[i] = beta * from[0] - query->max;
            c[i] = beta * (from[1] - query->mean);
            t[i] = query->weight;
        }
        for (int i = 0; i < KEYS; i += L) {
            vfloat weight = vector_load(t + i) * vector_exp(vector_load(z + i));
            vector_store(t + i, weight);
            vector_store(gs + i, weight * vector_load(c + i));
        }
        fetch_pairs(rc, pair + first + keys, summary, index + first + keys, n - first - keys, 2);
        gather_two_rows(sum, gs, t, rows, index + first, keys, width);
    }
}

#endif
