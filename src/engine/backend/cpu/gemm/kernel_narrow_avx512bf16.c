/* The 14 x 32 tile of the product of bfloat16 factors in 28 AVX-512 registers, two steps of k per
 * instruction, sums in float32. For processors without AMX. */
#include <immintrin.h>

#include "engine/backend/cpu/gemm/kernel.h"

enum { MR = 14, NR = 32, UNIT = 2 };

#define INLINE static inline __attribute__((always_inline))

INLINE __mmask16 mask_of(int cols) {
    return (__mmask16)(cols >= 16 ? 0xFFFFU : cols <= 0 ? 0U : (1U << cols) - 1);
}

/* `rows` is a constant wherever this is inlined, so that `sum` is registers. */
INLINE void tile_fixed(float *c, int64_t c_row, const uint32_t *a, const uint32_t *b, int64_t pairs,
                       int rows, int cols, bool accumulate) {
    __m512 sum[MR][2];
    __mmask16 low = mask_of(cols), high = mask_of(cols - 16);
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) {
        sum[r][0] = sum[r][1] = _mm512_setzero_ps();
        if (!accumulate) continue;
        sum[r][0] = _mm512_maskz_loadu_ps(low, c + r * c_row);
        sum[r][1] = _mm512_maskz_loadu_ps(high, c + r * c_row + 16);
    }
    for (int64_t p = 0; p < pairs; p++, a += MR, b += NR) {
        __m512bh b0 = (__m512bh)_mm512_loadu_si512(b), b1 = (__m512bh)_mm512_loadu_si512(b + 16);
#pragma GCC unroll 14
        for (int r = 0; r < rows; r++) {
            __m512bh x = (__m512bh)_mm512_set1_epi32((int)a[r]);
            sum[r][0] = _mm512_dpbf16_ps(sum[r][0], x, b0);
            sum[r][1] = _mm512_dpbf16_ps(sum[r][1], x, b1);
        }
    }
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) {
        _mm512_mask_storeu_ps(c + r * c_row, low, sum[r][0]);
        _mm512_mask_storeu_ps(c + r * c_row + 16, high, sum[r][1]);
    }
}

#define ROWS(R)                                                                                    \
    case R: tile_fixed(c, c_row, x, y, pairs, R, cols, accumulate); break;

static void tile(float *c, int64_t c_row, const float *a, const float *b, int64_t k, int rows,
                 int cols, bool accumulate, const basin_gemm_ahead *ahead) {
    const uint32_t *x = (const uint32_t *)a, *y = (const uint32_t *)b;
    int64_t pairs = (k + 1) / UNIT;
    (void)ahead;
    switch (rows) {
        BASIN_GEMM_ROWS_14
    default: break;
    }
}

const basin_gemm_kernel basin_gemm_kernel_narrow_avx512 =
    BASIN_GEMM_KERNEL(UNIT, 1, 160, basin_gemm_narrow_pack, .turn = NULL);
