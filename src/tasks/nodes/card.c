/* What a model remembers of its training; see nodes.h. */
#include <time.h>

#include "base/bundle.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "basin/version.h"
#include "tasks/nodes/nodes.h"

enum { KEY = 64 };

/* What of the card a model file has: texts, which the card owns, and counts. */
#define AT(key, member)                                                                            \
    { key, offsetof(basin_nodes_card, member) }
static const struct {
    const char *key;
    size_t offset;
} text_of[] = {AT("trained.date", date),      AT("trained.version", version),
               AT("trained.data", data),      AT("trained.digest", digest),
               AT("trained.files", files),    AT("trained.cuts", cuts),
               AT("trained.parents", parents)},
  count_of[] = {AT("trained.edges", edges), AT("trained.labels", trained_on),
                AT("validation.labels", validated_on),
                AT("nodes", nodes)}; /* the model's file has it already */
enum { TEXTS = sizeof text_of / sizeof *text_of, COUNTS = sizeof count_of / sizeof *count_of };

static char **text_at(basin_nodes_card *card, int i) {
    return (char **)(void *)((char *)card + text_of[i].offset);
}

static int64_t *count_at(basin_nodes_card *card, int i) {
    return (int64_t *)(void *)((char *)card + count_of[i].offset);
}

static basin_status set_text(const char **copy, const char *text, basin_error *error) {
    free((char *)(uintptr_t)*copy);
    *copy = text ? basin_string_copy(text) : NULL;
    return !text || *copy ? BASIN_OK : basin_fail_memory(error, "what a model was trained on");
}

/* The day, not the hour: files of equal runs are equal. */
static basin_status fill_card(basin_nodes_card *card, const basin_network *network,
                              const uint8_t *part, basin_error *error) {
    char day[BASIN_DAY_TEXT], data[256];
    basin_day_print(day, time(NULL))[10] = 0;
    snprintf(data, sizeof data, "%s", network->path);
    BASIN_TRY(set_text(&card->date, day, error));
    BASIN_TRY(set_text(&card->version, BASIN_VERSION_STRING, error));
    BASIN_TRY(set_text(&card->data, data, error));
    card->nodes = network->nodes;
    card->edges = basin_network_max_edges(network);
    card->trained_on = basin_split_nodes(NULL, part, network->nodes, BASIN_SPLIT_TRAIN);
    card->validated_on = basin_split_nodes(NULL, part, network->nodes, BASIN_SPLIT_VAL);
    card->base_rate = basin_nodes_base_rate(network, part);
    return BASIN_OK;
}

/* ---- parents ---- */

/* Lines of id, date, version and data: of the parent, then of its parents. */
static basin_status list_parents(const char **lines, const basin_bundle *parent, const char *id,
                                 basin_error *error) {
    char text[4096];
    const char *of[TEXTS];
    for (int i = 0; i < TEXTS; i++) of[i] = basin_bundle_meta(parent, text_of[i].key);
    snprintf(text, sizeof text, "%s %s %s %.300s\n%.3600s", id, of[0] ? of[0] : "-",
             of[1] ? of[1] : "-", of[2] ? of[2] : "-", of[TEXTS - 1] ? of[TEXTS - 1] : "");
    return set_text(lines, text, error);
}

enum { LISTS = BASIN_SEEN + 1 };
static const char *const list_prefix[LISTS] = {"known.", "seen.trained.", "seen.validated.",
                                               "seen.before."};

static void free_lists(basin_known_labels (*list)[LISTS]) {
    for (int i = 0; i < LISTS; i++) basin_known_labels_free(&(*list)[i]);
}

/* Who took part in the training of `parent`, and its salt: hashes need the same to compare. */
static basin_status take_parent(basin_nodes_memory *memory, const basin_bundle *parent,
                                const char *id, basin_error *error) {
    BASIN_AT_EXIT(free_lists) basin_known_labels list[LISTS] = {0};
    bool salted = false;
    memory->before_unknown = false;
    for (int i = 0; i < LISTS; i++) {
        BASIN_TRY(basin_known_labels_load(&list[i], parent, list_prefix[i], error));
        if (list[i].salt.set && !salted) memory->salt = list[i].salt, salted = true;
    }
    memory->seen[BASIN_SEEN_BEFORE].salt = memory->salt;
    for (int i = 0; i < LISTS; i++) {
        bool fits;
        BASIN_TRY(
            basin_known_labels_join(&memory->seen[BASIN_SEEN_BEFORE], &fits, &list[i], error));
        memory->before_unknown = memory->before_unknown || !fits;
    }
    memory->before_unknown = memory->before_unknown || !memory->seen[BASIN_SEEN_BEFORE].count ||
                             basin_bundle_meta(parent, "seen.unknown");
    return list_parents(&memory->card.parents, parent, id, error);
}

/* A resumed run must begin with the same model; where none is named, the checkpoint's counts. */
static basin_status check_parent(basin_nodes_memory *memory, const basin_run *run, const char *id,
                                 basin_error *error) {
    const char *saved = basin_bundle_meta(run->saved, "trained.parents");
    if (*id && (!saved || strncmp(saved, id, BASIN_MODEL_ID) != 0))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: its run did not begin with %s, model %s; needs the same, or a new "
                          "run",
                          basin_bundle_path(run->saved), run->training.from, id);
    memory->before_unknown = saved != NULL;
    return set_text(&memory->card.parents, saved, error);
}

/* ---- at the beginning of a run ---- */

/* From the labels, which parts of a graph have as the whole does. */
static void make_salt(basin_salt *salt, const basin_network *network, int64_t seed) {
    char text[100];
    uint8_t sum[BASIN_SHA256];
    uint64_t labels = basin_hash_words(BASIN_HASH_START, network->label,
                                       (size_t)network->nodes * sizeof *network->label);
    int length = snprintf(text, sizeof text, "basin labels %lld %lld %016llx", (long long)seed,
                          (long long)network->nodes, (unsigned long long)labels);
    basin_sha256(sum, text, (size_t)length);
    memcpy(salt->byte, sum, sizeof salt->byte);
    salt->set = true;
}

basin_status basin_nodes_memory_begin(basin_nodes_memory *memory, const basin_nodes_record *record,
                                      const basin_network *network, int64_t seed,
                                      const basin_run *run, basin_error *error) {
    static const basin_nodes_record none = {0};
    char id[BASIN_SHA256_TEXT] = ""; /* of the parent; ranks that write no file need none */
    if (!record) record = &none;
    make_salt(&memory->salt, network, seed);
    if (run->training.from && !basin_ranks_rank(run->training.ranks))
        BASIN_TRY(basin_file_sha256(id, run->training.from, error));
    id[BASIN_MODEL_ID] = 0;
    if (run->saved) BASIN_TRY(check_parent(memory, run, id, error));
    if (run->from) BASIN_TRY(take_parent(memory, run->from, id, error));
    BASIN_TRY(set_text(&memory->card.files, record->files, error));
    BASIN_TRY(set_text(&memory->card.cuts, record->cuts, error));
    if (!record->digest) return BASIN_OK;
    snprintf(id, sizeof id, "%016llx",
             (unsigned long long)basin_hash_text(BASIN_HASH_START, record->digest));
    return set_text(&memory->card.digest, id, error);
}

static basin_status note_before(const basin_nodes_memory *memory, const basin_network *network,
                                const uint8_t *part, const basin_watch *watch, basin_error *error) {
    if (!memory->card.parents) return BASIN_OK;
    if (memory->before_unknown ||
        !basin_known_labels_fit(&memory->seen[BASIN_SEEN_BEFORE], network)) {
        basin_watch_note(watch, "which nodes the model was trained on that this one begins with is "
                                "not known: they may be among those of validation and test");
        return BASIN_OK;
    }
    BASIN_SCRATCH_RAW(int8_t, seen, network->nodes, "known nodes", error);
    basin_known_labels_find(seen, &memory->seen[BASIN_SEEN_BEFORE], network);
    int64_t val = 0, test = 0;
    for (int64_t i = 0; i < network->nodes; i++) {
        val += seen[i] >= 0 && part[i] == BASIN_SPLIT_VAL;
        test += seen[i] >= 0 && part[i] == BASIN_SPLIT_TEST;
    }
    if (val + test)
        basin_watch_note(
            watch,
            "warning: %lld of %lld validation nodes and %lld of %lld test nodes took "
            "part in the training of the model that this one begins with: figures on "
            "them are better than what to expect",
            (long long)val, (long long)memory->card.validated_on, (long long)test,
            (long long)basin_split_nodes(NULL, part, network->nodes, BASIN_SPLIT_TEST));
    return BASIN_OK;
}

basin_status basin_nodes_memory_take(basin_nodes_memory *memory, const basin_network *network,
                                     const uint8_t *part, bool labels_known,
                                     const basin_watch *watch, basin_error *error) {
    const basin_salt *salt = &memory->salt;
    BASIN_TRY(fill_card(&memory->card, network, part, error));
    BASIN_TRY(note_before(memory, network, part, watch, error));
    if (!labels_known)
        BASIN_TRY(basin_known_labels_take(&memory->seen[BASIN_SEEN_TRAINED], network, part,
                                          BASIN_SPLIT_TRAIN, false, salt, error));
    if (!memory->card.validated_on) return BASIN_OK;
    return basin_known_labels_take(&memory->seen[BASIN_SEEN_VALIDATED], network, part,
                                   BASIN_SPLIT_VAL, false, salt, error);
}

void basin_nodes_memory_free(basin_nodes_memory *memory) {
    for (int i = 0; i < BASIN_SEEN; i++) basin_known_labels_free(&memory->seen[i]);
    for (int i = 0; i < TEXTS; i++) free(*text_at(&memory->card, i));
    *memory = (basin_nodes_memory){0};
}

/* ---- files ---- */

static const char *const figure[] = {"macro_f1", "auroc", "auprc", "recall_at_k", "ece"};
enum { FIGURES = sizeof figure / sizeof *figure };

/* "validation.auroc" */
static const char *figure_key(char text[KEY], int i) {
    snprintf(text, KEY, "validation.%s", figure[i]);
    return text;
}

basin_status basin_nodes_memory_store(basin_bundle *bundle, const basin_nodes_memory *memory,
                                      basin_error *error) {
    basin_nodes_card card = memory->card;
    char key[KEY];
    if (!card.date) return BASIN_OK;
    for (int i = 0; i < TEXTS; i++) {
        const char *text = *text_at(&card, i);
        if (text) BASIN_TRY(basin_bundle_meta_set(bundle, text_of[i].key, text, error));
    }
    for (int i = 0; i < COUNTS - 1; i++) {
        double value = (double)*count_at(&card, i);
        BASIN_TRY(basin_nodes_set_number(bundle, count_of[i].key, value, error));
    }
    BASIN_TRY(basin_nodes_set_number(bundle, "base_rate", card.base_rate, error));
    for (int i = 0; i < FIGURES && card.validation.measures; i++)
        BASIN_TRY(basin_nodes_set_number(bundle, figure_key(key, i),
                                         basin_score_get(&card.validation, figure[i]), error));
    if (memory->before_unknown)
        BASIN_TRY(basin_bundle_meta_set(bundle, "seen.unknown", "on", error));
    for (int i = 0; i < BASIN_SEEN; i++)
        BASIN_TRY(basin_known_labels_store(bundle, list_prefix[i + 1], &memory->seen[i], error));
    return BASIN_OK;
}

basin_status basin_nodes_memory_load(basin_nodes_memory *memory, const basin_bundle *bundle,
                                     basin_error *error) {
    basin_nodes_card *card = &memory->card;
    char key[KEY];
    double value;
    if (!basin_bundle_meta(bundle, text_of[0].key)) return BASIN_OK;
    for (int i = 0; i < TEXTS; i++) {
        const char *text = basin_bundle_meta(bundle, text_of[i].key);
        if (!text && i < 3) text = "";
        BASIN_TRY(set_text((const char **)text_at(card, i), text, error));
    }
    for (int i = 0; i < COUNTS; i++) {
        BASIN_TRY(basin_bundle_number(&value, bundle, count_of[i].key, 0, 1e15, error));
        *count_at(card, i) = (int64_t)value;
    }
    BASIN_TRY(basin_bundle_number(&card->base_rate, bundle, "base_rate", 0, 1, error));
    for (int i = 0; i < FIGURES; i++) {
        if (!basin_bundle_meta(bundle, figure_key(key, i))) continue;
        BASIN_TRY(basin_bundle_number(&value, bundle, key, 0, 1, error));
        basin_score_add(&card->validation, figure[i], value);
    }
    memory->before_unknown = basin_bundle_meta(bundle, "seen.unknown") != NULL;
    for (int i = 0; i < BASIN_SEEN; i++)
        BASIN_TRY(basin_known_labels_load(&memory->seen[i], bundle, list_prefix[i + 1], error));
    return BASIN_OK;
}

/* ---- who took part in training ---- */

static basin_status mark(uint8_t *seen, const basin_known_labels *known,
                         const basin_network *network, uint8_t as, basin_error *error) {
    BASIN_SCRATCH_RAW(int8_t, label, network->nodes, "known nodes", error);
    basin_known_labels_find(label, known, network);
    for (int64_t i = 0; i < network->nodes; i++)
        if (label[i] >= 0) seen[i] = as;
    return BASIN_OK;
}

basin_status basin_nodes_seen(uint8_t *seen, const basin_nodes_model *model,
                              const basin_network *network, basin_error *error) {
    const basin_known_labels *known = &model->ensemble.known;
    if (!known->count) known = &model->memory.seen[BASIN_SEEN_TRAINED];
    memset(seen, BASIN_SPLIT_NONE, (size_t)network->nodes);
    if (!known->count)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "the model does not say which nodes it was trained on; needs one "
                          "trained by this version");
    if (model->memory.before_unknown)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "which nodes took part in the training of the model's parents is not "
                          "known; needs a parent trained by this version, with ids");
    const basin_known_labels *before = &model->memory.seen[BASIN_SEEN_BEFORE];
    if (!basin_known_labels_fit(known, network) ||
        (before->count && !basin_known_labels_fit(before, network)))
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: which of its nodes took part in training is not known; needs ids, "
                          "in training and here, or the network of training",
                          network->path);
    BASIN_TRY(
        mark(seen, &model->memory.seen[BASIN_SEEN_VALIDATED], network, BASIN_SPLIT_VAL, error));
    BASIN_TRY(mark(seen, before, network, BASIN_SPLIT_TRAIN, error));
    return mark(seen, known, network, BASIN_SPLIT_TRAIN, error);
}

/* ---- figures ---- */

basin_status basin_nodes_count_seen(int64_t *trained, int64_t *validated,
                                    const basin_nodes_model *model, const basin_network *network,
                                    const uint8_t *part, int which, basin_error *error) {
    BASIN_SCRATCH_RAW(uint8_t, seen, network->nodes, "known nodes", error);
    basin_status status = basin_nodes_seen(seen, model, network, error);
    *trained = *validated = status ? -1 : 0;
    for (int64_t i = 0; i < network->nodes && !status; i++) {
        *trained += part[i] == which && seen[i] == BASIN_SPLIT_TRAIN;
        *validated += part[i] == which && seen[i] == BASIN_SPLIT_VAL;
    }
    return status == BASIN_UNSUPPORTED ? BASIN_OK : status;
}

/* 10, 30, 100, 300, .. alerts, as long as there are that many nodes. */
static basin_status try_budgets(basin_nodes_figures *f, const basin_nodes_samples *s,
                                basin_error *error) {
    for (int64_t k = 10; k < s->count && f->budgets < BASIN_NODES_BUDGETS;) {
        basin_ranking r = {.size = sizeof r};
        BASIN_TRY(basin_ranking_measure(&r, s->score, s->label, s->count, k, error));
        double found = r.recall_k * (double)r.positives;
        f->budget[f->budgets++] = (basin_nodes_budget){k, found / (double)k, r.recall_k};
        k = k % 3 ? 3 * k : k / 3 * 10;
    }
    return BASIN_OK;
}

static basin_status judge(basin_nodes_figures *f, const basin_nodes_samples *s, bool probable,
                          const char *path, basin_error *error) {
    basin_ranking ranking = {.size = sizeof ranking};
    f->nodes = s->count;
    for (int64_t i = 0; i < s->count; i++) f->anomalous += s->label[i];
    if (!f->anomalous || f->anomalous == f->nodes)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: %lld labelled nodes, %lld of them anomalous; needs some of both",
                          path, (long long)f->nodes, (long long)f->anomalous);
    basin_confusion c;
    basin_confusion_count(&c, s->score, s->label, s->count, f->threshold);
    f->alerts = c.true_positive + c.false_positive;
    f->precision = f->alerts ? (double)c.true_positive / (double)f->alerts : 0;
    f->recall = (double)c.true_positive / (double)f->anomalous;
    double both = f->precision + f->recall;
    f->f1 = both > 0 ? 2 * f->precision * f->recall / both : 0;
    f->macro_f1 = basin_confusion_macro_f1(&c);
    f->reliability.size = sizeof f->reliability;
    if (probable) basin_reliability_measure(&f->reliability, s->score, s->label, s->count);
    BASIN_TRY(basin_ranking_measure(&ranking, s->score, s->label, s->count, 0, error));
    f->auroc = ranking.auroc;
    f->auprc = ranking.auprc;
    f->recall_at_k = ranking.recall_k;
    return try_budgets(f, s, error);
}

static basin_status check_labels(const basin_network *network, basin_error *error) {
    if (!network->label)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no labels to compare with", network->path);
    int32_t max = basin_network_greatest_label(network);
    if (max <= 1) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "%s: label %d; needs 0 (normal) and 1 (anomalous)",
                      network->path, (int)max);
}

basin_status basin_nodes_backtest(basin_nodes_figures *figures, const basin_nodes_model *model,
                                  const basin_network *network, const double *probability,
                                  const uint8_t *part, int which, double threshold,
                                  basin_error *error) {
    BASIN_AT_EXIT(basin_nodes_samples_free) basin_nodes_samples s = {0};
    *figures = (basin_nodes_figures){.threshold = threshold, .trained_on = -1, .validated_on = -1};
    BASIN_TRY(check_labels(network, error));
    BASIN_TRY(basin_nodes_samples_take(&s, probability, network, part, which, error));
    BASIN_TRY(judge(figures, &s, model != NULL, network->path, error));
    if (!model) return BASIN_OK;
    return basin_nodes_count_seen(&figures->trained_on, &figures->validated_on, model, network,
                                  part, which, error);
}
