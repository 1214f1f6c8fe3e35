/* The inside of a basin_ranks, for the files of this room. */
#ifndef BASIN_RANKS_INSIDE_H
#define BASIN_RANKS_INSIDE_H

#include "ranks/lifeline.h"
#include "ranks/mpi.h"
#include "ranks/ranks.h"

struct basin_ranks {
    int64_t rank, count;
    basin_mpi mpi;
    basin_lifeline *line;           /* NULL while ranks meet, and of one rank */
    char (*hosts)[BASIN_HOST_TEXT]; /* [count] */
    int threads;
};

/* A failure where a rank was lost or has failed. */
basin_status basin_ranks_check(const basin_ranks *ranks, basin_error *error);

#endif
