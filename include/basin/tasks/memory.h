/* Associative memories: patterns are written down once, and recalled from damaged cues by going
 * down an energy.
 *
 *     basin_memory_spec spec = {.size = sizeof spec, .function = "softmax"};
 *     basin_memory_new(&memory, &spec, &patterns, &error);
 *     basin_memory_recall(&recalled, memory, cues, known, count, &how, &error);
 *
 * Keys xi have length 1: patterns without their mean, or, in binary memories, signs / sqrt(D).
 * States x live in the same space, so that overlaps m = xi . x lie in -1 .. 1. The separation
 * function says how overlaps pull:
 *
 *     classical   E = -sum m^2 / 2                          Hopfield 1982
 *     power       E = -sum relu(m)^n / n                    Krotov and Hopfield 2016
 *     softmax     E = -log-sum-exp(beta m) / beta + ..      Ramsauer et al. 2020
 *     entmax15, sparsemax, normmax2: its sparse relatives   Santos et al. 2024
 *     lsr         E = -log sum relu(1 - beta/2 |x - xi|^2) / beta    Hoover et al. 2025
 *
 * No step raises its energy: each maximises a linear or quadratic bound from below of -E, on the
 * cube (binary), on the sphere (classical and power) or in all of space. The one exception is the
 * first step of a binary lsr memory whose cue was erased in part, and so is shorter than a key. */
#ifndef BASIN_TASKS_MEMORY_H
#define BASIN_TASKS_MEMORY_H

#include "basin/plan.h"
#include "basin/tasks/pictures.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- storing ---- */

typedef struct basin_memory basin_memory;

typedef struct basin_memory_spec {
    size_t size;           /* sizeof(basin_memory_spec) */
    const char *function;  /* one of the names above; NULL: "softmax" */
    double power;          /* n of "power", 1 < n <= 100; 0: 3 */
    double beta;           /* of the others; 0: 50, for "lsr" 2 */
    bool binary;           /* states are +1 and -1: above and below the middle of the values */
    int64_t height, width; /* patterns that are pictures [height, width, channels] of values */
    int channels;          /* 0 .. 1; 0: vectors */
} basin_memory_spec;

/* The n-th name of a separation function; NULL behind the last. */
BASIN_API const char *basin_memory_function(int n);

/* A memory of patterns [M, D], which are copied. */
BASIN_API basin_status basin_memory_new(basin_memory **memory, const basin_memory_spec *spec,
                                        const basin_tensor *patterns, basin_error *error);
/* Pictures as patterns [count, height * width * channels] of values 0 .. 1, resized where they have
 * another size; `limit` 0: all. A size of 0 is that of the first picture, and comes back. */
BASIN_API basin_status basin_memory_load_pictures(basin_tensor *patterns, int64_t *height,
                                                  int64_t *width, int *channels,
                                                  const basin_pictures *pictures, int64_t limit,
                                                  basin_error *error);
/* Vectors [count, D] from a safetensors or npz file (the tensor `name`, or the only one of rank 2)
 * or a CSV of numbers, with or without a header. */
BASIN_API basin_status basin_memory_load_vectors(basin_tensor *patterns, const char *path,
                                                 const char *name, int64_t limit,
                                                 basin_error *error);
BASIN_API basin_status basin_memory_write(const char *path, const basin_memory *memory,
                                          basin_error *error);
BASIN_API basin_status basin_memory_open(basin_memory **memory, const char *path,
                                         basin_error *error);
BASIN_API void basin_memory_close(basin_memory *memory);

/* What it is; `function` lives as long as the memory. */
BASIN_API basin_memory_spec basin_memory_get_spec(const basin_memory *memory);
BASIN_API const basin_tensor *basin_memory_patterns(const basin_memory *memory); /* [M, D] F32 */

/* ---- damaging and recalling ---- */

typedef struct basin_memory_damage {
    size_t size;       /* sizeof(basin_memory_damage) */
    const char *erase; /* "none" (or NULL), "top", "bottom", "left", "right" or "random" */
    double share;      /* of the pattern that is erased; 0: half */
    double noise;      /* deviation of the normal noise that is added to the rest */
    uint64_t seed, stream;
} basin_memory_damage;

/* Damages a cue in place; known[i] becomes 0 where it is erased. Vectors are erased as if they were
 * columns: top and bottom are their first and last numbers, left and right are for pictures. */
BASIN_API basin_status basin_memory_damage_cue(float *cue /* [D] */, unsigned char *known /* [D] */,
                                               const basin_memory *memory,
                                               const basin_memory_damage *damage,
                                               basin_error *error);

typedef struct basin_memory_recalling {
    size_t size;            /* sizeof(basin_memory_recalling) */
    basin_backend *backend; /* what computes */
    int64_t steps;          /* at most so many; 0: 100 */
    double tolerance;       /* rest where no number of a state moves by more in a step; 0: 1e-6 */
} basin_memory_recalling;

typedef struct basin_memory_recalled {
    int64_t cues, dim;
    int steps;        /* taken by the slowest */
    bool rested;      /* all states came to rest */
    double *energy;   /* [steps + 1, cues] */
    float *value;     /* [cues, dim] what was recalled, in the units of the patterns */
    int64_t *nearest; /* [cues] the stored pattern whose key is nearest to the end, */
    double *overlap;  /* [cues] and its overlap */
} basin_memory_recalled;

BASIN_API basin_status basin_memory_recall(basin_memory_recalled *recalled,
                                           const basin_memory *memory,
                                           const float *cue,           /* [cues, D] */
                                           const unsigned char *known, /* [cues, D], or NULL: all */
                                           int64_t cues, const basin_memory_recalling *how,
                                           basin_error *error);
BASIN_API void basin_memory_recalled_free(basin_memory_recalled *recalled);
/* How alike two patterns are: the cosine of their keys, and the mean squared difference of their
 * values (in binary memories, of the middles' sides). What is not known counts as the middle. */
BASIN_API void basin_memory_compare(double *overlap, double *mse, const basin_memory *memory,
                                    const float *a, const float *b, /* [D] */
                                    const unsigned char *known_a /* [D], or NULL */);

/* ---- capacity ---- */

/* Random patterns of +1 and -1 are stored one by one. At growing loads K, stored patterns (with a
 * share of bits flipped) take one update, which sets each bit as the energies of its two values say
 * (Krotov and Hopfield 2016); the error is the share of bits that are wrong after it, and the
 * capacity the load at which it passes `threshold`. Softmax separates by exp(xi . x) of signs, lsr
 * by balls of an eighth of the bits. */
typedef struct basin_memory_trial {
    size_t size; /* sizeof(basin_memory_trial) */
    const char *function;
    double power;
    int64_t dim;      /* bits of a pattern, 2 .. 4096 */
    double flips;     /* share of bits, below 1/2 */
    double threshold; /* 0: 0.005 */
    int64_t bits;     /* looked at, at least, at every load; 0: 20000 */
    int64_t most;     /* the largest load; 0: 2^20 */
    uint64_t seed;
    int threads; /* 0: one a core */
} basin_memory_trial;

enum { BASIN_MEMORY_LOADS = 128 };
typedef struct basin_memory_curve {
    int loads;
    double load[BASIN_MEMORY_LOADS], error[BASIN_MEMORY_LOADS];
    double capacity; /* NaN where the largest load did not reach the threshold */
} basin_memory_curve;

BASIN_API basin_status basin_memory_measure(basin_memory_curve *curve,
                                            const basin_memory_trial *trial, basin_error *error);
/* How capacities grow: ln K over ln N for classical and power, over N for softmax and lsr, as a
 * least-squares slope. NaN where fewer than two are numbers. And what theory says of large N. */
BASIN_API double basin_memory_exponent(const char *function, const double *capacity,
                                       const int64_t *dim, int count);
BASIN_API double basin_memory_theory(const char *function, double power);

#ifdef __cplusplus
}
#endif
#endif
