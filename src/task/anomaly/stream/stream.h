/* Scoring a graph that does not fit as one plan: step by step, in blocks of nodes. */
#ifndef BASIN_TASK_ANOMALY_STREAM_STREAM_H
#define BASIN_TASK_ANOMALY_STREAM_STREAM_H

#include "task/anomaly/inputs.h"

typedef struct basin_anomaly_stream basin_anomaly_stream;
/* `halo` nodes of other parts are seen where the inputs are a part's, else 0. */
basin_status basin_anomaly_stream_new(basin_anomaly_stream **stream,
                                      const basin_node_inputs *inputs, int64_t halo,
                                      basin_store *store, const basin_anomaly_resources *work,
                                      basin_error *error);
void basin_anomaly_stream_free(basin_anomaly_stream *stream);
/* What it takes while it runs, beside the inputs. */
size_t basin_anomaly_stream_bytes(const basin_anomaly_stream *stream);
const basin_params *basin_anomaly_stream_params(const basin_anomaly_stream *stream);
basin_status basin_anomaly_stream_run(basin_anomaly_stream *stream, double *probability /* [N] */,
                                      int64_t member, basin_error *error);

/* ---- the same in pieces, for parts that run together ---- */

/* A step of descent: activations; nodes as queries, which leaves their log-sum-exps; nodes as keys,
 * and the memories. Between these the rows of halos are exchanged. */
typedef enum basin_stream_phase {
    BASIN_STREAM_NORM,
    BASIN_STREAM_QUERY,
    BASIN_STREAM_KEY,
    BASIN_STREAM_PHASES
} basin_stream_phase;

basin_status basin_anomaly_stream_begin(basin_anomaly_stream *stream, int64_t member,
                                        basin_error *error);
basin_status basin_anomaly_stream_phase(basin_anomaly_stream *stream, basin_stream_phase phase,
                                        int block, int relation, basin_error *error);
/* Probabilities, or NULL where something failed; frees what it took. */
basin_status basin_anomaly_stream_end(basin_anomaly_stream *stream, double *probability,
                                      basin_error *error);
/* What halos want after a phase: activations, log-sum-exps; in place of the last, weights of nodes,
 * once after the beginning, where there are any. */
basin_exchange_rows basin_anomaly_stream_rows(basin_anomaly_stream *stream,
                                              basin_stream_phase phase, int relation);
void basin_anomaly_stream_show(const basin_anomaly_stream *stream, int done);

#endif
