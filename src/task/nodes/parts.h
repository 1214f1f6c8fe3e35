/* The inputs of a graph that is whole or in parts, training on parts, and scoring: inputs of each
 * part of this rank, in one shape for all parts of all ranks, so that their plans are alike. What
 * is computed depends on the number of parts, not on that of ranks. */
#ifndef BASIN_TASK_NODES_PARTS_H
#define BASIN_TASK_NODES_PARTS_H

#include "data/network/parts/parts.h"
#include "task/nodes/ensemble.h"
#include "task/nodes/net.h"

typedef struct basin_parted_inputs {
    basin_parts *parts;       /* NULL: the graph is whole, its own only part */
    int64_t count;            /* parts of this rank */
    basin_node_inputs *part;  /* [count] */
    basin_node_inputs *whole; /* sizes of the whole graph; of parts, its network is the face */
    basin_nodes_shape shape;  /* of the plans of parts */
} basin_parted_inputs;

/* As basin_node_inputs_open, _fit and _scale; the first refuses what parts cannot have. */
basin_status basin_parted_inputs_open(basin_parted_inputs *inputs, const basin_network *network,
                                      basin_parts *parts, const basin_nodes_settings *settings,
                                      basin_error *error);
basin_status basin_parted_inputs_fit(basin_scaler *scale, basin_scaler *edge_scale,
                                     const basin_parted_inputs *inputs,
                                     const int64_t *node /* [nodes] of the whole, ascending */,
                                     int64_t nodes, basin_error *error);
basin_status basin_parted_inputs_scale(basin_parted_inputs *inputs, const basin_scaler *scale,
                                       const basin_scaler *edge_scale, basin_error *error);
void basin_parted_inputs_close(basin_parted_inputs *inputs);
size_t basin_parted_inputs_bytes(const basin_parted_inputs *inputs);
/* A part's inputs into a plan of the shape. label and weight [N] of all nodes, of classes label
 * [N, C]; or NULL. */
basin_status basin_parted_inputs_write(const basin_parted_inputs *inputs, int64_t part,
                                       const basin_nodes_net *net, basin_plan *plan,
                                       const float *label, const float *weight, basin_error *error);

/* ---- training on parts ---- */

/* One plan per part for its share of the gradients, and one for the update by their sum over all
 * parts, in their order. */
typedef struct basin_parted_trainer basin_parted_trainer;
basin_status basin_parted_trainer_new(basin_parted_trainer **trainer,
                                      const basin_parted_inputs *inputs, const basin_nodes_net *net,
                                      basin_store *store, const basin_trainer_spec *spec,
                                      const float *label, const float *weight, basin_error *error);
void basin_parted_trainer_free(basin_parted_trainer *trainer);
basin_status basin_parted_trainer_mask(basin_parted_trainer *trainer, int64_t member,
                                       basin_error *error);
/* One step, number `step` from 0; the loss over all parts. */
basin_status basin_parted_trainer_step(basin_parted_trainer *trainer, double *loss, int64_t step,
                                       uint64_t seed, basin_error *error);
/* Its plans' memory goes back to the system until the next step: another's need it meanwhile. */
void basin_parted_trainer_release(basin_parted_trainer *trainer);
/* Bytes of its plans on this rank. */
size_t basin_parted_trainer_bytes(const basin_parted_trainer *trainer);

/* ---- Scoring all nodes with given weights: by one plan of the whole graph or of each part, or,
 * where these do not fit, streamed in blocks of nodes (stream.c). ---- */

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
