/* Graph sets inside the library: files, walks, positions, encodings, batches, folds. */
#ifndef BASIN_DATA_GRAPHSET_GRAPHSET_H
#define BASIN_DATA_GRAPHSET_GRAPHSET_H

/* What nearly every file needs of the C library. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "basin/tasks/graphset.h"

/* Whether starts [count + 1] rise from 0 to `total`. */
static inline bool basin_starts_rise(const int64_t *start, int64_t count, int64_t total) {
    bool rise = start[0] == 0 && start[count] == total;
    for (int64_t i = 0; i < count && rise; i++) rise = start[i] <= start[i + 1];
    return rise;
}
/* Errors, with this status: numbers that are not finite (`missing`: NaN may stand for an unknown
 * one); a split of sizes that do not make up the set; more columns of labels than an encoding has.
 */
basin_status basin_reals_check(const float *number, int64_t count, bool missing, const char *name,
                               const char *path, basin_status status, basin_error *error);
basin_status basin_graphset_check_sizes(const basin_graphset *set, const char *path,
                                        basin_status status, basin_error *error);
/* The names of `count` columns in a text "logS\nlogP", or, with class_value, the words of classes
 * in "activity\n\tno\n\tyes"; one block to free. */
basin_status basin_column_names(char ***name, const char *columns, const int64_t *class_value,
                                int64_t count, basin_error *error);
/* Sets columns and column, when classes and targets are known. */
basin_status basin_graphset_name_columns(basin_graphset *set, const char *columns,
                                         basin_error *error);

/* Whether a value is censored: 1 where it is above its limit, -1 where below; 0: it is not. */
static inline int basin_graphset_side(const basin_graphset *set, int64_t graph, int64_t target) {
    const float *own = set->limit ? set->limit + 2 * set->targets * graph + target : NULL;
    return !own ? 0 : !isnan(own[0]) ? 1 : isnan(own[set->targets]) ? 0 : -1;
}

/* Numbers that are equal for equal graphs, and hardly ever for others; `graph` NULL: the first. */
basin_status basin_graphset_prints(int64_t *print, const basin_graphset *set, const int64_t *graph,
                                   int64_t count, basin_error *error);

/* Makes one molecule of all copies, with the mean of their values, or the class that more of them
 * have; `undecided`: how many have none. Only for sets that own their arrays. */
basin_status basin_graphset_merge(int64_t *undecided, basin_graphset *set, const int64_t *copy,
                                  basin_error *error);

/* The edge attributes, followed by walks along the edges, [edges, columns + walks]; only for graphs
 * first .. first + count - 1, zeros for the others. The caller frees them. */
basin_status basin_graphset_edge_walks(float **value, const basin_graphset *set, int64_t walks,
                                       int64_t first, int64_t count, basin_error *error);

/* A packed set or ZINC, whichever the bundle holds; takes the bundle over. */
basin_status basin_graphset_from_bundle(basin_graphset *set, basin_bundle *bundle, const char *path,
                                        basin_error *error);
basin_status basin_graphset_from_zinc(basin_graphset *set, const basin_bundle *bundle,
                                      basin_error *error);
/* A TUDataset; `bare`: without classes and values of graphs, which are not even looked at. */
basin_status basin_graphset_open_tu(basin_graphset *set, const char *path, bool bare,
                                    basin_error *error);
/* An archive of a TUDataset in memory. */
basin_status basin_graphset_parse_tu(basin_graphset *set, const void *data, size_t size,
                                     const char *path, bool bare, basin_error *error);

/* ---- positions ---- */

/* One graph of `nodes` and edges [count, 2] (their directions do not matter): rows [nodes + 1,
 * width] of basin_positions. */
basin_status basin_positions_of(float *value, const basin_position_options *spec, int64_t nodes,
                                const int32_t *edge, int64_t count, basin_error *error);

/* ---- features ---- */

enum { BASIN_MAX_LABELS = 32 };

/* One column of labels: first .. first + count - 1 become one-hot; others have all zeros. */
typedef struct basin_label_column {
    int32_t first, count;
    uint64_t unseen[4]; /* bits of the first 256 that no training graph has */
} basin_label_column;

/* Whether training had this label. */
static inline bool basin_label_known(const basin_label_column *column, int32_t label) {
    int64_t at = (int64_t)label - column->first;
    if (at < 0 || at >= column->count) return false;
    return at >= 256 || !(column->unseen[at / 64] >> at % 64 & 1);
}

/* How nodes and edges become numbers. Learnt from the training graphs, kept in the model file. */
typedef struct basin_graphset_encoding {
    int64_t attributes, labels, edge_attributes, edge_labels; /* columns a set must have */
    basin_label_column label[BASIN_MAX_LABELS], edge_label[BASIN_MAX_LABELS];
    float *mean, *scale;   /* [attributes + edge_attributes] features are (a - mean) * scale */
    bool raw;              /* labels as plain numbers, as published for ZINC, not one-hot */
    int64_t degrees;       /* a node's degree, one-hot, the last for all higher; 0: none */
    bool edge_sums;        /* a node's edges added up, feature by feature, times 1/4 */
    bool no_cls_self;      /* the CLS has no pair with itself */
    int64_t features;      /* F; a constant 1 where there is nothing else */
    int64_t edge_features; /* P; at least 1 */
} basin_graphset_encoding;

typedef struct basin_encoding_spec {
    bool raw, standardise, edge_sums;
    int64_t degrees; /* where the set has no node labels and no attributes 32 at least, unless it is
                        0; -1: 0 elsewhere */
} basin_encoding_spec;

basin_status basin_graphset_encoding_new(basin_graphset_encoding *encoding,
                                         const basin_graphset *set, const int64_t *graph,
                                         int64_t count, const basin_encoding_spec *spec,
                                         basin_error *error);
/* Sets features and edge_features from the other fields. */
void basin_graphset_encoding_count(basin_graphset_encoding *encoding);
void basin_graphset_encoding_free(basin_graphset_encoding *encoding);

/* ---- batches ---- */

/* Graphs laid out for basin_graph_net_batch, without padding. */
typedef struct basin_graphset_batch {
    int64_t graphs, nodes, tokens;
    int64_t capacity[3];                      /* of the arrays: graphs, tokens, pairs */
    int64_t features, edge_features, width;   /* F, P, k */
    float *feature;                           /* [nodes, F] */
    float *position;                          /* [tokens, k] */
    float *edge_feature;                      /* [pairs, P] in the order of `pairs` */
    float *share;                             /* [graphs] */
    float *strength;                          /* [pairs] 1 / sqrt of its tokens' pairs */
    int32_t *source, *before, *after, *owner; /* [tokens] */
    int32_t *first;                           /* [graphs] */
    basin_pairs pairs;
} basin_graphset_batch;

/* Nodes of a graph that a model sees. */
static inline int64_t basin_graphset_nodes(const basin_graphset *set, int64_t graph) {
    int64_t nodes = set->node_start[graph + 1] - set->node_start[graph];
    return set->max_nodes && nodes > set->max_nodes ? set->max_nodes : nodes;
}
/* Whether both ends of an edge are below `nodes`. */
static inline bool basin_graphset_inside(const basin_graphset *set, int64_t edge, int64_t nodes) {
    return set->edge[2 * edge] < nodes && set->edge[2 * edge + 1] < nodes;
}
/* Tokens and pairs that a graph takes; with `no_cls_self` it is one pair less. */
static inline int64_t basin_graphset_tokens(const basin_graphset *set, int64_t graph) {
    return basin_graphset_nodes(set, graph) + 1;
}
int64_t basin_graphset_pairs(const basin_graphset *set, int64_t graph);
/* Fills the batch with the given graphs, growing it where needed. With `flip`, each eigenvector of
 * each graph gets a random sign, a pure function of (seed, epoch, graph); otherwise the sign is
 * that of the positions, which a fixed rule chose. */
basin_status basin_graphset_batch_fill(basin_graphset_batch *batch, const basin_graphset *set,
                                       const basin_graphset_encoding *encoding,
                                       const basin_positions *positions, const int64_t *graph,
                                       int64_t count, bool flip, uint64_t seed, uint64_t epoch,
                                       basin_error *error);
/* The same tokens with all pairs within each graph, only features and pairs; zeros for new
 * pairs. */
basin_status basin_graphset_batch_all(basin_graphset_batch *all, const basin_graphset_batch *batch,
                                      basin_error *error);
void basin_graphset_batch_free(basin_graphset_batch *batch);

/* ---- folds ---- */

/* The first item of the group of each; NULL: its own. */
basin_status basin_groups_first(int64_t *first, const int64_t *group, int64_t count,
                                basin_error *error);
/* Moves a stratified fraction `inner` of the training items to validation, where that is empty:
 * part number `which` of the possible ones, modulo their count; `number` is the fold's. Items of
 * one `group` (numbers of items, those of the first of each; NULL: each its own) stay together. */
basin_status basin_fold_part(basin_fold *fold, const int32_t *class_of, const int64_t *group,
                             double inner, uint64_t seed, int64_t number, int64_t which,
                             basin_error *error);

#endif
