/* One tree: features as bins, sums of gradients by bin, splits. */
#ifndef BASIN_TRAIN_TREES_GROW_H
#define BASIN_TRAIN_TREES_GROW_H

#include "train/trees/trees.h"

enum { BASIN_TREE_BINS = 255 };

/* Features as bins: code[f * rows + r] counts the cuts of feature f that lie below row r's value,
 * so that "code <= b" is "x <= cut[b]". Rows are those that train, then those that validate. */
typedef struct basin_binned {
    int64_t rows, trains, features;
    uint8_t *code;  /* [F, rows] */
    int64_t *start; /* [F + 1] where a feature's bins begin among all bins */
    float *cut;     /* [start[F]]; a feature has one cut fewer than bins */
} basin_binned;

basin_status basin_binned_new(basin_binned *binned, const basin_trees_data *data,
                              basin_error *error);
void basin_binned_free(basin_binned *binned);

typedef struct basin_gradient {
    double slope, curve;
} basin_gradient;

/* What growing a tree needs besides its gradients; allocated once for all trees. */
typedef struct basin_grower {
    const basin_binned *binned;
    const basin_trees_spec *spec;
    int32_t *row;            /* [trains] rows by leaf */
    int32_t *aside;          /* [trains] */
    uint8_t *seen;           /* [F] whether this tree may use the feature */
    basin_gradient *sums;    /* [leaves, bins of all features] */
    struct basin_leaf *leaf; /* [leaves] */
} basin_grower;

basin_status basin_grower_new(basin_grower *grower, const basin_binned *binned,
                              const basin_trees_spec *spec, basin_error *error);
void basin_grower_free(basin_grower *grower);

/* Appends a tree to `trees`, fitted to the gradients of the training rows. `draw` numbers it: which
 * rows and columns it sees. */
basin_status basin_grower_grow(basin_grower *grower, basin_trees *trees,
                               const basin_gradient *gradient /* [trains] */, int64_t draw,
                               basin_error *error);
/* Adds the last tree's values to a score of each row. */
void basin_grower_apply(const basin_grower *grower, const basin_trees *trees,
                        double *score /* [rows], every stride-th */, int64_t stride);

#endif
