/* Loops shared by the threads of the process: one set of threads for everything that computes here.
 *
 * The calling thread works as well, and threads that arrive late find less left and are not waited
 * for. What a piece computes must not depend on which thread computes it, nor on how the range was
 * cut. All functions may be called from any thread. */
#ifndef BASIN_PARALLEL_H
#define BASIN_PARALLEL_H

#include <stdint.h>

#include "basin/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Computes items first .. last - 1. */
typedef void basin_parallel_body(const void *context, int64_t first, int64_t last);

/* Calls `body` for all of [0, count) in pieces of at most `grain` items (0: chosen here), on the
 * calling thread and at most threads - 1 others (0: basin_thread_count()), and returns when all is
 * done. Inside a body it runs serially. */
BASIN_API void basin_parallel_for(basin_parallel_body *body, const void *context, int64_t count,
                                  int64_t grain, int threads);
/* Inside a body: a number in [0, threads) that no other thread of this loop has, to index scratch
 * memory. */
BASIN_API int basin_parallel_place(void);

/* OMP_NUM_THREADS if it is set; otherwise the processors that this process may use, by affinity and
 * control group. At least 1. Read once, then kept. */
BASIN_API int basin_thread_count(void);

#ifdef __cplusplus
}
#endif
#endif
