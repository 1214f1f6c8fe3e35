/* The neighbourhood of one node, for live.c: a base with additions (near_graph.c), rows of inputs
 * as they are with them (near_rows.c), and scores by the neighbourhood alone (near.c). */
#ifndef BASIN_TASK_NODES_NEAR_H
#define BASIN_TASK_NODES_NEAR_H

#include <stdatomic.h>

#include "task/nodes/net.h"

/* ---- near_graph.c: a base with additions ---- */

/* Whom a node sees along a relation, or who sees it, ascending. What edge i carries is row
 * first + i of `fact`, or entry[i]; below 0, -1 - n, it is row n of `own`, and behind it stands
 * what additions alone carry. */
typedef struct basin_near_list {
    int64_t count;
    int32_t *col; /* of a node: NULL, as in the base */
    const float *fact;
    int64_t first, *entry;
    float *own; /* [owned, 2, facts] */
    int64_t owned;
} basin_near_list;

enum { BASIN_NEAR_WAYS = 2, BASIN_NEAR_LEVELS = 2 }; /* sees, is seen; means that are kept */

/* What a node has beside the base; NULL in place of it: nothing. */
typedef struct basin_near_node {
    basin_near_list *way; /* [relations, BASIN_NEAR_WAYS], or NULL: as in the base */
    float *feature;       /* [features] or NULL: as in the base */
    float *own;           /* rows without means: inputs, then trees'; NULL: as in the base */
    int8_t label;         /* known to the trees; -1: none */
    _Atomic(float *) level[BASIN_NEAR_LEVELS]; /* means; NULL: to be found when they are needed */
} basin_near_node;

typedef struct basin_near_graph {
    const basin_network *base;
    basin_relation back[BASIN_TREE_RELATIONS]; /* of a directed base: who sees whom */
    int64_t *entry[BASIN_TREE_RELATIONS];
    int64_t nodes;          /* of base and additions */
    basin_near_node **node; /* [nodes] */
    size_t capacity;        /* of it */
    basin_dictionary id;    /* of all nodes; of a base without ids, of the added ones */
    int64_t added_edges;    /* entries of the main relation */
    size_t bytes;
} basin_near_graph;

basin_status basin_near_graph_open(basin_near_graph *graph, const basin_network *base,
                                   basin_error *error);
void basin_near_graph_close(basin_near_graph *graph);
/* The node of that id, or -1. */
int64_t basin_near_find(const basin_near_graph *graph, const char *id);
/* Its id, or number in `text`. */
const char *basin_near_id(const basin_near_graph *graph, int64_t node, char text[BASIN_NODE_TEXT]);
basin_near_list basin_near_sees(const basin_near_graph *graph, int relation, int64_t node,
                                bool seen);
const float *basin_near_feature(const basin_near_graph *graph, int64_t node);
/* Entries of its lists along all relations. */
int64_t basin_near_degree(const basin_near_graph *graph, int64_t node);
static inline int64_t basin_near_entry(const basin_near_list *list, int64_t i) {
    return list->entry ? list->entry[i] : list->first + i;
}
static inline const float *basin_near_fact(const basin_near_list *list, int64_t i, int64_t facts) {
    int64_t e = basin_near_entry(list, i);
    return e < 0 ? list->own - (1 + e) * 2 * facts : list->fact + e * facts;
}

/* ---- near_rows.c: inputs of network and trees ---- */

typedef struct basin_near_rows {
    basin_near_graph *graph;
    const basin_nodes_model *model;
    bool network, trees;      /* which of them has a share */
    basin_node_inputs inputs; /* of the base; */
    basin_tree_table table;
    int64_t width;    /* columns of inputs before the means */
    int hops, levels; /* of means that are kept of nodes beside changed ones */
    float *scratch;   /* of additions */
    /* Nodes with more edges than a neighbourhood may have are in none: means around them stay. */
    int64_t most_edges;
} basin_near_rows;

basin_status basin_near_rows_open(basin_near_rows *rows, basin_near_graph *graph,
                                  const basin_nodes_model *model, int64_t most_edges, size_t memory,
                                  basin_error *error);
void basin_near_rows_close(basin_near_rows *rows);
/* Tables as CSV become additions. After an error everything is as it was. */
basin_status basin_near_add(basin_near_rows *rows, const char *nodes, const char *edges,
                            basin_error *error);
/* After additions: rows of changed nodes, and which others are no longer the base's. */
basin_status basin_near_rows_renew(basin_near_rows *rows, const int64_t *changed, int64_t count,
                                   basin_error *error);
/* Whether additions lie within what the inputs of a node see. */
bool basin_near_touched(const basin_near_rows *rows, int64_t node);
basin_status basin_near_inputs_row(float *x /* [inputs.shape.columns] */,
                                   const basin_near_rows *rows, int64_t node, basin_error *error);
basin_status basin_near_trees_row(float *x /* [table.columns] */, const basin_near_rows *rows,
                                  int64_t node, basin_error *error);

/* ---- near.c: scores ---- */

typedef struct basin_near_scorer basin_near_scorer;

typedef struct basin_near_config {
    int64_t cap_nodes, cap_edges;
    bool states;
    size_t memory;
    const basin_watch *watch;
} basin_near_config;

basin_status basin_near_scorer_new(basin_near_scorer **scorer, basin_near_rows *rows,
                                   const basin_near_config *config, basin_error *error);
void basin_near_scorer_free(basin_near_scorer *scorer);
size_t basin_near_scorer_bytes(const basin_near_scorer *scorer);
/* The uncalibrated probability; any number of threads at once, while nothing is added. */
basin_status basin_near_score(basin_nodes_live_score *score, basin_near_scorer *scorer,
                              int64_t node, basin_error *error);

#endif
