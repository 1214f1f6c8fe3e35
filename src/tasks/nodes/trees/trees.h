/* Boosted trees by XGBoost's C API, opened at run time (Debian's libxgboost0 or pip's xgboost). Two
 * classes, one logit per row. A fit runs on one thread: its bits depend only on rows and seed.
 * Callers run several fits at once; predictions use all threads. */
#ifndef BASIN_TRAIN_TREES_TREES_H
#define BASIN_TRAIN_TREES_TREES_H

#include "tasks/common/run/run.h"

/* The measure on validation that stops it. */
typedef enum basin_trees_stop {
    BASIN_TREES_BY_LOSS,
    BASIN_TREES_BY_RANKS, /* AUROC + AUPRC */
    BASIN_TREES_BY_AUPRC,
} basin_trees_stop;

typedef struct basin_trees_spec {
    int64_t rounds;   /* at most */
    int64_t patience; /* rounds that validation may take to improve; 0: all rounds are kept */
    basin_trees_stop stop;
    int64_t leaves;       /* of a tree; 0: as many as `depth` allows, level by level */
    int64_t depth;        /* of a leaf */
    int64_t bins;         /* of a column; 64 do as well as 256 on the sets of docs/anomaly.md */
    double rate;          /* how much of its step a tree takes */
    double l2;            /* added to the second derivative of a leaf */
    double min_hessian;   /* that a leaf must have */
    double rows, columns; /* shares that a tree sees */
    int64_t forest;       /* trees of a round, whose mean is its step; 0: one */
    double split_columns; /* share that a split sees; 0: all of the tree's */
    uint64_t seed;
} basin_trees_spec;

/* For tables of a few thousand rows. */
extern const basin_trees_spec BASIN_TREES_DEFAULT;

/* Rows to train on, followed by rows that decide when to stop. */
typedef struct basin_trees_data {
    const float *x;       /* [trains + validations, stride] finite, or NaN for a gap */
    const uint8_t *label; /* [trains + validations] 0 or 1 */
    double weight[2];     /* how much a row of each class counts */
    int64_t features;     /* the first of each row's `stride` columns */
    int64_t stride;
    int64_t trains, validations;
    const float *target; /* [trains] probabilities in place of labels, all of weight 1; or NULL */
} basin_trees_data;

typedef struct basin_trees basin_trees;

/* BASIN_UNSUPPORTED where XGBoost is absent: the error says how to install it. */
basin_status basin_trees_available(basin_error *error);

basin_status basin_trees_fit(basin_trees **trees, const basin_trees_data *data,
                             const basin_trees_spec *spec, const basin_watch *watch,
                             basin_error *error);
void basin_trees_free(basin_trees *trees);
int64_t basin_trees_features(const basin_trees *trees); /* columns that it reads */
int64_t basin_trees_rounds(const basin_trees *trees);

/* Logits of `rows` rows. */
basin_status basin_trees_predict(double *logit /* [rows] */, const basin_trees *trees,
                                 const float *x /* [rows, stride] */, int64_t rows, int64_t stride,
                                 basin_error *error);
/* Shapley values of each column, from the expectation over the training rows, which is the last
 * column; rows add up to the logits. A network has integrated gradients from the first row, and 0
 * in the last column. */
basin_status basin_trees_shapley(float *value /* [rows, features + 1] */, const basin_trees *trees,
                                 const float *x /* [rows, stride] */, int64_t rows, int64_t stride,
                                 basin_error *error);

/* As the tensor PREFIXxgboost of a model file: bytes in XGBoost's UBJSON. */
basin_status basin_trees_store(basin_bundle *bundle, const char *prefix, const basin_trees *trees,
                               basin_error *error);
basin_status basin_trees_load(basin_trees **trees, const basin_bundle *bundle, const char *prefix,
                              basin_error *error);

/* A fit of earlier versions: an Energy Transformer over rows, with pieces of columns in groups as
 * tokens, and members that share all weights but scales and shifts (TabM). The functions above
 * accept it, except basin_trees_rounds. A network computes for one thread at a time. */
typedef struct basin_row_net basin_row_net;

/* Reads the tensor PREFIXnet; NULL where there is none. */
basin_status basin_row_net_load(basin_row_net **net, const basin_bundle *bundle, const char *prefix,
                                basin_error *error);
basin_status basin_row_net_store(basin_bundle *bundle, const char *prefix, const basin_row_net *net,
                                 basin_error *error);
void basin_row_net_free(basin_row_net *net);
int64_t basin_row_net_features(const basin_row_net *net);
basin_status basin_row_net_predict(double *logit, basin_row_net *net, const float *x, int64_t rows,
                                   int64_t stride, basin_error *error);
basin_status basin_row_net_moves(float *value, basin_row_net *net, const float *x, int64_t rows,
                                 int64_t stride, basin_error *error);

#endif
