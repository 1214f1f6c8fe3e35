/* The inputs of a graph that is whole or in parts, and training on parts: inputs of each part of
 * this rank, in one shape for all parts of all ranks, so that their plans are alike. What is
 * computed depends on the number of parts, not on that of ranks. */
#ifndef BASIN_TASK_NODES_PARTS_H
#define BASIN_TASK_NODES_PARTS_H

#include "data/network/parts/parts.h"
#include "task/nodes/ensemble.h"
#include "task/nodes/inputs.h"

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

#endif
