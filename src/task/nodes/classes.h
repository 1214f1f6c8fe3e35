/* Several classes of nodes: which there are, what they are called, what is learned of them and how
 * well. A detector of anomalies has none of this. */
#ifndef BASIN_TASK_NODES_CLASSES_H
#define BASIN_TASK_NODES_CLASSES_H

#include "task/nodes/fit.h"

/* Whether a task tells classes apart; else it is the detector's. */
bool basin_classes_several(const basin_task_settings *task);

/* The classes of the training nodes become the model's, by the order of their labels; every node's
 * class. */
basin_status basin_classes_take(basin_nodes_fitting *fit, basin_error *error);
/* Fills labels and weights: a node counts by the setting `balance`. */
void basin_classes_weigh(basin_nodes_fitting *fit);
/* The model's number of each node's class, -1: it has no label, or a class that the model does not
 * know. */
basin_status basin_classes_of(int32_t *class_of /* [N] */, const basin_nodes_model *model,
                              const basin_network *network, basin_error *error);

/* "accuracy", "macro_f1", "auroc" (the mean over classes of each against the others) and "loss",
 * the mean of -log p; more than that as a tie. A class that the model does not know is a mistake.
 */
basin_status basin_classes_measure(basin_score *score, const double *probability /* [N, C] */,
                                   const int32_t *class_of /* [N] */, int64_t classes,
                                   const uint8_t *part /* [N] */, int which, int64_t nodes,
                                   basin_error *error);
/* matrix[truth * C + prediction] over the nodes of a part; those of unknown class are left out. */
void basin_classes_confusion(int64_t *matrix /* [C, C] */, const double *probability /* [N, C] */,
                             const int32_t *class_of /* [N] */, int64_t classes,
                             const uint8_t *part /* [N] */, int which, int64_t nodes);
/* The class of the highest probability. */
int32_t basin_classes_best(const double *probability /* [C] */, int64_t classes);

/* Names, to and from a model file's metadata. */
basin_status basin_classes_store(basin_bundle *bundle, const basin_nodes_model *model,
                                 basin_error *error);
basin_status basin_classes_load(basin_nodes_model *model, const basin_bundle *bundle,
                                basin_error *error);

#endif
