/* A detector and a network that grows, ready to score single nodes: what basin_nodes_live
 * (basin/tasks/nodes.h) is inside, for the program and `basin serve`.
 *
 * The base stays as it is. Additions are lists of neighbours of the nodes they touch: each has the
 * order and the facts that it would have in a network that was read whole, so that rows of inputs
 * have the same bits. Scoring takes a read lock, adding a write lock; each thread borrows a worker
 * with plans of its own, so that no plan is made per request. */
#ifndef BASIN_TASK_NODES_LIVE_H
#define BASIN_TASK_NODES_LIVE_H

#include "task/nodes/nodes.h"

/* What a live holds, for /metrics and messages. */
typedef struct basin_nodes_live_counts {
    int64_t nodes, edges;             /* of base and additions; edges of the main relation */
    int64_t added_nodes, added_edges; /* rows that were taken */
    size_t bytes;                     /* of inputs, states and additions */
} basin_nodes_live_counts;

/* Why a node scores as it does, from its neighbourhood, with the rank 0; *why = NULL where there is
 * no such node. Columns are those of the base. */
basin_status basin_nodes_live_explain(basin_nodes_explanation **why, basin_nodes_live *live,
                                      const char *id, basin_error *error);
basin_status basin_nodes_live_explain_node(basin_nodes_explanation **why, basin_nodes_live *live,
                                           int64_t node, basin_error *error);
/* What a node of an explanation is called; valid as long as `text`. */
const char *basin_nodes_live_id(basin_nodes_live *live, int64_t node, char *text, size_t size);
basin_nodes_live_counts basin_nodes_live_count(basin_nodes_live *live);

#endif
