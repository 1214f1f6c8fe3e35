/* Philox 4x32-10 and the draws made from it; the contract is in include/basin/random.h. */

#include "basin/random.h"
#include "engine/core/philox.h"

void basin_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]) {
    uint32_t c[4], k[2] = {key[0], key[1]};
    memcpy(c, counter, sizeof c);
    for (int round = 0; round < 10; round++) {
        basin_philox_round(c, k);
        basin_philox_next(k);
    }
    memcpy(out, c, sizeof c);
}

static void words_of_call(uint32_t out[4], uint64_t seed, uint64_t stream, uint64_t call) {
    uint32_t counter[4] = {(uint32_t)call, (uint32_t)(call >> 32), (uint32_t)stream,
                           (uint32_t)(stream >> 32)};
    basin_philox(out, counter, (uint32_t[2]){(uint32_t)seed, (uint32_t)(seed >> 32)});
}

uint32_t basin_random_word_at(uint64_t seed, uint64_t stream, uint64_t index) {
    uint32_t word[4];
    words_of_call(word, seed, stream, index / 4);
    return word[index % 4];
}

float basin_random_uniform_at(uint64_t seed, uint64_t stream, uint64_t index) {
    return basin_uniform_of(basin_random_word_at(seed, stream, index));
}

double basin_random_normal_at(uint64_t seed, uint64_t stream, uint64_t index) {
    uint32_t word[4];
    double even, odd;
    words_of_call(word, seed, stream, index / 4);
    basin_normals_of(&even, &odd, word[index % 4 & 2], word[(index % 4 & 2) + 1]);
    return index & 1 ? odd : even;
}

void basin_random_fill_uniform(float *out, uint64_t seed, uint64_t stream, uint64_t first,
                               size_t count) {
    basin_philox_fill(out, NULL, basin_philox_uniforms, seed, stream, first, count);
}

void basin_random_fill_normal(float *out, uint64_t seed, uint64_t stream, uint64_t first,
                              size_t count) {
    basin_philox_fill(out, NULL, basin_philox_normals, seed, stream, first, count);
}

void basin_random_fill_normal_f64(double *out, uint64_t seed, uint64_t stream, uint64_t first,
                                  size_t count) {
    basin_philox_fill(NULL, out, basin_philox_normals, seed, stream, first, count);
}

basin_random basin_random_start(uint64_t seed, uint64_t stream, uint64_t index) {
    basin_random random = {.seed = seed, .stream = stream, .index = index};
    words_of_call(random.word, seed, stream, index / 4);
    return random;
}

uint32_t basin_random_next(basin_random *random) {
    uint32_t word = random->word[random->index % 4];
    random->index++;
    if (random->index % 4 == 0)
        words_of_call(random->word, random->seed, random->stream, random->index / 4);
    return word;
}

/* 2^64 mod n values are rejected, so that n divides the number of those that remain. */
uint64_t basin_random_below(basin_random *random, uint64_t n) {
    if (n == 0) return 0;
    uint64_t reject = (0 - n) % n, draw;
    do {
        draw = basin_random_next(random);
        draw |= (uint64_t)basin_random_next(random) << 32;
    } while (draw < reject);
    return draw % n;
}

void basin_random_shuffle(int64_t *items, size_t n, basin_random *random) {
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)basin_random_below(random, i);
        int64_t item = items[i - 1];
        items[i - 1] = items[j];
        items[j] = item;
    }
}

void basin_random_permutation(int64_t *order, size_t n, uint64_t seed, uint64_t stream) {
    basin_random random = basin_random_start(seed, stream, 0);
    for (size_t i = 0; i < n; i++) order[i] = (int64_t)i;
    basin_random_shuffle(order, n, &random);
}
