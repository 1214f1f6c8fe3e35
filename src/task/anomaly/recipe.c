/* Recipes of anomaly detectors: the table of settings, the paper's rows, the default. */
#include <math.h>
#include <string.h>

#include "task/anomaly/anomaly.h"

static const char *const scalings[] = {"auto", "none",
                                       BASIN_ANOMALY_SCALINGS(BASIN_SCALING_ALONE)
                                           BASIN_ANOMALY_SCALINGS(BASIN_SCALING_OTHERS) NULL};
static const char *const uses[] = {"one", "max", "concat", NULL};
static const char *const loops[] = {"keep", "drop", "add", NULL};
static const char *const forms[] = {"energy", "published", "linear", "mlp", NULL};
static const char *const positions[] = {"none", "learned", "laplacian", NULL};
static const char *const selections[] = {"macro_f1", "auroc", "auprc", NULL};
static const char *const thresholds[] = {"all", "grid", "smooth", NULL};
static const char *const balances[] = {"full", "root", "none", NULL};
static const char *const samplings[] = {"auto", "full", "subgraph", "neighbours", NULL};

#define INTEGER(field, low, high) BASIN_SETTING_INTEGER_OF(basin_anomaly_recipe, field, low, high)
#define REAL(field, low, high) BASIN_SETTING_REAL_OF(basin_anomaly_recipe, field, low, high)
#define SWITCH(field) BASIN_SETTING_SWITCH_OF(basin_anomaly_recipe, field)
#define CHOICE(field, choices) BASIN_SETTING_CHOICE_OF(basin_anomaly_recipe, field, choices)

const basin_setting basin_anomaly_settings[] = {
    CHOICE(scaling, scalings),
    INTEGER(hops, -1, 8),
    SWITCH(degree),
    CHOICE(relations, uses),
    CHOICE(self_loops, loops),
    CHOICE(form, forms),
    INTEGER(dim, 1, 65536),
    INTEGER(heads, 1, 1024),
    INTEGER(head_dim, 1, 65536),
    INTEGER(memories, 1, 1 << 24),
    INTEGER(blocks, 1, BASIN_ANOMALY_BLOCKS),
    INTEGER(steps, 1, 256),
    REAL(alpha, 0, 1e6),
    CHOICE(position, positions),
    INTEGER(eigenvectors, 1, 1024),
    INTEGER(embedding, 0, 65536),
    INTEGER(hidden, 0, 65536),
    SWITCH(attention),
    SWITCH(hopfield),
    SWITCH(concat),
    SWITCH(learn_beta),
    REAL(degree_power, 0, 4),
    REAL(query_init, 0, 10),
    REAL(dropout, 0, 0.99),
    INTEGER(epochs, 1, 1e9),
    INTEGER(patience, 0, 1e9),
    INTEGER(warmup, 0, 1e9),
    INTEGER(evaluate, 1, 1e9),
    REAL(rate, 0, 10),
    REAL(decay, 0, 10),
    REAL(clip, 0, 1e9),
    REAL(average, 0, 0.99999),
    CHOICE(select, selections),
    CHOICE(threshold, thresholds),
    CHOICE(balance, balances),
    CHOICE(sampling, samplings),
    REAL(fraction, 0, 1),
    INTEGER(batch, 1, 1e9),
    INTEGER(fanout, 1, 1e6),
    INTEGER(members, 0, 64),
    INTEGER(seed, 0, 9007199254740992.0),
    BASIN_SETTINGS_END,
};

/* The paper's model and training (sections 4, C): alpha 1, Adam 1e-3, 100 epochs, weights by class,
 * epoch by validation macro-F1, an MLP as the head; sizes by row. */
static const basin_anomaly_recipe paper = {
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
    .concat = true,
    .learn_beta = true,
    .query_init = 0.02,
    .epochs = 100,
    .evaluate = 1,
    .rate = 1e-3,
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
const char basin_anomaly_presets[] =
    "default|paper|amazon|amazon-1|yelp|yelp-1|tfinance|tfinance-1|tsocial|tsocial-1";

basin_status basin_anomaly_preset(basin_anomaly_recipe *recipe, const char *name,
                                  basin_error *error) {
    *recipe = (basin_anomaly_recipe)BASIN_ANOMALY_DEFAULT;
    if (!strcmp(name, "default")) return BASIN_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, name)) continue;
        *recipe = paper;
        recipe->dim = recipe->head_dim = recipe->hidden = rows[i].width;
        recipe->memories = rows[i].memories;
        recipe->steps = rows[i].steps;
        recipe->heads = rows[i].heads;
        recipe->position = rows[i].position;
        return BASIN_OK;
    }
    return basin_fail(error, BASIN_BAD_VALUE, "no preset '%s'; wanted one of %s", name,
                      basin_anomaly_presets);
}

static bool same(const char *a, const char *b) { return !strcmp(a, b); }

basin_status basin_anomaly_check(const basin_anomaly_recipe *r, basin_error *error) {
    bool published = same(r->form, "published");
    if (!r->attention && !r->hopfield)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "neither attention nor hopfield: an energy wants one of them");
    if (published && (!r->attention || !r->hopfield || r->blocks > 1 ||
                      same(r->relations, "concat") || !same(r->position, "none")))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "the published form has attention and hopfield, one block, no positions, "
                          "and max over relations; wanted form energy for anything else");
    if (same(r->position, "learned") &&
        (same(r->sampling, "subgraph") || same(r->sampling, "neighbours")))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "learned positions together with sampling %s; wanted position none or "
                          "laplacian",
                          r->sampling);
    if (r->fraction <= 0)
        return basin_fail(error, BASIN_BAD_VALUE, "fraction %g; wanted more than 0 and at most 1",
                          r->fraction);
    return BASIN_OK;
}
