/* The 14 x 32 tile of the matrix product in 28 AVX-512 registers. Two more hold a row of B and one
 * a broadcast element of A, so a step of k is 28 multiply-adds for 16 loads. */
#include <immintrin.h>

#include "backend/cpu/gemm_kernel.h"

enum { MR = 14, NR = 32, AHEAD = 16 };

#define INLINE static inline __attribute__((always_inline))

INLINE void store(float *c, __m512 value, __mmask16 mask, bool accumulate) {
    if (accumulate) value = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, c), value);
    _mm512_mask_storeu_ps(c, mask, value);
}

/* `rows` and `vectors` are constants wherever this is inlined, so that the loops over them unroll
 * and `sum` is registers. */
INLINE void tile_fixed(float *c, int64_t c_row, const float *a, const float *b, int64_t k, int rows,
                       int vectors, int cols, bool accumulate) {
    __m512 sum[MR][2];
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = _mm512_setzero_ps();
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) _mm_prefetch((const char *)(c + r * c_row), _MM_HINT_T0);
    for (int64_t p = 0; p < k; p++, a += MR, b += NR) {
        __m512 b0 = _mm512_loadu_ps(b), b1 = vectors > 1 ? _mm512_loadu_ps(b + 16) : b0;
        _mm_prefetch((const char *)(b + AHEAD * NR), _MM_HINT_T0);
        if (vectors > 1) _mm_prefetch((const char *)(b + AHEAD * NR + 16), _MM_HINT_T0);
#pragma GCC unroll 14
        for (int r = 0; r < rows; r++) {
            __m512 x = _mm512_set1_ps(a[r]);
            sum[r][0] = _mm512_fmadd_ps(x, b0, sum[r][0]);
            if (vectors > 1) sum[r][1] = _mm512_fmadd_ps(x, b1, sum[r][1]);
        }
    }
    __mmask16 low = (__mmask16)(cols >= 16 ? 0xFFFFU : (1U << cols) - 1);
    __mmask16 high = (__mmask16)(cols >= 32 ? 0xFFFFU : (1U << (cols > 16 ? cols - 16 : 0)) - 1);
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) {
        store(c + r * c_row, sum[r][0], low, accumulate);
        if (vectors > 1) store(c + r * c_row + 16, sum[r][1], high, accumulate);
    }
}

#define ROWS(R)                                                                                    \
    case R:                                                                                        \
        if (cols > 16)                                                                             \
            tile_fixed(c, c_row, a, b, k, R, 2, cols, accumulate);                                 \
        else                                                                                       \
            tile_fixed(c, c_row, a, b, k, R, 1, cols, accumulate);                                 \
        break;

static void tile(float *c, int64_t c_row, const float *a, const float *b, int64_t k, int rows,
                 int cols, bool accumulate) {
    switch (rows) {
        ROWS(1)
        ROWS(2)
        ROWS(3)
        ROWS(4)
        ROWS(5)
        ROWS(6)
        ROWS(7)
        ROWS(8)
        ROWS(9)
        ROWS(10)
        ROWS(11)
        ROWS(12)
        ROWS(13)
        ROWS(14)
    default: break;
    }
}

const basin_gemm_kernel basin_gemm_kernel_avx512 = {MR, NR, tile};
