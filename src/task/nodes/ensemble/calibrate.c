/* Probabilities that are frequencies, and thresholds for a goal: both from the validation nodes,
 * which the model keeps; see anomaly.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "task/nodes/nodes.h"

enum { KEPT = 16384 }; /* validation nodes in a model file, at most */

/* ---- calibration ---- */

/* Isotonic lines have flat parts; a trace of the probability itself keeps nodes apart there. */
double basin_nodes_calibrated(const basin_nodes_model *model, double p) {
    static const double trace = 1e-3;
    if (model->calibration.kind == BASIN_CALIBRATION_NONE) return p;
    return (1 - trace) * basin_calibration_apply(&model->calibration, p) + trace * p;
}

static basin_status fit(basin_calibration *c, const char *how, const basin_nodes_samples *s,
                        basin_error *error) {
    if (basin_choice_is(how, "none")) return BASIN_OK;
    if (basin_choice_is(how, "auto"))
        return basin_calibration_choose(c, s->score, s->label, s->count, error);
    return basin_calibration_fit(
        c, basin_choice_is(how, "platt") ? BASIN_CALIBRATION_PLATT : BASIN_CALIBRATION_ISOTONIC,
        s->score, s->label, s->count, error);
}

typedef struct sample {
    double score;
    uint8_t label;
} sample;

static int lower_first(const void *a, const void *b) {
    double x = ((const sample *)a)->score, y = ((const sample *)b)->score;
    return (x > y) - (x < y);
}

/* Sorts the samples and thins them out evenly. */
static basin_status keep(basin_nodes_samples *s, basin_error *error) {
    sample *list = basin_array_new((size_t)s->count, sizeof *list);
    if (!list) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for validation nodes");
    for (int64_t i = 0; i < s->count; i++) list[i] = (sample){s->score[i], s->label[i]};
    qsort(list, (size_t)s->count, sizeof *list, lower_first);
    int64_t kept = s->count < KEPT ? s->count : KEPT;
    for (int64_t i = 0; i < kept; i++) {
        const sample *own = &list[i * s->count / kept];
        s->score[i] = own->score;
        s->label[i] = own->label;
    }
    s->count = kept;
    free(list);
    return BASIN_OK;
}

double basin_nodes_base_rate(const basin_network *network, const uint8_t *part) {
    int64_t count = 0, anomalous = 0;
    for (int64_t i = 0; i < network->nodes; i++) {
        if (part[i] != BASIN_PART_TRAIN) continue;
        count++;
        anomalous += network->label[i] == 1;
    }
    return count ? (double)anomalous / (double)count : 0;
}

basin_status basin_nodes_calibrate(basin_nodes_model *model, double *probability,
                                   const basin_network *network, const uint8_t *part,
                                   basin_error *error) {
    basin_nodes_samples s;
    basin_status status =
        basin_nodes_samples_take(&s, probability, network, part, BASIN_PART_VAL, error);
    if (!status) status = fit(&model->calibration, model->settings.calibrate, &s, error);
    if (status) {
        basin_nodes_samples_free(&s);
        return status;
    }
    for (int64_t i = 0; i < network->nodes; i++)
        probability[i] = basin_nodes_calibrated(model, probability[i]);
    for (int64_t i = 0; i < s.count; i++) s.score[i] = basin_nodes_calibrated(model, s.score[i]);
    model->threshold = basin_nodes_calibrated(model, model->threshold);
    basin_nodes_samples_free(&model->judged);
    model->judged = s;
    return keep(&model->judged, error);
}

/* ---- thresholds ---- */

static int higher_first(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* At most so many of the nodes lie above it; equal ones stay together. */
static basin_status for_alerts(double *threshold, double alerts, const double *probability,
                               int64_t nodes, basin_error *error) {
    double *sorted = basin_array_new((size_t)nodes, sizeof *sorted);
    if (!sorted) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a threshold");
    memcpy(sorted, probability, (size_t)nodes * sizeof *sorted);
    qsort(sorted, (size_t)nodes, sizeof *sorted, higher_first);
    *threshold =
        alerts >= (double)nodes ? nextafter(sorted[nodes - 1], -1) : sorted[(int64_t)alerts];
    free(sorted);
    return BASIN_OK;
}

static bool read_goal(basin_goal *goal, double *wanted, const char *text) {
    static const struct {
        const char *name;
        basin_goal goal;
        double most;
    } goals[] = {{"precision=", BASIN_GOAL_PRECISION, 1},
                 {"recall=", BASIN_GOAL_RECALL, 1},
                 {"alerts=", BASIN_GOAL_BUDGET, 9e15}};
    for (size_t i = 0; i < sizeof goals / sizeof *goals; i++) {
        size_t length = strlen(goals[i].name);
        char *end;
        if (strncmp(text, goals[i].name, length) != 0) continue;
        *goal = goals[i].goal;
        *wanted = basin_real_read(text + length, &end);
        bool whole = goals[i].most == 1 || *wanted == floor(*wanted);
        return end != text + length && !*end && *wanted > 0 && *wanted <= goals[i].most && whole;
    }
    return false;
}

basin_status basin_nodes_threshold_for(double *threshold, const basin_nodes_model *model,
                                       const char *goal, const double *probability, int64_t nodes,
                                       basin_error *error) {
    basin_goal kind;
    double wanted;
    if (!read_goal(&kind, &wanted, goal))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "threshold for '%s'; wanted precision=X or recall=X with X up to 1, or "
                          "alerts=N",
                          goal);
    if (!model) return BASIN_OK;
    const basin_nodes_samples *s = &model->judged;
    if (kind == BASIN_GOAL_BUDGET) return for_alerts(threshold, wanted, probability, nodes, error);
    if (!s->count)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "threshold for '%s': the model keeps no validation nodes; wanted one "
                          "trained with some by this version",
                          goal);
    return basin_threshold_for(threshold, kind, wanted, s->score, s->label, s->count, error);
}

/* ---- files ---- */

static basin_status add_numbers(basin_bundle *bundle, const char *name, const double *value,
                                int64_t count, basin_error *error) {
    basin_tensor tensor;
    basin_status status = basin_tensor_new(&tensor, BASIN_F64, BASIN_SHAPE(count), error);
    if (status) return status;
    memcpy(tensor.data, value, (size_t)count * sizeof *value);
    status = basin_bundle_add(bundle, name, &tensor, error);
    basin_tensor_free(&tensor);
    return status;
}

basin_status basin_nodes_judged_store(basin_bundle *bundle, const basin_nodes_model *model,
                                      basin_error *error) {
    const basin_calibration *c = &model->calibration;
    const basin_nodes_samples *s = &model->judged;
    const double line[] = {c->slope, c->offset};
    basin_tensor label = basin_tensor_borrow(s->label, BASIN_U8, BASIN_SHAPE(s->count));
    if (!s->count) return BASIN_OK;
    basin_status status =
        basin_bundle_meta_set(bundle, "calibration", basin_calibration_name(c->kind), error);
    if (!status) status = add_numbers(bundle, "validation.score", s->score, s->count, error);
    if (!status) status = basin_bundle_add(bundle, "validation.label", &label, error);
    if (!status && c->kind == BASIN_CALIBRATION_PLATT)
        status = add_numbers(bundle, "calibration.line", line, 2, error);
    if (!status && c->kind == BASIN_CALIBRATION_ISOTONIC)
        status = add_numbers(bundle, "calibration.score", c->score, c->knots, error);
    if (!status && c->kind == BASIN_CALIBRATION_ISOTONIC)
        status = add_numbers(bundle, "calibration.probability", c->probability, c->knots, error);
    return status;
}

/* Finite numbers, `count` of them where it is not 0; free them. */
static basin_status get_numbers(double **value, int64_t *count, const basin_bundle *bundle,
                                const char *name, basin_error *error) {
    const basin_tensor *tensor;
    basin_status status = basin_bundle_get(&tensor, bundle, name, error);
    if (status) return status;
    int64_t found = basin_shape_count(tensor->shape);
    if (tensor->dtype != BASIN_F64 || found < 1 || (*count && found != *count) ||
        basin_tensor_first_bad(tensor) >= 0)
        return basin_fail(
            error, BASIN_BAD_FILE, "%s: %s has %lld numbers of %s; wanted finite ones of F64",
            basin_bundle_path(bundle), name, (long long)found, basin_dtype_name(tensor->dtype));
    *value = basin_array_new((size_t)found, sizeof **value);
    if (!*value) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for %s", name);
    memcpy(*value, tensor->data, (size_t)found * sizeof **value);
    *count = found;
    return BASIN_OK;
}

static basin_status load_calibration(basin_calibration *c, const basin_bundle *bundle,
                                     const char *kind, basin_error *error) {
    double *line = NULL;
    int64_t two = 2;
    basin_status status = BASIN_OK;
    if (!strcmp(kind, "platt")) {
        status = get_numbers(&line, &two, bundle, "calibration.line", error);
        if (!status)
            *c = (basin_calibration){BASIN_CALIBRATION_PLATT, .slope = line[0], .offset = line[1]};
        free(line);
    } else if (!strcmp(kind, "isotonic")) {
        status = get_numbers(&c->score, &c->knots, bundle, "calibration.score", error);
        if (!status)
            status =
                get_numbers(&c->probability, &c->knots, bundle, "calibration.probability", error);
        c->kind = BASIN_CALIBRATION_ISOTONIC;
    } else if (strcmp(kind, "none") != 0) {
        status = basin_fail(error, BASIN_BAD_FILE,
                            "%s: calibration is '%.40s'; wanted none, platt or isotonic",
                            basin_bundle_path(bundle), kind);
    }
    return status;
}

basin_status basin_nodes_judged_load(basin_nodes_model *model, const basin_bundle *bundle,
                                     basin_error *error) {
    const char *kind = basin_bundle_meta(bundle, "calibration"); /* older files have none */
    basin_nodes_samples *s = &model->judged;
    const basin_tensor *label;
    if (!kind) return BASIN_OK;
    basin_status status = load_calibration(&model->calibration, bundle, kind, error);
    if (!status) status = get_numbers(&s->score, &s->count, bundle, "validation.score", error);
    if (!status) status = basin_bundle_get(&label, bundle, "validation.label", error);
    if (status) return status;
    if (label->dtype != BASIN_U8 || basin_shape_count(label->shape) != s->count)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: validation.label does not fit validation.score; wanted %lld of U8",
                          basin_bundle_path(bundle), (long long)s->count);
    s->label = basin_array_new((size_t)s->count, 1);
    if (!s->label) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for validation nodes");
    memcpy(s->label, label->data, (size_t)s->count);
    return BASIN_OK;
}
