/* Vectors of float from and to bfloat16 in memory. */
#ifndef BASIN_BACKEND_CPU_SIMD_VECTOR_NARROW_H
#define BASIN_BACKEND_CPU_SIMD_VECTOR_NARROW_H

#include "backend/cpu/simd/vector_math.h"

typedef uint16_t vnarrow __attribute__((vector_size(2 * VECTOR_LANES)));
typedef uint32_t vbits __attribute__((vector_size(4 * VECTOR_LANES)));

VECTOR_INLINE float widen_one(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

VECTOR_INLINE vfloat vector_widen(const uint16_t *x) {
    vnarrow half;
    memcpy(&half, x, sizeof half);
    return (vfloat)(__builtin_convertvector(half, vbits) << 16);
}

/* The first n lanes, the others 0; n may exceed them. */
VECTOR_INLINE vfloat vector_widen_part(const uint16_t *x, int64_t n) {
    if (n >= VECTOR_LANES) return vector_widen(x);
    uint16_t part[VECTOR_LANES] = {0};
    for (int64_t i = 0; i < n; i++) part[i] = x[i];
    return vector_widen(part);
}

VECTOR_INLINE vnarrow vector_round(vfloat x) {
    vbits bits = (vbits)x;
    vbits finite = (vbits)((bits & 0x7F800000U) != 0x7F800000U);
    bits += (0x7FFFU + (bits >> 16 & 1U)) & finite;
#if defined(__AVX512F__)
    return (vnarrow)_mm512_cvtepi32_epi16((__m512i)(bits >> 16));
#else
    return __builtin_convertvector(bits >> 16, vnarrow);
#endif
}

VECTOR_INLINE void vector_narrow(uint16_t *to, vfloat x) {
    vnarrow half = vector_round(x);
    memcpy(to, &half, sizeof half);
}

/* The first n lanes; n may exceed them. */
VECTOR_INLINE void vector_narrow_part(uint16_t *to, vfloat x, int64_t n) {
    vnarrow half = vector_round(x);
    if (n >= VECTOR_LANES) {
        memcpy(to, &half, sizeof half);
        return;
    }
#if defined(__AVX512F__)
    if (n > 0) _mm256_mask_storeu_epi16(to, (__mmask16)((1u << n) - 1), (__m256i)half);
#else
    for (int64_t i = 0; i < n; i++) to[i] = half[i];
#endif
}

#endif
