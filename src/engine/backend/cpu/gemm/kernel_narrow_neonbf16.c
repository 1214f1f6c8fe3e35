/* The 12 x 8 tile of the product of bfloat16 factors on arm64 with BFMMLA, which multiplies two
 * rows by two columns over four steps of k and adds a 2 x 2 block in float32: 24 registers hold the
 * blocks, more than the 20 of four instructions per cycle with a latency of five cycles. For
 * processors with these instructions; see basin_cpu_bf16. */
#include <arm_neon.h>

#include "engine/backend/cpu/gemm/kernel.h"

enum { MR = 12, NR = 8, UNIT = 4, ROWS = MR / 2, COLS = NR / 2, CHUNK = 128 };

#define INLINE static inline __attribute__((always_inline))

INLINE bfloat16x8_t load(const uint16_t *from) { return vreinterpretq_bf16_u16(vld1q_u16(from)); }

/* The same in its place: loads moved ahead by the compiler would need more registers than there
 * are. */
INLINE bfloat16x8_t load_here(const uint16_t *from) {
    bfloat16x8_t value;
    __asm__ volatile("ldr %q0, %1" : "=w"(value) : "m"(*(const uint16_t(*)[8])from));
    return value;
}

/* Two blocks side by side are two rows of four. */
INLINE void store(float *to, int64_t to_row, float32x4_t sum[ROWS][COLS], int blocks, bool add) {
#pragma GCC unroll 6
    for (int r = 0; r < blocks; r++)
#pragma GCC unroll 2
        for (int j = 0; j < COLS; j += 2) {
            float64x2_t x = vreinterpretq_f64_f32(sum[r][j]);
            float64x2_t y = vreinterpretq_f64_f32(sum[r][j + 1]);
            float *at = to + 2 * r * to_row + 2 * j;
            float32x4_t top = vreinterpretq_f32_f64(vzip1q_f64(x, y));
            float32x4_t under = vreinterpretq_f32_f64(vzip2q_f64(x, y));
            vst1q_f32(at, add ? vaddq_f32(vld1q_f32(at), top) : top);
            at += to_row;
            vst1q_f32(at, add ? vaddq_f32(vld1q_f32(at), under) : under);
        }
}

/* The tile's first `blocks` pairs of rows: a constant wherever this is inlined, so that `sum` is
 * registers. */
INLINE void tile_fixed(float *c, int64_t c_row, const uint16_t *x, const uint16_t *y, int64_t k,
                       int blocks, bool add, const char *next) {
    float32x4_t sum[ROWS][COLS];
#pragma GCC unroll 6
    for (int r = 0; r < blocks; r++)
#pragma GCC unroll 4
        for (int j = 0; j < COLS; j++) sum[r][j] = vdupq_n_f32(0.0F);
    for (int64_t left = k; left > 0; left -= CHUNK) {
        const uint16_t *end = x + MR * (((left < CHUNK ? left : CHUNK) + UNIT - 1) / UNIT * UNIT);
        for (int i = 0; i < CHUNK / 32; i++, next += 64) __builtin_prefetch(next, 0, 3);
        for (; x < end; x += MR * UNIT, y += NR * UNIT) {
            bfloat16x8_t column[COLS];
#pragma GCC unroll 4
            for (int j = 0; j < COLS; j++) column[j] = load_here(y + 8 * j);
#pragma GCC unroll 6
            for (int r = 0; r < blocks; r++) {
                bfloat16x8_t row = load_here(x + 8 * r);
#pragma GCC unroll 4
                for (int j = 0; j < COLS; j++) sum[r][j] = vbfmmlaq_f32(sum[r][j], row, column[j]);
            }
        }
    }
    if (add)
        store(c, c_row, sum, blocks, true);
    else
        store(c, c_row, sum, blocks, false);
}

static void tile(float *c, int64_t c_row, const float *a, const float *b, int64_t k, int rows,
                 int cols, bool accumulate, const basin_gemm_ahead *ahead) {
    const uint16_t *x = (const uint16_t *)a, *y = (const uint16_t *)b;
    const char *next = (const char *)ahead->b; /* an eighth of it */
    float whole[MR * NR];
    for (int r = 0; r < rows && ahead->c; r++)
        __builtin_prefetch(ahead->c + r * ahead->c_row, 1, 3);
    bool full = rows == MR && cols == NR;
    if (rows <= 8) /* fewer take as long */
        tile_fixed(whole, NR, x, y, k, 4, false, next);
    else
        tile_fixed(full ? c : whole, full ? c_row : NR, x, y, k, ROWS, full && accumulate, next);
    if (!full) basin_gemm_tile_copy(c, c_row, whole, NR, rows, cols, accumulate);
}

static double peak(float *data, int64_t rounds) {
    enum { X = 4, Y = 5 }; /* sums enough for four instructions per cycle, latency 5 */
    const uint16_t *x = (const uint16_t *)data;
    float32x4_t sum[X * Y] = {0};
    for (int64_t p = 0; p < rounds; p++) {
#pragma GCC unroll 20
        for (int i = 0; i < X * Y; i++)
            sum[i] = vbfmmlaq_f32(sum[i], load(x + 8 * (i / Y)), load(x + 40 + 8 * (i % Y)));
    }
#pragma GCC unroll 20
    for (int i = 0; i < X * Y; i++) vst1q_f32(data + 4 * i, sum[i]);
    return 32.0 * X * Y * (double)rounds;
}

const basin_gemm_kernel basin_gemm_kernel_narrow_neon =
    BASIN_GEMM_KERNEL(UNIT, 1, 64, basin_gemm_narrow_pack, .a_rows = 128, .peak = peak);
