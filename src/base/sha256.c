/* See sha256.h. */
#include "base/sha256.h"

#include <string.h>

/* clang-format off */
static const uint32_t start[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};
static const uint32_t round_constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
/* clang-format on */

static uint32_t rotate(uint32_t x, int by) { return x >> by | x << (32 - by); }

/* One round; instead of the state, the names of its words turn: `k` is the round modulo 8. */
#define WORD(i) s[((i) + 8 - k) & 7]
static inline __attribute__((always_inline)) void one_round(uint32_t s[8], int k, uint32_t add) {
    uint32_t a = WORD(0), b = WORD(1), c = WORD(2), e = WORD(4);
    add += WORD(7) + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
           (WORD(6) ^ (e & (WORD(5) ^ WORD(6))));
    WORD(3) += add;
    WORD(7) = add + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) | (c & (a | b)));
}

static void add_block(uint32_t h[8], const uint8_t *block) {
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++, block += 4)
        w[i] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 | (uint32_t)block[2] << 8 |
               block[3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(s, h, sizeof s);
    for (int i = 0; i < 64; i += 8)
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++) one_round(s, k, round_constant[i + k] + w[i + k]);
    for (int i = 0; i < 8; i++) h[i] += s[i];
}

void basin_sha256(uint8_t digest[BASIN_SHA256], const void *data, size_t size) {
    const uint8_t *at = data;
    uint32_t h[8];
    uint8_t tail[128] = {0};
    size_t rest = size % 64, end = rest < 56 ? 64 : 128;
    memcpy(h, start, sizeof h);
    for (size_t i = 0; i < size / 64; i++) add_block(h, at + 64 * i);
    if (rest) memcpy(tail, at + size - rest, rest);
    tail[rest] = 0x80;
    for (int i = 0; i < 8; i++) tail[end - 1 - (size_t)i] = (uint8_t)((uint64_t)size * 8 >> 8 * i);
    for (size_t i = 0; i < end; i += 64) add_block(h, tail + i);
    for (int i = 0; i < BASIN_SHA256; i++) digest[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}

const char *basin_sha256_print(char text[BASIN_SHA256_TEXT], const void *data, size_t size) {
    static const char digit[] = "0123456789abcdef";
    uint8_t digest[BASIN_SHA256];
    basin_sha256(digest, data, size);
    for (int i = 0; i < 2 * BASIN_SHA256; i++)
        text[i] = digit[i % 2 ? digest[i / 2] & 15 : digest[i / 2] >> 4];
    text[2 * BASIN_SHA256] = 0;
    return text;
}
