/* The inner loops of the fast backend, one table per instruction set, chosen at run time: the same
 * source (*_body.h) is compiled for each. Functions work on rows of contiguous floats in the
 * calling thread; results depend only on the arguments. */
#ifndef BASIN_BACKEND_CPU_SIMD_SIMD_H
#define BASIN_BACKEND_CPU_SIMD_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows of floats, `row` apart; 0 repeats one row. */
typedef struct basin_strip {
    const float *x;
    int64_t row;
} basin_strip;

/* Finishes a tile: relu?(alpha tile + beta other), or alpha tile where `other` is above 0, or other
 * + step (alpha tile + beta other), moved by `moved`; rows `row` apart. */
typedef struct basin_finish {
    void *to;
    const void *other; /* or NULL */
    const float *step; /* of the tile's first row, or NULL */
    float *moved;      /* or NULL */
    int64_t row, step_row;
    float alpha, beta;
    bool narrow, relu, masks; /* `to` and `other` are bfloat16; `other` is a mask */
} basin_finish;

typedef void basin_simd_fill(float *out, uint64_t seed, uint64_t stream, uint64_t first,
                             size_t count);

typedef struct basin_simd {
    /* A pointwise operation on `rows` rows of n: to = op(a, b, c), in place too; `value`: POW's. */
    void (*map)(int op, float *to, int64_t to_row, basin_strip a, basin_strip b, basin_strip c,
                int64_t rows, int64_t n, double value);
    void (*fill)(float *to, float value, int64_t n);
    /* From bfloat16, and to the nearest of them, ties to even. */
    void (*widen)(float *to, const uint16_t *x, int64_t n);
    void (*narrow)(uint16_t *to, const float *x, int64_t n);

    /* The elements of a tile, which go to element `first` on. */
    void (*finish)(const basin_finish *f, const float *tile, int64_t tile_row, int64_t first,
                   int64_t rows, int64_t cols);

    /* Reductions of one row. Sums run in blocks whose results are added in double. */
    float (*sum)(const float *x, int64_t n);
    float (*max)(const float *x, int64_t n);
    /* The same of each of some rows [rows, n]. */
    void (*sums)(float *to, const float *x, int64_t rows, int64_t n);
    void (*maxima)(float *to, const float *x, int64_t rows, int64_t n);
    float (*dot)(const float *x, const float *y, int64_t n);
    /* Reductions over rows: to[j] = sum or max over i < rows of x[i, j], rows `stride` apart. */
    void (*sum_rows)(float *to, const float *x, int64_t rows, int64_t stride, int64_t n);
    void (*max_rows)(float *to, const float *x, int64_t rows, int64_t stride, int64_t n);
    void (*axpy)(float *y, float a, const float *x, int64_t n); /* y += a x */

    float (*logsumexp)(const float *x, int64_t n);
    /* `lse`, unless NULL, becomes the row's log-sum-exp, of the bits that logsumexp gives. */
    void (*softmax)(float *to, float *lse, const float *x, int64_t n);

    /* g = gamma gain (x - mean) / sqrt(var + epsilon) + delta, one row; gain [n] or NULL. */
    void (*norm)(float *g, const float *x, float gamma, const float *gain, const float *delta,
                 float epsilon, int64_t n);
    /* The same, stored as bfloat16. */
    void (*norm_narrow)(uint16_t *g, const float *x, float gamma, const float *gain,
                        const float *delta, float epsilon, int64_t n);
    /* Its reverse: dx (or NULL) from the cotangent c; ddelta (or NULL) += c; dgain (or NULL) adds
     * the row's, with a gain; returns this row's part of dgamma. */
    float (*norm_reverse)(float *dx, float *ddelta, float *dgain, const float *x, float gamma,
                          const float *gain, const float *c, float epsilon, int64_t n);

    /* w[p, h] = x[h] . z[key[p], h] for p < pairs; x [heads, width], z [.., heads, width]. */
    void (*pair_dot)(float *w, const float *x, const float *z, const int32_t *key, int64_t pairs,
                     int64_t heads, int64_t width);
    /* to[h] = sum over p of w[pair[p], h] z[key[p], h]; pair NULL stands for 0, 1, 2, ... */
    void (*pair_sum)(float *to, const float *w, const float *z, const int32_t *pair,
                     const int32_t *key, int64_t pairs, int64_t heads, int64_t width);

    /* Draws first, first + 1, .. of a stream: the numbers of basin/random.h. */
    basin_simd_fill *normal, *uniform;
} basin_simd;

/* Compiled without fused multiply-adds, apart from the rest. */
basin_simd_fill basin_simd_normal_avx2, basin_simd_uniform_avx2, basin_simd_normal_avx512,
    basin_simd_uniform_avx512;

extern const basin_simd basin_simd_portable;
#if defined(__x86_64__)
extern const basin_simd basin_simd_avx2, basin_simd_avx512;
#endif

/* The table for basin_cpu_isa(). */
const basin_simd *basin_simd_select(void);

#endif
