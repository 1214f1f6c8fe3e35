/* What a model reads of a network: the table of inputs, relations, weights of nodes. */
#ifndef BASIN_TASK_NODES_INPUTS_H
#define BASIN_TASK_NODES_INPUTS_H

#include "task/nodes/net.h"
#include "task/nodes/nodes.h"

/* Of all nodes of a network, as the settings have it. */
typedef struct basin_node_inputs {
    const basin_network *network;
    const basin_nodes_settings *settings;
    int relation[BASIN_ANOMALY_RELATIONS];       /* numbers of the network's relations */
    int64_t features;                            /* and degrees, before the means */
    float *raw;                                  /* [N, features] unscaled */
    float *table;                                /* [N, shape.columns] */
    float *node_weight[BASIN_ANOMALY_RELATIONS]; /* [N], where the settings ask for them */
    float *eigenvectors;                         /* [N, k], likewise */
    basin_edge_reader reader;                    /* of what edges carry */
    basin_nodes_shape shape;                     /* of the whole network */
} basin_node_inputs;

/* Everything but the table, which wants a scale. */
basin_status basin_node_inputs_open(basin_node_inputs *inputs, const basin_network *network,
                                    const basin_nodes_settings *settings, basin_error *error);
/* Fits scales on some nodes: of their columns, and of what their edges carry. */
basin_status basin_node_inputs_fit(basin_scaler *scale, basin_scaler *edge_scale,
                                   const basin_node_inputs *inputs, const int64_t *node,
                                   int64_t nodes, basin_error *error);
/* Makes the table; the raw columns are no longer there afterwards. Borrows the scale of edges. */
basin_status basin_node_inputs_scale(basin_node_inputs *inputs, const basin_scaler *scale,
                                     const basin_scaler *edge_scale, basin_error *error);
/* The same without the means over neighbours, which stay open. */
basin_status basin_node_inputs_scale_rows(basin_node_inputs *inputs, const basin_scaler *scale,
                                          const basin_scaler *edge_scale, basin_error *error);
void basin_node_inputs_close(basin_node_inputs *inputs);
/* The mean of columns over the neighbours of a node, itself left out; 0 where there are none. */
void basin_neighbour_mean(float *mean /* [columns] */, const float *from /* [N, stride] */,
                          int64_t stride, int64_t columns, const basin_relation *relation,
                          int64_t node);
/* These of many nodes: threads 0 means all. */
typedef struct basin_neighbour_means {
    float *to; /* [nodes, to_stride] */
    int64_t to_stride;
    const float *from; /* [.., from_stride] */
    int64_t from_stride, columns;
    const basin_relation *relation;
} basin_neighbour_means;
void basin_neighbour_means_take(const basin_neighbour_means *means, int64_t nodes, int threads);
/* What means run along: the whole graph, or the first relation where there is no union. */
const basin_relation *basin_node_inputs_hops(const basin_node_inputs *inputs);
/* Degrees to a power; their sum. */
double basin_degree_powers(float *weight /* [nodes] */, const basin_relation *relation,
                           int64_t nodes, double power);
/* What the network and its table take. */
size_t basin_node_inputs_bytes(const basin_node_inputs *inputs);

/* The relations of the settings as pairs; free each. */
basin_status basin_node_inputs_pairs(basin_pairs *pairs /* [relations] */,
                                     const basin_node_inputs *inputs, const basin_network *network,
                                     basin_error *error);
/* The same of a part, whose halo begins at key `room`. */
basin_status basin_node_inputs_pairs_apart(basin_pairs *pairs, const basin_node_inputs *inputs,
                                           const basin_network *network, int64_t room, int64_t halo,
                                           basin_error *error);
/* All nodes as a plan is written with them; `pairs` as above. */
basin_nodes_net_data basin_node_inputs_data(const basin_node_inputs *inputs,
                                            const basin_pairs *pairs);

#endif
