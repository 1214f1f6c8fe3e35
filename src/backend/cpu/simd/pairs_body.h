/* Sums over the pairs of one row of a CSR pattern, head by head:
 * w[p, h] = x[h] . z[key[p], h] and to[h] = sum over p of w[p, h] z[key[p], h]. */
#ifndef BASIN_BACKEND_CPU_SIMD_PAIRS_BODY_H
#define BASIN_BACKEND_CPU_SIMD_PAIRS_BODY_H

#include "backend/cpu/simd/vector_math.h"

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
