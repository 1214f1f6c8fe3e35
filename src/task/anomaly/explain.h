/* Why a node scores as it does. */
#ifndef BASIN_TASK_ANOMALY_EXPLAIN_H
#define BASIN_TASK_ANOMALY_EXPLAIN_H

#include "task/anomaly/anomaly.h"

typedef struct basin_explained_neighbour {
    int64_t node;
    double share;    /* of the node's attention, mean over heads, blocks and relations */
    double returned; /* of this neighbour's own attention that the node gets */
    double push;     /* gradient of the logit along this neighbour's inputs times these inputs */
    double probability;
} basin_explained_neighbour;

typedef struct basin_explained_feature {
    int64_t column; /* of the network's features; beyond them the degree in a relation */
    int64_t hop;    /* 0: its own, 1: the mean over its neighbours, ... */
    double value;   /* as the model reads it: scaled */
    double typical; /* the mean over all nodes */
    double share;   /* of the logit's distance from that of a typical node (integrated gradients) */
} basin_explained_feature;

typedef struct basin_explanation {
    int64_t node;
    double probability, threshold;
    int64_t rank;                       /* 1: the highest of all nodes */
    double logit, typical_logit;        /* with its inputs replaced by typical ones */
    bool has_energy;                    /* of form energy */
    double energy, attention, hopfield; /* at the end of the descent */
    double energy_mean, energy_deviation;
    double energy_below; /* the part of all nodes with a lower energy */
    int64_t neighbours, features;
    basin_explained_neighbour *neighbour; /* [neighbours] by falling share */
    basin_explained_feature *feature;     /* [features] by falling size of their share */
    bool nearby; /* the graph did not fit: looked at the node's neighbourhood alone */
} basin_explanation;

basin_status basin_anomaly_explain(basin_explanation *explanation,
                                   const basin_anomaly_detector *detector,
                                   const basin_network *network, int64_t node,
                                   const basin_anomaly_work *work, basin_error *error);
void basin_explanation_free(basin_explanation *explanation);

#endif
