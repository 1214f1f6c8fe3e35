/* Dot products with, and weighted sums of, rows picked by number; rows are packed and padded
 * (attention.h) and read in panels that stay in registers. */
#ifndef BASIN_BACKEND_CPU_ATTENTION_KERNELS_PRODUCTS_H
#define BASIN_BACKEND_CPU_ATTENTION_KERNELS_PRODUCTS_H

#include "engine/backend/cpu/attention/attention.h"
#include "engine/backend/cpu/simd/vector_math.h"

/* Vectors of a row that a loop holds in registers. */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { PANEL = 8 };
#else
enum { PANEL = 4 };
#endif
enum { L = VECTOR_LANES, KEYS = 16 }; /* KEYS: rows taken at once; their sums fill any vector */

#define SHUFFLE __builtin_shufflevector

/* {a0+a2, b0+b2, a1+a3, b1+b3} in each group of four lanes. */
VECTOR_INLINE vfloat fold_two(vfloat a, vfloat b) {
#if VECTOR_LANES == 16
    return SHUFFLE(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +
           SHUFFLE(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
#elif VECTOR_LANES == 8
    return SHUFFLE(a, b, 0, 8, 1, 9, 4, 12, 5, 13) + SHUFFLE(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
#else
    return SHUFFLE(a, b, 0, 4, 1, 5) + SHUFFLE(a, b, 2, 6, 3, 7);
#endif
}

/* {sum a, sum b, sum c, sum d} of each group of four lanes. */
VECTOR_INLINE vfloat fold_four(const vfloat *v) {
    vfloat a = fold_two(v[0], v[1]), b = fold_two(v[2], v[3]);
#if VECTOR_LANES == 16
    return SHUFFLE(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
           SHUFFLE(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
#elif VECTOR_LANES == 8
    return SHUFFLE(a, b, 0, 1, 8, 9, 4, 5, 12, 13) + SHUFFLE(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
#else
    return SHUFFLE(a, b, 0, 1, 4, 5) + SHUFFLE(a, b, 2, 3, 6, 7);
#endif
}

/* out[i] = the sum of the lanes of v[i], for KEYS vectors. */
VECTOR_INLINE void fold_all(float *out, const vfloat *v) {
#if VECTOR_LANES == 16
    vfloat a = fold_four(v), b = fold_four(v + 4), c = fold_four(v + 8), d = fold_four(v + 12);
    vfloat ab = SHUFFLE(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
                SHUFFLE(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    vfloat cd = SHUFFLE(c, d, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
                SHUFFLE(c, d, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    vector_store(out,
                 SHUFFLE(ab, cd, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
                     SHUFFLE(ab, cd, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31));
#elif VECTOR_LANES == 8
    for (int i = 0; i < KEYS; i += 8) {
        vfloat a = fold_four(v + i), b = fold_four(v + i + 4);
        vector_store(out + i, SHUFFLE(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
                                  SHUFFLE(a, b, 4, 5, 6, 7, 12, 13, 14, 15));
    }
#else
    for (int i = 0; i < KEYS; i += 4) vector_store(out + i, fold_four(v + i));
#endif
}

/* Hides a row's address: compilers otherwise form the address of each vector anew. */
VECTOR_INLINE const float *row_at(const float *rows, int64_t number, int64_t stride) {
    const float *row = rows + number * stride;
    __asm__("" : "+r"(row));
    return row;
}

/* Calls CALL(at, panel) for pieces of a row of `width` floats, the panel a constant in each. */
#define FOR_PANELS(width, CALL)                                                                    \
    do {                                                                                           \
        int64_t at = 0;                                                                            \
        for (; at + PANEL * L <= (width); at += PANEL * L) {                                       \
            CALL(at, PANEL);                                                                       \
        }                                                                                          \
        if (PANEL > 4 && at + 4 * L <= (width)) {                                                  \
            CALL(at, 4);                                                                           \
            at += 4 * L;                                                                           \
        }                                                                                          \
        if (at + 2 * L <= (width)) {                                                               \
            CALL(at, 2);                                                                           \
            at += 2 * L;                                                                           \
        }                                                                                          \
        if (at < (width)) {                                                                        \
            CALL(at, 1);                                                                           \
        }                                                                                          \
    } while (0)

/* part[i] = or, where `again`, += the lanes of x . row over one panel. */
VECTOR_INLINE void dot_panel(vfloat *part, const float *x, const float *rows, const int32_t *index,
                             int64_t n, int64_t width, int panel, bool again) {
    vfloat hold[PANEL];
    for (int p = 0; p < panel; p++) hold[p] = vector_load(x + p * L);
    for (int64_t i = 0; i < n; i++) {
        const float *row = row_at(rows, index[i], width);
        vfloat sum = again ? part[i] : (vfloat){0};
        for (int p = 0; p < panel; p++) sum += hold[p] * vector_load(row + p * L);
        part[i] = sum;
    }
}

/* out[i] = x . rows[index[i]] for up to KEYS rows; 0 past the last. */
VECTOR_INLINE void dot_block(float *out, const float *x, const float *rows, const int32_t *index,
                             int64_t n, int64_t width) {
    vfloat part[KEYS];
    for (int64_t i = n; i < KEYS; i++) part[i] = (vfloat){0};
#define CALL(at, panel)                                                                            \
    if ((at) == 0)                                                                                 \
        dot_panel(part, x, rows, index, n, width, panel, false);                                   \
    else                                                                                           \
        dot_panel(part, x + (at), rows + (at), index, n, width, panel, true)
    FOR_PANELS(width, CALL);
#undef CALL
    fold_all(out, part);
}

VECTOR_INLINE void store_block(float *to, const float *from, int64_t n) {
    for (int i = 0; i < KEYS; i += L) vector_store_part(to + i, vector_load(from + i), n - i);
}

static void dot(float *out, const float *x, const float *rows, const int32_t *index, int64_t n,
                int64_t width) {
    float sums[KEYS];
    for (int64_t i = 0; i < n; i += KEYS) {
        int64_t keys = n - i < KEYS ? n - i : KEYS;
        dot_block(sums, x, rows, index + i, keys, width);
        store_block(out + i, sums, keys);
    }
}

VECTOR_INLINE void dot_two_panel(vfloat *part_r, vfloat *part_c, const float *x, const float *rows,
                                 const int32_t *index, int64_t n, int64_t width, int panel,
                                 bool again) {
    vfloat q[PANEL], a[PANEL];
    for (int p = 0; p < panel; p++) {
        q[p] = vector_load(x + p * L);
        a[p] = vector_load(x + width + p * L);
    }
    for (int64_t i = 0; i < n; i++) {
        const float *k = row_at(rows, index[i], 2 * width), *b = row_at(k, 1, width);
        vfloat r = again ? part_r[i] : (vfloat){0}, c = again ? part_c[i] : (vfloat){0};
        vfloat d = {0}; /* halves the chain of dependent sums that c would be */
        for (int p = 0; p < panel; p++) {
            vfloat key = vector_load(k + p * L);
            r += q[p] * key;
            c += a[p] * key;
            d += q[p] * vector_load(b + p * L);
        }
        part_r[i] = r;
        part_c[i] = c + d;
    }
}

/* x is (Q | A), rows are (K | B): r[i] = Q . K, c[i] = A . K + Q . B for up to KEYS rows. */
VECTOR_INLINE void dot_two_block(float *r, float *c, const float *x, const float *rows,
                                 const int32_t *index, int64_t n, int64_t width) {
    vfloat part_r[KEYS], part_c[KEYS];
    for (int64_t i = n; i < KEYS; i++) part_r[i] = part_c[i] = (vfloat){0};
#define CALL(at, panel)                                                                            \
    if ((at) == 0)                                                                                 \
        dot_two_panel(part_r, part_c, x, rows, index, n, width, panel, false);                     \
    else                                                                                           \
        dot_two_panel(part_r, part_c, x + (at), rows + (at), index, n, width, panel, true)
    FOR_PANELS(width, CALL);
#undef CALL
    fold_all(r, part_r);
    fold_all(c, part_c);
}

static void dot_two(float *r, float *c, const float *x, const float *rows, const int32_t *index,
                    int64_t n, int64_t width) {
    float sums_r[KEYS], sums_c[KEYS];
    for (int64_t i = 0; i < n; i += KEYS) {
        int64_t keys = n - i < KEYS ? n - i : KEYS;
        dot_two_block(sums_r, sums_c, x, rows, index + i, keys, width);
        store_block(r + i, sums_r, keys);
        store_block(c + i, sums_c, keys);
    }
}

VECTOR_INLINE void gather_panel(float *sum, const float *coefficient, const float *rows,
                                const int32_t *index, int64_t n, int64_t width, int panel) {
    vfloat hold[PANEL];
    for (int p = 0; p < panel; p++) hold[p] = vector_load(sum + p * L);
    for (int64_t i = 0; i < n; i++) {
        const float *row = row_at(rows, index[i], width);
        for (int p = 0; p < panel; p++) hold[p] += coefficient[i] * vector_load(row + p * L);
    }
    for (int p = 0; p < panel; p++) vector_store(sum + p * L, hold[p]);
}

VECTOR_INLINE void gather_rows(float *sum, const float *coefficient, const float *rows,
                               const int32_t *index, int64_t n, int64_t width) {
#define CALL(at, panel) gather_panel(sum + (at), coefficient, rows + (at), index, n, width, panel)
    FOR_PANELS(width, CALL);
#undef CALL
}

static void gather(float *sum, const float *coefficient, const float *rows, const int32_t *index,
                   int64_t n, int64_t width) {
    gather_rows(sum, coefficient, rows, index, n, width);
}

VECTOR_INLINE void gather_two_panel(float *sum, const float *gs, const float *t, const float *rows,
                                    const int32_t *index, int64_t n, int64_t width, int panel) {
    vfloat hold[PANEL];
    for (int p = 0; p < panel; p++) hold[p] = vector_load(sum + p * L);
    for (int64_t i = 0; i < n; i++) {
        const float *k = row_at(rows, index[i], 2 * width), *b = row_at(k, 1, width);
        for (int p = 0; p < panel; p++) hold[p] += gs[i] * vector_load(k + p * L);
        for (int p = 0; p < panel; p++) hold[p] += t[i] * vector_load(b + p * L);
    }
    for (int p = 0; p < panel; p++) vector_store(sum + p * L, hold[p]);
}

VECTOR_INLINE void gather_two_rows(float *sum, const float *gs, const float *t, const float *rows,
                                   const int32_t *index, int64_t n, int64_t width) {
#define CALL(at, panel) gather_two_panel(sum + (at), gs, t, rows + (at), index, n, width, panel)
    FOR_PANELS(width, CALL);
#undef CALL
}

static void gather_two(float *sum, const float *gs, const float *t, const float *rows,
                       const int32_t *index, int64_t n, int64_t width) {
    gather_two_rows(sum, gs, t, rows, index, n, width);
}

/* sum[0] += e B + d K, sum[1] += e K */
VECTOR_INLINE void gather_three_panel(float *sum, const float *e, const float *d, const float *rows,
                                      const int32_t *index, int64_t n, int64_t width, int panel) {
    vfloat first[PANEL], second[PANEL];
    for (int p = 0; p < panel; p++) {
        first[p] = vector_load(sum + p * L);
        second[p] = vector_load(sum + width + p * L);
    }
    for (int64_t i = 0; i < n; i++) {
        const float *k = row_at(rows, index[i], 2 * width), *b = row_at(k, 1, width);
        for (int p = 0; p < panel; p++) {
            vfloat key = vector_load(k + p * L);
            first[p] += d[i] * key;
            second[p] += e[i] * key;
        }
        for (int p = 0; p < panel; p++) first[p] += e[i] * vector_load(b + p * L);
    }
    for (int p = 0; p < panel; p++) {
        vector_store(sum + p * L, first[p]);
        vector_store(sum + width + p * L, second[p]);
    }
}

VECTOR_INLINE void gather_three_rows(float *sum, const float *e, const float *d, const float *rows,
                                     const int32_t *index, int64_t n, int64_t width) {
#define CALL(at, panel) gather_three_panel(sum + (at), e, d, rows + (at), index, n, width, panel)
    FOR_PANELS(width, CALL);
#undef CALL
}

#endif
