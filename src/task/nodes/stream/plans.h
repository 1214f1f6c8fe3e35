/* The expressions and plans of a stream: what is done to a block of nodes at a time. Internal to
 * anomaly_stream*.c. */
#ifndef BASIN_TASK_NODES_STREAM_PLANS_H
#define BASIN_TASK_NODES_STREAM_PLANS_H

#include "task/nodes/inputs.h"

typedef struct basin_nodes_stream_plans {
    basin_graph *graph;
    basin_params params;
    basin_anomaly model;
    int64_t rows;   /* B, nodes of a block */
    int64_t stride; /* D rounded up, as attention along lists wants rows */
    /* inputs */
    basin_expr features, eigenvectors; /* [B, columns]; [B, k] or NULL */
    basin_expr place;                  /* index [B] of learned positions, or NULL */
    basin_expr mask;                   /* [columns], or NULL */
    basin_expr x, g;                   /* [B, D], [B, stride] */
    basin_expr stack, sum;             /* [stride, H stride], [B, H stride] */
    basin_expr last[BASIN_ANOMALY_RELATIONS];
    /* outputs and their plans */
    basin_expr tokens, own, back;              /* [B, D] [B, H stride] [B, stride] */
    basin_expr read;                           /* [B] probabilities, or logits [B, C] of classes */
    basin_expr normed[BASIN_ANOMALY_BLOCKS];   /* [B, stride] */
    basin_expr recalled[BASIN_ANOMALY_BLOCKS]; /* [B, D] */
    basin_plan *embed, *project, *pull, *head;
    basin_plan *norm[BASIN_ANOMALY_BLOCKS], *recall[BASIN_ANOMALY_BLOCKS];
} basin_nodes_stream_plans;

basin_status basin_nodes_stream_plans_new(basin_nodes_stream_plans *plans,
                                          const basin_node_inputs *inputs, int64_t rows,
                                          basin_store *store, basin_error *error);
void basin_nodes_stream_plans_free(basin_nodes_stream_plans *plans);
size_t basin_nodes_stream_plans_bytes(const basin_nodes_stream_plans *plans);

/* A parameter as floats. */
basin_status basin_nodes_stream_read(basin_tensor *to, basin_store *store, basin_expr state,
                                     basin_error *error);
/* M = Wk' Wq of all heads of a block side by side, [stride, H stride]: `ask` has M' of each head,
 * `answer` M. beta [H]. */
basin_status basin_nodes_stream_stack(float *ask, float *answer, float *beta,
                                      const basin_nodes_stream_plans *plans,
                                      const basin_block *block, basin_store *store,
                                      basin_error *error);

#endif
