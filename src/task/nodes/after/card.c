/* What a model remembers of its training; see card.h. */
#include "task/nodes/after/card.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "basin/version.h"
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
    basin_status status = BASIN_OK;
    if (!labels_known)
        status = basin_known_labels_take(&memory->trained, network, part, BASIN_PART_TRAIN, error);
    if (!status && memory->card.validated_on)
        status = basin_known_labels_take(&memory->validated, network, part, BASIN_PART_VAL, error);
    return status;
}

basin_status basin_nodes_memory_judge(basin_nodes_memory *memory, const double *probability,
                                      const basin_network *network, const uint8_t *part,
                                      double threshold, basin_error *error) {
    return basin_nodes_measure(&memory->card.validation, probability, NULL, network, part,
                               BASIN_PART_VAL, threshold, error);
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

/* The numbers of a card by their keys, with what they may be. */
static const struct {
    const char *key;
    size_t offset;
} count[] = {{"trained.edges", offsetof(basin_nodes_card, edges)},
             {"trained.labels", offsetof(basin_nodes_card, trained_on)},
             {"validation.labels", offsetof(basin_nodes_card, validated_on)}};
enum { COUNTS = sizeof count / sizeof *count };

static basin_status store_card(basin_bundle *bundle, const basin_nodes_card *card,
                               basin_error *error) {
    char key[KEY];
    basin_status status = basin_bundle_meta_set(bundle, "trained.date", card->date, error);
    if (!status) status = basin_bundle_meta_set(bundle, "trained.version", card->version, error);
    if (!status) status = basin_bundle_meta_set(bundle, "trained.data", card->data, error);
    for (int i = 0; i < COUNTS && !status; i++)
        status = basin_nodes_set_number(
            bundle, count[i].key, (double)*(const int64_t *)((const char *)card + count[i].offset),
            error);
    if (!status) status = basin_nodes_set_number(bundle, "base_rate", card->base_rate, error);
    for (int i = 0; i < FIGURES && card->validation.measures && !status; i++)
        status = basin_nodes_set_number(bundle, figure_key(key, i),
                                        basin_score_get(&card->validation, figure[i]), error);
    return status;
}

basin_status basin_nodes_memory_store(basin_bundle *bundle, const basin_nodes_memory *memory,
                                      basin_error *error) {
    if (!*memory->card.date) return BASIN_OK;
    basin_status status = store_card(bundle, &memory->card, error);
    if (!status)
        status = basin_known_labels_store(bundle, "seen.trained.", &memory->trained, error);
    if (!status)
        status = basin_known_labels_store(bundle, "seen.validated.", &memory->validated, error);
    return status;
}

static void load_text(char *text, size_t size, const basin_bundle *bundle, const char *key) {
    const char *value = basin_bundle_meta(bundle, key);
    snprintf(text, size, "%s", value ? value : "");
}

static basin_status load_card(basin_nodes_card *card, const basin_bundle *bundle,
                              basin_error *error) {
    basin_status status = BASIN_OK;
    char key[KEY];
    double value;
    load_text(card->date, sizeof card->date, bundle, "trained.date");
    load_text(card->version, sizeof card->version, bundle, "trained.version");
    load_text(card->data, sizeof card->data, bundle, "trained.data");
    for (int i = 0; i < COUNTS && !status; i++) {
        status = basin_nodes_get_number(&value, bundle, count[i].key, 0, 1e15, error);
        if (!status) *(int64_t *)((char *)card + count[i].offset) = (int64_t)value;
    }
    if (!status) status = basin_nodes_get_number(&value, bundle, "nodes", 0, 1e15, error);
    if (!status) card->nodes = (int64_t)value;
    if (!status)
        status = basin_nodes_get_number(&card->base_rate, bundle, "base_rate", 0, 1, error);
    for (int i = 0; i < FIGURES && !status; i++) {
        if (!basin_bundle_meta(bundle, figure_key(key, i))) continue;
        status = basin_nodes_get_number(&value, bundle, key, 0, 1, error);
        if (!status) basin_score_add(&card->validation, figure[i], value);
    }
    return status;
}

basin_status basin_nodes_memory_load(basin_nodes_memory *memory, const basin_bundle *bundle,
                                     basin_error *error) {
    if (!basin_bundle_meta(bundle, "trained.date")) return BASIN_OK;
    basin_status status = load_card(&memory->card, bundle, error);
    if (!status) status = basin_known_labels_load(&memory->trained, bundle, "seen.trained.", error);
    if (!status)
        status = basin_known_labels_load(&memory->validated, bundle, "seen.validated.", error);
    return status;
}
