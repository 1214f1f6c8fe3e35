/* x to a constant power, on vectors: exp(p log |x|) in double, so that the result is a float's
 * nearest or next to it. Half as many lanes as vectors of float have. */
#ifndef BASIN_BACKEND_CPU_SIMD_VECTOR_POWER_H
#define BASIN_BACKEND_CPU_SIMD_VECTOR_POWER_H

#include <math.h>
#include <stdbool.h>

#include "backend/cpu/simd/vector_math.h"

enum { DOUBLE_LANES = VECTOR_LANES / 2 };

typedef float vhalf __attribute__((vector_size(4 * DOUBLE_LANES)));
typedef double vdouble __attribute__((vector_size(8 * DOUBLE_LANES)));
typedef int64_t vlong __attribute__((vector_size(8 * DOUBLE_LANES)));
typedef uint64_t vulong __attribute__((vector_size(8 * DOUBLE_LANES)));

VECTOR_INLINE vdouble double_select(vlong mask, vdouble a, vdouble b) {
    return (vdouble)((mask & (vlong)a) | (~mask & (vlong)b));
}

/* log(a) for finite a > 0 that came from a float: a = 2^e m with m in [sqrt(1/2), sqrt(2)),
 * s = (m - 1) / (m + 1), log m = 2 artanh s. */
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

/* x^power, power not 0. A negative x has one where the power is a `whole` number, and that is
 * negative where it is `odd`. */
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
