/* What a model reads of a network: the table of inputs, relations, weights of nodes. */
#ifndef BASIN_TASK_ANOMALY_INPUTS_H
#define BASIN_TASK_ANOMALY_INPUTS_H

#include "task/anomaly/net.h"

/* A network seen through a recipe. */
typedef struct basin_view {
    const basin_network *network;
    const basin_anomaly_settings *recipe;
    int relation[BASIN_ANOMALY_RELATIONS];       /* numbers of the network's relations */
    int64_t features;                            /* and degrees, before the means */
    float *raw;                                  /* [N, features] unscaled */
    float *table;                                /* [N, shape.columns] */
    float *node_weight[BASIN_ANOMALY_RELATIONS]; /* [N], where the recipe asks for them */
    float *eigenvectors;                         /* [N, k], likewise */
    basin_net_shape shape;                       /* of the whole network */
} basin_view;

/* Everything but the table, which wants a scale. */
basin_status basin_view_open(basin_view *view, const basin_network *network,
                             const basin_anomaly_settings *recipe, basin_error *error);
/* Fits a scale on some nodes. */
basin_status basin_view_fit(basin_scaler *scale, const basin_view *view, const int64_t *node,
                            int64_t nodes, basin_error *error);
/* Makes the table; the raw columns are no longer there afterwards. */
basin_status basin_view_scale(basin_view *view, const basin_scaler *scale, basin_error *error);
void basin_view_close(basin_view *view);
/* What the network and its table take. */
size_t basin_view_bytes(const basin_view *view);

/* The relations of the recipe as pairs; free each. */
basin_status basin_view_pairs(basin_pairs *pairs /* [relations] */, const basin_view *view,
                              const basin_network *network, basin_error *error);

/* Scores all nodes of a view with given weights, on the whole graph at once or, where that does not
 * fit, streamed in blocks of nodes. */
typedef struct basin_scorer basin_scorer;
basin_status basin_scorer_new(basin_scorer **scorer, const basin_view *view, size_t memory,
                              const basin_anomaly_work *work, basin_error *error);
bool basin_scorer_streams(const basin_scorer *scorer);
/* What a stream takes while it runs; 0 of a plan of the whole graph. */
size_t basin_scorer_bytes(const basin_scorer *scorer);
void basin_scorer_free(basin_scorer *scorer);
/* `weights` has every parameter of the member under `prefix` + its name. */
basin_status basin_scorer_run(basin_scorer *scorer, double *probability /* [N] */, int64_t member,
                              basin_store *weights, const char *prefix, basin_error *error);

/* Bytes that may be used: what was asked for, or three quarters of what is free; none where
 * the least was. */
size_t basin_memory_limit(const basin_anomaly_work *work);

#endif
