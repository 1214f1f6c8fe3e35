/* What `basin bench --latency` prints. */
#ifndef BASIN_CLI_ENGINE_BENCH_LATENCY_H
#define BASIN_CLI_ENGINE_BENCH_LATENCY_H

#include "basin/backend.h"

/* Measures and prints; returns the program's exit code. */
int basin_cli_bench_latency(basin_backend *backend, uint64_t seed, bool json);

#endif
