/* Figures: the threshold that validation chooses, and what probabilities reach on a part of the
 * nodes. */
#include <stdlib.h>

#include "base/try.h"
#include "task/nodes/classes/classes.h"

basin_status basin_nodes_samples_take(basin_nodes_samples *s, const double *probability,
                                      const basin_network *network, const uint8_t *part, int which,
                                      basin_error *error) {
    *s = (basin_nodes_samples){.count = basin_split_nodes(NULL, part, network->nodes, which)};
    if (!network->label)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no labels to compare with", network->path);
    s->score = basin_array_new((size_t)s->count, sizeof *s->score);
    s->label = basin_array_new((size_t)s->count, sizeof *s->label);
    if (!s->score || !s->label)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for figures");
    for (int64_t i = 0, n = 0; i < network->nodes; i++) {
        if (part[i] != which) continue;
        s->score[n] = probability[i];
        s->label[n++] = network->label[i] == 1;
    }
    return BASIN_OK;
}

void basin_nodes_samples_free(basin_nodes_samples *s) {
    free(s->score);
    free(s->label);
    *s = (basin_nodes_samples){0};
}

static basin_threshold_scan scan_named(const char *threshold) {
    if (basin_choice_is(threshold, "grid")) return BASIN_THRESHOLD_GRID;
    return basin_choice_is(threshold, "smooth") ? BASIN_THRESHOLD_SMOOTH : BASIN_THRESHOLD_ALL;
}

basin_status basin_nodes_choose_threshold(double *threshold, const double *probability,
                                          const basin_network *network, const uint8_t *part,
                                          const char *scan, basin_error *error) {
    basin_nodes_samples s;
    basin_status status =
        basin_nodes_samples_take(&s, probability, network, part, BASIN_PART_VAL, error);
    if (!status)
        status = basin_threshold_best(threshold, NULL, s.score, s.label, s.count, scan_named(scan),
                                      error);
    basin_nodes_samples_free(&s);
    return status;
}

static basin_status measure_detector(basin_score *score, const double *probability,
                                     const basin_network *network, const uint8_t *part, int which,
                                     double threshold, basin_error *error) {
    basin_nodes_samples s;
    basin_ranking ranking;
    *score = (basin_score){0};
    basin_status status = basin_nodes_samples_take(&s, probability, network, part, which, error);
    if (!status) status = basin_ranking_measure(&ranking, s.score, s.label, s.count, 0, error);
    if (!status) {
        basin_confusion c = basin_confusion_count(s.score, s.label, s.count, threshold);
        basin_score_add(score, "macro_f1", basin_confusion_macro_f1(&c));
        basin_score_add(score, "auroc", ranking.auroc);
        basin_score_add(score, "auprc", ranking.auprc);
        basin_score_add(score, "recall_at_k", ranking.recall_k);
        basin_score_add(score, "ece", basin_reliability_measure(s.score, s.label, s.count).ece);
    }
    basin_nodes_samples_free(&s);
    return status;
}

/* ---- several classes ---- */

static basin_status classes_of(int32_t **class_of, const basin_nodes_model *model,
                               const basin_network *network, basin_error *error) {
    BASIN_TRY(BASIN_NEW_RAW(class_of, network->nodes, "classes", error));
    if (!network->label)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no labels to compare with", network->path);
    return basin_classes_of(*class_of, model, network, error);
}

basin_status basin_nodes_measure(basin_score *score, const double *probability,
                                 const basin_nodes_model *model, const basin_network *network,
                                 const uint8_t *part, int which, double threshold,
                                 basin_error *error) {
    BASIN_FREE_AT_EXIT int32_t *class_of = NULL;
    if (!model || !model->settings.classes)
        return measure_detector(score, probability, network, part, which, threshold, error);
    BASIN_TRY(classes_of(&class_of, model, network, error));
    return basin_classes_measure(score, probability, class_of, model->settings.classes, part, which,
                                 network->nodes, error);
}

basin_status basin_nodes_confusion(int64_t *matrix, const double *probability,
                                   const basin_nodes_model *model, const basin_network *network,
                                   const uint8_t *part, int which, basin_error *error) {
    BASIN_FREE_AT_EXIT int32_t *class_of = NULL;
    BASIN_TRY(classes_of(&class_of, model, network, error));
    basin_classes_confusion(matrix, probability, class_of, model->settings.classes, part, which,
                            network->nodes);
    return BASIN_OK;
}
