/* How many pictures a second the input of image training delivers, from files or from pictures kept
 * decoded, and where one thread's time goes: what `basin bench pictures` computes. */
#ifndef BASIN_BENCH_PICTURES_H
#define BASIN_BENCH_PICTURES_H

#include "basin/plan.h"

enum { BASIN_BENCH_PICTURES_ROUNDS = 101 };

typedef struct basin_bench_pictures_spec {
    const char *const *path; /* [paths], as basin_pictures_open takes them */
    int paths;
    basin_backend *backend;
    int64_t size, patch, batch, rounds, seed;
    int threads;
    const char *keep_decoded, *cut_from; /* as in basin_image_data */
} basin_bench_pictures_spec;

typedef struct basin_bench_pictures_result {
    int64_t pictures, unreadable;
    const char *keep_decoded, *cut_from; /* what "auto" came to */
    size_t kept;                         /* bytes of decoded pictures */
    double rate;                         /* images/s of batches in the plan's input */
    double read, crop, augment, whole;   /* seconds a picture, one thread */
} basin_bench_pictures_result;

basin_status basin_bench_pictures(basin_bench_pictures_result *result,
                                  const basin_bench_pictures_spec *spec, basin_error *error);

#endif
