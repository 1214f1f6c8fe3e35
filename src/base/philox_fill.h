/* Many draws at once, for the instruction set of the including file: each is compiled without fused
 * multiply-adds (philox.h), so that the numbers are the same. */
#ifndef BASIN_BASE_PHILOX_FILL_H
#define BASIN_BASE_PHILOX_FILL_H

#include <stddef.h>
#include <string.h>

#include "base/philox.h"

/* One word of each of the four lanes for a block of successive calls: loops over
 * `BASIN_PHILOX_CALLS` become SIMD without intrinsics. */
enum { BASIN_PHILOX_CALLS = 16, BASIN_PHILOX_BLOCK = 4 * BASIN_PHILOX_CALLS };
typedef struct basin_philox_block {
    uint32_t word[4][BASIN_PHILOX_CALLS];
} basin_philox_block;

/* Calls call .. call + BASIN_PHILOX_CALLS - 1. */
static inline void basin_philox_draw(basin_philox_block *out, uint64_t seed, uint64_t stream,
                                     uint64_t call) {
    uint32_t k[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (unsigned j = 0; j < BASIN_PHILOX_CALLS; j++) {
        out->word[0][j] = (uint32_t)(call + j);
        out->word[1][j] = (uint32_t)((call + j) >> 32);
        out->word[2][j] = (uint32_t)stream;
        out->word[3][j] = (uint32_t)(stream >> 32);
    }
    for (int round = 0; round < 10; round++) {
        for (unsigned j = 0; j < BASIN_PHILOX_CALLS; j++) {
            uint32_t c[4] = {out->word[0][j], out->word[1][j], out->word[2][j], out->word[3][j]};
            basin_philox_round(c, k);
            for (int lane = 0; lane < 4; lane++) out->word[lane][j] = c[lane];
        }
        basin_philox_next(k);
    }
}

static inline void basin_philox_uniforms(double out[BASIN_PHILOX_BLOCK],
                                         const basin_philox_block *from) {
    for (int lane = 0; lane < 4; lane++)
        for (int j = 0; j < BASIN_PHILOX_CALLS; j++)
            out[4 * j + lane] = basin_uniform_of(from->word[lane][j]);
}

static inline void basin_philox_normals(double out[BASIN_PHILOX_BLOCK],
                                        const basin_philox_block *from) {
    double value[4][BASIN_PHILOX_CALLS];
    for (int lane = 0; lane < 4; lane += 2)
        for (int j = 0; j < BASIN_PHILOX_CALLS; j++)
            basin_normals_of(&value[lane][j], &value[lane + 1][j], from->word[lane][j],
                             from->word[lane + 1][j]);
    for (int j = 0; j < BASIN_PHILOX_CALLS; j++)
        for (int lane = 0; lane < 4; lane++) out[4 * j + lane] = value[lane][j];
}

/* Draws block by block and hands each out to whichever of the two arrays is not NULL. */
static inline void basin_philox_fill(float *single, double *wide,
                                     void (*draw)(double[BASIN_PHILOX_BLOCK],
                                                  const basin_philox_block *),
                                     uint64_t seed, uint64_t stream, uint64_t first, size_t count) {
    size_t done = 0, skip = first % 4;
    for (uint64_t call = first / 4; done < count; call += BASIN_PHILOX_CALLS, skip = 0) {
        basin_philox_block words;
        double value[BASIN_PHILOX_BLOCK];
        size_t take =
            BASIN_PHILOX_BLOCK - skip < count - done ? BASIN_PHILOX_BLOCK - skip : count - done;
        basin_philox_draw(&words, seed, stream, call);
        draw(value, &words);
        if (wide) memcpy(wide + done, value + skip, take * sizeof *wide);
        for (size_t i = 0; single && i < take; i++) single[done + i] = (float)value[skip + i];
        done += take;
    }
}

#endif
