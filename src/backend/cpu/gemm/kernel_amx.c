/* The 32 x 32 tile of the matrix product on AMX, whose instructions multiply bfloat16 and sum in
 * float32. A number is split exactly into bfloat16 parts, x = x1 + x2 + x3, and
 *     six products    x1 y1 + x1 y2 + x2 y1 + x2 y2 + x1 y3 + x3 y1     leave out about 2^-24 x y,
 *     three products  x1 y1 + x1 y2 + x2 y1                            leave out about 2^-16 x y.
 * Numbers of 2^111 and more, infinities and NaN make NaN; products under 2^-126 count as zero, so
 * that sums under about 2^-110 lose the smaller parts. */
#include <immintrin.h>

#include "backend/cpu/gemm/kernel.h"
#include "backend/cpu/gemm/tiles_amx.h"

enum {
    UNIT = 2 * SIDE,  /* steps of k in a tile: word j holds steps j and j + 16 */
    WIDTH = 2 * SIDE, /* rows or columns of a panel: two tiles */
};

/* A panel is a list of units of k; a unit has its parts, largest first; a part has two tiles. */

/* x rounded to the 8 bits of a bfloat16 (Veltkamp): the lower half of the result is zero bits. */
INLINE __m512 head(__m512 x) {
    __m512 scaled = _mm512_mul_ps(x, _mm512_set1_ps(65537.0F));
    return _mm512_sub_ps(scaled, _mm512_sub_ps(scaled, x));
}

/* Subnormal parts have bits in their lower half, which must not become another number. */
INLINE __m512i join(__m512 low, __m512 high) {
    const __m512i upper = _mm512_set1_epi32((int)0xFFFF0000U);
    return _mm512_ternarylogic_epi32(_mm512_srli_epi32(_mm512_castps_si512(low), 16),
                                     _mm512_castps_si512(high), upper, 0xF8); /* a | b & c */
}

/* Sixteen words of each part. */
INLINE void split(__m512i word[3], __m512 low, __m512 high, int parts) {
    __m512 low1 = head(low), high1 = head(high);
    word[0] = join(low1, high1);
    low = _mm512_sub_ps(low, low1), high = _mm512_sub_ps(high, high1);
    __m512 low2 = head(low), high2 = head(high);
    word[1] = join(low2, high2);
    if (parts > 2) word[2] = join(_mm512_sub_ps(low, low2), _mm512_sub_ps(high, high2));
}

/* One tile of each part: 16 lanes by 32 steps, of which `lanes` and `steps` are there. Where lanes
 * are neighbours a row of the tile is a pair of steps, else a lane; `turned` asks for the other. */
INLINE void pack_tile(uint32_t *to, const float *x, int64_t lane, int64_t step, int64_t lanes,
                      int64_t steps, bool turned, int parts) {
    bool by_step = lane == 1;
    int64_t apart = by_step ? step : lane, rows = by_step ? steps : lanes;
    __mmask16 low_mask = basin_amx_mask(by_step ? lanes : steps);
    __mmask16 high_mask = by_step ? low_mask : basin_amx_mask(steps - SIDE);
    for (int64_t r = 0; r < SIDE; r++) {
        __m512 low = _mm512_setzero_ps(), high = low;
        const float *from = x + r * apart;
        if (r < rows) low = _mm512_maskz_loadu_ps(low_mask, from);
        if (by_step ? r + SIDE < rows : r < rows)
            high = _mm512_maskz_loadu_ps(high_mask, from + SIDE * (by_step ? step : 1));
        __m512i word[3];
        split(word, low, high, parts);
        for (int i = 0; i < parts; i++) _mm512_store_si512(to + 2 * WORDS * i + SIDE * r, word[i]);
    }
    if (turned)
        for (int i = 0; i < parts; i++) basin_amx_turn(to + 2 * WORDS * i);
}

/* Strides of which none is 1 go through a small copy. */
static void pack_strided(uint32_t *to, const float *x, int64_t lane, int64_t step, int64_t lanes,
                         int64_t steps, bool right, int parts) {
    float copy[SIDE * UNIT] = {0};
    for (int64_t l = 0; l < lanes && l < SIDE; l++)
        for (int64_t p = 0; p < steps && p < UNIT; p++) copy[l * UNIT + p] = x[l * lane + p * step];
    pack_tile(to, copy, UNIT, 1, SIDE, UNIT, right, parts);
}

/* One unit of k of one panel: two tiles of each part. */
INLINE void pack_unit(bool right, uint32_t *to, const float *x, int64_t lane, int64_t step,
                      int64_t lanes, int64_t steps, int parts) {
    for (int t = 0; t < 2; t++) {
        int64_t l = t * SIDE;
        const float *from = l < lanes ? x + l * lane : x;
        if (lane == 1 || step == 1)
            pack_tile(to + t * WORDS, from, lane, step, lanes - l, steps, (lane == 1) != right,
                      parts);
        else
            pack_strided(to + t * WORDS, from, lane, step, lanes - l, steps, right, parts);
    }
}

/* In the order in which x lies in memory. */
INLINE void pack(bool right, float *panels, const float *x, int64_t lane, int64_t step,
                 int64_t lanes, int64_t k, int parts) {
    int64_t units = (k + UNIT - 1) / UNIT, count = (lanes + WIDTH - 1) / WIDTH;
    for (int64_t i = 0; i < units * count; i++) {
        int64_t panel = lane == 1 ? i % count : i / units, u = lane == 1 ? i / count : i % units;
        int64_t first = panel * WIDTH, p = u * UNIT;
        uint32_t *to = (uint32_t *)panels + (panel * units + u) * 2 * WORDS * parts;
        pack_unit(right, to, x + first * lane + p * step, lane, step, lanes - first, k - p, parts);
    }
}

static void pack_two(const basin_gemm_kernel *kernel, bool right, float *panels, const void *x,
                     int64_t lane, int64_t step, int64_t lanes, int64_t k) {
    (void)kernel;
    pack(right, panels, x, lane, step, lanes, k, 2);
}

static void pack_three(const basin_gemm_kernel *kernel, bool right, float *panels, const void *x,
                       int64_t lane, int64_t step, int64_t lanes, int64_t k) {
    (void)kernel;
    pack(right, panels, x, lane, step, lanes, k, 3);
}

#define LOAD_A(PART)                                                                               \
    _tile_loadd(4, a + 2 * WORDS * ((PART)-1), 64);                                                \
    if (rows > SIDE) _tile_loadd(5, a + 2 * WORDS * ((PART)-1) + WORDS, 64);
#define LOAD_B(PART)                                                                               \
    _tile_loadd(6, b + 2 * WORDS * ((PART)-1), 64);                                                \
    if (cols > SIDE) _tile_loadd(7, b + 2 * WORDS * ((PART)-1) + WORDS, 64);
#define MULTIPLY                                                                                   \
    _tile_dpbf16ps(0, 4, 6);                                                                       \
    if (cols > SIDE) _tile_dpbf16ps(1, 4, 7);                                                      \
    if (rows > SIDE) _tile_dpbf16ps(2, 5, 6);                                                      \
    if (rows > SIDE && cols > SIDE) _tile_dpbf16ps(3, 5, 7);

INLINE void fetch(const float *next, int floats) {
    for (int i = 0; i < floats; i += 16) _mm_prefetch((const char *)(next + i), _MM_HINT_T1);
}

/* The small products are summed before the large ones, whose roundings then are as many as in a
 * plain float32 sum. */
INLINE void sum_six(const uint32_t *a, const uint32_t *b, int64_t units, int rows, int cols,
                    const float *next) {
    const uint32_t *a_start = a, *b_start = b;
    for (int64_t u = 0; u < units; u++, a += 6 * WORDS, b += 6 * WORDS) {
        fetch(next + u * 6 * WORDS / 8, 6 * WORDS / 8);
        LOAD_A(1)
        LOAD_B(3)
        MULTIPLY LOAD_B(2) MULTIPLY LOAD_A(2) MULTIPLY LOAD_B(1) MULTIPLY LOAD_A(3) MULTIPLY
    }
    a = a_start, b = b_start;
    for (int64_t u = 0; u < units; u++, a += 6 * WORDS, b += 6 * WORDS) {
        LOAD_A(1) LOAD_B(1) MULTIPLY
    }
}

INLINE void sum_three(const uint32_t *a, const uint32_t *b, int64_t units, int rows, int cols,
                      const float *next) {
    for (int64_t u = 0; u < units; u++, a += 4 * WORDS, b += 4 * WORDS) {
        fetch(next + u * 4 * WORDS / 8, 4 * WORDS / 8);
        LOAD_A(1) LOAD_B(2) MULTIPLY LOAD_B(1) MULTIPLY LOAD_A(2) MULTIPLY
    }
}

INLINE void tile(float *c, int64_t c_row, const float *a, const float *b, int64_t k, int rows,
                 int cols, bool accumulate, const basin_gemm_ahead *ahead, int parts) {
    _Alignas(64) float whole[WIDTH * WIDTH];
    const uint32_t *x = (const uint32_t *)a, *y = (const uint32_t *)b;
    int64_t units = (k + UNIT - 1) / UNIT;
    bool direct = rows == WIDTH && cols == WIDTH && !accumulate;
    float *to = direct ? c : whole;
    int64_t to_row = direct ? c_row : WIDTH;
    for (int r = 0; r < rows && ahead->c; r++) {
        _mm_prefetch(ahead->c + r * ahead->c_row, _MM_HINT_T0);
        _mm_prefetch(ahead->c + r * ahead->c_row + 64, _MM_HINT_T0);
    }
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (parts == 3)
        sum_six(x, y, units, rows, cols, ahead->b);
    else
        sum_three(x, y, units, rows, cols, ahead->b);
    _tile_stored(0, to, 4 * to_row);
    _tile_stored(1, to + SIDE, 4 * to_row);
    _tile_stored(2, to + SIDE * to_row, 4 * to_row);
    _tile_stored(3, to + SIDE * to_row + SIDE, 4 * to_row);
    if (!direct) basin_gemm_tile_copy(c, c_row, whole, WIDTH, rows, cols, accumulate);
}

/* The sizes are tested once, outside the sums. */
#define TILE(NAME, PARTS)                                                                          \
    static void NAME(float *c, int64_t c_row, const float *a, const float *b, int64_t k, int rows, \
                     int cols, bool accumulate, const basin_gemm_ahead *ahead) {                   \
        if (rows == WIDTH && cols == WIDTH)                                                        \
            tile(c, c_row, a, b, k, WIDTH, WIDTH, accumulate, ahead, PARTS);                       \
        else                                                                                       \
            tile(c, c_row, a, b, k, rows, cols, accumulate, ahead, PARTS);                         \
    }

TILE(tile_six, 3)
TILE(tile_three, 2)

#define KERNEL(halves_, tile_, pack_)                                                              \
    {                                                                                              \
        .mr = WIDTH, .nr = WIDTH, .unit = UNIT, .halves = halves_, .a_block = 320 * 1024,          \
        .tile = tile_, .pack = pack_, .begin = basin_amx_begin, .end = basin_amx_end               \
    }

const basin_gemm_kernel basin_gemm_kernel_amx_six = KERNEL(3, tile_six, pack_three);
const basin_gemm_kernel basin_gemm_kernel_amx_three = KERNEL(2, tile_three, pack_two);
