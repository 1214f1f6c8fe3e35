/* The model that settings describe, as expressions over so many nodes and pairs: inputs, logits,
 * loss. */
#ifndef BASIN_TASK_NODES_NET_H
#define BASIN_TASK_NODES_NET_H

#include "model/model.h"
#include "task/nodes/nodes.h"

/* ---- What edges carry, as models read it: the facts of an edge become columns, which bias the
 * score of a pair (equation in docs/energies.md), and their totals over a node's edges become
 * features of the node. */

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

typedef struct basin_nodes_shape {
    int64_t nodes, columns;
    int64_t positions; /* nodes of the whole network, for learned positions */
    bool placed;       /* its nodes are some of them: positions by index */
    int64_t parts;     /* they are one of so many: losses are sums, whose weights make up 1 over all
                          parts; 0: they are all */
    int64_t halo;      /* and see so many nodes of others at most */
    int relations;
    int64_t pairs[BASIN_ANOMALY_RELATIONS]; /* capacities */
    int64_t facts;                          /* numbers of an edge that bias its score; 0: none */
    int64_t listed; /* inputs that are not 0, where the model reads a list of them; 0: all */
} basin_nodes_shape;

typedef struct basin_nodes_net {
    basin_graph *graph;
    basin_params params;
    basin_anomaly energy; /* of form energy; else its parameters are NULL */
    basin_published published;
    basin_expr features, eigenvectors, node_weight[BASIN_ANOMALY_RELATIONS]; /* or NULL */
    basin_listed
        listed;       /* in place of `seen`, where the shape has it: `features` is [listed] then */
    basin_expr place; /* [N] the rows of learned positions; NULL: all in order, or none */
    basin_expr mask;  /* [columns] 0 for what a member does not see; NULL: all see all */
    basin_expr seen;  /* [N, columns] the features, masked */
    basin_pattern pattern[BASIN_ANOMALY_RELATIONS];
    basin_expr facts[BASIN_ANOMALY_RELATIONS]; /* [pairs, facts], or NULL */
    basin_expr label, weight, seed;            /* for training: [N], [N], [2]; else NULL */
    basin_expr logits, probability, loss;      /* [N], [N], []; of C classes label, logits and
                                                  probability are [N, C] */
} basin_nodes_net;

/* Whether it is an Energy Transformer that descends as the paper has it. */
bool basin_nodes_descends(const basin_nodes_settings *settings);
/* Whether the model runs over neighbours at all. */
bool basin_nodes_on_graph(const basin_nodes_settings *settings);
/* Whether its first product may read a list of inputs. */
bool basin_nodes_may_list(const basin_nodes_settings *settings);
basin_anomaly_config basin_nodes_net_config(const basin_nodes_settings *settings,
                                            const basin_nodes_shape *shape);

basin_status basin_nodes_net_new(basin_nodes_net *net, const basin_nodes_settings *settings,
                                 const basin_nodes_shape *shape, bool training, basin_error *error);
void basin_nodes_net_free(basin_nodes_net *net);

/* What a plan over nodes is written with. Pointers may be NULL where the net has no such input. */
typedef struct basin_nodes_net_data {
    const float *table;                                /* [n, columns] */
    const float *eigenvectors;                         /* [n, k] */
    const int32_t *place;                              /* [n] */
    const float *node_weight[BASIN_ANOMALY_RELATIONS]; /* [n] each */
    const basin_pairs *pairs;                          /* [relations] */
    const basin_edge_reader *reader;                   /* of what edges carry, */
    const basin_network *network;                      /* whose edges the pairs are */
    const float *label, *weight;                       /* [n], or [n, C]; [n] */
    int64_t nodes;                                     /* n; the rest up to the capacity is zero */
} basin_nodes_net_data;

basin_status basin_nodes_net_write(const basin_nodes_net *net, basin_plan *plan,
                                   const basin_nodes_net_data *data, basin_error *error);

/* ---- scalings ---- */

/* The setting scaling may join several by +: the table has the columns of all of them, and members
 * see them in turn. */
basin_status basin_nodes_scaling_kind(basin_scaler_kind *kind, const basin_nodes_settings *settings,
                                      basin_error *error);
/* The mask that hides the others' columns from a member; NULL where there is one scaling. */
basin_expr basin_nodes_mask_declare(basin_graph *graph, const basin_nodes_settings *settings,
                                    int64_t columns);
basin_status basin_nodes_mask_write(basin_plan *plan, basin_expr mask,
                                    const basin_nodes_settings *settings, int64_t member,
                                    basin_error *error);

basin_status basin_nodes_net_write_seed(const basin_nodes_net *net, basin_plan *plan, uint64_t seed,
                                        basin_error *error);

/* The bytes that a plan for training (or scoring) of this shape will take, inputs and pair lists
 * included: found with a plan of a few thousand nodes. */
basin_status basin_nodes_net_memory(size_t *bytes, const basin_nodes_settings *settings,
                                    const basin_nodes_shape *shape, bool training,
                                    basin_backend *backend, basin_error *error);

/* Those of learned positions, in training with their moments; 0 of other models. */
size_t basin_nodes_position_bytes(const basin_nodes_settings *settings,
                                  const basin_nodes_shape *shape, bool training);

basin_adamw_config basin_nodes_net_adamw(const basin_nodes_settings *settings);

#endif
