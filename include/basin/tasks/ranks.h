/* Several processes that do one task: `mpirun -n 4 program`, or srun. Each is a rank, 0 to count -
 * 1. They communicate through MPI, whose library is opened at run time, and only where a launcher
 * started the program. Otherwise there are no ranks (NULL), which every function treats as one.
 *
 *     basin_ranks *ranks;
 *     basin_ranks_open(&ranks, &error);
 *     basin_training_options training = {.ranks = ranks};
 *     ...
 *     basin_ranks_close(ranks);
 *
 * What is computed does not depend on how many there are. All ranks make the same calls in the same
 * order, from one thread; only rank 0 writes files. */
#ifndef BASIN_TASKS_RANKS_H
#define BASIN_TASKS_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basin/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct basin_ranks basin_ranks;

/* Whether a launcher started this process, by its environment; and which of how many it is (0 of 1
 * where none did). `rank` and `count` may be NULL. */
BASIN_API bool basin_ranks_launched(int64_t *rank, int64_t *count);

/* Opens this rank. *ranks is NULL where no launcher started this process. */
BASIN_API basin_status basin_ranks_open(basin_ranks **ranks, basin_error *error);
/* After the last call that all make: waits for the others. */
BASIN_API void basin_ranks_close(basin_ranks *ranks);

BASIN_API int64_t basin_ranks_rank(const basin_ranks *ranks);  /* 0 of NULL */
BASIN_API int64_t basin_ranks_count(const basin_ranks *ranks); /* 1 of NULL */
/* Threads that this rank may keep busy: the processors it is bound to, shared with the other ranks
 * that are bound to some of them. 0 of NULL: as many as there are. */
BASIN_API int basin_ranks_threads(const basin_ranks *ranks);

/* All ranks compare their status: BASIN_OK where it is that on all. Otherwise the failure of the
 * lowest rank, with `error` naming it and its host, on every rank. `error` holds this rank's own
 * message where `mine` is a failure. */
BASIN_API basin_status basin_ranks_agree(basin_ranks *ranks, basin_status mine, basin_error *error);
/* After a failure that the ranks have not agreed on: ends all processes of the job, this one with
 * `code`. A rank that dies without this call is noticed by the launcher, which ends the others. */
BASIN_API void basin_ranks_abort(basin_ranks *ranks, int code);

#ifdef __cplusplus
}
#endif
#endif
