/* Models of classes as callers see them; see include/basin/tasks/node.h. */
#include "task/node/node.h"

#include <stdlib.h>

#include "base/memory.h"
#include "task/anomaly/classes/classes.h"

basin_status basin_node_open(basin_node_model **model, const char *path, basin_backend *backend,
                             basin_error *error) {
    return basin_anomaly_open_as(model, &basin_node_task, path, backend, error);
}

void basin_node_close(basin_node_model *model) { basin_anomaly_close(model); }

basin_status basin_node_write(const char *path, const basin_node_model *model, basin_error *error) {
    return basin_anomaly_write(path, model, error);
}

basin_status basin_node_train(basin_node_model **model, basin_outcome *outcome,
                              const basin_settings *settings, const basin_node_data *data,
                              const basin_training *training, basin_error *error) {
    return basin_anomaly_train_by(model, outcome, &basin_node_task, settings, data, training,
                                  error);
}

basin_status basin_node_predict(double *probability, const basin_node_model *model,
                                const basin_network *network, const basin_node_work *work,
                                basin_error *error) {
    return basin_anomaly_score(probability, model, network, work, error);
}

/* ---- asking ---- */

const basin_settings *basin_node_get_settings(const basin_node_model *model) {
    return basin_anomaly_get_settings(model);
}

const basin_schema *basin_node_get_schema(const basin_node_model *model) {
    return basin_anomaly_get_schema(model);
}

int64_t basin_node_parameters(const basin_node_model *model) {
    return basin_anomaly_parameters(model);
}

int64_t basin_node_members(const basin_node_model *model) { return basin_anomaly_members(model); }
int64_t basin_node_nodes(const basin_node_model *model) { return basin_anomaly_nodes(model); }
int64_t basin_node_classes(const basin_node_model *model) { return model->settings.classes; }

const char *basin_node_class(const basin_node_model *model, int64_t number) {
    const basin_names *names = &model->class_name;
    return number >= 0 && number < names->count ? names->text + names->at[number] : NULL;
}

const char *basin_node_trained_on(const basin_node_model *model) {
    return basin_anomaly_trained_on(model);
}

const double *basin_node_probabilities(const basin_node_model *model) { return model->score; }

const basin_score *basin_node_reached(const basin_node_model *model, int part) {
    return basin_anomaly_reached(model, part);
}

/* ---- figures ---- */

static basin_status classes_of(int32_t **class_of, const basin_node_model *model,
                               const basin_network *network, basin_error *error) {
    *class_of = basin_array_new((size_t)network->nodes, sizeof **class_of);
    if (!*class_of) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for classes");
    if (!network->label)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no labels to compare with", network->path);
    return basin_classes_of(*class_of, model, network, error);
}

basin_status basin_node_measure(basin_score *score, const double *probability,
                                const basin_node_model *model, const basin_network *network,
                                const uint8_t *part, int which, basin_error *error) {
    int32_t *class_of = NULL;
    basin_status status = classes_of(&class_of, model, network, error);
    if (!status)
        status = basin_classes_measure(score, probability, class_of, model->settings.classes, part,
                                       which, network->nodes, error);
    free(class_of);
    return status;
}

basin_status basin_node_confusion(int64_t *matrix, const double *probability,
                                  const basin_node_model *model, const basin_network *network,
                                  const uint8_t *part, int which, basin_error *error) {
    int32_t *class_of = NULL;
    basin_status status = classes_of(&class_of, model, network, error);
    if (!status)
        basin_classes_confusion(matrix, probability, class_of, model->settings.classes, part, which,
                                network->nodes);
    free(class_of);
    return status;
}

/* ---- reasons ---- */

basin_status basin_node_explain(basin_node_explanation **explanation, const basin_node_model *model,
                                const basin_network *network, int64_t node, int64_t number,
                                const basin_node_work *work, basin_error *error) {
    *explanation = NULL;
    if (number < 0 || number >= model->settings.classes)
        return basin_fail(error, BASIN_BAD_VALUE, "class %lld, wanted 0 to %lld", (long long)number,
                          (long long)model->settings.classes - 1);
    /* A detector of that class: the odds of it against all others. */
    basin_anomaly_model one = *model;
    one.settings.focus = number + 1;
    one.face.values = &one.settings;
    return basin_anomaly_explain(explanation, &one, network, node, work, error);
}

void basin_node_explanation_free(basin_node_explanation *explanation) {
    basin_anomaly_explanation_free(explanation);
}
