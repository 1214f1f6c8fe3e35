/* The part of the graph around each of some nodes, all of them side by side in one network: what
 * gradients are taken over. */
#ifndef BASIN_TASK_NODES_EXPLAIN_AROUND_H
#define BASIN_TASK_NODES_EXPLAIN_AROUND_H

#include "task/nodes/explain/explain.h"

/* Around one node: itself, neighbours, and some of theirs. */
typedef struct basin_surroundings {
    int64_t *node; /* [count] of the whole network */
    int64_t count;
    int64_t firsts; /* node[1] .. node[firsts] are neighbours; behind them stand theirs */
} basin_surroundings;

typedef struct basin_around {
    int64_t count;
    basin_surroundings *of; /* [count] */
    int64_t *start;         /* [count + 1] rows of the network that are its */
    basin_network *network; /* `origin` leads to the whole one */
} basin_around;

/* As many of the explainer's nodes from `first` on as make up a batch; at least one. */
basin_status basin_around_open(basin_around *around, const basin_explainer *x, int64_t first,
                               basin_error *error);
void basin_around_close(basin_around *around);

#endif
