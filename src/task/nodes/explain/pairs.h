/* What the facts of edges move a node's logit by: their part of the integrated gradients, along the
 * line from a typical edge to each edge's own. */
#ifndef BASIN_TASK_NODES_EXPLAIN_PAIRS_H
#define BASIN_TASK_NODES_EXPLAIN_PAIRS_H

#include "task/nodes/batch.h"
#include "task/nodes/explain/around.h"

/* Pairs of one relation; cells are [capacity, facts]. */
typedef struct basin_pair_line {
    const basin_pairs *pairs;
    basin_expr input, slope;
    int64_t cells;
    float *own, *apart;  /* scaled facts; how far they are from a typical edge's */
    float *row;          /* what is written */
    double *sum, *value; /* of slopes; the last one */
} basin_pair_line;

typedef struct basin_pair_lines {
    int count; /* relations; 0: no facts in the energy */
    int64_t facts;
    basin_pair_line of[BASIN_ANOMALY_RELATIONS];
} basin_pair_lines;

/* Where the network's facts are inputs; `slope` is still to be set. */
basin_status basin_pair_lines_open(basin_pair_lines *lines, const basin_explainer *x,
                                   const basin_nodes_net *net, const basin_nodes_batch *batch,
                                   basin_error *error);
void basin_pair_lines_close(basin_pair_lines *lines);
/* Writes the point t of the line, 0: typical, 1: own. */
basin_status basin_pair_lines_write(basin_pair_lines *lines, basin_plan *plan, double t,
                                    basin_error *error);
/* Sums of slopes: emptied; the plan's added. */
void basin_pair_lines_clear(basin_pair_lines *lines);
basin_status basin_pair_lines_add(basin_pair_lines *lines, basin_plan *plan, basin_error *error);
/* What edges of the rows from `start` on, `rows` of them, move by, times the steps. */
double basin_pair_lines_moved(const basin_pair_lines *lines, int64_t start, int64_t rows);
/* Hands it to the features and neighbours of one node; `scale` as in integrate.c. */
basin_status basin_pair_lines_tell(const basin_pair_lines *lines, const basin_explainer *x,
                                   basin_told *told, const basin_surroundings *around,
                                   int64_t start, double scale, basin_error *error);

#endif
