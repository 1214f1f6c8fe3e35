/* Vectors of float as wide as the instruction set of a file, on GCC vector extensions: 16 lanes
 * with AVX-512, 8 with AVX2, 4 elsewhere (SSE2, NEON). All is static: nothing leaks from a file
 * built for one instruction set into another. */
#ifndef BASIN_BACKEND_CPU_SIMD_VECTOR_MATH_H
#define BASIN_BACKEND_CPU_SIMD_VECTOR_MATH_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define VECTOR_LANES 16
#elif defined(__AVX2__)
#define VECTOR_LANES 8
#else
#define VECTOR_LANES 4
#endif
#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

typedef float vfloat __attribute__((vector_size(4 * VECTOR_LANES)));
typedef int32_t vint __attribute__((vector_size(4 * VECTOR_LANES)));

#define VECTOR_INLINE static inline __attribute__((always_inline, unused))

VECTOR_INLINE vfloat vector_load(const float *x) {
    vfloat v;
    memcpy(&v, x, sizeof v);
    return v;
}

VECTOR_INLINE void vector_store(float *x, vfloat v) { memcpy(x, &v, sizeof v); }

VECTOR_INLINE vfloat vector_all(float x) { return x - (vfloat){0}; }

#if defined(__AVX2__) && !defined(__AVX512F__)
/* All ones in the first n lanes. */
VECTOR_INLINE __m256i vector_first(int64_t n) {
    static const int32_t mask[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(const void *)(mask + VECTOR_LANES - n));
}
#endif

/* The first n lanes from x, the others `rest`; n may exceed the lanes. */
VECTOR_INLINE vfloat vector_load_part(const float *x, int64_t n, float rest) {
    if (n >= VECTOR_LANES) return vector_load(x);
    vfloat v = vector_all(rest);
    if (n <= 0) return v;
#if defined(__AVX512F__)
    return (vfloat)_mm512_mask_loadu_ps((__m512)v, (__mmask16)((1u << n) - 1), x);
#elif defined(__AVX2__)
    __m256i first = vector_first(n);
    return (vfloat)_mm256_blendv_ps((__m256)v, _mm256_maskload_ps(x, first),
                                    _mm256_castsi256_ps(first));
#else
    for (int64_t i = 0; i < n; i++) v[i] = x[i];
    return v;
#endif
}

VECTOR_INLINE void vector_store_part(float *x, vfloat v, int64_t n) {
    if (n >= VECTOR_LANES) {
        vector_store(x, v);
    } else if (n > 0) {
#if defined(__AVX512F__)
        _mm512_mask_storeu_ps(x, (__mmask16)((1u << n) - 1), (__m512)v);
#elif defined(__AVX2__)
        _mm256_maskstore_ps(x, vector_first(n), (__m256)v);
#else
        for (int64_t i = 0; i < n; i++) x[i] = v[i];
#endif
    }
}

/* Lanes of a where the mask is all ones, of b where it is zero. */
VECTOR_INLINE vfloat vector_select(vint mask, vfloat a, vfloat b) {
    return (vfloat)((mask & (vint)a) | (~mask & (vint)b));
}

/* The larger of each pair of lanes, and b where one of them is NaN; likewise the smaller. */
VECTOR_INLINE vfloat vector_max(vfloat a, vfloat b) {
#if defined(__AVX512F__)
    return (vfloat)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (vfloat)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    return (vfloat)_mm_max_ps((__m128)a, (__m128)b);
#else
    return vector_select(a > b, a, b);
#endif
}

VECTOR_INLINE vfloat vector_min(vfloat a, vfloat b) {
#if defined(__AVX512F__)
    return (vfloat)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (vfloat)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    return (vfloat)_mm_min_ps((__m128)a, (__m128)b);
#else
    return vector_select(a < b, a, b);
#endif
}

VECTOR_INLINE float vector_sum(vfloat v) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)v);
#elif VECTOR_LANES == 4 /* an array would keep v in memory while it is summed up */
    return (v[0] + v[2]) + (v[1] + v[3]);
#else
    float lane[VECTOR_LANES];
    vector_store(lane, v);
    for (int half = VECTOR_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
#endif
}

VECTOR_INLINE float vector_largest(vfloat v) {
#if defined(__AVX512F__)
    return _mm512_reduce_max_ps((__m512)v);
#elif VECTOR_LANES == 4
    v = vector_max(__builtin_shufflevector(v, v, 2, 3, 0, 1), v);
    return vector_max(__builtin_shufflevector(v, v, 1, 0, 3, 2), v)[0];
#else
    float lane[VECTOR_LANES];
    vector_store(lane, v);
    for (int half = VECTOR_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            if (lane[i + half] > lane[i]) lane[i] = lane[i + half];
    return lane[0];
#endif
}

/* Whether a lane exceeds x. */
VECTOR_INLINE bool vector_any_above(vfloat v, float x) {
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask((__m512)v, _mm512_set1_ps(x), _CMP_GT_OQ) != 0;
#elif defined(__AVX2__)
    return _mm256_movemask_ps((__m256)(v > x)) != 0;
#elif defined(__SSE2__)
    return _mm_movemask_ps((__m128)(v > x)) != 0;
#else
    return vector_largest(v) > x;
#endif
}

/* The lower and the upper half of a0 b0 a1 b1 ... */
VECTOR_INLINE vfloat vector_weave_low(vfloat a, vfloat b) {
#if VECTOR_LANES == 16
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif VECTOR_LANES == 8
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#else
    return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#endif
}

VECTOR_INLINE vfloat vector_weave_high(vfloat a, vfloat b) {
#if VECTOR_LANES == 16
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                   31);
#elif VECTOR_LANES == 8
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
    return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
}

/* exp(x) within 2 units in the last place; 0 below -87.33 (no denormals), infinity above 88.72,
 * NaN for NaN. x = n ln 2 + r with |r| <= ln 2 / 2; the rounding to n adds and subtracts 1.5 2^23,
 * and 2^n goes in as two factors so that n = 128 does not overflow before its time. The polynomial
 * 1 + r + r^2 (..) is the best of its degree in relative error (3e-9). */
VECTOR_INLINE vfloat vector_exp_of(vfloat x, bool above) {
    const vfloat shift = vector_all(12582912.0f);
    vfloat y = above ? vector_min(vector_all(89.0f), x) : x;
#if defined(__aarch64__) /* of NaN, NaN, as below */
    if (above) y = (vfloat)vminq_f32(vdupq_n_f32(89.0f), (float32x4_t)x);
    y = (vfloat)vmaxq_f32(vdupq_n_f32(-88.0f), (float32x4_t)y);
#else
    y = vector_max(vector_all(-88.0f), y);
#endif
    vfloat biased = y * 1.44269504f + shift;
    vfloat n = biased - shift;
    vfloat r = y - n * 0.693145751953125f;
    r = r - n * 1.42860682e-6f;
    vfloat p = r * 1.38145577e-3f + 8.36873577e-3f;
    p = p * r + 4.16683899e-2f;
    p = p * r + 1.66665205e-1f;
    p = p * r + 4.99999934e-1f;
    p = p * (r * r) + (r + 1.0f);
#if defined(__AVX512F__)
    __mmask16 kept = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(-87.33f), _CMP_NLT_UQ);
    return (vfloat)_mm512_maskz_scalef_ps(kept, (__m512)p, (__m512)n);
#else
    vint exponent = (vint)biased - (vint)shift, half = exponent >> 1;
    vfloat e = above ? p * (vfloat)((half + 127) << 23) * (vfloat)((exponent - half + 127) << 23)
                     : p * (vfloat)((exponent + 127) << 23);
    return (vfloat)((vint)e & ~(x < -87.33f));
#endif
}

VECTOR_INLINE vfloat vector_exp(vfloat x) { return vector_exp_of(x, true); }
/* The same bits for x <= 0, where one factor does for 2^n. */
VECTOR_INLINE vfloat vector_exp_below(vfloat x) { return vector_exp_of(x, false); }

/* ---- Vectors of float from and to bfloat16 in memory. ---- */

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
    vbits bits = (vbits)x, number = (vbits)(x == x); /* infinity stays infinity */
    bits += (0x7FFFU + (bits >> 16 & 1U)) & number;
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
