/* The 6 x 16 tile of the matrix product in 12 AVX2 registers. */
#include <immintrin.h>

#include "backend/cpu/gemm_kernel.h"

enum { MR = 6, NR = 16, AHEAD = 16 };

#define INLINE static inline __attribute__((always_inline))

INLINE void store(float *c, __m256 value, bool accumulate) {
    if (accumulate) value = _mm256_add_ps(_mm256_loadu_ps(c), value);
    _mm256_storeu_ps(c, value);
}

/* `rows` is a constant wherever this is inlined, so that `sum` is registers. */
INLINE void tile_fixed(float *c, int64_t c_row, const float *a, const float *b, int64_t k, int rows,
                       bool accumulate) {
    __m256 sum[MR][2];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = _mm256_setzero_ps();
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) _mm_prefetch((const char *)(c + r * c_row), _MM_HINT_T0);
    for (int64_t p = 0; p < k; p++, a += MR, b += NR) {
        __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + 8);
        _mm_prefetch((const char *)(b + AHEAD * NR), _MM_HINT_T0);
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
            __m256 x = _mm256_broadcast_ss(a + r);
            sum[r][0] = _mm256_fmadd_ps(x, b0, sum[r][0]);
            sum[r][1] = _mm256_fmadd_ps(x, b1, sum[r][1]);
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        store(c + r * c_row, sum[r][0], accumulate);
        store(c + r * c_row + 8, sum[r][1], accumulate);
    }
}

static void tile(float *c, int64_t c_row, const float *a, const float *b, int64_t k, int rows,
                 int cols, bool accumulate) {
    if (cols == NR && rows == MR) {
        tile_fixed(c, c_row, a, b, k, MR, accumulate);
        return;
    }
    float whole[MR * NR];
    switch (rows) {
    case 1: tile_fixed(whole, NR, a, b, k, 1, false); break;
    case 2: tile_fixed(whole, NR, a, b, k, 2, false); break;
    case 3: tile_fixed(whole, NR, a, b, k, 3, false); break;
    case 4: tile_fixed(whole, NR, a, b, k, 4, false); break;
    default: tile_fixed(whole, NR, a, b, k, MR, false); break;
    }
    basin_gemm_tile_copy(c, c_row, whole, NR, rows, cols, accumulate);
}

const basin_gemm_kernel basin_gemm_kernel_avx2 = {MR, NR, tile};
