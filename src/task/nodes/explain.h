/* Explanations of scores, between the files that make them: explain.c opens them, adds Shapley
 * values of trees and finishes them; explain_network.c adds integrated gradients of the network
 * over the surroundings of a node, and energies and attention on the whole graph.
 *
 * A detector's logit is weight[TREES] z_trees + weight[NETWORK] z_network + shift. Each is
 * explained by its distance from a typical node: one whose columns are the medians over the graph,
 * with neighbours that are the same, in this node's place. */
#ifndef BASIN_TASK_NODES_EXPLAIN_H
#define BASIN_TASK_NODES_EXPLAIN_H

#include "task/nodes/net.h"

typedef struct basin_explainer {
    const basin_nodes_model *model;
    const basin_network *network;
    const basin_nodes_ensemble *ensemble; /* the model's; `plain` where it has no trees */
    basin_nodes_ensemble plain;
    double weight[2], shift; /* by BASIN_NODES_TREES, _NETWORK */
    basin_nodes_resources work;
    basin_node_inputs inputs; /* of the network; not opened where it has no weight */
    basin_tree_table table;   /* columns in the user's units */
    float *column_typical;    /* [table.columns] */
    float *input_typical;     /* [inputs.shape.columns] */
    float *edge_typical;      /* [inputs.shape.facts] scaled; or NULL */
    /* Relations that make neighbours, and where edges have a direction the same reversed. */
    int relations;
    const basin_relation *relation[2 * BASIN_TREE_RELATIONS];
    basin_relation back[2 * BASIN_TREE_RELATIONS];
    /* Slots of a hop: features, the degree and then the facts of each of the network's relations,
     * known labels. */
    int64_t features, facts, slots, hops; /* facts: columns of a node's edges in one relation */
    float *total, *total_typical; /* [N, relations, facts] where the table has none; or NULL */
    int64_t count;
    /* [count] the caller's. Until they are finished, features stand by hop and slot, neighbours by
     * number, and `rest` has the logit of what is explained. */
    basin_nodes_explanation **of;
} basin_explainer;

static inline int64_t basin_explainer_fact_slot(const basin_explainer *x, int relation,
                                                int64_t fact) {
    return x->features + x->network->relations + relation * x->facts + fact;
}
/* The slot of a column of a node's own; `relation`: those that its degrees and facts are of. */
int64_t basin_explainer_slot(const basin_explainer *x, int64_t column, const int *relation,
                             int relations, bool degrees);
/* The neighbours of a node in ascending order, each once, itself left out; free them. */
basin_status basin_explainer_list(int64_t **neighbour, int64_t *count, const basin_explainer *x,
                                  int64_t node, basin_error *error);
/* Adds to a feature; hops beyond the last count as the last. */
void basin_explainer_add(basin_nodes_explanation *e, const basin_explainer *x, int64_t slot,
                         int64_t hop, double moves);
/* Adds what comes through a neighbour; through another node: the node's own. */
void basin_explainer_push(basin_nodes_explanation *e, int64_t neighbour, double moves);
/* What a node two hops away adds comes through those between, in equal parts. */
basin_status basin_explainer_push_between(basin_nodes_explanation *e, const basin_explainer *x,
                                          int64_t node, double moves, basin_error *error);

basin_status basin_explain_network(basin_explainer *x, basin_error *error);
/* Energies and attention of all nodes, on the whole graph. */
basin_status basin_explain_look(basin_explainer *x, basin_error *error);

#endif
