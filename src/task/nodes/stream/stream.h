/* Scoring a graph that does not fit as one plan: step by step, in blocks of nodes. */
#ifndef BASIN_TASK_NODES_STREAM_STREAM_H
#define BASIN_TASK_NODES_STREAM_STREAM_H

#include "task/nodes/inputs.h"

typedef struct basin_nodes_stream basin_nodes_stream;
/* `halo` nodes of other parts are seen where the inputs are a part's, else 0. */
basin_status basin_nodes_stream_new(basin_nodes_stream **stream, const basin_node_inputs *inputs,
                                    int64_t halo, basin_store *store,
                                    const basin_nodes_resources *work, basin_error *error);
void basin_nodes_stream_free(basin_nodes_stream *stream);
/* What it takes while it runs, beside the inputs. */
size_t basin_nodes_stream_bytes(const basin_nodes_stream *stream);
const basin_params *basin_nodes_stream_params(const basin_nodes_stream *stream);
basin_status basin_nodes_stream_run(basin_nodes_stream *stream, double *probability /* [N] */,
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

basin_status basin_nodes_stream_begin(basin_nodes_stream *stream, int64_t member,
                                      basin_error *error);
basin_status basin_nodes_stream_phase(basin_nodes_stream *stream, basin_stream_phase phase,
                                      int block, int relation, basin_error *error);
/* Probabilities, or NULL where something failed; frees what it took. */
basin_status basin_nodes_stream_end(basin_nodes_stream *stream, double *probability,
                                    basin_error *error);
/* What halos want after a phase: activations, log-sum-exps; in place of the last, weights of nodes,
 * once after the beginning, where there are any. */
basin_exchange_rows basin_nodes_stream_rows(basin_nodes_stream *stream, basin_stream_phase phase,
                                            int relation);
void basin_nodes_stream_show(const basin_nodes_stream *stream, int done);

#endif
