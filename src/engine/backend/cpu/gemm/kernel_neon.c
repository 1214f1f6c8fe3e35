/* The 8 x 12 tile of the matrix product in 24 NEON registers: five more hold 8 elements of A and 12
 * of B, so a step of k is 24 multiply-adds by element for 5 loads. */
#include <arm_neon.h>

#include "engine/backend/cpu/gemm/kernel.h"

enum { MR = 8, NR = 12, CHUNK = 32, LANES = 4 };

#define WIDE_ADD(sum, a, x) vfmaq_n_f32((float32x4_t)(sum), (float32x4_t)(x), a)
#define FUSED(sum, a, x) vfmaq_f32((float32x4_t)(sum), (float32x4_t)(a), (float32x4_t)(x))
#include "engine/backend/cpu/gemm/wide_body.h"

#define INLINE static inline __attribute__((always_inline))

INLINE void store(float *c, float32x4_t value, bool accumulate) {
    if (accumulate) value = vaddq_f32(vld1q_f32(c), value);
    vst1q_f32(c, value);
}

#define ROW(R, X, LANE)                                                                            \
    if (rows > R) {                                                                                \
        sum[R][0] = vfmaq_laneq_f32(sum[R][0], b0, X, LANE);                                       \
        if (vectors > 1) sum[R][1] = vfmaq_laneq_f32(sum[R][1], b1, X, LANE);                      \
        if (vectors > 1) sum[R][2] = vfmaq_laneq_f32(sum[R][2], b2, X, LANE);                      \
    }

/* The tile's first `rows` rows, and 1 or 3 vectors of columns: constants wherever this is inlined,
 * so that `sum` is registers. */
INLINE void tile_fixed(float *c, int64_t c_row, const float *a, const float *b, int64_t k, int rows,
                       int vectors, bool accumulate, const basin_gemm_ahead *ahead) {
    float32x4_t sum[MR][3];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = sum[r][2] = vdupq_n_f32(0.0F);
    for (int r = 0; r < rows && ahead->c; r++)
        __builtin_prefetch(ahead->c + r * ahead->c_row, 1, 3);
    const float *next = ahead->b;
    for (int64_t left = k; left > 0; left -= CHUNK) {
        const float *end = a + MR * (left < CHUNK ? left : CHUNK);
#pragma GCC unroll 3
        for (int i = 0; i < 3; i++, next += 16) __builtin_prefetch(next, 0, 2);
#pragma GCC unroll 4
        for (; a < end; a += MR, b += NR) {
            float32x4_t a0 = vld1q_f32(a), a1 = rows > 4 ? vld1q_f32(a + 4) : a0;
            float32x4_t b0 = vld1q_f32(b), b1 = b0, b2 = b0;
            if (vectors > 1) b1 = vld1q_f32(b + 4), b2 = vld1q_f32(b + 8);
            ROW(0, a0, 0)
            ROW(1, a0, 1)
            ROW(2, a0, 2)
            ROW(3, a0, 3)
            ROW(4, a1, 0)
            ROW(5, a1, 1)
            ROW(6, a1, 2)
            ROW(7, a1, 3)
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) store(c + r * c_row + 4 * v, sum[r][v], accumulate);
}

static void tile(float *c, int64_t c_row, const float *a, const float *b, int64_t k, int rows,
                 int cols, bool accumulate, const basin_gemm_ahead *ahead) {
    float whole[MR * NR];
    bool full = rows == MR && (cols == NR || cols == LANES);
    float *to = full ? c : whole;
    int64_t row = full ? c_row : NR;
    if (rows == MR && cols <= LANES)
        tile_fixed(to, row, a, b, k, MR, 1, full && accumulate, ahead);
    else if (rows <= 4) /* one takes as long */
        tile_fixed(to, row, a, b, k, 4, 3, false, ahead);
    else
        tile_fixed(to, row, a, b, k, MR, 3, full && accumulate, ahead);
    if (!full) basin_gemm_tile_copy(c, c_row, whole, NR, rows, cols, accumulate);
}

const basin_gemm_kernel basin_gemm_kernel_neon =
    BASIN_GEMM_KERNEL(1, 2, 96, basin_gemm_panels_pack, .turn = basin_gemm_panel_turn,
                      .tile_wide = tile_wide, .peak = peak);
