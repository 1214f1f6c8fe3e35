/* Scoring all nodes of a network with given weights: by one plan of the whole graph or of each
 * part, or, where these do not fit, streamed in blocks of nodes (stream.c). */
#ifndef BASIN_TASK_NODES_SCORER_H
#define BASIN_TASK_NODES_SCORER_H

#include "task/nodes/parts.h"

typedef struct basin_nodes_scorer basin_nodes_scorer;
/* `memory`: bytes that a plan of a whole graph may take; parts go by work->memory. All ranks make
 * the scorer of a graph in parts together. */
basin_status basin_nodes_scorer_new(basin_nodes_scorer **scorer, const basin_parted_inputs *inputs,
                                    size_t memory, const basin_nodes_resources *work,
                                    basin_error *error);
bool basin_nodes_scorer_streams(const basin_nodes_scorer *scorer);
/* What streams take while they run; 0 of plans. */
size_t basin_nodes_scorer_bytes(const basin_nodes_scorer *scorer);
void basin_nodes_scorer_free(basin_nodes_scorer *scorer);
/* `weights` has every parameter of the member under `prefix` + its name. Of classes, probabilities
 * are [N, C]. */
basin_status basin_nodes_scorer_run(basin_nodes_scorer *scorer, double *probability /* [N] */,
                                    int64_t member, basin_store *weights, const char *prefix,
                                    basin_error *error);
/* The mean of all members' probabilities, or of their logits. */
basin_status basin_nodes_scorer_mean(basin_nodes_scorer *scorer, double *mean /* [N] */,
                                     bool logits, const basin_nodes_model *model,
                                     basin_error *error);

/* ---- streams, of a whole graph or of each part ---- */

typedef struct basin_nodes_stream basin_nodes_stream;
/* `part` is NULL where the inputs are of a whole graph. To be freed even after an error. */
basin_status basin_nodes_stream_new(basin_nodes_stream **stream, const basin_node_inputs *inputs,
                                    const basin_part *part, basin_store *store,
                                    const basin_nodes_resources *work, basin_error *error);
void basin_nodes_stream_free(basin_nodes_stream *stream);
/* What it takes while it runs, beside the inputs. */
size_t basin_nodes_stream_bytes(const basin_nodes_stream *stream);
const basin_params *basin_nodes_stream_params(const basin_nodes_stream *stream);
/* The streams of this rank's parts take their steps together; `parts` NULL: there is one. */
basin_status basin_nodes_streams_run(basin_nodes_stream *const *stream, int64_t count,
                                     basin_parts *parts, double *const *probability, int64_t member,
                                     basin_error *error);

#endif
