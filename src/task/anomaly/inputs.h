/* What a model reads of a network: the table of inputs, relations, weights of nodes. */
#ifndef BASIN_TASK_ANOMALY_INPUTS_H
#define BASIN_TASK_ANOMALY_INPUTS_H

#include "task/anomaly/net.h"

/* A network seen through a settings. */
typedef struct basin_node_inputs {
    const basin_network *network;
    const basin_anomaly_settings *settings;
    int relation[BASIN_ANOMALY_RELATIONS];       /* numbers of the network's relations */
    int64_t features;                            /* and degrees, before the means */
    float *raw;                                  /* [N, features] unscaled */
    float *table;                                /* [N, shape.columns] */
    float *node_weight[BASIN_ANOMALY_RELATIONS]; /* [N], where the settings asks for them */
    float *eigenvectors;                         /* [N, k], likewise */
    basin_anomaly_shape shape;                   /* of the whole network */
} basin_node_inputs;

/* Everything but the table, which wants a scale. */
basin_status basin_node_inputs_open(basin_node_inputs *inputs, const basin_network *network,
                                    const basin_anomaly_settings *settings, basin_error *error);
/* Fits a scale on some nodes. */
basin_status basin_node_inputs_fit(basin_scaler *scale, const basin_node_inputs *inputs,
                                   const int64_t *node, int64_t nodes, basin_error *error);
/* Makes the table; the raw columns are no longer there afterwards. */
basin_status basin_node_inputs_scale(basin_node_inputs *inputs, const basin_scaler *scale,
                                     basin_error *error);
void basin_node_inputs_close(basin_node_inputs *inputs);
/* What the network and its table take. */
size_t basin_node_inputs_bytes(const basin_node_inputs *inputs);

/* The relations of the settings as pairs; free each. */
basin_status basin_node_inputs_pairs(basin_pairs *pairs /* [relations] */,
                                     const basin_node_inputs *inputs, const basin_network *network,
                                     basin_error *error);

/* Scores all nodes of a network with given weights, on the whole graph at once or, where that does
 * not fit, streamed in blocks of nodes. */
typedef struct basin_anomaly_scorer basin_anomaly_scorer;
basin_status basin_anomaly_scorer_new(basin_anomaly_scorer **scorer,
                                      const basin_node_inputs *inputs, size_t memory,
                                      const basin_anomaly_work *work, basin_error *error);
bool basin_anomaly_scorer_streams(const basin_anomaly_scorer *scorer);
/* What a stream takes while it runs; 0 of a plan of the whole graph. */
size_t basin_anomaly_scorer_bytes(const basin_anomaly_scorer *scorer);
void basin_anomaly_scorer_free(basin_anomaly_scorer *scorer);
/* `weights` has every parameter of the member under `prefix` + its name. */
basin_status basin_anomaly_scorer_run(basin_anomaly_scorer *scorer, double *probability /* [N] */,
                                      int64_t member, basin_store *weights, const char *prefix,
                                      basin_error *error);

/* Bytes that may be used: what was asked for, or three quarters of what is free; none where
 * the least was. */
size_t basin_anomaly_memory_limit(const basin_anomaly_work *work);

#endif
