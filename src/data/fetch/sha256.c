/* SHA-256 as FIPS 180-4 states it. */
#include "data/fetch/sha256.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const uint32_t round_constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void add_block(uint32_t state[8], const unsigned char *p) {
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t b = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t a = turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25);
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t one = s[7] + a + choice + round_constant[i] + w[i];
        uint32_t b = turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22);
        uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + b + majority;
    }
    for (int i = 0; i < 8; i++) state[i] += s[i];
}

basin_sha256 basin_sha256_start(void) {
    return (basin_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                    0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void basin_sha256_add(basin_sha256 *sha, const void *data, size_t bytes) {
    const unsigned char *from = data;
    while (bytes > 0) {
        size_t used = (size_t)(sha->bytes % 64), take = 64 - used < bytes ? 64 - used : bytes;
        memcpy(sha->block + used, from, take);
        sha->bytes += take;
        from += take;
        bytes -= take;
        if (sha->bytes % 64 == 0) add_block(sha->state, sha->block);
    }
}

void basin_sha256_end(char text[BASIN_SHA256_TEXT], basin_sha256 *sha) {
    static const unsigned char padding[64] = {0x80};
    uint64_t bits = 8 * sha->bytes;
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)(bits >> (56 - 8 * i));
    basin_sha256_add(sha, padding, 1 + (119 - (size_t)(sha->bytes % 64)) % 64);
    basin_sha256_add(sha, length, sizeof length);
    for (int i = 0; i < 8; i++) snprintf(text + 8 * i, 9, "%08x", (unsigned)sha->state[i]);
}

basin_status basin_sha256_file(char text[BASIN_SHA256_TEXT], const char *path, basin_error *error) {
    unsigned char buffer[1 << 14];
    FILE *file = fopen(path, "rb");
    if (!file) return basin_fail(error, BASIN_IO, "%s: %s", path, strerror(errno));
    basin_sha256 sha = basin_sha256_start();
    for (size_t got; (got = fread(buffer, 1, sizeof buffer, file)) > 0;)
        basin_sha256_add(&sha, buffer, got);
    bool failed = ferror(file);
    fclose(file);
    if (failed) return basin_fail(error, BASIN_IO, "%s: cannot be read", path);
    basin_sha256_end(text, &sha);
    return BASIN_OK;
}
