/* The device of a program's tests; a program without one is skipped. */
#ifndef BASIN_TESTS_SUPPORT_CUDA_H
#define BASIN_TESTS_SUPPORT_CUDA_H

#include "basin/backend.h"
#include "support/test.h"

static basin_backend *cuda; /* one for all tests: it keeps what it compiled */

static inline void cuda_open(void) {
    if (!basin_backend_open(&cuda, &(basin_compute){.backend = "cuda"}, &failure)) return;
    printf("no CUDA device: skipped (%s)\n", failure.text);
    exit(77);
}

static inline int cuda_close(int failures) {
    basin_backend_close(cuda);
    return failures;
}

#endif
