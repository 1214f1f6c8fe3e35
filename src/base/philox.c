/* Philox 4x32-10 and the draws made from it; the contract is in include/basin/random.h.
 * The arithmetic is that of philox.h: a normal is the same number on every machine and backend. */
#include <string.h>

#include "base/philox.h"
#include "basin/random.h"

/* One word of each of the four lanes for a block of successive calls: loops over `CALLS` become
 * SIMD without intrinsics. */
enum { CALLS = 16, BLOCK = 4 * CALLS };
typedef struct block {
    uint32_t word[4][CALLS];
} block;

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

/* Calls call .. call + CALLS - 1. */
static void block_draw(block *out, uint64_t seed, uint64_t stream, uint64_t call) {
    uint32_t k[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (unsigned j = 0; j < CALLS; j++) {
        out->word[0][j] = (uint32_t)(call + j);
        out->word[1][j] = (uint32_t)((call + j) >> 32);
        out->word[2][j] = (uint32_t)stream;
        out->word[3][j] = (uint32_t)(stream >> 32);
    }
    for (int round = 0; round < 10; round++) {
        for (unsigned j = 0; j < CALLS; j++) {
            uint32_t c[4] = {out->word[0][j], out->word[1][j], out->word[2][j], out->word[3][j]};
            basin_philox_round(c, k);
            for (int lane = 0; lane < 4; lane++) out->word[lane][j] = c[lane];
        }
        basin_philox_next(k);
    }
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

static void block_uniform(double out[BLOCK], const block *from) {
    for (int lane = 0; lane < 4; lane++)
        for (int j = 0; j < CALLS; j++) out[4 * j + lane] = basin_uniform_of(from->word[lane][j]);
}

static void block_normal(double out[BLOCK], const block *from) {
    for (int lane = 0; lane < 4; lane += 2) {
        double even[CALLS], odd[CALLS];
        for (int j = 0; j < CALLS; j++)
            basin_normals_of(&even[j], &odd[j], from->word[lane][j], from->word[lane + 1][j]);
        for (int j = 0; j < CALLS; j++) {
            out[4 * j + lane] = even[j];
            out[4 * j + lane + 1] = odd[j];
        }
    }
}

/* Draws block by block and hands each out to whichever of the two arrays is not NULL. */
static void fill(float *single, double *wide, void (*draw)(double[BLOCK], const block *),
                 uint64_t seed, uint64_t stream, uint64_t first, size_t count) {
    size_t done = 0, skip = first % 4;
    for (uint64_t call = first / 4; done < count; call += CALLS, skip = 0) {
        block words;
        double value[BLOCK];
        size_t take = BLOCK - skip < count - done ? BLOCK - skip : count - done;
        block_draw(&words, seed, stream, call);
        draw(value, &words);
        if (wide) memcpy(wide + done, value + skip, take * sizeof *wide);
        for (size_t i = 0; single && i < take; i++) single[done + i] = (float)value[skip + i];
        done += take;
    }
}

void basin_random_fill_uniform(float *out, uint64_t seed, uint64_t stream, uint64_t first,
                               size_t count) {
    fill(out, NULL, block_uniform, seed, stream, first, count);
}

void basin_random_fill_uniform_f64(double *out, uint64_t seed, uint64_t stream, uint64_t first,
                                   size_t count) {
    fill(NULL, out, block_uniform, seed, stream, first, count);
}

void basin_random_fill_normal(float *out, uint64_t seed, uint64_t stream, uint64_t first,
                              size_t count) {
    fill(out, NULL, block_normal, seed, stream, first, count);
}

void basin_random_fill_normal_f64(double *out, uint64_t seed, uint64_t stream, uint64_t first,
                                  size_t count) {
    fill(NULL, out, block_normal, seed, stream, first, count);
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
