/* Scoring all nodes of a network with given weights, on the whole graph at once or, where that does
 * not fit, streamed in blocks of nodes. */
#ifndef BASIN_TASK_NODES_SCORER_H
#define BASIN_TASK_NODES_SCORER_H

#include "task/nodes/parts.h"

typedef struct basin_nodes_scorer basin_nodes_scorer;
basin_status basin_nodes_scorer_new(basin_nodes_scorer **scorer, const basin_node_inputs *inputs,
                                    size_t memory, const basin_nodes_resources *work,
                                    basin_error *error);
/* Of a graph in parts, on all ranks together. */
basin_status basin_nodes_scorer_join(basin_nodes_scorer **scorer, const basin_parted_inputs *inputs,
                                     const basin_nodes_resources *work, basin_error *error);
bool basin_nodes_scorer_streams(const basin_nodes_scorer *scorer);
/* What a stream takes while it runs; 0 of a plan of the whole graph. */
size_t basin_nodes_scorer_bytes(const basin_nodes_scorer *scorer);
void basin_nodes_scorer_free(basin_nodes_scorer *scorer);
/* `weights` has every parameter of the member under `prefix` + its name. Of classes, probabilities
 * are [N, C]. */
basin_status basin_nodes_scorer_run(basin_nodes_scorer *scorer, double *probability /* [N] */,
                                    int64_t member, basin_store *weights, const char *prefix,
                                    basin_error *error);

/* The mean of all members' probabilities, or of their logits. */
basin_status basin_nodes_scorer_logits(basin_nodes_scorer *scorer, double *logit /* [N] */,
                                       const basin_nodes_model *model, basin_error *error);
basin_status basin_nodes_scorer_mean(basin_nodes_scorer *scorer, double *probability /* [N] */,
                                     const basin_nodes_model *model, basin_error *error);

#endif
