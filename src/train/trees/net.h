/* An Energy Transformer over rows of a table: piecewise-linear embeddings of columns, groups of
 * them as tokens, members that share all weights but input scales and shifts (TabM). */
#ifndef BASIN_TRAIN_TREES_NET_H
#define BASIN_TRAIN_TREES_NET_H

#include "train/trees/trees.h"

enum { BASIN_ROW_TOKENS = 32 };

struct basin_row_net_spec {
    int tokens;
    int64_t width[BASIN_ROW_TOKENS]; /* columns of each, one behind the other */
    int64_t members;
    uint64_t seed;
};

typedef struct basin_row_net basin_row_net;

basin_status basin_row_net_fit(basin_row_net **net, const basin_trees_data *data,
                               const basin_row_net_spec *spec, const basin_watch *watch,
                               basin_error *error);
void basin_row_net_free(basin_row_net *net);
int64_t basin_row_net_features(const basin_row_net *net);
/* Any number of threads at once. */
basin_status basin_row_net_predict(double *logit /* [rows] */, const basin_row_net *net,
                                   const float *x /* [rows, stride] */, int64_t rows,
                                   int64_t stride, basin_error *error);
/* Integrated gradients of each column between the embeddings of rows `from` and `to`. */
basin_status basin_row_net_moves(double *move /* [features] */, const basin_row_net *net,
                                 const float *from, const float *to, basin_error *error);
/* As the tensor PREFIXnet, F32. */
basin_status basin_row_net_store(basin_bundle *bundle, const char *prefix, const basin_row_net *net,
                                 basin_error *error);
/* NULL where there is none. */
basin_status basin_row_net_load(basin_row_net **net, const basin_bundle *bundle, const char *prefix,
                                basin_error *error);

#endif
