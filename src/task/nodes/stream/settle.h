/* The end of a stream of classes: logits of all nodes smoothed over the graph, then probabilities.
 */
#ifndef BASIN_TASK_NODES_STREAM_SETTLE_H
#define BASIN_TASK_NODES_STREAM_SETTLE_H

#include "task/nodes/nodes.h"

/* Who is next to whom, by query and by key: the same lists where every edge goes both ways. */
typedef struct basin_stream_graph {
    const int64_t *row, *column; /* [N + 1] */
    const int32_t *key, *query;
    int64_t nodes;
} basin_stream_graph;

/* Logits [N, C] become probabilities, in place, as the settings have smoothing. */
basin_status basin_stream_settle(double *value, const basin_stream_graph *graph,
                                 const basin_nodes_settings *settings, basin_error *error);

#endif
