/* Counter-based random numbers: Philox 4x32-10 (Salmon et al., SC 2011).
 *
 * A draw is a pure function of (seed, stream, index), so any thread and any backend computes any
 * element on its own and all of them agree. The contract, which every backend keeps bit for bit:
 *
 *     key     = {seed low word, seed high word}
 *     counter = {call low, call high, stream low, stream high},   call = index / 4
 *     word    = philox(counter, key)[index % 4]
 *     uniform = (word >> 8) / 2^24                                in [0, 1), exact in a float
 *     normal  = Box-Muller of words a = word(2k) and b = word(2k + 1), k = index / 2:
 *               radius sqrt(-2 ln((a + 1) / 2^32)), angle 2 pi b / 2^32;
 *               the cosine for an even index, the sine for an odd one
 *
 * The logarithm, sine and cosine are polynomials in double precision without fused multiply-adds
 * (src/engine/core/random.c), so that normals do not depend on a mathematics library either. */
#ifndef BASIN_RANDOM_H
#define BASIN_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "basin/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One element of a stream. */
BASIN_API uint32_t basin_random_word_at(uint64_t seed, uint64_t stream, uint64_t index);
BASIN_API float basin_random_uniform_at(uint64_t seed, uint64_t stream, uint64_t index);
BASIN_API double basin_random_normal_at(uint64_t seed, uint64_t stream, uint64_t index);

/* Elements first .. first + count - 1 of a stream; equal to the functions above at each index (the
 * float forms round the double). Threads may fill disjoint ranges of one array. */
BASIN_API void basin_random_fill_normal(float *out /* [count] */, uint64_t seed, uint64_t stream,
                                        uint64_t first, size_t count);
BASIN_API void basin_random_fill_normal_f64(double *out /* [count] */, uint64_t seed,
                                            uint64_t stream, uint64_t first, size_t count);

/* Reads a stream word by word, for draws whose number is not known beforehand. Saving `index` is
 * enough to go on later: basin_random_start(seed, stream, index). */
typedef struct basin_random {
    uint64_t seed, stream;
    uint64_t index; /* of the next word */
    uint32_t word[4];
} basin_random;

BASIN_API basin_random basin_random_start(uint64_t seed, uint64_t stream, uint64_t index);
BASIN_API uint32_t basin_random_next(basin_random *random);
/* An integer in [0, n), every one equally likely; 0 for n = 0. */
BASIN_API uint64_t basin_random_below(basin_random *random, uint64_t n);
/* Fisher-Yates: every order of the n items equally likely. */
BASIN_API void basin_random_shuffle(int64_t *items /* [n] */, size_t n, basin_random *random);
/* The numbers 0 .. n - 1 in an order of the stream's choosing. */
BASIN_API void basin_random_permutation(int64_t *order /* [n] */, size_t n, uint64_t seed,
                                        uint64_t stream);

#ifdef __cplusplus
}
#endif
#endif
