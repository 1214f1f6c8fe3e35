/* The 14 x 32 tile of the matrix product in 28 AVX-512 registers. Two more hold a row of B and one
 * a broadcast element of A, so a step of k is 28 multiply-adds for 16 loads. */
#include <immintrin.h>

#include "engine/backend/cpu/gemm/kernel.h"

enum { MR = 14, NR = 32, AHEAD = 16, LANES = 16 };

#define FUSED(sum, a, x) _mm512_fmadd_ps((__m512)(a), (__m512)(x), (__m512)(sum))
#define WIDE_ADD(sum, a, x) FUSED(sum, _mm512_set1_ps(a), x)
#include "engine/backend/cpu/gemm/wide_body.h"

#define INLINE static inline __attribute__((always_inline))

INLINE void store(float *c, __m512 value, __mmask16 mask, bool accumulate) {
    if (accumulate) value = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, c), value);
    _mm512_mask_storeu_ps(c, mask, value);
}

INLINE void store_tile(float *c, int64_t c_row, __m512 sum[MR][2], int rows, int vectors, int cols,
                       bool accumulate) {
    __mmask16 low = (__mmask16)(cols >= 16 ? 0xFFFFU : (1U << cols) - 1);
    __mmask16 high = (__mmask16)(cols >= 32 ? 0xFFFFU : (1U << (cols > 16 ? cols - 16 : 0)) - 1);
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) {
        store(c + r * c_row, sum[r][0], low, accumulate);
        if (vectors > 1) store(c + r * c_row + 16, sum[r][1], high, accumulate);
    }
}

INLINE void fetch_tile(const basin_gemm_ahead *ahead, int rows, int vectors) {
    if (!ahead->c) return;
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) {
        _mm_prefetch(ahead->c + r * ahead->c_row, _MM_HINT_T0);
        if (vectors > 1) _mm_prefetch(ahead->c + r * ahead->c_row + 64, _MM_HINT_T0);
    }
}

/* `rows` and `vectors` are constants where this is inlined: loops unroll, `sum` is registers. */
INLINE void tile_fixed(float *c, int64_t c_row, const float *a, int64_t a_col, const float *b,
                       int64_t k, int rows, int vectors, int cols, bool accumulate,
                       const basin_gemm_ahead *ahead) {
    __m512 sum[MR][2];
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = _mm512_setzero_ps();
    fetch_tile(ahead, rows, vectors);
    const float *next = ahead->b;
    for (int64_t p = 0; p < k; p++, a += a_col, b += NR, next += NR / 8) {
        _mm_prefetch((const char *)next, _MM_HINT_T1);
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
    store_tile(c, c_row, sum, rows, vectors, cols, accumulate);
}

/* The same with A where it is: five pointers reach 14 rows, three from each. */
INLINE void direct_fixed(float *c, int64_t c_row, const float *a, int64_t a_row, const float *b,
                         int64_t k, int rows, int vectors, int cols, bool accumulate,
                         const basin_gemm_ahead *ahead) {
    __m512 sum[MR][2];
    const float *at[MR / 3 + 1], *next = a + rows * a_row;
    fetch_tile(ahead, rows, vectors);
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = _mm512_setzero_ps();
#pragma GCC unroll 5
    for (int r = 0; r < rows; r += 3) at[r / 3] = a + r * a_row;
    for (int64_t p = 0; p < k; p++, b += NR, next += 16) {
        _mm_prefetch((const char *)next, _MM_HINT_T0); /* rows without gaps: the next panel */
        __m512 b0 = _mm512_loadu_ps(b), b1 = vectors > 1 ? _mm512_loadu_ps(b + 16) : b0;
#pragma GCC unroll 14
        for (int r = 0; r < rows; r++) {
            __m512 x = _mm512_set1_ps(at[r / 3][r % 3 * a_row]);
            sum[r][0] = _mm512_fmadd_ps(x, b0, sum[r][0]);
            if (vectors > 1) sum[r][1] = _mm512_fmadd_ps(x, b1, sum[r][1]);
        }
#pragma GCC unroll 5
        for (int r = 0; r < rows; r += 3) at[r / 3]++;
    }
    store_tile(c, c_row, sum, rows, vectors, cols, accumulate);
}

#define ROWS(R)                                                                                    \
    case R:                                                                                        \
        if (cols > 16)                                                                             \
            FIXED(c, c_row, a, step, b, k, R, 2, cols, accumulate, ahead);                         \
        else                                                                                       \
            FIXED(c, c_row, a, step, b, k, R, 1, cols, accumulate, ahead);                         \
        break;

#define FIXED direct_fixed
static void tile_direct(float *c, int64_t c_row, const void *a, int64_t step, const float *b,
                        int64_t k, int rows, int cols, bool accumulate,
                        const basin_gemm_ahead *ahead) {
    switch (rows) {
        BASIN_GEMM_ROWS_14
    default: break;
    }
}

/* A where it is, its rows side by side and steps so far apart. */
#undef FIXED
#define FIXED tile_fixed
static void tile_columns(float *c, int64_t c_row, const void *a, int64_t step, const float *b,
                         int64_t k, int rows, int cols, bool accumulate,
                         const basin_gemm_ahead *ahead) {
    switch (rows) {
        BASIN_GEMM_ROWS_14
    default: break;
    }
}

static void tile(float *c, int64_t c_row, const float *a, const float *b, int64_t k, int rows,
                 int cols, bool accumulate, const basin_gemm_ahead *ahead) {
    if (rows == MR && cols == NR) /* nearly all */
        tile_fixed(c, c_row, a, MR, b, k, MR, 2, NR, accumulate, ahead);
    else
        tile_columns(c, c_row, a, MR, b, k, rows, cols, accumulate, ahead);
}

INLINE __m512 load_four(const float *x, int64_t lane, int first, int width) {
    __m512 four = _mm512_castps128_ps512(_mm_loadu_ps(x + first * lane));
    four = _mm512_insertf32x4(four, _mm_loadu_ps(x + (first + 4) * lane), 1);
    four = _mm512_insertf32x4(four, _mm_loadu_ps(x + (first + 8) * lane), 2);
    if (first + 12 >= width) return four;
    return _mm512_insertf32x4(four, _mm_loadu_ps(x + (first + 12) * lane), 3);
}

/* Four steps of up to 16 lanes: rows are gathered by fours into 128-bit parts and transposed there.
 */
INLINE void turn_group(float *to, const float *x, int64_t lane, int width, int used) {
    __m512 r0 = load_four(x, lane, 0, used), r1 = load_four(x, lane, 1, used);
    __m512 r2 = load_four(x, lane, 2, used), r3 = load_four(x, lane, 3, used);
    __m512d t0 = _mm512_castps_pd(_mm512_unpacklo_ps(r0, r1));
    __m512d t1 = _mm512_castps_pd(_mm512_unpackhi_ps(r0, r1));
    __m512d t2 = _mm512_castps_pd(_mm512_unpacklo_ps(r2, r3));
    __m512d t3 = _mm512_castps_pd(_mm512_unpackhi_ps(r2, r3));
    __mmask16 mask = (__mmask16)((1U << used) - 1);
    _mm512_mask_storeu_ps(to, mask, _mm512_castpd_ps(_mm512_unpacklo_pd(t0, t2)));
    _mm512_mask_storeu_ps(to + width, mask, _mm512_castpd_ps(_mm512_unpackhi_pd(t0, t2)));
    _mm512_mask_storeu_ps(to + 2 * width, mask, _mm512_castpd_ps(_mm512_unpacklo_pd(t1, t3)));
    _mm512_mask_storeu_ps(to + 3 * width, mask, _mm512_castpd_ps(_mm512_unpackhi_pd(t1, t3)));
}

static void turn(float *panel, const float *x, int64_t lane, int width, int64_t k) {
    int64_t p = 0;
    for (; p + 4 <= k; p += 4) {
        float *to = panel + p * width;
        if (width == MR) {
            turn_group(to, x + p, lane, MR, MR);
        } else {
            turn_group(to, x + p, lane, NR, 16);
            turn_group(to + 16, x + p + 16 * lane, lane, NR, 16);
        }
    }
    for (; p < k; p++)
        for (int l = 0; l < width; l++) panel[p * width + l] = x[l * lane + p];
}

const basin_gemm_kernel basin_gemm_kernel_avx512 =
    BASIN_GEMM_KERNEL(1, 2, 160, basin_gemm_panels_pack, .turn = turn, .a_rows = 256,
                      .direct_k = 256, .direct_rows = 1, .tile_wide = tile_wide, .peak = peak,
                      .tile_direct = tile_direct, .tile_columns = tile_columns);
