/* Boosted trees: what a table is usually tried with first, as a rival and as a companion of the
 * networks. Each round fits a tree to the gradient and the curvature of the loss; features are
 * cut into at most 255 bins of equal count, so that a tree costs one pass over the rows and level.
 *
 * The same bits for any number of threads: threads share features, never the rows of a sum. */
#ifndef BASIN_TRAIN_TREES_TREES_H
#define BASIN_TRAIN_TREES_TREES_H

#include <stdint.h>

#include "basin/io.h"
#include "train/run/watch.h"

typedef struct basin_trees_spec {
    int64_t rounds;       /* at most so many */
    int64_t patience;     /* rounds that validation may take to improve; 0: all rounds are kept */
    bool ranks;           /* of 2 classes: improvement is of AUROC + AUPRC, else of the loss */
    int64_t leaves;       /* of a tree */
    int64_t depth;        /* of a leaf */
    double rate;          /* how much of its step a tree takes */
    double l2;            /* added to the curvature of a leaf */
    double least_hessian; /* that a leaf must have */
    double rows, columns; /* shares that a tree sees */
    int64_t classes;      /* 2: one score a row, the logit of class 1; else one a class */
    uint64_t seed;
} basin_trees_spec;

/* Made to do well on tables of a few thousand rows. */
extern const basin_trees_spec BASIN_TREES_DEFAULT;

/* A table and which of its rows teach and which tell when to stop. */
typedef struct basin_trees_data {
    const float *x;       /* [N, F] finite */
    const int32_t *label; /* [N] 0 .. classes - 1, for the rows below */
    const double *weight; /* [classes] how much a row of each class counts; NULL: 1 */
    int64_t features;     /* F */
    const int64_t *train; /* [trains] */
    int64_t trains;
    const int64_t *validation; /* [validations] */
    int64_t validations;
} basin_trees_data;

enum { BASIN_TREE_DEPTH = 64 }; /* of a leaf in a file, at most: explanations walk the way to it */

/* A leaf has no feature (-1). Rows with x[feature] <= threshold go to `child`, others to the node
 * behind it. */
typedef struct basin_tree_node {
    int32_t feature, child;
    float threshold, value;
} basin_tree_node;

typedef struct basin_trees {
    int64_t features, scores; /* F, numbers a row gets: 1, or one a class */
    double *base;             /* [scores] what a row scores without any tree */
    int64_t trees;            /* tree t belongs to score t % scores */
    int64_t *root;            /* [trees + 1] */
    size_t root_capacity;
    basin_tree_node *node; /* [root[trees]] */
    size_t node_capacity;
} basin_trees;

basin_status basin_trees_fit(basin_trees **trees, const basin_trees_data *data,
                             const basin_trees_spec *spec, const basin_watch *watch,
                             basin_error *error);
void basin_trees_free(basin_trees *trees);

/* Logits of `rows` rows. */
void basin_trees_predict(double *score /* [rows, scores] */, const basin_trees *trees,
                         const float *x /* [rows, F] */, int64_t rows);

/* As tensors PREFIXbase, PREFIXroot, PREFIXfeature, .. of a model file. */
basin_status basin_trees_store(basin_bundle *bundle, const char *prefix, const basin_trees *trees,
                               basin_error *error);
/* Checks every node: a file cannot lead outside the table, nor in circles. */
basin_status basin_trees_load(basin_trees **trees, const basin_bundle *bundle, const char *prefix,
                              basin_error *error);

#endif
