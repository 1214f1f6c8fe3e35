/* What a model remembers of its training, in its file: when, by which version, on what; how many
 * nodes and anomalies; what validation reached; and which nodes they were, under hashes of their
 * ids, so that nobody judges it by labels that it was trained on without being told. */
#ifndef BASIN_TASK_NODES_CARD_H
#define BASIN_TASK_NODES_CARD_H

#include "basin/tasks/nodes.h"
#include "data/network/network.h"
#include "task/nodes/ensemble.h"

typedef struct basin_nodes_memory {
    basin_nodes_card card; /* without a date: a file of earlier versions */
    /* Nodes of training (none where the ensemble knows their labels) and of validation. */
    basin_known_labels trained, validated;
} basin_nodes_memory;

/* At the beginning of a run. */
basin_status basin_nodes_memory_take(basin_nodes_memory *memory, const basin_network *network,
                                     const uint8_t *part /* [N] */, bool labels_known,
                                     basin_error *error);
/* At its end: what the finished probabilities reach on validation. */
basin_status basin_nodes_memory_judge(basin_nodes_memory *memory,
                                      const double *probability /* [N] */,
                                      const basin_network *network, const uint8_t *part /* [N] */,
                                      double threshold, basin_error *error);
void basin_nodes_memory_free(basin_nodes_memory *memory);

basin_status basin_nodes_memory_store(basin_bundle *bundle, const basin_nodes_memory *memory,
                                      basin_error *error);
basin_status basin_nodes_memory_load(basin_nodes_memory *memory, const basin_bundle *bundle,
                                     basin_error *error);

/* ---- How the columns of a network have moved since training: the population stability index over
 * bins that the nodes of training's network set: a bin a value where there are few, else ten of
 * about equal count, one for the least value, one below it. A category has a bin for none of its
 * values, too. */

enum { BASIN_DRIFT_EDGES = 10, BASIN_DRIFT_BINS = BASIN_DRIFT_EDGES + 2 };

/* What some columns looked like. */
typedef struct basin_drift_sketch {
    int64_t rows; /* columns */
    float *edge;  /* [rows, EDGES] ascending; the first is the least value */
    float *count; /* [rows, BINS] nodes, or edges */
} basin_drift_sketch;

/* What training's network looked like. */
typedef struct basin_nodes_reference {
    basin_drift_sketch node; /* a row a feature, then the number of neighbours; no rows: a file of
                                earlier versions */
    basin_drift_sketch fact; /* what edges carry (basin_facts_columns), where the model reads it */
} basin_nodes_reference;

basin_status basin_nodes_reference_take(basin_nodes_reference *reference,
                                        const basin_network *network, bool facts,
                                        basin_error *error);
void basin_nodes_reference_free(basin_nodes_reference *reference);
/* As tensors drift.edge and drift.count, drift.fact_edge and drift.fact_count; older files have
 * none. */
basin_status basin_nodes_reference_store(basin_bundle *bundle,
                                         const basin_nodes_reference *reference,
                                         basin_error *error);
basin_status basin_nodes_reference_load(basin_nodes_reference *reference,
                                        const basin_bundle *bundle, int64_t features,
                                        basin_error *error);

#endif
