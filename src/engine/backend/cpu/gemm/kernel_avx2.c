/* The 6 x 16 tile of the matrix product in 12 AVX2 registers. */
#include <immintrin.h>

#include "engine/backend/cpu/gemm/kernel.h"

enum { MR = 6, NR = 16, AHEAD = 16, LANES = 8 };

#define FUSED(sum, a, x) _mm256_fmadd_ps((__m256)(a), (__m256)(x), (__m256)(sum))
#define WIDE_ADD(sum, a, x) FUSED(sum, _mm256_set1_ps(a), x)
#include "engine/backend/cpu/gemm/wide_body.h"

#define INLINE static inline __attribute__((always_inline))

INLINE void store(float *c, __m256 value, bool accumulate) {
    if (accumulate) value = _mm256_add_ps(_mm256_loadu_ps(c), value);
    _mm256_storeu_ps(c, value);
}

/* `rows` is a constant wherever this is inlined, so that `sum` is registers. */
INLINE void tile_fixed(float *c, int64_t c_row, const float *a, const float *b, int64_t k, int rows,
                       bool accumulate, const basin_gemm_ahead *ahead) {
    __m256 sum[MR][2];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = _mm256_setzero_ps();
    for (int r = 0; r < rows && ahead->c; r++)
        _mm_prefetch(ahead->c + r * ahead->c_row, _MM_HINT_T0);
    const float *next = ahead->b;
    for (int64_t p = 0; p < k; p++, a += MR, b += NR, next += NR / 8) {
        _mm_prefetch((const char *)next, _MM_HINT_T1);
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

BASIN_GEMM_TILE

INLINE __m256 load_pair(const float *x, int64_t lane, int first, int width) {
    __m256 low = _mm256_castps128_ps256(_mm_loadu_ps(x + first * lane));
    if (first + 4 >= width) return low;
    return _mm256_insertf128_ps(low, _mm_loadu_ps(x + (first + 4) * lane), 1);
}

/* Four steps of up to 8 lanes: rows are gathered by fours into 128-bit parts and transposed there.
 */
INLINE void turn_group(__m256 out[4], const float *x, int64_t lane, int width) {
    __m256 r0 = load_pair(x, lane, 0, width), r1 = load_pair(x, lane, 1, width);
    __m256 r2 = load_pair(x, lane, 2, width), r3 = load_pair(x, lane, 3, width);
    __m256d t0 = _mm256_castps_pd(_mm256_unpacklo_ps(r0, r1));
    __m256d t1 = _mm256_castps_pd(_mm256_unpackhi_ps(r0, r1));
    __m256d t2 = _mm256_castps_pd(_mm256_unpacklo_ps(r2, r3));
    __m256d t3 = _mm256_castps_pd(_mm256_unpackhi_ps(r2, r3));
    out[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(t0, t2));
    out[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(t0, t2));
    out[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(t1, t3));
    out[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(t1, t3));
}

static void turn(float *panel, const float *x, int64_t lane, int width, int64_t k) {
    int64_t p = 0;
    __m256i six = _mm256_setr_epi32(-1, -1, -1, -1, -1, -1, 0, 0);
    for (; p + 4 <= k; p += 4)
        for (int l = 0; l < width; l += 8) {
            __m256 out[4];
            if (width == MR)
                turn_group(out, x + p, lane, MR);
            else
                turn_group(out, x + p + l * lane, lane, 8);
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                float *to = panel + (p + i) * width + l;
                if (width == MR)
                    _mm256_maskstore_ps(to, six, out[i]);
                else
                    _mm256_storeu_ps(to, out[i]);
            }
        }
    for (; p < k; p++)
        for (int l = 0; l < width; l++) panel[p * width + l] = x[l * lane + p];
}

const basin_gemm_kernel basin_gemm_kernel_avx2 = BASIN_GEMM_KERNEL(
    1, 2, 64, basin_gemm_panels_pack, .turn = turn, .tile_wide = tile_wide, .peak = peak);
