/* The 32 x 32 tile of the product of bfloat16 factors on AMX, sums in float32. A panel is a list of
 * units of 32 steps of k; a unit has two tiles of 16 lanes, whose words hold two neighbouring steps
 * each. A panel of A has a lane in a row of a tile, a panel of B a pair of steps. Sums begin with
 * what C holds where the product accumulates, so that their order is that of k however k is cut. */
#include <immintrin.h>

#include "engine/backend/cpu/gemm/kernel.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    SIDE = 16,           /* rows, and 32-bit words in a row, of an AMX tile */
    WORDS = SIDE * SIDE, /* of a tile */
};

typedef struct amx_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} amx_config;

/* Static, because gcc does not see that the instruction reads all of it. */
static const amx_config amx_tiles = {.palette = 1,
                                     .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                     .rows = {SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE}};

static void amx_begin(void) { _tile_loadconfig(&amx_tiles); }
static void amx_end(void) { _tile_release(); }

/* Turns a 16 x 16 block of words in its place. */
static void amx_turn(uint32_t block[WORDS]) {
    __m512i r[SIDE], t[SIDE];
    for (int i = 0; i < SIDE; i++) r[i] = _mm512_load_si512(block + SIDE * i);
    for (int i = 0; i < SIDE; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < SIDE; i += 4)
        for (int j = 0; j < 2; j++) {
            r[i + 2 * j] = _mm512_unpacklo_epi64(t[i + j], t[i + 2 + j]);
            r[i + 2 * j + 1] = _mm512_unpackhi_epi64(t[i + j], t[i + 2 + j]);
        }
    for (int i = 0; i < 4; i++) {
        __m512i even0 = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
        __m512i odd0 = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xDD);
        __m512i even1 = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
        __m512i odd1 = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xDD);
        _mm512_store_si512(block + SIDE * i, _mm512_shuffle_i32x4(even0, even1, 0x88));
        _mm512_store_si512(block + SIDE * (i + 4), _mm512_shuffle_i32x4(odd0, odd1, 0x88));
        _mm512_store_si512(block + SIDE * (i + 8), _mm512_shuffle_i32x4(even0, even1, 0xDD));
        _mm512_store_si512(block + SIDE * (i + 12), _mm512_shuffle_i32x4(odd0, odd1, 0xDD));
    }
}

INLINE __mmask16 amx_mask(int64_t count) {
    return (__mmask16)(count >= 16 ? 0xFFFFU : count <= 0 ? 0U : (1U << count) - 1);
}

enum { UNIT = 2 * SIDE, WIDTH = 2 * SIDE };

/* Sixteen lanes side by side, by pairs of steps: word j of a row holds both steps of lane j. */
INLINE void pack_pairs(uint32_t *to, const uint16_t *x, int64_t step, int64_t lanes,
                       int64_t steps) {
    __mmask16 mask = amx_mask(lanes);
    for (int64_t r = 0; r < SIDE; r++) {
        __m256i low = _mm256_setzero_si256(), high = low;
        if (2 * r < steps) low = _mm256_maskz_loadu_epi16(mask, x + 2 * r * step);
        if (2 * r + 1 < steps) high = _mm256_maskz_loadu_epi16(mask, x + (2 * r + 1) * step);
        __m512i words = _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16);
        _mm512_store_si512(to + SIDE * r, _mm512_or_si512(words, _mm512_cvtepu16_epi32(low)));
    }
}

/* The same of a whole unit of 32 lanes, both tiles of it. */
INLINE void pack_pairs_whole(uint32_t *to, const uint16_t *x, int64_t step) {
    _Alignas(64) static const uint16_t order[2][UNIT] = {
        {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
         8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47},
        {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
         24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63}};
    __m512i left = _mm512_load_si512(order[0]), right = _mm512_load_si512(order[1]);
    for (int64_t r = 0; r < SIDE; r++, x += 2 * step) {
        __m512i even = _mm512_loadu_si512(x), odd = _mm512_loadu_si512(x + step);
        _mm512_store_si512(to + SIDE * r, _mm512_permutex2var_epi16(even, left, odd));
        _mm512_store_si512(to + WORDS + SIDE * r, _mm512_permutex2var_epi16(even, right, odd));
    }
}

/* Sixteen lanes whose steps lie side by side, a lane in a row. */
INLINE void pack_lanes(uint32_t *to, const uint16_t *x, int64_t lane, int64_t lanes,
                       int64_t steps) {
    __mmask32 mask = steps >= UNIT ? 0xFFFFFFFFU : (1U << steps) - 1;
    for (int64_t r = 0; r < SIDE; r++) {
        __m512i words = _mm512_setzero_si512();
        if (r < lanes) words = _mm512_maskz_loadu_epi16(mask, x + r * lane);
        _mm512_store_si512(to + SIDE * r, words);
    }
}

/* Strides of which none is 1 go through a small copy. */
static void pack_strided(uint32_t *to, const uint16_t *x, int64_t lane, int64_t step, int64_t lanes,
                         int64_t steps) {
    uint16_t copy[SIDE * UNIT] = {0};
    for (int64_t l = 0; l < lanes && l < SIDE; l++)
        for (int64_t p = 0; p < steps && p < UNIT; p++) copy[l * UNIT + p] = x[l * lane + p * step];
    pack_lanes(to, copy, UNIT, SIDE, UNIT);
}

INLINE void pack_tile(bool right, uint32_t *to, const uint16_t *x, int64_t lane, int64_t step,
                      int64_t lanes, int64_t steps) {
    if (lane == 1)
        pack_pairs(to, x, step, lanes, steps);
    else if (step == 1)
        pack_lanes(to, x, lane, lanes, steps);
    else
        pack_strided(to, x, lane, step, lanes, steps);
    if ((lane == 1) != right) amx_turn(to);
}

/* In the order in which x lies in memory. */
static void pack(const basin_gemm_kernel *kernel, bool right, float *panels, const void *numbers,
                 int64_t lane, int64_t step, int64_t lanes, int64_t k) {
    (void)kernel;
    const uint16_t *x = numbers;
    int64_t units = (k + UNIT - 1) / UNIT, count = (lanes + WIDTH - 1) / WIDTH;
    for (int64_t i = 0; i < units * count; i++) {
        int64_t panel = lane == 1 ? i % count : i / units, u = lane == 1 ? i / count : i % units;
        int64_t first = panel * WIDTH, p = u * UNIT;
        uint32_t *to = (uint32_t *)panels + (panel * units + u) * 2 * WORDS;
        if (lane == 1 && lanes - first >= WIDTH && k - p >= UNIT) {
            pack_pairs_whole(to, x + first + p * step, step);
            if (!right) amx_turn(to), amx_turn(to + WORDS);
            continue;
        }
        for (int t = 0; t < 2; t++, to += WORDS, first += SIDE) {
            const uint16_t *from = first < lanes ? x + first * lane + p * step : x;
            pack_tile(right, to, from, lane, step, lanes - first, k - p);
        }
    }
}

/* A panel of A: its words, bytes between rows, words to the second tile and the next unit. */
typedef struct rows_of_a {
    const uint32_t *word;
    int64_t row, half, unit;
} rows_of_a;

/* The sums of one tile; `rows`, `cols` are constants where all are requested. Loads come first, so
 * that none overlaps a product where another thread also uses the tiles. */
INLINE void sum(rows_of_a panel, const uint32_t *b, int64_t units, int rows, int cols,
                const basin_gemm_ahead *ahead) {
    const uint32_t *a = panel.word;
    const char *next = (const char *)ahead->b;
    int more = ahead->b_pieces ? 31 / ahead->b_pieces - 3 : 0; /* of 32 lines that a unit has */
    for (int64_t u = 0; u < units; u++, a += panel.unit, b += 2 * WORDS) {
        for (int i = 0; i < 4; i++, next += 64) _mm_prefetch(next, _MM_HINT_T1);
        for (int i = 0; i < more; i++, next += 64) _mm_prefetch(next, _MM_HINT_T1);
        _tile_loadd(4, a, panel.row);
        if (rows > SIDE) _tile_loadd(5, a + panel.half, panel.row);
        _tile_loadd(6, b, 64);
        if (cols > SIDE) _tile_loadd(7, b + WORDS, 64);
        _tile_dpbf16ps(0, 4, 6);
        if (cols > SIDE) _tile_dpbf16ps(1, 4, 7);
        if (rows > SIDE) _tile_dpbf16ps(2, 5, 6);
        if (rows > SIDE && cols > SIDE) _tile_dpbf16ps(3, 5, 7);
    }
}

/* The rows that a tile ends in, to be written. */
INLINE void fetch_rows(const basin_gemm_ahead *ahead, int rows) {
    for (int r = 0; r < rows; r++) {
        const char *row = ahead->c + r * ahead->c_row;
        __builtin_prefetch(row, 1, 3);
        if (!ahead->c_narrow) __builtin_prefetch(row + 64, 1, 3);
    }
}

INLINE void tile_sized(float *c, int64_t c_row, rows_of_a a, const float *b, int64_t k, int rows,
                       int cols, bool accumulate, const basin_gemm_ahead *ahead) {
    int64_t row = 4 * c_row;
    if (ahead->c) fetch_rows(ahead, rows);
    if (accumulate) {
        _tile_loadd(0, c, row);
        _tile_loadd(1, c + SIDE, row);
        _tile_loadd(2, c + SIDE * c_row, row);
        _tile_loadd(3, c + SIDE * c_row + SIDE, row);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    sum(a, (const uint32_t *)b, (k + UNIT - 1) / UNIT, rows, cols, ahead);
    _tile_stored(0, c, row);
    _tile_stored(1, c + SIDE, row);
    _tile_stored(2, c + SIDE * c_row, row);
    _tile_stored(3, c + SIDE * c_row + SIDE, row);
}

INLINE void tile_any(float *c, int64_t c_row, rows_of_a a, const float *b, int64_t k, int rows,
                     int cols, bool accumulate, const basin_gemm_ahead *ahead) {
    _Alignas(64) float whole[WIDTH * WIDTH];
    if (rows == WIDTH && cols == WIDTH) {
        tile_sized(c, c_row, a, b, k, WIDTH, WIDTH, accumulate, ahead);
        return;
    }
    if (accumulate) basin_gemm_tile_copy(whole, WIDTH, c, c_row, rows, cols, false);
    tile_sized(whole, WIDTH, a, b, k, rows, cols, accumulate, ahead);
    basin_gemm_tile_copy(c, c_row, whole, WIDTH, rows, cols, false);
}

static void tile(float *c, int64_t c_row, const float *a, const float *b, int64_t k, int rows,
                 int cols, bool accumulate, const basin_gemm_ahead *ahead) {
    rows_of_a packed = {(const uint32_t *)a, 64, WORDS, 2 * WORDS};
    tile_any(c, c_row, packed, b, k, rows, cols, accumulate, ahead);
}

static void tile_direct(float *c, int64_t c_row, const void *a, int64_t a_row, const float *b,
                        int64_t k, int rows, int cols, bool accumulate,
                        const basin_gemm_ahead *ahead) {
    rows_of_a there = {a, 2 * a_row, SIDE / 2 * a_row, SIDE};
    tile_any(c, c_row, there, b, k, rows, cols, accumulate, ahead);
}

/* The tiles are loaded once; four sums hide the latency of one. */
static double peak(float *data, int64_t rounds) {
    amx_begin();
    _tile_loadd(4, data, 64);
    _tile_loadd(5, data + WORDS, 64);
    _tile_loadd(6, data + 2 * WORDS, 64);
    _tile_loadd(7, data + 3 * WORDS, 64);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t i = 0; i < rounds / SIDE; i++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, data, 64);
    amx_end();
    return 2.0 * WIDTH * WIDTH * UNIT * (double)(rounds / SIDE);
}

const basin_gemm_kernel basin_gemm_kernel_narrow_amx = {.mr = WIDTH,
                                                        .nr = WIDTH,
                                                        .unit = UNIT,
                                                        .halves = 1,
                                                        .a_rows = 416,
                                                        .direct_rows = SIDE,
                                                        .direct_shared = true,
                                                        .a_block = 160 * 1024,
                                                        .tile = tile,
                                                        .tile_direct = tile_direct,
                                                        .pack = pack,
                                                        .begin = amx_begin,
                                                        .end = amx_end,
                                                        .peak = peak};
