/* Who is still there. Every rank keeps a TCP connection to rank 0, and a thread that listens on it.
 * The kernel closes the connections of a process that dies, however it dies, and answers probes for
 * one that is merely slow: so a loss is noticed within seconds and a slow rank is waited for. A
 * rank that fails says why, and rank 0 passes it on. MPI itself promises none of this. */
#ifndef BASIN_RANKS_LIFELINE_H
#define BASIN_RANKS_LIFELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "basin/tasks/ranks.h"

enum { BASIN_HOST_TEXT = 64, BASIN_LIFELINE_ADDRESSES = 16 };

/* Where rank 0 listens, for it to be sent to the others. */
typedef struct basin_lifeline_address {
    char host[BASIN_LIFELINE_ADDRESSES][BASIN_HOST_TEXT]; /* numeric; "" ends the list */
    char token[16];                                       /* a stranger does not know it */
    int32_t port;
} basin_lifeline_address;

typedef struct basin_lifeline_spec {
    int64_t rank, count;
    const char (*hosts)[BASIN_HOST_TEXT]; /* [count] names, for messages; outlive the line */
    basin_ranks_options options;
} basin_lifeline_spec;

typedef struct basin_lifeline basin_lifeline;

/* Rank 0 listens, and fills `address`; the others do nothing yet. */
basin_status basin_lifeline_new(basin_lifeline **line, basin_lifeline_address *address,
                                const basin_lifeline_spec *spec, basin_error *error);
/* The others connect. */
basin_status basin_lifeline_connect(basin_lifeline *line, const basin_lifeline_address *address,
                                    basin_error *error);
/* After all have connected: rank 0 lets them in. From here on losses are noticed. */
basin_status basin_lifeline_start(basin_lifeline *line, const basin_lifeline_address *address,
                                  basin_error *error);
/* Says good-bye, so that nobody takes it for a loss. */
void basin_lifeline_free(basin_lifeline *line);

/* Whether a rank was lost or has failed; cheap. */
bool basin_lifeline_broken(const basin_lifeline *line);
/* Who, and why; the caller has noticed now. */
basin_status basin_lifeline_why(basin_lifeline *line, basin_error *error);
/* Whether it was rank 0 that was lost. */
bool basin_lifeline_headless(basin_lifeline *line);
/* This rank has failed. */
void basin_lifeline_fail(basin_lifeline *line, const basin_error *error);

#endif
