/* What loops over basin_parallel_for share: searches, and items that may fail. */
#ifndef BASIN_BASE_PARALLEL_H
#define BASIN_BASE_PARALLEL_H

#include <stdint.h>

#include "basin/parallel.h"
#include "basin/status.h"

/* The first match among items first .. last - 1; `last` if there is none. */
typedef int64_t basin_parallel_search(const void *context, int64_t first, int64_t last);

/* The first match in [0, count), searched by all threads; `count` if there is none. */
int64_t basin_parallel_find(basin_parallel_search *search, const void *context, int64_t count,
                            int64_t grain);

/* Computes one item, which may fail. */
typedef basin_status basin_parallel_attempt(const void *context, int64_t item, basin_error *error);

/* Attempts all of [0, count) by all threads. The error is that of the first item that failed. */
basin_status basin_parallel_try(basin_parallel_attempt *attempt, const void *context, int64_t count,
                                int64_t grain, basin_error *error);

/* At most `threads` for `work` element operations: waking one costs some ten thousand. */
static inline int basin_parallel_size(int threads, int64_t work) {
    int64_t useful = work / 16384;
    return useful < 1 ? 1 : useful < threads ? (int)useful : threads;
}

#endif
