/* Settings of anomaly detectors: the table, the default, the paper's rows, those of its released
 * code, what is refused. */
#include <math.h>
#include <string.h>

#include "task/anomaly/rival/rival.h"

#define BASIN_SETTINGS_TYPE basin_anomaly_settings
static const basin_setting table[] = {
    BASIN_ANOMALY_INPUT_SETTINGS(BASIN_SETTING_ENTRY)
        BASIN_ANOMALY_MODEL_SETTINGS(BASIN_SETTING_ENTRY)
            BASIN_ANOMALY_TRAINING_SETTINGS(BASIN_SETTING_ENTRY)
                BASIN_LOOSE_SETTINGS(BASIN_LOOSE_ENTRY) BASIN_SETTINGS_END,
};

/* Made to do well on any graph within a minute, tuned to none. */
static const basin_anomaly_settings usual = {
    .scaling = "quantile",
    .hops = 2,
    .degree = true,
    .facts = "auto",
    .relations = "one",
    .self_loops = "drop",
    .arch = "et",
    .form = "energy",
    .dim = 32,
    .heads = 2,
    .head_dim = 16,
    .memories = 64,
    .blocks = 2,
    .steps = 1,
    .alpha = 1,
    .position = "none",
    .eigenvectors = 16,
    .hidden = 32,
    .attention = true,
    .hopfield = true,
    .hopfield_kind = "relu",
    .hopfield_power = 3,
    .concat = true,
    .learn_beta = true,
    .query_deviation = 0.05,
    .dropout = 0.2,
    .epochs = 100,
    .patience = 40,
    .warmup = 10,
    .rate = 1e-2,
    .rate_first = -1,
    .rate_last = -1,
    .decay = 0.02,
    .beta2 = 0.999,
    .clip = 1,
    .average = 0.95,
    .select = "auprc",
    .threshold = "smooth",
    .balance = "root",
    .sampling = "auto",
    .batch = 1024,
    .fanout = 16,
    .trees = 12,
    .labels = true,
    .calibrate = "auto",
};

/* The paper's model and training (sections 4, C): alpha 1, Adam 1e-3, 100 epochs, weights by class,
 * epoch by validation macro-F1, an MLP as the head; sizes by row. */
static const basin_anomaly_settings paper = {
    .scaling = "standard",
    .facts = "none",
    .relations = "one",
    .self_loops = "drop",
    .arch = "et",
    .form = "energy",
    .dim = 128,
    .heads = 1,
    .head_dim = 128,
    .memories = 256,
    .blocks = 1,
    .steps = 1,
    .alpha = 1,
    .position = "learned",
    .eigenvectors = 16,
    .hidden = 128,
    .attention = true,
    .hopfield = true,
    .hopfield_kind = "relu",
    .hopfield_power = 3,
    .concat = true,
    .learn_beta = true,
    .query_deviation = 0.02,
    .epochs = 100,
    .evaluate = 1,
    .rate = 1e-3,
    .rate_first = -1,
    .rate_last = -1,
    .beta2 = 0.999,
    .select = "macro_f1",
    .threshold = "grid",
    .balance = "full",
    .sampling = "auto",
    .fraction = 0.05,
    .batch = 1024,
    .fanout = 16,
    .calibrate = "none",
    .members = 1,
};

/* The table of Y, K, T, H; D = Y as in the released code. "-1" is the row of 1 % for training.
 * Large graphs are trained on another 5 % of the nodes each epoch. */
static const struct row {
    const char *name;
    int64_t width, memories, steps, heads;
    bool sampled;
} rows[] = {
    {"amazon", 128, 640, 1, 2, false},  {"amazon-1", 64, 128, 1, 1, false},
    {"yelp", 128, 256, 1, 1, false},    {"yelp-1", 128, 256, 1, 1, false},
    {"tfinance", 128, 256, 1, 3, true}, {"tfinance-1", 128, 256, 1, 1, true},
    {"tsocial", 128, 256, 3, 3, true},  {"tsocial-1", 128, 256, 3, 3, true},
};
static const char *const presets[] = {
    "default",           "paper-amazon",     "paper-amazon-1",     "paper-yelp",
    "paper-yelp-1",      "paper-tfinance",   "paper-tfinance-1",   "paper-tsocial",
    "paper-tsocial-1",   "published-amazon", "published-yelp",     "published-tfinance",
    "published-tsocial", "rival-bwgnn",      "rival-bwgnn-hetero", "rival-gt",
    "rival-gcn",         "rival-gat",        "rival-sage",         NULL};
static void fill_row(basin_anomaly_settings *s, const struct row *row) {
    *s = paper;
    s->dim = s->head_dim = s->hidden = row->width;
    s->memories = row->memories;
    s->steps = row->steps;
    s->heads = row->heads;
    if (row->sampled) s->sampling = "subgraph";
}

/* The released code where it differs: its own form, without positions and with self loops and
 * dropout; the subsampled variant reads the last tokens alone. */
static void publish(basin_anomaly_settings *s) {
    s->form = "published";
    s->self_loops = "add";
    s->position = "none";
    s->hidden = 0;
    s->dropout = 0.3;
    s->concat = !basin_choice_is(s->sampling, "subgraph");
}

static void fill(void *values, const char *preset) {
    basin_anomaly_settings *s = values;
    *s = usual;
    const char *name = strchr(preset, '-');
    for (size_t i = 0; name && i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, name + 1)) fill_row(s, &rows[i]);
    if (!strncmp(preset, "published-", strlen("published-"))) publish(s);
    basin_rival_fill(s, preset);
}

basin_status basin_anomaly_check_for(const basin_anomaly_settings *r,
                                     const basin_task_settings *task, basin_error *error) {
    bool published = basin_choice_is(r->form, "published");
    if (!r->attention && !r->hopfield)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "neither attention nor hopfield: an energy wants one of them");
    if (published && (!r->attention || !r->hopfield || !basin_choice_is(r->hopfield_kind, "relu") ||
                      r->blocks > 1 || basin_choice_is(r->relations, "concat") ||
                      !basin_choice_is(r->position, "none")))
        return basin_fail(
            error, BASIN_BAD_VALUE,
            "the published form has attention and hopfield of kind relu, one block, no positions, "
            "and max over relations; wanted form energy for anything else");
    if (r->positive_gamma && !basin_choice_is(r->form, "energy"))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "positive_gamma with form %s, which has no gamma; wanted form energy",
                          r->form);
    if (r->implicit && !basin_anomaly_descends(r))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "implicit with %s %s, which does not descend; wanted arch et and form "
                          "energy",
                          basin_rival_asked(r) ? "arch" : "form",
                          basin_rival_asked(r) ? r->arch : r->form);
    if (basin_facts_bias(r) && (!basin_anomaly_descends(r) || !r->attention))
        return basin_fail(
            error, BASIN_BAD_VALUE,
            "facts %s with %s %s, which has no energy of pairs; wanted facts features "
            "or none",
            r->facts, basin_rival_asked(r) ? "arch" : "form",
            basin_rival_asked(r) ? r->arch
            : r->attention       ? r->form
                                 : "energy without attention");
    return basin_rival_check(r, task, error);
}

basin_status basin_anomaly_check(const void *values, basin_error *error) {
    return basin_anomaly_check_for(values, &basin_anomaly_task, error);
}

const basin_task_settings basin_anomaly_task = {"anomaly", table, sizeof(basin_anomaly_settings),
                                                presets,   fill,  basin_anomaly_check};
