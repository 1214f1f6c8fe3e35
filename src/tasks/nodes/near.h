/* Scores of one node's neighbourhood for live.c: the grown graph, rows of inputs, scores. */
#ifndef BASIN_TASK_NODES_NEAR_H
#define BASIN_TASK_NODES_NEAR_H

#include "tasks/nodes/net.h"

/* ---- near_graph.c: a base with additions ---- */

/* Out-neighbours of a node along a relation, or in-neighbours, in the order of ids, which is also
 * that of the numbers of base nodes. What edge i carries is
 * row first + i of `fact`, or entry[i]; below 0, -1 - n, it is row n of `own`. */
typedef struct basin_near_list {
    int64_t count;
    int32_t *col; /* of a node: NULL, as in the base */
    const float *fact;
    int64_t first, *entry;
    float *own; /* [owned, facts] */
    int64_t owned;
} basin_near_list;

typedef struct basin_near_node {
    basin_near_list
        *way;       /* [relations, 2] out-neighbours; for a directed base also in-neighbours */
    float *feature; /* [features]; NULL: as in the base */
    float *row;     /* of basin_near_rows, or NULL */
    int8_t known;   /* its label in training, which trees know; -1: none */
} basin_near_node;

typedef struct basin_near_graph {
    const basin_network *base;                 /* its nodes are in the order of their ids */
    basin_relation back[BASIN_TREE_RELATIONS]; /* of a directed base: in-neighbours */
    int64_t *entry[BASIN_TREE_RELATIONS];
    int8_t *known;          /* [base nodes] labels in training, which trees know; or NULL */
    int64_t knows;          /* how many there are */
    int64_t nodes;          /* of base and additions */
    basin_near_node **node; /* [nodes] NULL: as in the base */
    size_t capacity;
    basin_dictionary id; /* of all nodes; where the base has no ids, of the added ones */
    double now;          /* the latest time of all edges */
    int64_t changes;     /* nodes that are changed or new */
    int64_t added_edges; /* entries of the main relation */
    size_t bytes;
} basin_near_graph;

struct basin_near_rows;

basin_status basin_near_graph_open(basin_near_graph *graph, const basin_network *base,
                                   const basin_nodes_ensemble *ensemble, basin_error *error);
void basin_near_graph_close(basin_near_graph *graph);
void basin_near_list_free(basin_near_list *list);
int64_t basin_near_find(const basin_near_graph *graph, const char *id);
/* Its id, or number in `text`. */
const char *basin_near_id(const basin_near_graph *graph, int64_t node, char text[BASIN_MAX_NODE]);
basin_near_list basin_near_sees(const basin_near_graph *graph, int relation, int64_t node,
                                bool seen);
/* Its lists along all relations that are walked, both ways where edges have a direction. */
static inline int basin_near_ways(const basin_near_graph *graph) {
    return basin_network_walked(graph->base) * (1 + graph->base->directed);
}
static inline basin_near_list basin_near_way(const basin_near_graph *graph, int way, int64_t node) {
    int ways = 1 + graph->base->directed;
    return basin_near_sees(graph, way / ways, node, way % ways);
}
/* Whether a node comes before another in lists and parts. */
bool basin_near_before(const basin_near_graph *graph, int64_t node, int64_t other);
/* How many neighbours of a list come before a node; `graph` NULL: by their numbers. */
int64_t basin_near_place(const basin_near_graph *graph, const basin_near_list *list, int64_t node);
/* Sorts nodes by it and keeps each once. */
basin_status basin_near_sort(int64_t *node, int64_t *count, const basin_near_graph *graph,
                             basin_error *error);
/* Entries of its lists along all relations. */
int64_t basin_near_degree(const basin_near_graph *graph, int64_t node);
static inline const float *basin_near_fact(const basin_near_list *list, int64_t i, int64_t facts) {
    int64_t e = list->entry ? list->entry[i] : list->first + i;
    return e < 0 ? list->own - (1 + e) * facts : list->fact + e * facts;
}
const float *basin_near_feature(const basin_near_graph *graph, int64_t node);
int8_t basin_near_known(const basin_near_graph *graph, int64_t node);
/* The subgraph of some nodes, sorted; `origin` leads back. It borrows the base's schema. */
basin_status basin_near_part(basin_network **part, const basin_near_graph *graph,
                             const int64_t *node, int64_t count, basin_error *error);
void basin_near_part_free(basin_network **part);
/* near_add.c: tables as CSV, or NULL, become additions. After an error everything is as it was;
 * `commit` (or NULL) runs when nothing else can fail. */
basin_status basin_near_add(basin_near_graph *graph, const struct basin_near_rows *rows,
                            const char *nodes, const char *edges, const basin_near_commit *commit,
                            basin_error *error);

/* A node's row and out-neighbours, with additions or without. */
static inline float *basin_node_row(const basin_node_table *t, int64_t node) {
    const basin_near_node *changed = t->grown ? t->grown->node[node] : NULL;
    return changed && changed->row ? changed->row + t->first : t->row + node * t->stride;
}
static inline basin_near_list basin_node_list(const basin_node_table *t, int relation,
                                              int64_t node) {
    const basin_relation *r = &t->network->relation[relation];
    if (t->grown) return basin_near_sees(t->grown, relation, node, false);
    return (basin_near_list){.count = r->row[node + 1] - r->row[node],
                             .col = r->col + r->row[node],
                             .fact = r->fact,
                             .first = r->row[node]};
}

/* ---- near_rows.c: inputs of network and trees, where states are kept ---- */

typedef struct basin_near_rows {
    const basin_near_graph *graph;
    const basin_nodes_model *model;
    bool network, trees;      /* which of them has a share; neither: nothing is kept */
    basin_node_inputs inputs; /* of the base, as the table */
    basin_tree_table table;
    float *scratch;
} basin_near_rows;

basin_status basin_near_rows_open(basin_near_rows *rows, const basin_near_graph *graph,
                                  const basin_nodes_model *model, size_t memory,
                                  basin_error *error);
void basin_near_rows_close(basin_near_rows *rows);
/* Numbers of a changed node: its rows of both tables. */
int64_t basin_near_rows_size(const basin_near_rows *rows);
/* A row of a node that is to change, as it is in the base. */
void basin_near_rows_begin(float *row, const basin_near_rows *rows, int64_t node);
/* Rows of changed nodes, by those of their neighbours. */
void basin_near_rows_renew(const basin_near_rows *rows, const int64_t *changed, int64_t count);
/* ---- near.c: scores ---- */

typedef struct basin_near_scorer basin_near_scorer;

/* Caps are set; `rows` are of the base. */
basin_status basin_near_scorer_new(basin_near_scorer **scorer, const basin_near_rows *rows,
                                   const basin_nodes_live_options *options, basin_error *error);
void basin_near_scorer_free(basin_near_scorer *scorer);
size_t basin_near_scorer_bytes(const basin_near_scorer *scorer);
/* Any number of threads at once, while nothing is added. */
basin_status basin_near_score(basin_nodes_live_score *score, basin_near_scorer *scorer,
                              int64_t node, basin_error *error);
/* The neighbourhood of a node as a network; free it with basin_near_part_free. */
basin_status basin_near_around(basin_network **part, int64_t *place, basin_near_scorer *scorer,
                               int64_t node, basin_error *error);

/* drift.c: of some of its nodes, as basin_nodes_drift_new. */
basin_status basin_nodes_drift_near(basin_nodes_drift **drift, const basin_nodes_model *model,
                                    const basin_near_graph *graph, const int64_t *node,
                                    int64_t count, basin_error *error);

#endif
