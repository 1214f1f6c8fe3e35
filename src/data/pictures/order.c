/* A Feistel network whose round function is Philox: a bijection of 2^(2h) numbers. Where n is
 * smaller, a number beyond it is sent through again until one falls inside; the way there and back
 * is unique, so the result is a bijection of 0 .. n - 1. */
#include "data/pictures/order.h"

#include "basin/random.h"

enum { ROUNDS = 8 };

static uint64_t shuffle(uint64_t value, unsigned half, uint64_t seed, uint64_t epoch) {
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t mask = half == 32 ? 0xffffffffU : ((uint32_t)1 << half) - 1;
    uint32_t left = (uint32_t)(value >> half) & mask, right = (uint32_t)value & mask, out[4];
    for (uint32_t round = 0; round < ROUNDS; round++) {
        /* the high bit keeps these draws apart from those of other streams */
        const uint32_t counter[4] = {right, round, (uint32_t)epoch,
                                     (uint32_t)(epoch >> 32) | 0xc0000000U};
        basin_philox(out, counter, key);
        uint32_t next = left ^ (out[0] & mask);
        left = right;
        right = next;
    }
    return (uint64_t)left << half | right;
}

int64_t basin_order_at(int64_t place, int64_t n, uint64_t seed, int64_t epoch) {
    unsigned half = 1;
    while (half < 32 && (uint64_t)1 << 2 * half < (uint64_t)n) half++;
    uint64_t value = (uint64_t)place;
    do value = shuffle(value, half, seed, (uint64_t)epoch);
    while (value >= (uint64_t)n);
    return (int64_t)value;
}
