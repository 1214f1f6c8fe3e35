/* What a model remembers of its training, in its file: when, by which version, on what; how many
 * nodes and anomalies; what validation reached; and which nodes they were, under hashes of their
 * ids, so that nobody judges it by labels that it was trained on without being told. */
#ifndef BASIN_TASK_NODES_AFTER_CARD_H
#define BASIN_TASK_NODES_AFTER_CARD_H

#include "basin/tasks/nodes.h"
#include "task/nodes/ensemble/known.h"

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

#endif
