/* Explanations of scores, from file to file:
 *
 *     explain.c     the public calls: from nodes to explanations
 *     told.c        what is told of a node, gathered part by part
 *     near.c        neighbours, and the part of the graph around a node
 *     trees.c       Shapley values of the columns of trees
 *     integrate.c   integrated gradients of the network over that part
 *     pairs.c       and of what its edges carry
 *     look.c        energies and attention on the whole graph
 *
 * A detector's logit is weight[TREES] z_trees + weight[NETWORK] z_network + shift. Every part is
 * explained by its distance from a typical node: one whose columns are the medians over the graph,
 * with neighbours that are the same, in this node's place. */
#ifndef BASIN_TASK_NODES_EXPLAIN_H
#define BASIN_TASK_NODES_EXPLAIN_H

#include "task/nodes/batch.h"
#include "task/nodes/inputs.h"

/* ---- near.c ---- */

/* Who is next to whom along some relations, both ways. */
typedef struct basin_vicinity {
    const basin_network *network;
    int relations;
    const basin_relation *relation[2 * BASIN_TREE_RELATIONS];
    basin_relation back[2 * BASIN_TREE_RELATIONS]; /* the other way, where edges have a direction */
} basin_vicinity;

basin_status basin_vicinity_open(basin_vicinity *near, const basin_network *network,
                                 const int *relation, int relations, basin_error *error);
void basin_vicinity_close(basin_vicinity *near);
/* The neighbours of a node in ascending order, each once, itself left out; free them. */
basin_status basin_vicinity_list(int64_t **neighbour, int64_t *count, const basin_vicinity *near,
                                 int64_t node, basin_error *error);

/* ---- told.c ---- */

typedef struct basin_told {
    int64_t node;
    double *feature; /* [slots (1 + hops)] what each moves the logit by */
    int64_t neighbours;
    int64_t *neighbour;       /* [neighbours] ascending */
    double *push;             /* [neighbours] what comes through each */
    double *share, *returned; /* [neighbours] of attention; NULL: not known */
    double own;               /* what comes from the node itself */
    double typical;           /* the logit of a typical node in its place */
    double reached;           /* the logit by the parts that are explained */
    bool has_energy;
    double energy[2]; /* attention, memories */
} basin_told;

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
    basin_vicinity near;
    int64_t features, slots, hops; /* slots of a hop: features, degrees, facts, known labels */
    int64_t *slot;                 /* [table.own] where its columns stand */
    int64_t *fact;                 /* [table.own] which column of its edges' facts; -1: none */
    int edge_relations;            /* of the network, that have slots for facts of their edges: */
    int64_t edge_slot[BASIN_ANOMALY_RELATIONS]; /* where they begin, */
    int64_t edge_slots;                         /* and how many a relation has */
    float *edge_typical;                        /* [inputs.shape.facts] scaled; or NULL */
    float *total, *total_typical; /* [N, relations, edge_slots] where the table has none; or NULL */
    int64_t count;
    basin_told *told; /* [count] */
    double energy_mean, energy_deviation;
    double *energy; /* [N] ascending; NULL: not looked at */
} basin_explainer;

basin_status basin_explainer_open(basin_explainer *x, const basin_nodes_model *model,
                                  const basin_network *network, const int64_t *node, int64_t count,
                                  const basin_nodes_resources *work, basin_error *error);
void basin_explainer_close(basin_explainer *x);
/* Slot and hop of a column of the table. */
void basin_explainer_place(int64_t *slot, int64_t *hop, const basin_explainer *x, int64_t column);
/* Adds to a feature; hops beyond the last count as the last. */
void basin_told_add(basin_told *told, const basin_explainer *x, int64_t slot, int64_t hop,
                    double moves);
/* Adds what comes through a neighbour; through none: the node's own. */
void basin_told_push(basin_told *told, int64_t neighbour, double moves);
/* What a node two hops away adds comes through those between, in equal parts. */
basin_status basin_told_push_between(basin_told *told, const basin_explainer *x, int64_t node,
                                     double moves, basin_error *error);
/* One explanation, with values in the user's units. */
basin_status basin_told_finish(basin_nodes_explanation **explanation, const basin_explainer *x,
                               const basin_told *told, const double *probability /* [N] */,
                               basin_error *error);

/* ---- parts ---- */

basin_status basin_explain_trees(basin_explainer *x, basin_error *error);
basin_status basin_explain_network(basin_explainer *x, basin_error *error);
/* Energies and attention of all nodes, on the whole graph. */
basin_status basin_explain_look(basin_explainer *x, basin_error *error);

/* ---- The part of the graph around each of some nodes, all of them side by side in one network:
 * what gradients are taken over. */

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

/* ---- What the facts of edges move a node's logit by: their part of the integrated gradients,
 * along the line from a typical edge to each edge's own. */

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
