/* Numbers between float and bfloat16, which is the upper half of a float, and what is stored so at
 * once. Rounding is to the nearest, ties to even; NaN stays NaN. */
#ifndef BASIN_BACKEND_CPU_SIMD_NARROW_BODY_H
#define BASIN_BACKEND_CPU_SIMD_NARROW_BODY_H

#include "backend/cpu/simd/rows_body.h"
#include "backend/cpu/simd/vector_math.h"

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

static void row_norm_narrow(uint16_t *g, const float *x, float gamma, const float *delta,
                            float epsilon, int64_t n) {
    moments m = row_moments(x, epsilon, n);
    vfloat centre = vector_all(m.mean), scale = vector_all(gamma * m.inverse);
    int64_t i = 0;
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES)
        vector_narrow(g + i, (vector_load(x + i) - centre) * scale + vector_load(delta + i));
    if (i == n) return;
    vfloat last = (vector_load_part(x + i, n - i, 0.0F) - centre) * scale;
    vector_narrow_part(g + i, last + vector_load_part(delta + i, n - i, 0.0F), n - i);
}

#endif
