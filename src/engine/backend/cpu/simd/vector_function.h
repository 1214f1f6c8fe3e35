/* Functions of pointwise programs on vectors of float: log, expm1, tanh, erf, sin and their kin,
 * within 4e-7 relatively. Cases are chosen by masks, so a value does not depend on its neighbours.
 * Polynomials are Chebyshev fits, errors under 3e-8. */
#ifndef BASIN_BACKEND_CPU_SIMD_VECTOR_FUNCTION_H
#define BASIN_BACKEND_CPU_SIMD_VECTOR_FUNCTION_H

#include <math.h>
#include <stdbool.h>

#include "engine/backend/cpu/simd/vector_math.h"

#if defined(__ARM_NEON)
#include <arm_neon.h>
#endif

typedef uint32_t vuint __attribute__((vector_size(4 * VECTOR_LANES))); /* may wrap around */

VECTOR_INLINE vfloat vector_abs(vfloat x) { return (vfloat)((vint)x & 0x7fffffff); }

/* |x| with the sign of `sign`. */
VECTOR_INLINE vfloat vector_copysign(vfloat x, vfloat sign) {
    return (vfloat)(((vint)x & 0x7fffffff) | ((vint)sign & ~0x7fffffff));
}

/* `value` where the mask is set, else 0. */
VECTOR_INLINE vfloat vector_mask(vint mask, vfloat value) { return (vfloat)(mask & (vint)value); }

VECTOR_INLINE bool vector_any(vint mask) {
    int32_t any = 0;
    for (int i = 0; i < VECTOR_LANES; i++) any |= mask[i];
    return any != 0;
}

/* The larger and the smaller of two; a NaN on either side wins. */
VECTOR_INLINE vfloat vector_max_nan(vfloat a, vfloat b) {
    return vector_select((a > b) | (a != a), a, b);
}

VECTOR_INLINE vfloat vector_min_nan(vfloat a, vfloat b) {
    return vector_select((a < b) | (a != a), a, b);
}

/* The larger for rows, of which either zero may be the largest; a NaN wins. */
VECTOR_INLINE vfloat vector_row_max(vfloat a, vfloat b) {
#if defined(__aarch64__)
    return (vfloat)vmaxq_f32((float32x4_t)a, (float32x4_t)b);
#elif defined(__AVX512F__)
    __mmask16 nan = _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_UNORD_Q);
    return (vfloat)_mm512_mask_mov_ps(_mm512_max_ps((__m512)a, (__m512)b), nan, (__m512)a);
#else
    return vector_max_nan(a, b);
#endif
}

VECTOR_INLINE float vector_largest_nan(vfloat v) {
#if defined(__aarch64__)
    return vmaxvq_f32((float32x4_t)v);
#elif defined(__AVX512F__)
    bool nan = _mm512_cmp_ps_mask((__m512)v, (__m512)v, _CMP_UNORD_Q) != 0;
    return nan ? NAN : vector_largest(v);
#else
    float max = v[0];
    for (int i = 1; i < VECTOR_LANES; i++)
        if (v[i] > max || v[i] != v[i]) max = v[i];
    return max;
#endif
}

VECTOR_INLINE vfloat vector_sqrt(vfloat x) {
#if defined(__AVX512F__)
    return (vfloat)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX2__)
    return (vfloat)_mm256_sqrt_ps((__m256)x);
#elif defined(__SSE2__)
    return (vfloat)_mm_sqrt_ps((__m128)x);
#elif defined(__ARM_NEON) && defined(__aarch64__)
    return (vfloat)vsqrtq_f32((float32x4_t)x);
#else
    for (int i = 0; i < VECTOR_LANES; i++) x[i] = sqrtf(x[i]);
    return x;
#endif
}

/* log(x): x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), s = f / (2 + f), and
 * log(1 + f) = f - (f^2/2 - s (f^2/2 + s^2 Q(s^2))). -infinity at 0, NaN below. */
VECTOR_INLINE vfloat vector_log(vfloat x) {
    vint tiny = x < FLT_MIN;
    vint bits = (vint)vector_select(tiny, x * 8388608.0f, x);
    vint exponent = (vint)((vuint)bits - 0x3f3504f3u) >> 23;
    vfloat f = (vfloat)((vuint)bits - ((vuint)exponent << 23)) - 1.0f;
    vfloat e = __builtin_convertvector(exponent - (tiny & 23), vfloat);
    vfloat s = f / (f + 2.0f), z = s * s, half = 0.5f * f * f;
    vfloat q = z * 0.233316145f + 0.285507786f;
    q = q * z + 0.400001222f;
    q = (q * z + 0.666666666f) * z;
    vfloat y = f - (half - (s * (half + q) + e * -2.12194440e-4f)) + e * 0.693359375f;
    y = vector_select(x == INFINITY, x, y);
    y = vector_select(x == 0.0f, vector_all(-INFINITY), y);
    return vector_select(x >= 0.0f, y, vector_all(NAN));
}

/* log(1 + x): the rounding of u = 1 + x is put back to first order. */
VECTOR_INLINE vfloat vector_log1p(vfloat x) {
    vfloat u = x + 1.0f, lost = x - (u - 1.0f);
    vfloat y = vector_log(u);
    vint plain = (u < INFINITY) & (u > 0.0f);
    return y + vector_mask(plain, lost / u);
}

/* exp(x) - 1 = 2^n (exp(r) - 1) + (2^n - 1), x = n ln 2 + r; halved, so 2^128 fits. */
VECTOR_INLINE vfloat vector_expm1(vfloat x) {
    const vfloat shift = vector_all(12582912.0f);
    vfloat y = vector_select(x > 89.0f, vector_all(89.0f), x);
    y = vector_select(y < -30.0f, vector_all(-30.0f), y);
    vfloat biased = y * 1.44269504f + shift;
    vfloat n = biased - shift;
    vfloat r = y - n * 0.693145751953125f;
    r = r - n * 1.42860682e-6f;
    vfloat p = r * 1.98911802e-4f + 1.39338205e-3f;
    p = p * r + 8.33331075e-3f;
    p = p * r + 4.16664634e-2f;
    p = p * r + 1.66666667e-1f;
    p = p * r + 5.00000001e-1f;
    p = p * (r * r) + r;
    vfloat power = (vfloat)(((vuint)biased - (vuint)shift + 126u) << 23);
    return (power * p + (power - 0.5f)) * 2.0f;
}

/* tanh|x| = (exp(2|x|) - 1) / (exp(2|x|) + 1). */
VECTOR_INLINE vfloat vector_tanh(vfloat x) {
    vfloat a = vector_abs(x);
    vfloat e = vector_expm1(2.0f * vector_select(a > 10.0f, vector_all(10.0f), a));
    return vector_copysign(e / (e + 2.0f), x);
}

VECTOR_INLINE vfloat vector_sigmoid(vfloat x) {
    vfloat e = vector_exp(-vector_abs(x));
    return vector_select(x < 0.0f, e, vector_all(1.0f)) / (e + 1.0f);
}

VECTOR_INLINE vfloat vector_softplus(vfloat x) {
    vfloat positive = vector_select(x < 0.0f, vector_all(0.0f), x);
    return positive + vector_log1p(vector_exp(-vector_abs(x)));
}

/* log cosh x = log1p(cosh x - 1) near 0, where cosh x - 1 = e^2 / (2 (1 + e)) with
 * e = exp|x| - 1; farther out |x| - log 2 + log1p(exp(-2|x|)), exp(-2|x|) = 1 / (1 + e)^2. */
VECTOR_INLINE vfloat vector_lncosh(vfloat x) {
    vfloat a = vector_abs(x), e = vector_expm1(a);
    vint near = a < 1.0f;
    vfloat inverse = 1.0f / (e + 1.0f);
    vfloat inside = vector_select(near, 0.5f * e * e * inverse, inverse * inverse);
    return vector_log1p(inside) + vector_mask(~near, a - 0.693147181f);
}

/* erf: an odd polynomial up to 1, and 1 - exp(-p(|x|)) beyond, p a fit of -log erfc. */
VECTOR_INLINE vfloat vector_erf(vfloat x) {
    vfloat a = vector_abs(x), z = x * x;
    vfloat near = z * 7.87587506e-5f + -8.01686429e-4f;
    near = near * z + 5.18908742e-3f;
    near = near * z + -2.68542120e-2f;
    near = near * z + 1.12835947e-1f;
    near = near * z + -3.76126267e-1f;
    near = (near * z + 1.12837917f) * x;
    vfloat t = vector_select(a > 4.0f, vector_all(4.0f), a);
    vfloat p = t * -1.63863732e-6f + 4.60874473e-5f;
    p = p * t + -5.97052946e-4f;
    p = p * t + 4.76074771e-3f;
    p = p * t + -2.64243709e-2f;
    p = p * t + 1.10085680e-1f;
    p = p * t + 6.31820247e-1f;
    p = p * t + 1.13023672f;
    p = p * t + -3.20914383e-4f;
    vfloat far = vector_copysign(1.0f - vector_exp(-p), x);
    return vector_select(a < 1.0f, near, far);
}

/* sin(x + quarter pi/2) for quarter 0 or 1. x = n pi/2 + r with pi/2 in three parts, of which n
 * times the first two is exact; arguments too large for that go to the C library. */
VECTOR_INLINE vfloat vector_sine(vfloat x, int quarter) {
    const vfloat shift = vector_all(12582912.0f);
    vint large = ~(vector_abs(x) < 8192.0f);
    vfloat y = vector_mask(~large, x);
    vfloat biased = y * 0.636619772f + shift;
    vfloat n = biased - shift;
    vfloat r = y - n * 1.5703125f;
    r = r - n * 4.837512969970703e-4f;
    r = r - n * 7.54978995e-8f;
    vuint turn = ((vuint)biased - (vuint)shift) + (uint32_t)quarter;
    vfloat z = r * r;
    vfloat s = z * -1.98400844e-4f + 8.33333187e-3f;
    s = s + z * z * 2.72496201e-6f;
    s = (s * z + -1.66666667e-1f) * (z * r) + r;
    vfloat c = z * 2.48005984e-5f + -1.38888877e-3f;
    c = (c * z + 4.16666667e-2f) * (z * z) + (1.0f - 0.5f * z);
    vfloat result = vector_select((vint)((turn & 1u) != 0u), c, s);
    result = (vfloat)((vuint)result ^ ((turn & 2u) << 30));
    if (vector_any(large))
        for (int i = 0; i < VECTOR_LANES; i++)
            if (large[i]) result[i] = quarter ? cosf(x[i]) : sinf(x[i]);
    return result;
}

/* x to a constant power, on vectors: exp(p log |x|) in double, so that the result is a float's
 * nearest or next to it. Half as many lanes as vectors of float have. */

enum { DOUBLE_LANES = VECTOR_LANES / 2 };

typedef float vhalf __attribute__((vector_size(4 * DOUBLE_LANES)));
typedef double vdouble __attribute__((vector_size(8 * DOUBLE_LANES)));
typedef int64_t vlong __attribute__((vector_size(8 * DOUBLE_LANES)));
typedef uint64_t vulong __attribute__((vector_size(8 * DOUBLE_LANES)));

VECTOR_INLINE vdouble double_select(vlong mask, vdouble a, vdouble b) {
    return (vdouble)((mask & (vlong)a) | (~mask & (vlong)b));
}

/* log(a), a > 0 from a float: a = 2^e m, s = (m - 1) / (m + 1), log m = 2 artanh s. */
VECTOR_INLINE vdouble double_log(vdouble a) {
    vulong bits = (vulong)a;
    /* The exponent's bits below those of 2^52 make the number 2^52 + exponent. */
    vdouble e = (vdouble)((bits >> 52) | 0x4330000000000000u) - (0x1p52 + 1023.0);
    vdouble m = (vdouble)((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
    vlong high = m > 1.4142135623730951;
    m = double_select(high, 0.5 * m, m);
    e = e + double_select(high, (vdouble){0} + 1.0, (vdouble){0});
    vdouble s = (m - 1.0) / (m + 1.0), z = s * s;
    vdouble sum = z * (1.0 / 13) + 1.0 / 11;
    sum = sum * z + 1.0 / 9;
    sum = sum * z + 1.0 / 7;
    sum = sum * z + 1.0 / 5;
    sum = sum * z + 1.0 / 3;
    sum = sum * z + 1.0;
    return e * 0.6931471805599453 + 2.0 * s * sum;
}

/* exp(y), y cut to +-700: beyond what a float holds on either side. */
VECTOR_INLINE vdouble double_exp(vdouble y) {
    const vdouble shift = (vdouble){0} + 0x1.8p52;
    y = double_select(y > 700.0, (vdouble){0} + 700.0, y);
    y = double_select(y < -700.0, (vdouble){0} - 700.0, y);
    vdouble biased = y * 1.4426950408889634 + shift;
    vdouble r = y - (biased - shift) * 0.6931471805599453;
    vdouble p = r * (1.0 / 362880) + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    return p * (vdouble)(((vulong)biased - (vulong)shift + 1023u) << 52);
}

/* x^power, power not 0; negative x only where the power is `whole`; the result is then negative
 * where it is `odd`. */
VECTOR_INLINE vhalf vector_power(vhalf x, double power, bool whole, bool odd) {
    const vdouble zero = {0};
    vdouble wide = __builtin_convertvector(x, vdouble);
    vlong negative = wide < 0.0;
    vdouble a = double_select(negative, -wide, wide);
    vdouble y = double_exp(power * double_log(a));
    y = double_select(a == 0.0, zero + (power > 0 ? 0.0 : (double)INFINITY), y);
    y = double_select(a == (double)INFINITY, zero + (power > 0 ? (double)INFINITY : 0.0), y);
    if (!whole) y = double_select(negative & (a < (double)INFINITY), zero + (double)NAN, y);
    if (odd) y = (vdouble)((vulong)y | ((vulong)wide & 0x8000000000000000u));
    return __builtin_convertvector(double_select(wide != wide, wide, y), vhalf);
}

#endif
