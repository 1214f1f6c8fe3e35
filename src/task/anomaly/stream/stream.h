/* Scoring a graph that does not fit as one plan: step by step, in blocks of nodes. */
#ifndef BASIN_TASK_ANOMALY_STREAM_STREAM_H
#define BASIN_TASK_ANOMALY_STREAM_STREAM_H

#include "task/anomaly/inputs.h"

typedef struct basin_anomaly_stream basin_anomaly_stream;
basin_status basin_anomaly_stream_new(basin_anomaly_stream **stream,
                                      const basin_node_inputs *inputs, basin_store *store,
                                      const basin_anomaly_resources *work, basin_error *error);
void basin_anomaly_stream_free(basin_anomaly_stream *stream);
/* What it takes while it runs, beside the inputs. */
size_t basin_anomaly_stream_bytes(const basin_anomaly_stream *stream);
const basin_params *basin_anomaly_stream_params(const basin_anomaly_stream *stream);
basin_status basin_anomaly_stream_run(basin_anomaly_stream *stream, double *probability /* [N] */,
                                      int64_t member, basin_error *error);

#endif
