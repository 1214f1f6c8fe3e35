/* Philox's round and the draws made from its words, for the CPU and the GPU: compiled by both, so
 * that a draw is the same number on every backend; the contract is in include/basin/random.h.
 *
 * Only +, -, *, / and sqrt of doubles are used, each rounded once: files that include this are
 * compiled with -ffp-contract=off, those of CUDA with --fmad=false. */
#ifndef BASIN_ENGINE_CORE_PHILOX_H
#define BASIN_ENGINE_CORE_PHILOX_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define BASIN_ANYWHERE static inline __host__ __device__
#else
#define BASIN_ANYWHERE static inline
#endif

/* One of the ten rounds. */
BASIN_ANYWHERE void basin_philox_round(uint32_t c[4], const uint32_t key[2]) {
    uint64_t a = (uint64_t)0xD2511F53 * c[0], b = (uint64_t)0xCD9E8D57 * c[2];
    uint32_t c1 = c[1], c3 = c[3];
    c[0] = (uint32_t)(b >> 32) ^ c1 ^ key[0];
    c[1] = (uint32_t)b;
    c[2] = (uint32_t)(a >> 32) ^ c3 ^ key[1];
    c[3] = (uint32_t)a;
}

/* The key of the next round. */
BASIN_ANYWHERE void basin_philox_next(uint32_t key[2]) {
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
}

BASIN_ANYWHERE float basin_uniform_of(uint32_t word) { return (float)(word >> 8) * 0x1p-24f; }

/* ln((word + 1) / 2^32): the mantissa is brought to [sqrt(1/2), sqrt(2)], where
 * ln m = 2 artanh((m - 1) / (m + 1)) converges fast. */
BASIN_ANYWHERE double basin_log_of(uint32_t word) {
    double k = (double)word + 1.0, m;
    uint64_t bits;
    memcpy(&bits, &k, sizeof bits);
    double exponent = (double)(int32_t)(bits >> 52) - (1023 + 32);
    bits = (bits & 0x000fffffffffffff) | 0x3ff0000000000000;
    memcpy(&m, &bits, sizeof m);
    double big = m > 1.4142135623730951 ? 1.0 : 0.0;
    m = m * (1.0 - 0.5 * big);
    double t = (m - 1.0) / (m + 1.0), z = t * t, sum = 1.0 / 23;
    sum = sum * z + 1.0 / 21;
    sum = sum * z + 1.0 / 19;
    sum = sum * z + 1.0 / 17;
    sum = sum * z + 1.0 / 15;
    sum = sum * z + 1.0 / 13;
    sum = sum * z + 1.0 / 11;
    sum = sum * z + 1.0 / 9;
    sum = sum * z + 1.0 / 7;
    sum = sum * z + 1.0 / 5;
    sum = sum * z + 1.0 / 3;
    sum = sum * z + 1.0;
    return (exponent + big) * 0.6931471805599453 + 2.0 * t * sum;
}

/* Cosine and sine of 2 pi word / 2^32: the nearest quarter turn is split off in integers, which
 * is exact, and Taylor polynomials serve the remaining angle, at most pi / 4. */
BASIN_ANYWHERE void basin_cos_sin_of(double *cosine, double *sine, uint32_t word) {
    uint32_t quarter = (word + 0x20000000u) >> 30;
    double angle = (double)(int32_t)(word - (quarter << 30)) * 1.4629180792671596e-9;
    double z = angle * angle;
    double s = 1.0 / 355687428096000, c = -1.0 / 6402373705728000;
    s = s * z - 1.0 / 1307674368000;
    s = s * z + 1.0 / 6227020800;
    s = s * z - 1.0 / 39916800;
    s = s * z + 1.0 / 362880;
    s = s * z - 1.0 / 5040;
    s = s * z + 1.0 / 120;
    s = s * z - 1.0 / 6;
    s = s * z * angle + angle;
    c = c * z + 1.0 / 20922789888000;
    c = c * z - 1.0 / 87178291200;
    c = c * z + 1.0 / 479001600;
    c = c * z - 1.0 / 3628800;
    c = c * z + 1.0 / 40320;
    c = c * z - 1.0 / 720;
    c = c * z + 1.0 / 24;
    c = c * z - 0.5;
    c = c * z + 1.0;
    double first = quarter & 1 ? s : c, second = quarter & 1 ? c : s;
    *cosine = quarter == 1 || quarter == 2 ? -first : first;
    *sine = quarter >= 2 ? -second : second;
}

BASIN_ANYWHERE void basin_normals_of(double *even, double *odd, uint32_t a, uint32_t b) {
    double radius = sqrt(-2.0 * basin_log_of(a)), cosine, sine;
    basin_cos_sin_of(&cosine, &sine, b);
    *even = radius * cosine;
    *odd = radius * sine;
}

#ifndef __CUDACC__
/* random.c: uniform draws first .. first + count - 1 of a stream. */
void basin_random_fill_uniform(float *out, uint64_t seed, uint64_t stream, uint64_t first,
                               size_t count);
/* Four words of one call. */
void basin_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);

/* ---- many draws at once, for the instruction set of the including file, which is also compiled
 * without fused multiply-adds, so that the numbers are the same
 * ---- */

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

#endif
