/* How long one item takes from call to result on an open model: what `basin bench --latency`
 * computes. */
#ifndef BASIN_BENCH_LATENCY_H
#define BASIN_BENCH_LATENCY_H

#include "basin/plan.h"

enum { BASIN_LATENCY_ITEMS = 3 };

typedef struct basin_latency {
    const char *key, *name;    /* "picture", "a picture of 28 x 28, half of it missing" */
    double first, median, p99; /* seconds: of the first call, of those after it */
} basin_latency;

/* One picture, one node and one molecule, each `calls` times, on small models that are made for the
 * purpose. */
basin_status basin_bench_latency(basin_latency result[BASIN_LATENCY_ITEMS], basin_backend *backend,
                                 int calls, uint64_t seed, basin_error *error);

#endif
