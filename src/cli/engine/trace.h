/* The energies of a descent, step by step: as a table, JSON, CSV, and a picture. */
#ifndef BASIN_CLI_ENGINE_TRACE_H
#define BASIN_CLI_ENGINE_TRACE_H

#include "basin/energy.h"
#include "io/json_writer.h"

typedef struct basin_trace {
    const basin_descent_result *result;
    const char *const *part; /* [result->parts] names */
} basin_trace;

/* Part `part` before step `step` (at the end, for the last), summed over the samples. */
double basin_trace_part(const basin_trace *trace, int step, int part);
/* The first step before which the energy is not finite, or that it is higher after than before;
 * -1 where there is none. */
int basin_trace_broken(const basin_trace *trace);
int basin_trace_risen(const basin_trace *trace);

bool basin_trace_print(const basin_trace *trace, FILE *file);
/* Members of an open object. */
void basin_trace_json(const basin_trace *trace, basin_json *json);
/* A line a step; a line a step and sample, with a column "sample", for batches. */
basin_status basin_trace_csv(const basin_trace *trace, const char *path, basin_error *error);
basin_status basin_trace_plot(const basin_trace *trace, const char *path, const char *title,
                              basin_error *error);

#endif
