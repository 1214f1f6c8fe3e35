/* Settings of anomaly detectors: the table, the paper's rows, the default, what is refused. */
#include <math.h>
#include <string.h>

#include "task/anomaly/anomaly.h"

#define BASIN_SETTINGS_TYPE basin_anomaly_settings
static const basin_setting table[] = {
    BASIN_ANOMALY_INPUT_SETTINGS(BASIN_SETTING_ENTRY)
        BASIN_ANOMALY_MODEL_SETTINGS(BASIN_SETTING_ENTRY)
            BASIN_ANOMALY_TRAINING_SETTINGS(BASIN_SETTING_ENTRY)
                BASIN_LOOSE_SETTINGS(BASIN_LOOSE_ENTRY) BASIN_SETTINGS_END,
};

/* Made to do well on any graph, tuned to none. */
static const basin_anomaly_settings usual = {
    .scaling = "auto",
    .hops = -1,
    .degree = true,
    .relations = "one",
    .self_loops = "drop",
    .form = "energy",
    .dim = 64,
    .heads = 2,
    .head_dim = 32,
    .memories = 128,
    .blocks = 2,
    .steps = 1,
    .alpha = 1,
    .position = "none",
    .eigenvectors = 16,
    .hidden = 64,
    .attention = true,
    .hopfield = true,
    .hopfield_kind = "relu",
    .hopfield_power = 3,
    .concat = true,
    .learn_beta = true,
    .query_deviation = 0.05,
    .dropout = 0.2,
    .epochs = 300,
    .evaluate = 2,
    .patience = 50,
    .warmup = 10,
    .rate = 3e-3,
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
    .fraction = 0.05,
    .batch = 1024,
    .fanout = 16,
};

/* The paper's model and training (sections 4, C): alpha 1, Adam 1e-3, 100 epochs, weights by class,
 * epoch by validation macro-F1, an MLP as the head; sizes by row. */
static const basin_anomaly_settings paper = {
    .scaling = "standard",
    .relations = "one",
    .self_loops = "drop",
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
    .members = 1,
};

/* The table of Y, K, T, H; D = Y as in the published code. "-1" is the row of 1 % for training. */
static const struct {
    const char *name;
    int64_t width, memories, steps, heads;
    const char *position;
} rows[] = {
    {"paper", 128, 256, 1, 1, "learned"},   {"amazon", 128, 640, 1, 2, "learned"},
    {"amazon-1", 64, 128, 1, 1, "learned"}, {"yelp", 128, 256, 1, 1, "learned"},
    {"yelp-1", 128, 256, 1, 1, "learned"},  {"tfinance", 128, 256, 1, 3, "none"},
    {"tfinance-1", 128, 256, 1, 1, "none"}, {"tsocial", 128, 256, 3, 3, "none"},
    {"tsocial-1", 128, 256, 3, 3, "none"},
};
static const char *const presets[] = {"default", "paper",     "amazon",   "amazon-1",
                                      "yelp",    "yelp-1",    "tfinance", "tfinance-1",
                                      "tsocial", "tsocial-1", NULL};

static void fill(void *values, const char *preset) {
    basin_anomaly_settings *s = values;
    *s = usual;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, preset)) continue;
        *s = paper;
        s->dim = s->head_dim = s->hidden = rows[i].width;
        s->memories = rows[i].memories;
        s->steps = rows[i].steps;
        s->heads = rows[i].heads;
        s->position = rows[i].position;
    }
}

basin_status basin_anomaly_check(const void *values, basin_error *error) {
    const basin_anomaly_settings *r = values;
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
    if (basin_choice_is(r->position, "learned") &&
        (basin_choice_is(r->sampling, "subgraph") || basin_choice_is(r->sampling, "neighbours")))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "learned positions together with sampling %s; wanted position none or "
                          "laplacian",
                          r->sampling);
    if (r->fraction <= 0)
        return basin_fail(error, BASIN_BAD_VALUE, "fraction %g; wanted more than 0 and at most 1",
                          r->fraction);
    return BASIN_OK;
}

const basin_task_settings basin_anomaly_task = {
    "anomaly", table, sizeof(basin_anomaly_settings), presets, NULL, fill, basin_anomaly_check};
