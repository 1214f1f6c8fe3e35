/* Labels of training nodes, by which trees look at a node's neighbours. They are looked up by the
 * ids of nodes, so that tomorrow's table finds them, too; nodes without ids go by number, in the
 * network of training alone. Labels of the network that is scored are never looked at. */
#ifndef BASIN_TASK_ANOMALY_ENSEMBLE_KNOWN_H
#define BASIN_TASK_ANOMALY_ENSEMBLE_KNOWN_H

#include "data/network/network.h"

typedef struct basin_known_labels {
    int64_t count;
    uint64_t *id;         /* [count] hashes, ascending */
    uint8_t *label;       /* [count] */
    bool named;           /* by ids; else by number */
    int64_t nodes, edges; /* of the network of training */
} basin_known_labels;

/* Those of the nodes of part `which`. */
basin_status basin_known_labels_take(basin_known_labels *known, const basin_network *network,
                                     const uint8_t *part /* [N] */, int which, basin_error *error);
void basin_known_labels_free(basin_known_labels *known);
/* Whether nodes of the network can be told: both have ids, or it is the network of training. */
bool basin_known_labels_fit(const basin_known_labels *known, const basin_network *network);
/* Fills `label` [N] with 0, 1, or -1 where none is known; returns how many are. */
int64_t basin_known_labels_find(int8_t *label, const basin_known_labels *known,
                                const basin_network *network);

/* ---- what a row has of them ---- */

/* Known neighbours of each node, along one relation. */
typedef struct basin_known_sums {
    float *anomalous, *count; /* [N] */
} basin_known_sums;

void basin_known_sums_fill(basin_known_sums *sums, const int8_t *label,
                           const basin_relation *relation, int64_t nodes);
/* The share of anomalies among a node's known neighbours, and the mean of that share over its
 * neighbours, to which the node itself does not count; both drawn towards `rate`. Where edges are
 * not directed, whom a node sees sees it, too. */
void basin_known_shares(float share[2], const basin_known_sums *sums, const int8_t *label,
                        const basin_relation *relation, bool directed, int64_t node, double rate);

/* ---- files ---- */

/* As PREFIXid, PREFIXlabel, ..; one that was not stored is loaded as none. */
basin_status basin_known_labels_store(basin_bundle *bundle, const char *prefix,
                                      const basin_known_labels *known, basin_error *error);
basin_status basin_known_labels_load(basin_known_labels *known, const basin_bundle *bundle,
                                     const char *prefix, basin_error *error);

#endif
