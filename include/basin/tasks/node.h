/* Classes of nodes of a graph: a model learns from the labelled nodes of a network, which may be of
 * any number of classes, and gives every node of this network, or of another with the same
 * features, a probability of each.
 *
 *     basin_node_model *model;
 *     if (basin_node_open(&model, "model.safetensors", backend, &error) ||
 *         basin_node_predict(probability, model, network, NULL, &error))
 *         return fprintf(stderr, "%s\n", error.text), 1;
 *     ... node i is of class c with probability[i * basin_node_classes(model) + c] ...
 *     basin_node_close(model);
 *
 * Training takes settings, data and a basin_training, as that of a detector does (basin/tasks/
 * anomaly.h), which is the case of two classes with a threshold:
 *
 *     basin_settings_new(&settings, "node", NULL, &error);
 *     basin_node_data data = {.size = sizeof data, .network = network};
 *     basin_training training = {.size = sizeof training, .backend = backend,
 *                                .output = "model.safetensors"};
 *     basin_node_train(NULL, &outcome, settings, &data, &training, &error);
 * */
#ifndef BASIN_TASKS_NODE_H
#define BASIN_TASKS_NODE_H

#include "basin/tasks/anomaly.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One model, one kind of data, work and reasons for both tasks of nodes; what a file holds says of
 * which it is. */
typedef basin_anomaly_model basin_node_model;
typedef basin_anomaly_data basin_node_data;
typedef basin_anomaly_work basin_node_work;
typedef basin_anomaly_explanation basin_node_explanation;

/* ---- models ---- */

/* Reads a model file. `backend` must stay open as long as the model. */
BASIN_API basin_status basin_node_open(basin_node_model **model, const char *path,
                                       basin_backend *backend, basin_error *error);
BASIN_API void basin_node_close(basin_node_model *model);
BASIN_API basin_status basin_node_write(const char *path, const basin_node_model *model,
                                        basin_error *error);
/* What it is: its settings, with everything that training chose. */
BASIN_API const basin_settings *basin_node_get_settings(const basin_node_model *model);
/* What the columns of its training meant, for basin_network_options. */
BASIN_API const basin_schema *basin_node_get_schema(const basin_node_model *model);
/* Numbers that one of its members learned; how many members are averaged; nodes of the network that
 * it was trained on. */
BASIN_API int64_t basin_node_parameters(const basin_node_model *model);
BASIN_API int64_t basin_node_members(const basin_node_model *model);
BASIN_API int64_t basin_node_nodes(const basin_node_model *model);
/* How many classes it tells apart, and what one is called: as the labels of training had it. NULL:
 * there is none of that number. */
BASIN_API int64_t basin_node_classes(const basin_node_model *model);
BASIN_API const char *basin_node_class(const basin_node_model *model, int64_t number);

/* ---- training ---- */

/* Trains; validation chooses the epoch. Classes are those of the training nodes, by the order of
 * their labels. After an interrupt the model holds what was learnt, and is NULL where there was no
 * first step. */
BASIN_API basin_status basin_node_train(basin_node_model **model, basin_outcome *outcome,
                                        const basin_settings *settings, const basin_node_data *data,
                                        const basin_training *training, basin_error *error);

/* Of a model that was trained just now, not read from a file: the probabilities of the network's
 * nodes, [N, C], NULL without validation nodes; what they reach on a part, see basin_node_measure,
 * NULL: there is no such node; what it was trained on, in words. */
BASIN_API const double *basin_node_probabilities(const basin_node_model *model);
BASIN_API const basin_score *basin_node_reached(const basin_node_model *model, int part);
BASIN_API const char *basin_node_trained_on(const basin_node_model *model);

/* ---- use ---- */

/* The probability of every node to be of each class. Nodes are seen with all their neighbours; a
 * graph that does not fit into the memory allowed is streamed. */
BASIN_API basin_status basin_node_predict(double *probability /* [N, C] */,
                                          const basin_node_model *model,
                                          const basin_network *network, const basin_node_work *work,
                                          basin_error *error);

/* Why a node is, or is not, of class `number`: an explanation of the odds of that class against all
 * others, in the words of a detector of it. */
BASIN_API basin_status basin_node_explain(basin_node_explanation **explanation,
                                          const basin_node_model *model,
                                          const basin_network *network, int64_t node,
                                          int64_t number, const basin_node_work *work,
                                          basin_error *error);
BASIN_API void basin_node_explanation_free(basin_node_explanation *explanation);

/* ---- figures ---- */

/* "accuracy", "macro_f1", "auroc" (mean over classes of each against the others) and "loss" (mean
 * of -log p) over the nodes of part `which`. Labels are the model's classes by name; a node of a
 * class that the model does not know counts as a mistake. */
BASIN_API basin_status basin_node_measure(
    basin_score *score, const double *probability /* [N, C] */, const basin_node_model *model,
    const basin_network *network, const uint8_t *part /* [N] */, int which, basin_error *error);
/* matrix[truth * C + prediction], counts of nodes; those of unknown class are left out. */
BASIN_API basin_status basin_node_confusion(int64_t *matrix /* [C, C] */,
                                            const double *probability /* [N, C] */,
                                            const basin_node_model *model,
                                            const basin_network *network,
                                            const uint8_t *part /* [N] */, int which,
                                            basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
