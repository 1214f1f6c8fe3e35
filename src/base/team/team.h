/* Loops shared by threads. The calling thread works, too; threads that come late find less left,
 * and are not waited for. What a piece computes must not depend on who computes it, nor on how the
 * loop was cut. */
#ifndef BASIN_BASE_TEAM_H
#define BASIN_BASE_TEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "basin/status.h"

/* Does items first .. last - 1. */
typedef void basin_team_body(const void *context, int64_t first, int64_t last);

/* Calls `body` for all of [0, count) in pieces of at most `grain` items (0: some pieces a thread),
 * by the caller and at most threads - 1 others, and returns when all is done. Within a body it runs
 * serially. Threads that cannot be had are done without. */
void basin_team_run(basin_team_body *body, const void *context, int64_t count, int64_t grain,
                    int threads);

/* Within a body: a number in [0, threads) that no other thread of this loop has, of its scratch. */
int basin_team_place(void);

/* The same by as many threads as basin_processors says. */
void basin_team_run_all(basin_team_body *body, const void *context, int64_t count, int64_t grain);

/* The first of items first .. last - 1 that is wanted; `last` where none is. */
typedef int64_t basin_team_search(const void *context, int64_t first, int64_t last);

/* The first of [0, count) that is wanted, by all threads; `count` where none is. */
int64_t basin_team_find(basin_team_search *search, const void *context, int64_t count,
                        int64_t grain);

/* Does one item, which may fail. */
typedef basin_status basin_team_attempt(const void *context, int64_t item, basin_error *error);

/* Attempts all of [0, count), by all threads. The error is that of the first item that failed. */
basin_status basin_team_try(basin_team_attempt *attempt, const void *context, int64_t count,
                            int64_t grain, basin_error *error);

/* Whether others have used our cores of late: then smaller pieces are better. */
bool basin_team_contended(void);

/* At most `threads` for `work` element operations: waking one costs some ten thousand. */
static inline int basin_team_size(int threads, int64_t work) {
    int64_t useful = work / 16384;
    return useful < 1 ? 1 : useful < threads ? (int)useful : threads;
}

/* ---- how many threads a process should have ---- */

/* OMP_NUM_THREADS if it is set; else the processors that this process may run on: its affinity, and
 * what its control group grants. At least 1. Asked once, then kept. */
int basin_processors(void);
/* Processors that this process may run on, at least 1. */
long basin_processors_here(void);

/* Replaces it, for tests; 0: asks anew. */
void basin_processors_set(int count);

#endif
