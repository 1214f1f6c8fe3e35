/* What kernels on AMX share: the shape of its tiles, turning one, masks. For files that are built
 * for AMX alone. */
#ifndef BASIN_BACKEND_CPU_GEMM_TILES_AMX_H
#define BASIN_BACKEND_CPU_GEMM_TILES_AMX_H

#include <immintrin.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline, unused))

enum {
    SIDE = 16,           /* rows, and 32-bit words in a row, of an AMX tile */
    WORDS = SIDE * SIDE, /* of a tile */
};

typedef struct basin_amx_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} basin_amx_config;

/* Static, because gcc does not see that the instruction reads all of it. */
static const basin_amx_config basin_amx_tiles = {
    .palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE}};

__attribute__((unused)) static void basin_amx_begin(void) { _tile_loadconfig(&basin_amx_tiles); }
__attribute__((unused)) static void basin_amx_end(void) { _tile_release(); }

/* Turns a 16 x 16 block of words in its place. */
__attribute__((unused)) static void basin_amx_turn(uint32_t block[WORDS]) {
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

INLINE __mmask16 basin_amx_mask(int64_t count) {
    return (__mmask16)(count >= 16 ? 0xFFFFU : count <= 0 ? 0U : (1U << count) - 1);
}

#endif
