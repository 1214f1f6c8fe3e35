/* The machine's BLAS, opened only where it is asked for: the yardstick of `basin bench`. The
 * program does not link it, and other commands do not load it and its threads. */
#ifndef BASIN_BENCH_BLAS_H
#define BASIN_BENCH_BLAS_H

#include <stdbool.h>
#include <stdint.h>

/* Opens it once a process; false where there is none. */
bool basin_blas_open(void);
/* The file that would be opened; NULL where there is none. */
const char *basin_blas_file(void);
/* What it says of itself, or its file's name; "none found". */
const char *basin_blas_name(void);
void basin_blas_threads(int threads); /* where it is OpenBLAS */

/* c [m, n] = a b, row by row; a is [m, k] or turned [k, m], b [k, n] or turned [n, k]. */
void basin_blas_product(float *c, const float *a, bool a_turned, const float *b, bool b_turned,
                        int64_t m, int64_t n, int64_t k);

#endif
