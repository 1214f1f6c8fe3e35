/* Explanations of ensembles: what trees add to that of a network. */
#ifndef BASIN_TASK_ANOMALY_ENSEMBLE_STORY_H
#define BASIN_TASK_ANOMALY_ENSEMBLE_STORY_H

#include "task/anomaly/inputs.h"

/* The network's logits become probabilities of both; `memory` as for basin_tree_table_open. */
basin_status basin_anomaly_story_mix(double *probability /* [N] */,
                                     const basin_anomaly_ensemble *ensemble,
                                     const basin_network *network, size_t memory,
                                     basin_error *error);
/* Features, logit and typical logit become those of both. */
basin_status basin_anomaly_story_tell(basin_anomaly_explanation *explanation,
                                      const basin_anomaly_ensemble *ensemble,
                                      const basin_node_inputs *inputs, size_t memory,
                                      basin_error *error);

#endif
