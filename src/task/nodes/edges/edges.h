/* What edges carry, as models read it: the facts of an edge become columns, which bias the score of
 * a pair (equation in docs/energies.md), and their totals over a node's edges become features of
 * the node. */
#ifndef BASIN_TASK_NODES_EDGES_EDGES_H
#define BASIN_TASK_NODES_EDGES_EDGES_H

#include "task/nodes/nodes.h"

/* Whether the settings have facts in the energy, and among the features. */
bool basin_facts_bias(const basin_nodes_settings *settings);
bool basin_facts_are_features(const basin_nodes_settings *settings);

/* Columns of one edge: the logarithm of the count; of each number those of sum, mean and last, with
 * its sign; of times that of the age; of each kind its share. */
int64_t basin_facts_width(const basin_facts *facts);
void basin_facts_columns(float *column /* [width] */, const basin_facts *facts,
                         const float *fact /* [facts] */);
/* A column's value in the user's units; those beyond the width are of edges that leave a node. */
double basin_facts_value(const basin_facts *facts, int64_t column, double x);

/* Columns of a node: those of all its edges taken together, in each of some relations; of a
 * directed network first of the edges that lead to it, then of those that leave it. */
int64_t basin_node_facts_width(const basin_network *network, int relations);
basin_status basin_node_facts_fill(float *x /* [N, stride] */, int64_t stride,
                                   const basin_network *network, const int *relation, int relations,
                                   basin_error *error);

/* Reads what biases scores. */
typedef struct basin_edge_reader {
    int relations;
    int relation[BASIN_ANOMALY_RELATIONS]; /* numbers of the network's */
    const basin_scaler *scale;
    bool add_self; /* a node's pair with itself is no edge, whatever the data have */
} basin_edge_reader;

/* Fits the scale on edges of some nodes. */
basin_status basin_edge_scale_fit(basin_scaler *scale, const basin_edge_reader *reader,
                                  const basin_network *network, const int64_t *node, int64_t nodes,
                                  basin_error *error);
/* The scaled columns of pairs of relation `r` of the reader's; 0 of a pair that is no edge. */
basin_status basin_edge_facts(float **facts /* [pairs, width]; free it */,
                              const basin_edge_reader *reader, const basin_network *network, int r,
                              const basin_pairs *pairs, basin_error *error);
/* What every edge of relation `r` adds to scores: its scaled columns by `we`. */
basin_status basin_edge_bias(float *bias /* [edges, H] */, const basin_edge_reader *reader,
                             const basin_network *network, int r, const float *we /* [width, H] */,
                             int64_t heads, basin_error *error);

#endif
