/* Settings of models of classes: the table, the default, the paper's block alone, graph networks to
 * compare with. */
#include <string.h>

#include "task/anomaly/rival/rival.h"
#include "task/node/node.h"

#define BASIN_SETTINGS_TYPE basin_anomaly_settings
static const basin_setting table[] = {
    BASIN_ANOMALY_INPUT_SETTINGS(BASIN_SETTING_ENTRY) BASIN_ANOMALY_MODEL_SETTINGS(
        BASIN_SETTING_ENTRY) BASIN_NODE_OWN_SETTINGS(BASIN_SETTING_ENTRY)
        BASIN_NODE_PACE_SETTINGS(BASIN_SETTING_ENTRY) BASIN_NODE_JUDGE_SETTINGS(BASIN_SETTING_ENTRY)
            BASIN_NODE_SAMPLING_SETTINGS(BASIN_SETTING_ENTRY)
                BASIN_NODE_MEMBER_SETTINGS(BASIN_SETTING_ENTRY)
                    BASIN_LOOSE_SETTINGS(BASIN_LOOSE_ENTRY) BASIN_SETTINGS_END,
};

/* Few labels, many words: small weights, much dropout, neighbours that agree. */
static const basin_anomaly_settings usual = {
    .scaling = "auto",
    .hops = -1,
    .facts = "auto",
    .relations = "one",
    .self_loops = "drop",
    .arch = "et",
    .form = "energy",
    .dim = 64,
    .heads = 2,
    .head_dim = 16,
    .memories = 64,
    .blocks = 1,
    .steps = 1,
    .alpha = 1,
    .position = "none",
    .eigenvectors = 16,
    .attention = true,
    .hopfield = true,
    .hopfield_kind = "relu",
    .hopfield_power = 3,
    .concat = true,
    .learn_beta = true,
    .query_deviation = 0.05,
    .dropout = 0.8,
    .smoothing = -1,
    .anchor = 0.1,
    .input_dropout = 0.5,
    .penalty = 0.02,
    .epochs = 150,
    .evaluate = 1,
    .patience = 50,
    .rate = 1e-2,
    .rate_first = -1,
    .rate_last = -1,
    .beta2 = 0.999,
    .select = "accuracy",
    .threshold = "all",
    .balance = "none",
    .sampling = "auto",
    .batch = 1024,
    .fanout = 16,
    .calibrate = "none",
    .members = 4,
};

static const char *const presets[] = {"default",   "paper",      "rival-gcn",
                                      "rival-gat", "rival-sage", "rival-bwgnn",
                                      "rival-gt",  "rival-mlp",  NULL};

/* The paper's block alone: section 4's model, with a head for classes. */
static void fill_paper(basin_anomaly_settings *s) {
    s->facts = "none";
    s->smoothing = 0;
    s->hops = 0;
    s->hidden = 0;
}

static void fill(void *values, const char *preset) {
    basin_anomaly_settings *s = values;
    *s = usual;
    if (!strcmp(preset, "paper")) fill_paper(s);
    if (!strncmp(preset, "rival-", strlen("rival-"))) {
        basin_rival_fill(s, preset);
        s->select = "accuracy", s->balance = "none", s->threshold = "all";
        s->scaling = "auto", s->smoothing = 0;
        /* Kipf and Welling's second layer comes behind the weights of the head: S (h W + b). */
        if (!strcmp(preset, "rival-gcn")) s->blocks = 1, s->smoothing = 1, s->anchor = 0;
        if (!strcmp(preset, "rival-mlp")) s->form = "mlp", s->hidden = 64;
        s->dim = 64, s->dropout = s->input_dropout = 0.5, s->penalty = 5e-4;
    }
}

static basin_status check(const void *values, basin_error *error) {
    const basin_anomaly_settings *r = values;
    if (r->smoothing > 0 && !basin_choice_is(r->relations, "one"))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "smoothing %lld with relations %s: it runs over one graph; wanted "
                          "relations one, or smoothing 0",
                          (long long)r->smoothing, r->relations);
    return basin_anomaly_check_for(r, &basin_node_task, error);
}

const basin_task_settings basin_node_task = {"node",  table, sizeof(basin_anomaly_settings),
                                             presets, fill,  check};
