/* What a model remembers of its training; see nodes.h. */

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/try.h"
#include "basin/version.h"
#include "io/bundle.h"
#include "task/nodes/nodes.h"

static int64_t edges_of(const basin_network *network) {
    int64_t edges = 0;
    for (int r = 0; r < network->relations; r++)
        if (network->relation[r].edges > edges) edges = network->relation[r].edges;
    return edges;
}

/* The day, not the hour: files of equal runs are equal. */
static void fill_card(basin_nodes_card *card, const basin_network *network, const uint8_t *part) {
    char day[BASIN_DAY_TEXT];
    snprintf(card->date, sizeof card->date, "%.10s", basin_day_print(day, time(NULL)));
    snprintf(card->version, sizeof card->version, "%s", BASIN_VERSION_STRING);
    snprintf(card->data, sizeof card->data, "%s", network->path);
    card->nodes = network->nodes;
    card->edges = edges_of(network);
    card->trained_on = basin_split_nodes(NULL, part, network->nodes, BASIN_PART_TRAIN);
    card->validated_on = basin_split_nodes(NULL, part, network->nodes, BASIN_PART_VAL);
    card->base_rate = basin_nodes_base_rate(network, part);
}

basin_status basin_nodes_memory_take(basin_nodes_memory *memory, const basin_network *network,
                                     const uint8_t *part, bool labels_known, basin_error *error) {
    basin_nodes_memory_free(memory);
    fill_card(&memory->card, network, part);
    if (!labels_known)
        BASIN_TRY(
            basin_known_labels_take(&memory->trained, network, part, BASIN_PART_TRAIN, error));
    if (!memory->card.validated_on) return BASIN_OK;
    return basin_known_labels_take(&memory->validated, network, part, BASIN_PART_VAL, error);
}

void basin_nodes_memory_free(basin_nodes_memory *memory) {
    basin_known_labels_free(&memory->trained);
    basin_known_labels_free(&memory->validated);
    *memory = (basin_nodes_memory){0};
}

/* ---- files ---- */

static const char *const figure[] = {"macro_f1", "auroc", "auprc", "recall_at_k", "ece"};
enum { FIGURES = sizeof figure / sizeof *figure, KEY = 64 };

/* "validation.auroc" */
static const char *figure_key(char text[KEY], int i) {
    snprintf(text, KEY, "validation.%s", figure[i]);
    return text;
}

/* The whole numbers of a card by their keys. */
static const struct {
    const char *key;
    size_t offset;
} count[] = {{"trained.edges", offsetof(basin_nodes_card, edges)},
             {"trained.labels", offsetof(basin_nodes_card, trained_on)},
             {"validation.labels", offsetof(basin_nodes_card, validated_on)},
             {"nodes", offsetof(basin_nodes_card, nodes)}}; /* the model's file has it already */
enum { COUNTS = sizeof count / sizeof *count };

static basin_status store_card(basin_bundle *bundle, const basin_nodes_card *card,
                               basin_error *error) {
    char key[KEY];
    BASIN_TRY(basin_bundle_meta_set(bundle, "trained.date", card->date, error));
    BASIN_TRY(basin_bundle_meta_set(bundle, "trained.version", card->version, error));
    BASIN_TRY(basin_bundle_meta_set(bundle, "trained.data", card->data, error));
    for (int i = 0; i < COUNTS - 1; i++) {
        int64_t value = *(const int64_t *)(const void *)((const char *)card + count[i].offset);
        BASIN_TRY(basin_nodes_set_number(bundle, count[i].key, (double)value, error));
    }
    BASIN_TRY(basin_nodes_set_number(bundle, "base_rate", card->base_rate, error));
    for (int i = 0; i < FIGURES && card->validation.measures; i++)
        BASIN_TRY(basin_nodes_set_number(bundle, figure_key(key, i),
                                         basin_score_get(&card->validation, figure[i]), error));
    return BASIN_OK;
}

static void load_text(char *text, size_t size, const basin_bundle *bundle, const char *key) {
    const char *value = basin_bundle_meta(bundle, key);
    snprintf(text, size, "%s", value ? value : "");
}

static basin_status load_card(basin_nodes_card *card, const basin_bundle *bundle,
                              basin_error *error) {
    char key[KEY];
    double value;
    load_text(card->date, sizeof card->date, bundle, "trained.date");
    load_text(card->version, sizeof card->version, bundle, "trained.version");
    load_text(card->data, sizeof card->data, bundle, "trained.data");
    for (int i = 0; i < COUNTS; i++) {
        BASIN_TRY(basin_bundle_number(&value, bundle, count[i].key, 0, 1e15, error));
        *(int64_t *)(void *)((char *)card + count[i].offset) = (int64_t)value;
    }
    BASIN_TRY(basin_bundle_number(&card->base_rate, bundle, "base_rate", 0, 1, error));
    for (int i = 0; i < FIGURES; i++) {
        if (!basin_bundle_meta(bundle, figure_key(key, i))) continue;
        BASIN_TRY(basin_bundle_number(&value, bundle, key, 0, 1, error));
        basin_score_add(&card->validation, figure[i], value);
    }
    return BASIN_OK;
}

basin_status basin_nodes_memory_store(basin_bundle *bundle, const basin_nodes_memory *memory,
                                      basin_error *error) {
    if (!*memory->card.date) return BASIN_OK;
    BASIN_TRY(store_card(bundle, &memory->card, error));
    BASIN_TRY(basin_known_labels_store(bundle, "seen.trained.", &memory->trained, error));
    return basin_known_labels_store(bundle, "seen.validated.", &memory->validated, error);
}

basin_status basin_nodes_memory_load(basin_nodes_memory *memory, const basin_bundle *bundle,
                                     basin_error *error) {
    if (!basin_bundle_meta(bundle, "trained.date")) return BASIN_OK;
    BASIN_TRY(load_card(&memory->card, bundle, error));
    BASIN_TRY(basin_known_labels_load(&memory->trained, bundle, "seen.trained.", error));
    return basin_known_labels_load(&memory->validated, bundle, "seen.validated.", error);
}

/* ---- A back-test: what a model's probabilities reach on labels, without training; see
 * include/basin/tasks/nodes.h. */

/* ---- who took part in training ---- */

/* Marks the nodes that `known` names. */
static basin_status mark(uint8_t *seen, const basin_known_labels *known,
                         const basin_network *network, uint8_t as, basin_error *error) {
    BASIN_FREE_AT_EXIT int8_t *label = NULL;
    BASIN_TRY(BASIN_NEW_RAW(&label, network->nodes, "known nodes", error));
    basin_known_labels_find(label, known, network);
    for (int64_t i = 0; i < network->nodes; i++)
        if (label[i] >= 0) seen[i] = as;
    return BASIN_OK;
}

basin_status basin_nodes_seen(uint8_t *seen, const basin_nodes_model *model,
                              const basin_network *network, basin_error *error) {
    const basin_known_labels *known = &model->ensemble.known;
    if (!known->count) known = &model->memory.trained;
    memset(seen, BASIN_PART_NONE, (size_t)network->nodes);
    if (!known->count)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "the model does not say which nodes it was trained on; wanted one "
                          "trained by this version");
    if (!basin_known_labels_fit(known, network))
        return basin_fail(
            error, BASIN_UNSUPPORTED,
            "%s: which of its nodes took part in training cannot be told; wanted ids, "
            "in training and here, or the network of training",
            network->path);
    BASIN_TRY(mark(seen, &model->memory.validated, network, BASIN_PART_VAL, error));
    return mark(seen, known, network, BASIN_PART_TRAIN, error);
}

/* ---- figures ---- */

static basin_status count_seen(basin_nodes_figures *f, const basin_nodes_model *model,
                               const basin_network *network, const uint8_t *part, int which,
                               basin_error *error) {
    BASIN_FREE_AT_EXIT uint8_t *seen = NULL;
    BASIN_TRY(BASIN_NEW_RAW(&seen, network->nodes, "known nodes", error));
    basin_status status = basin_nodes_seen(seen, model, network, error);
    if (status) return status == BASIN_UNSUPPORTED ? BASIN_OK : status;
    f->trained_on = f->validated_on = 0;
    for (int64_t i = 0; i < network->nodes; i++) {
        if (part[i] != which) continue;
        f->trained_on += seen[i] == BASIN_PART_TRAIN;
        f->validated_on += seen[i] == BASIN_PART_VAL;
    }
    return BASIN_OK;
}

/* 10, 30, 100, 300, .. alerts, as long as there are so many nodes. */
static basin_status try_budgets(basin_nodes_figures *f, const basin_nodes_samples *s,
                                basin_error *error) {
    for (int64_t k = 10; k < s->count && f->budgets < BASIN_NODES_BUDGETS;) {
        basin_ranking r;
        BASIN_TRY(basin_ranking_measure(&r, s->score, s->label, s->count, k, error));
        double found = r.recall_k * (double)r.positives;
        f->budget[f->budgets++] = (basin_nodes_budget){k, found / (double)k, r.recall_k};
        k = k % 3 ? 3 * k : k / 3 * 10;
    }
    return BASIN_OK;
}

static basin_status judge(basin_nodes_figures *f, const basin_nodes_samples *s, bool probable,
                          const char *path, basin_error *error) {
    basin_ranking ranking;
    f->nodes = s->count;
    for (int64_t i = 0; i < s->count; i++) f->anomalous += s->label[i];
    if (!f->anomalous || f->anomalous == f->nodes)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: %lld labelled nodes, %lld of them anomalous; wanted some of both",
                          path, (long long)f->nodes, (long long)f->anomalous);
    basin_confusion c = basin_confusion_count(s->score, s->label, s->count, f->threshold);
    f->alerts = c.true_positive + c.false_positive;
    f->precision = basin_confusion_precision(&c);
    f->recall = basin_confusion_recall(&c);
    double both = f->precision + f->recall;
    f->f1 = both > 0 ? 2 * f->precision * f->recall / both : 0;
    f->macro_f1 = basin_confusion_macro_f1(&c);
    if (probable) f->reliability = basin_reliability_measure(s->score, s->label, s->count);
    BASIN_TRY(basin_ranking_measure(&ranking, s->score, s->label, s->count, 0, error));
    f->auroc = ranking.auroc;
    f->auprc = ranking.auprc;
    f->recall_at_k = ranking.recall_k;
    return try_budgets(f, s, error);
}

static basin_status check_labels(const basin_network *network, basin_error *error) {
    if (!network->label)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no labels to compare with", network->path);
    int32_t most = basin_network_greatest_label(network);
    if (most <= 1) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "%s: label %d; wanted 0 (normal) and 1 (anomalous)",
                      network->path, (int)most);
}

basin_status basin_nodes_backtest(basin_nodes_figures *figures, const basin_nodes_model *model,
                                  const basin_network *network, const double *probability,
                                  const uint8_t *part, int which, double threshold,
                                  basin_error *error) {
    BASIN_AT_EXIT(basin_nodes_samples_free) basin_nodes_samples s = {0};
    BASIN_FREE_AT_EXIT uint8_t *all = NULL;
    *figures = (basin_nodes_figures){.threshold = threshold, .trained_on = -1, .validated_on = -1};
    BASIN_TRY(check_labels(network, error));
    if (!part) { /* all labelled nodes */
        BASIN_TRY(BASIN_NEW_RAW(&all, network->nodes, "a back-test", error));
        for (int64_t i = 0; i < network->nodes; i++)
            all[i] = network->label[i] >= 0 ? BASIN_PART_TEST : BASIN_PART_NONE;
        part = all, which = BASIN_PART_TEST;
    }
    BASIN_TRY(basin_nodes_samples_take(&s, probability, network, part, which, error));
    BASIN_TRY(judge(figures, &s, model != NULL, network->path, error));
    return model ? count_seen(figures, model, network, part, which, error) : BASIN_OK;
}
