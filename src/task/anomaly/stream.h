/* Scoring a graph that does not fit as one plan: step by step, in blocks of nodes. */
#ifndef BASIN_TASK_ANOMALY_STREAM_H
#define BASIN_TASK_ANOMALY_STREAM_H

#include "task/anomaly/inputs.h"

typedef struct basin_stream basin_stream;
basin_status basin_stream_new(basin_stream **stream, const basin_view *view, basin_store *store,
                              const basin_anomaly_work *work, basin_error *error);
void basin_stream_free(basin_stream *stream);
/* What it takes while it runs, beside the view. */
size_t basin_stream_bytes(const basin_stream *stream);
const basin_params *basin_stream_params(const basin_stream *stream);
basin_status basin_stream_run(basin_stream *stream, double *probability /* [N] */, int64_t member,
                              basin_error *error);

#endif
