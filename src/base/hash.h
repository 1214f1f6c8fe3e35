/* FNV-1a, 64 bits: fingerprints of data and places in tables. Not for secrets. */
#ifndef BASIN_BASE_HASH_H
#define BASIN_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BASIN_HASH_START UINT64_C(0xcbf29ce484222325)

/* The hash of what `hash` has seen followed by these bytes. */
static inline uint64_t basin_hash_bytes(uint64_t hash, const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++) hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The same eight bytes at a time, for arrays: other numbers than basin_hash_bytes gives. */
static inline uint64_t basin_hash_words(uint64_t hash, const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    uint64_t word;
    for (; count >= sizeof word; count -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return basin_hash_bytes(hash, at, count);
}

static inline uint64_t basin_hash_pair(uint64_t a, uint64_t b) {
    return basin_hash_words(BASIN_HASH_START, (const uint64_t[]){a, b}, 2 * sizeof a);
}

static inline uint64_t basin_hash_text(uint64_t hash, const char *text) {
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
