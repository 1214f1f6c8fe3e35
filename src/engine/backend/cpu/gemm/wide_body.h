/* A few rows of A times several panels of B at once, which one panel after the other would wait for
 * its own sums. The including file defines MR, NR, LANES, the floats of a vector,,
 * FUSED(sum, a, x), its sum + a x, and WIDE_ADD, the same with a number a. Sums have the order, and
 * the bits, of its tiles. */
#ifndef BASIN_BACKEND_CPU_GEMM_WIDE_BODY_H
#define BASIN_BACKEND_CPU_GEMM_WIDE_BODY_H

#include <string.h>

typedef float wide __attribute__((vector_size(4 * LANES)));

/* `rows` and `panels` are constants wherever this is inlined, so that `sum` is registers. */
static inline __attribute__((always_inline)) void wide_fixed(float *c, const float *a,
                                                             int64_t a_row, int64_t a_col,
                                                             const float *b, int64_t panel,
                                                             int64_t k, int rows, int panels) {
    enum { VECTORS = BASIN_GEMM_WIDE * NR / LANES };
    const int vectors = panels * NR / LANES;
    wide sum[MR / BASIN_GEMM_WIDE][VECTORS];
#pragma GCC unroll 3
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 12
        for (int v = 0; v < vectors; v++) sum[r][v] = (wide){0};
    for (int64_t p = 0; p < k; p++, a += a_col, b += NR) {
#pragma GCC unroll 12
        for (int v = 0; v < vectors; v++) {
            wide x;
            memcpy(&x, b + v / (NR / LANES) * panel + v % (NR / LANES) * LANES, sizeof x);
#pragma GCC unroll 3
            for (int r = 0; r < rows; r++) sum[r][v] = (wide)WIDE_ADD(sum[r][v], a[r * a_row], x);
        }
    }
#pragma GCC unroll 3
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 12
        for (int v = 0; v < vectors; v++)
            memcpy(c + (r * vectors + v) * LANES, &sum[r][v], sizeof(wide));
}

static void tile_wide(float *c, const float *a, int64_t a_row, int64_t a_col, const float *b,
                      int64_t panel, int64_t k, int rows, int panels) {
#define CASE(R, P)                                                                                 \
    if (rows == R && R <= MR / BASIN_GEMM_WIDE && panels == P)                                     \
        wide_fixed(c, a, a_row, a_col, b, panel, k, R <= MR / BASIN_GEMM_WIDE ? R : 1, P);
    CASE(1, 1)
    CASE(1, 2) CASE(1, 4) CASE(2, 1) CASE(2, 2) CASE(2, 4) CASE(3, 1) CASE(3, 2) CASE(3, 4)
#undef CASE
}

/* The numbers are loaded once: nothing is stored meanwhile. */
static double peak(float *data, int64_t rounds) {
    enum { SIDE = LANES == 8 ? 3 : 4 }; /* AVX2 has 16 registers */
    wide sum[SIDE * SIDE] = {{0}}, x[2 * SIDE];
#pragma GCC unroll 8
    for (int i = 0; i < 2 * SIDE; i++) memcpy(&x[i], data + i * LANES, sizeof *x);
    for (int64_t n = 0; n < rounds; n++) {
#pragma GCC unroll 16
        for (int i = 0; i < SIDE * SIDE; i++)
            sum[i] = (wide)FUSED(sum[i], x[i / SIDE], x[SIDE + i % SIDE]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < SIDE * SIDE; i++) memcpy(data + i * LANES, &sum[i], sizeof *x);
    return 2.0 * SIDE * SIDE * LANES * (double)rounds;
}

#endif
