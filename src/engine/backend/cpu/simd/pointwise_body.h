/* One pointwise operation over rows of floats, for every operation of op.h. */
#ifndef BASIN_BACKEND_CPU_SIMD_POINTWISE_BODY_H
#define BASIN_BACKEND_CPU_SIMD_POINTWISE_BODY_H

#include <math.h>
#include <stdbool.h>

#include "engine/backend/cpu/simd/simd.h"
#include "engine/backend/cpu/simd/vector_function.h"
#include "engine/backend/op.h"

typedef vfloat unary(vfloat a);
typedef vfloat binary(vfloat a, vfloat b);

/* Where the result of an operation goes: rows `row` apart. */
typedef struct target {
    float *x;
    int64_t row, rows, n;
} target;

/* The operation is a constant where these are used, so it is inlined into the loop. */
VECTOR_INLINE void map_one(unary *f, target to, basin_strip a) {
    for (int64_t r = 0; r < to.rows; r++) {
        float *y = to.x + r * to.row;
        const float *xa = a.x + r * a.row;
        int64_t i = 0, left = to.n % VECTOR_LANES;
        for (; i < to.n - left; i += VECTOR_LANES) vector_store(y + i, f(vector_load(xa + i)));
        if (left) vector_store_part(y + i, f(vector_load_part(xa + i, left, 1.0f)), left);
    }
}

VECTOR_INLINE void map_two(binary *f, target to, basin_strip a, basin_strip b) {
    for (int64_t r = 0; r < to.rows; r++) {
        float *y = to.x + r * to.row;
        const float *xa = a.x + r * a.row, *xb = b.x + r * b.row;
        int64_t i = 0, left = to.n % VECTOR_LANES;
        for (; i < to.n - left; i += VECTOR_LANES)
            vector_store(y + i, f(vector_load(xa + i), vector_load(xb + i)));
        if (left == 0) continue;
        vfloat va = vector_load_part(xa + i, left, 1.0f), vb = vector_load_part(xb + i, left, 1.0f);
        vector_store_part(y + i, f(va, vb), left);
    }
}

VECTOR_INLINE vfloat op_neg(vfloat a) { return -a; }
VECTOR_INLINE vfloat op_sign(vfloat a) {
    return vector_mask(a > 0.0f, vector_all(1.0f)) - vector_mask(a < 0.0f, vector_all(1.0f));
}
VECTOR_INLINE vfloat op_relu(vfloat a) { return vector_max(vector_all(0.0f), a); }
VECTOR_INLINE vfloat op_step(vfloat a) { return vector_mask(a > 0.0f, vector_all(1.0f)); }
VECTOR_INLINE vfloat op_sin(vfloat a) { return vector_sine(a, 0); }
VECTOR_INLINE vfloat op_cos(vfloat a) { return vector_sine(a, 1); }
VECTOR_INLINE vfloat op_copy(vfloat a) { return a; }
VECTOR_INLINE vfloat op_one(vfloat a) {
    (void)a;
    return vector_all(1.0f);
}
VECTOR_INLINE vfloat op_square(vfloat a) { return a * a; }
VECTOR_INLINE vfloat op_cube(vfloat a) { return a * a * a; }
VECTOR_INLINE vfloat op_inverse(vfloat a) { return 1.0f / a; }
VECTOR_INLINE vfloat op_inverse_sqrt(vfloat a) { return 1.0f / vector_sqrt(a); }

VECTOR_INLINE vfloat op_add(vfloat a, vfloat b) { return a + b; }
VECTOR_INLINE vfloat op_sub(vfloat a, vfloat b) { return a - b; }
VECTOR_INLINE vfloat op_mul(vfloat a, vfloat b) { return a * b; }
VECTOR_INLINE vfloat op_div(vfloat a, vfloat b) { return a / b; }
VECTOR_INLINE vfloat op_greater(vfloat a, vfloat b) { return vector_mask(a > b, vector_all(1.0f)); }
VECTOR_INLINE vfloat op_equal(vfloat a, vfloat b) { return vector_mask(a == b, vector_all(1.0f)); }

static void fill(float *to, float value, int64_t n) {
    vfloat v = vector_all(value);
    int64_t i = 0;
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES) vector_store(to + i, v);
    for (; i < n; i++) to[i] = value;
}

static void map_select(target to, basin_strip a, basin_strip b, basin_strip c) {
    for (int64_t r = 0; r < to.rows; r++)
        for (int64_t i = 0; i < to.n; i += VECTOR_LANES) {
            int64_t left = to.n - i;
            vfloat va = vector_load_part(a.x + r * a.row + i, left, 1.0f);
            vfloat vb = vector_load_part(b.x + r * b.row + i, left, 1.0f);
            vfloat vc = vector_load_part(c.x + r * c.row + i, left, 1.0f);
            vector_store_part(to.x + r * to.row + i, vector_select(va != 0.0f, vb, vc), left);
        }
}

/* x^e for e = 4 .. 8 by squaring: bits of e from the top. */
static void map_integer_power(target to, basin_strip a, int e) {
    int top = e < 8 ? 4 : 8;
    for (int64_t r = 0; r < to.rows; r++)
        for (int64_t i = 0; i < to.n; i += VECTOR_LANES) {
            vfloat x = vector_load_part(a.x + r * a.row + i, to.n - i, 1.0f), y = x;
            for (int bit = top / 2; bit; bit /= 2) {
                y = y * y;
                if (e & bit) y = y * x;
            }
            vector_store_part(to.x + r * to.row + i, y, to.n - i);
        }
}

static void map_any_power(target to, basin_strip a, double e) {
    const bool whole = e == floor(e), odd = whole && fmod(e, 2.0) != 0.0;
    for (int64_t r = 0; r < to.rows; r++) {
        float *y = to.x + r * to.row;
        const float *x = a.x + r * a.row;
        int64_t i = 0;
        vhalf v = {0};
        for (; i + DOUBLE_LANES <= to.n; i += DOUBLE_LANES) {
            memcpy(&v, x + i, sizeof v);
            v = vector_power(v, e, whole, odd);
            memcpy(y + i, &v, sizeof v);
        }
        for (int64_t j = i; j < to.n; j++) v[j - i] = x[j];
        if (i < to.n) v = vector_power(v, e, whole, odd);
        for (int64_t j = i; j < to.n; j++) y[j] = v[j - i];
    }
}

static void map_power(target to, basin_strip a, double e) {
    if (e == 0.0) {
        map_one(op_one, to, a);
    } else if (e == 1.0) {
        map_one(op_copy, to, a);
    } else if (e == 2.0) {
        map_one(op_square, to, a);
    } else if (e == 3.0) {
        map_one(op_cube, to, a);
    } else if (e == 0.5) {
        map_one(vector_sqrt, to, a);
    } else if (e == -1.0) {
        map_one(op_inverse, to, a);
    } else if (e == -0.5) {
        map_one(op_inverse_sqrt, to, a);
    } else if (e >= 4.0 && e <= 8.0 && e == (int)e) {
        map_integer_power(to, a, (int)e);
    } else {
        map_any_power(to, a, e);
    }
}

static void map_unary(int op, target to, basin_strip a, double value) {
    switch (op) {
    case BASIN_OP_NEG: map_one(op_neg, to, a); break;
    case BASIN_OP_ABS: map_one(vector_abs, to, a); break;
    case BASIN_OP_SIGN: map_one(op_sign, to, a); break;
    case BASIN_OP_SQRT: map_one(vector_sqrt, to, a); break;
    case BASIN_OP_EXP: map_one(vector_exp, to, a); break;
    case BASIN_OP_LOG: map_one(vector_log, to, a); break;
    case BASIN_OP_LOG1P: map_one(vector_log1p, to, a); break;
    case BASIN_OP_EXPM1: map_one(vector_expm1, to, a); break;
    case BASIN_OP_TANH: map_one(vector_tanh, to, a); break;
    case BASIN_OP_SIGMOID: map_one(vector_sigmoid, to, a); break;
    case BASIN_OP_SOFTPLUS: map_one(vector_softplus, to, a); break;
    case BASIN_OP_LNCOSH: map_one(vector_lncosh, to, a); break;
    case BASIN_OP_RELU: map_one(op_relu, to, a); break;
    case BASIN_OP_STEP: map_one(op_step, to, a); break;
    case BASIN_OP_SIN: map_one(op_sin, to, a); break;
    case BASIN_OP_COS: map_one(op_cos, to, a); break;
    case BASIN_OP_ERF: map_one(vector_erf, to, a); break;
    case BASIN_OP_POW: map_power(to, a, value); break;
    default: map_one(op_copy, to, a); break;
    }
}

static void map(int op, float *x, int64_t row, basin_strip a, basin_strip b, basin_strip c,
                int64_t rows, int64_t n, double value) {
    target to = {x, row, rows, n};
    switch (op) {
    case BASIN_OP_ADD: map_two(op_add, to, a, b); break;
    case BASIN_OP_SUB: map_two(op_sub, to, a, b); break;
    case BASIN_OP_MUL: map_two(op_mul, to, a, b); break;
    case BASIN_OP_DIV: map_two(op_div, to, a, b); break;
    case BASIN_OP_MAX2: map_two(vector_max_nan, to, a, b); break;
    case BASIN_OP_MIN2: map_two(vector_min_nan, to, a, b); break;
    case BASIN_OP_GREATER: map_two(op_greater, to, a, b); break;
    case BASIN_OP_EQUAL: map_two(op_equal, to, a, b); break;
    case BASIN_OP_SELECT: map_select(to, a, b, c); break;
    default: map_unary(op, to, a, value); break;
    }
}

#endif
