/* Which classes there are and what they are called; labels and weights for training. */
#include "base/file.h"
#include "base/number.h"
#include "tasks/nodes/net.h"

enum { MAX_CLASSES = 10000, MANY = 20, FEW_EACH = 3 };

static const char *name_at(const basin_names *names, int64_t i) {
    return names->text + names->at[i];
}

/* The model's number of each node's class; -1: no label, or one that the model does not know. */
static basin_status classes_of(int32_t **class_of, const basin_nodes_model *model,
                               const basin_network *network, basin_error *error) {
    int32_t max = basin_network_greatest_label(network);
    if (!network->label)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no labels to compare with", network->path);
    BASIN_TRY(BASIN_NEW_RAW(class_of, network->nodes, "classes", error));
    BASIN_SCRATCH_RAW(int32_t, number, (size_t)max + 2, "classes", error);
    for (int32_t label = 0; label <= max; label++) {
        char text[BASIN_MAX_NODE];
        number[label] =
            basin_names_find(&model->class_name, basin_network_class(network, label, text));
    }
    for (int64_t i = 0; i < network->nodes; i++)
        (*class_of)[i] = network->label[i] < 0 ? -1 : number[network->label[i]];
    return BASIN_OK;
}

/* ---- training ---- */

/* Whether all names are numbers that look measured: parts of one, or far more room than classes. */
static bool look_measured(const basin_names *names) {
    bool measured = false;
    for (int64_t i = 0; i < names->count; i++) {
        const char *text = name_at(names, i);
        char *end;
        double value = basin_real_read(text, &end);
        if (end == text || *end) return false;
        measured = measured || value != floor(value) || fabs(value) > 2 * (double)names->count;
    }
    return measured;
}

/* A column of amounts, or of ids, is easily taken for one of classes. */
static void note_many(const basin_nodes_fitting *f) {
    const basin_names *names = &f->model->class_name;
    if (names->count <= MANY) return;
    if (look_measured(names))
        basin_watch_note(
            f->work.watch,
            "%s: the label has %lld classes, all of them numbers ('%s' to '%s'): is it "
            "a quantity? Classes are told apart, numbers are not estimated",
            f->network->path, (long long)names->count, name_at(names, 0),
            name_at(names, names->count - 1));
    else if (f->train_count < FEW_EACH * names->count)
        basin_watch_note(f->work.watch,
                         "%s: the label has %lld classes for %lld training nodes ('%s', '%s', ..): "
                         "is it an id?",
                         f->network->path, (long long)names->count, (long long)f->train_count,
                         name_at(names, 0), name_at(names, 1));
}

/* Nodes that validate or test, and whose class none trains on, can only be mistakes. */
static void note_strangers(const basin_nodes_fitting *f) {
    int64_t strangers = 0;
    for (int64_t i = 0; i < f->network->nodes; i++)
        strangers += f->part[i] != BASIN_SPLIT_NONE && f->class_of[i] < 0;
    if (strangers)
        basin_watch_note(f->work.watch,
                         "%s: %lld nodes to validate or test on have a class that no training node "
                         "has: they count as mistakes",
                         f->network->path, (long long)strangers);
}

/* An error where there are too few names or too many. */
static basin_status count_names(basin_nodes_model *model, const char *path, const char *what,
                                basin_status bad, basin_error *error) {
    int64_t count = model->settings.classes = model->class_name.count;
    if (count > 1 && count <= MAX_CLASSES) return BASIN_OK;
    return basin_fail(error, bad, "%s: %s %lld class%s; needs 2 to %d", path, what,
                      (long long)count, count == 1 ? "" : "es", MAX_CLASSES);
}

basin_status basin_classes_take(basin_nodes_fitting *f, basin_error *error) {
    const basin_network *n = f->network;
    int32_t max = basin_network_greatest_label(n);
    BASIN_SCRATCH(int64_t, count, (size_t)max + 2, "classes", error);
    for (int64_t i = 0; i < f->train_count; i++) {
        int32_t label = n->label[f->train[i]];
        if (label < 0)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: node %lld is to be trained on and has no label", n->path,
                              (long long)f->train[i]);
        count[label]++;
    }
    for (int32_t label = 0; label <= max; label++) {
        char text[BASIN_MAX_NODE];
        const char *name = basin_network_class(n, label, text);
        if (count[label]) BASIN_TRY(basin_names_add(&f->model->class_name, name, error));
    }
    BASIN_TRY(count_names(f->model, n->path, "the training nodes have", BASIN_BAD_VALUE, error));
    f->settings.classes = f->model->settings.classes;
    BASIN_TRY(classes_of(&f->class_of, f->model, n, error));
    note_many(f);
    note_strangers(f);
    return BASIN_OK;
}

double basin_weight_of(const char *balance, double ratio) {
    if (basin_choice_is(balance, "none")) return 1;
    return basin_choice_is(balance, "root") ? sqrt(ratio) : ratio;
}

void basin_classes_weigh(basin_nodes_fitting *f) {
    int64_t C = f->settings.classes, count[MAX_CLASSES] = {0};
    for (int64_t i = 0; i < f->train_count; i++) count[f->class_of[f->train[i]]]++;
    for (int64_t i = 0; i < f->train_count; i++) {
        int64_t node = f->train[i], its = f->class_of[node];
        f->label[node * C + its] = 1;
        double ratio = (double)f->train_count / ((double)C * (double)count[its]); /* rarity */
        f->weight[node] = (float)basin_weight_of(f->settings.balance, ratio);
    }
}

/* ---- in model files ---- */

basin_status basin_classes_store(basin_bundle *bundle, const basin_nodes_model *model,
                                 basin_error *error) {
    basin_memory_file memory;
    if (!basin_memory_file_open(&memory)) return basin_fail_memory(error, "the names of classes");
    basin_json json = basin_json_begin_line(memory.file);
    basin_json_array(&json, "names");
    for (int64_t i = 0; i < model->class_name.count; i++)
        basin_json_text(&json, NULL, name_at(&model->class_name, i));
    basin_json_end(&json);
    basin_json_end(&json);
    BASIN_FREE_AT_EXIT char *text = basin_memory_file_close(&memory);
    if (!text) return basin_fail_memory(error, "the names of classes");
    text[strcspn(text, "\n")] = 0;
    return basin_bundle_meta_set(bundle, "classes", text, error);
}

basin_status basin_classes_load(basin_nodes_model *model, const basin_bundle *bundle,
                                basin_error *error) {
    const char *text = basin_bundle_meta(bundle, "classes");
    BASIN_JSON_AT_EXIT cJSON *root = text ? cJSON_Parse(text) : NULL;
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(root, "names")) {
        const char *name = cJSON_GetStringValue(item);
        if (name) BASIN_TRY(basin_names_add(&model->class_name, name, error));
    }
    return count_names(model, basin_bundle_path(bundle), "names of", BASIN_BAD_FILE, error);
}

/* ---- How well classes are told apart. */

/* A probability of 0 would make one node's surprise infinite. */
static const double minimal = 1e-12;

static void count_confusion(int64_t *matrix, const double *probability, const int32_t *class_of,
                            int64_t classes, const uint8_t *part, int which, int64_t nodes) {
    for (int64_t i = 0; i < classes * classes; i++) matrix[i] = 0;
    for (int64_t i = 0; i < nodes; i++)
        if (part[i] == which && class_of[i] >= 0)
            matrix[class_of[i] * classes + basin_best_class(probability + i * classes, classes)]++;
}

/* The mean of the classes' F1; one that is neither there nor predicted is left out. */
static double macro_f1(const int64_t *matrix, int64_t classes) {
    double sum = 0;
    int64_t counted = 0;
    for (int64_t c = 0; c < classes; c++) {
        int64_t there = 0, predicted = 0, right = matrix[c * classes + c];
        for (int64_t k = 0; k < classes; k++) {
            there += matrix[c * classes + k];
            predicted += matrix[k * classes + c];
        }
        if (!there && !predicted) continue;
        sum += 2 * (double)right / (double)(there + predicted);
        counted++;
    }
    return counted ? sum / (double)counted : 0;
}

/* Each class against all others, where a part has both. */
static basin_status mean_auroc(double *mean, const double *probability, const int32_t *class_of,
                               int64_t classes, const int64_t *node, int64_t count,
                               basin_error *error) {
    BASIN_SCRATCH_RAW(double, score, count, "figures", error);
    BASIN_SCRATCH_RAW(uint8_t, label, count, "figures", error);
    double sum = 0;
    int64_t counted = 0;
    for (int64_t c = 0; c < classes; c++) {
        int64_t there = 0;
        for (int64_t i = 0; i < count; i++) {
            score[i] = probability[node[i] * classes + c];
            there += label[i] = class_of[node[i]] == c;
        }
        if (!there || there == count) continue;
        basin_ranking ranking = {.size = sizeof ranking};
        BASIN_TRY(basin_ranking_measure(&ranking, score, label, count, 0, error));
        sum += ranking.auroc;
        counted++;
    }
    *mean = counted ? sum / (double)counted : NAN;
    return BASIN_OK;
}

/* "loss" is the mean of -log p; a class that the model does not know is a mistake. */
static basin_status measure_classes(basin_score *score, const double *probability,
                                    const int32_t *class_of, int64_t classes, const uint8_t *part,
                                    int which, int64_t nodes, basin_error *error) {
    int64_t count = basin_split_nodes(NULL, part, nodes, which);
    double right = 0, sum = 0, auroc;
    *score = (basin_score){0};
    if (!count) return basin_fail(error, BASIN_BAD_VALUE, "no nodes to measure on");
    BASIN_SCRATCH_RAW(int64_t, node, count, "figures", error);
    BASIN_SCRATCH_RAW(int64_t, matrix, classes * classes, "figures", error);
    basin_split_nodes(node, part, nodes, which);
    count_confusion(matrix, probability, class_of, classes, part, which, nodes);
    for (int64_t i = 0; i < count; i++) {
        int32_t its = class_of[node[i]];
        const double *p = probability + node[i] * classes;
        right += its == basin_best_class(p, classes);
        sum -= log(its >= 0 && p[its] > minimal ? p[its] : minimal);
    }
    BASIN_TRY(mean_auroc(&auroc, probability, class_of, classes, node, count, error));
    double loss = sum / (double)count;
    basin_score_add(score, "accuracy", right / (double)count);
    basin_score_add(score, "macro_f1", macro_f1(matrix, classes));
    basin_score_add(score, "auroc", auroc);
    basin_score_add(score, "loss", loss);
    score->tie = -loss;
    return BASIN_OK;
}

/* ---- Figures: the threshold by validation, and what probabilities reach on a part ---- */

basin_status basin_nodes_samples_take(basin_nodes_samples *s, const double *probability,
                                      const basin_network *network, const uint8_t *part, int which,
                                      basin_error *error) {
    *s = (basin_nodes_samples){.count = basin_split_nodes(NULL, part, network->nodes, which)};
    if (!network->label)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no labels to compare with", network->path);
    BASIN_TRY(BASIN_NEW_RAW(&s->score, s->count, "figures", error));
    BASIN_TRY(BASIN_NEW_RAW(&s->label, s->count, "figures", error));
    for (int64_t i = 0, n = 0; i < network->nodes; i++) {
        if (part[i] != which) continue;
        s->score[n] = probability[i];
        s->label[n++] = network->label[i] == 1;
    }
    return BASIN_OK;
}

void basin_nodes_samples_free(basin_nodes_samples *s) {
    BASIN_FREE(s->score, s->label);
    *s = (basin_nodes_samples){0};
}

basin_status basin_nodes_choose_threshold(double *threshold, const double *probability,
                                          const basin_network *network, const uint8_t *part,
                                          const char *scan, basin_error *error) {
    BASIN_AT_EXIT(basin_nodes_samples_free) basin_nodes_samples s = {0};
    BASIN_TRY(basin_nodes_samples_take(&s, probability, network, part, BASIN_SPLIT_VAL, error));
    basin_threshold_scan how = basin_choice_is(scan, "grid")     ? BASIN_THRESHOLD_SCAN_GRID
                               : basin_choice_is(scan, "smooth") ? BASIN_THRESHOLD_SCAN_SMOOTH
                                                                 : BASIN_THRESHOLD_SCAN_ALL;
    return basin_threshold_best(threshold, NULL, s.score, s.label, s.count, how, error);
}

static basin_status measure_detector(basin_score *score, const double *probability,
                                     const basin_network *network, const uint8_t *part, int which,
                                     double threshold, basin_error *error) {
    BASIN_AT_EXIT(basin_nodes_samples_free) basin_nodes_samples s = {0};
    basin_ranking ranking = {.size = sizeof ranking};
    *score = (basin_score){0};
    BASIN_TRY(basin_nodes_samples_take(&s, probability, network, part, which, error));
    BASIN_TRY(basin_ranking_measure(&ranking, s.score, s.label, s.count, 0, error));
    basin_confusion c;
    basin_confusion_count(&c, s.score, s.label, s.count, threshold);
    basin_score_add(score, "macro_f1", basin_confusion_macro_f1(&c));
    basin_score_add(score, "auroc", ranking.auroc);
    basin_score_add(score, "auprc", ranking.auprc);
    basin_score_add(score, "recall_at_k", ranking.recall_k);
    basin_reliability reliability = {.size = sizeof reliability};
    basin_reliability_measure(&reliability, s.score, s.label, s.count);
    basin_score_add(score, "ece", reliability.ece);
    return BASIN_OK;
}

basin_status basin_nodes_evaluate(basin_score *score, const double *probability,
                                  const basin_nodes_model *model, const basin_network *network,
                                  const uint8_t *part, basin_split_part which, double threshold,
                                  basin_error *error) {
    BASIN_FREE_AT_EXIT int32_t *class_of = NULL;
    if (!model || !model->settings.classes)
        return measure_detector(score, probability, network, part, which, threshold, error);
    BASIN_TRY(classes_of(&class_of, model, network, error));
    return measure_classes(score, probability, class_of, model->settings.classes, part, which,
                           network->nodes, error);
}
