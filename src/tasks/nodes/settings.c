/* Settings of detectors and of models of classes: what they mean, their tables, what is refused. */
#include "base/number.h"
#include "tasks/nodes/net.h"

bool basin_nodes_descends(const basin_nodes_settings *r) {
    return basin_choice_is(r->form, "energy");
}

bool basin_nodes_on_graph(const basin_nodes_settings *r) {
    if (r->smoothing > 0) return true;
    if (basin_nodes_descends(r)) return r->attention;
    return basin_choice_is(r->form, "published");
}

bool basin_nodes_plain(const basin_nodes_settings *r) {
    return basin_choice_is(r->form, "linear") || basin_choice_is(r->form, "mlp");
}

bool basin_nodes_prefer_samples(const basin_nodes_settings *s, const basin_task_settings *task) {
    return !basin_classes_several(task) && basin_nodes_descends(s) && !s->implicit &&
           basin_choice_is(s->position, "none");
}

bool basin_facts_bias(const basin_nodes_settings *s) {
    return basin_choice_is(s->facts, "energy") || basin_choice_is(s->facts, "both");
}

bool basin_facts_are_features(const basin_nodes_settings *s) {
    return basin_choice_is(s->facts, "features") || basin_choice_is(s->facts, "both");
}

bool basin_classes_several(const basin_task_settings *task) { return task != &basin_anomaly_task; }

/* ---- text of model files ---- */

void basin_nodes_add_line(char text[BASIN_NODES_LINES], const char *name) {
    size_t at = strlen(text);
    snprintf(text + at, BASIN_NODES_LINES - at, "%s%s", at ? "\n" : "", name);
}

basin_status basin_nodes_set_number(basin_bundle *bundle, const char *key, double value,
                                    basin_error *error) {
    char text[40];
    basin_real_print(text, sizeof text, 17, value);
    return basin_bundle_meta_set(bundle, key, text, error);
}

/* ---- tables of settings, and what is refused ---- */

#define BASIN_SETTINGS_TYPE basin_nodes_settings
static const basin_setting_entry table[] = {
    BASIN_NODES_INPUT_SETTINGS(BASIN_SETTING_ENTRY) BASIN_NODES_MODEL_SETTINGS(BASIN_SETTING_ENTRY)
        BASIN_NODES_TRAINING_SETTINGS(BASIN_SETTING_ENTRY) BASIN_LOOSE_SETTINGS(BASIN_LOOSE_ENTRY)
            BASIN_SETTINGS_END,
};

static basin_status check_settings(const void *values, basin_error *error) {
    const basin_nodes_settings *r = values;
    bool published = basin_choice_is(r->form, "published");
    if (!r->attention && !r->hopfield)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "attention and hopfield are both off; at least one must be on");
    if (published && (!r->attention || !r->hopfield || !basin_choice_is(r->hopfield_kind, "relu") ||
                      r->blocks > 1 || basin_choice_is(r->relations, "concat") ||
                      !basin_choice_is(r->position, "none")))
        return basin_fail(
            error, BASIN_BAD_VALUE,
            "the published form has attention and hopfield of kind relu, one block, no positions, "
            "and max over relations; needs form energy for anything else");
    if (r->positive_gamma && !basin_choice_is(r->form, "energy"))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "positive_gamma with form %s, which has no gamma; needs form energy",
                          r->form);
    if (r->implicit && !basin_nodes_descends(r))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "implicit with form %s, which does not descend; needs form energy",
                          r->form);
    if (basin_facts_bias(r) && (!basin_nodes_descends(r) || !r->attention))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "facts %s with form %s, which has no energy of pairs; needs facts "
                          "features or none",
                          r->facts, r->attention ? r->form : "energy without attention");
    return BASIN_OK;
}

const basin_task_settings basin_anomaly_task = {
    "anomaly", table, sizeof(basin_nodes_settings), check_settings, NULL, NULL, NULL};

static const basin_setting_entry file_table[] = {
    BASIN_NODES_INPUT_SETTINGS(BASIN_SETTING_ENTRY) BASIN_NODES_MODEL_SETTINGS(BASIN_SETTING_ENTRY)
        BASIN_NODES_TRAINING_SETTINGS(BASIN_SETTING_ENTRY) BASIN_LOOSE_SETTINGS(BASIN_LOOSE_ENTRY)
            BASIN_SETTING_ENTRY(INTEGER, tabular, "N", 0, 64, "", .absent = "0") BASIN_SETTINGS_END,
};

const basin_task_settings basin_anomaly_file = {
    "anomaly", file_table, sizeof(basin_nodes_settings), check_settings, NULL, NULL, NULL};

static const basin_setting_entry classes_table[] = {
    BASIN_NODES_INPUT_SETTINGS(BASIN_SETTING_ENTRY) BASIN_NODES_MODEL_SETTINGS(BASIN_SETTING_ENTRY)
        BASIN_NODE_OWN_SETTINGS(BASIN_SETTING_ENTRY) BASIN_NODE_PACE_SETTINGS(BASIN_SETTING_ENTRY)
            BASIN_NODE_JUDGE_SETTINGS(BASIN_SETTING_ENTRY)
                BASIN_NODE_SAMPLING_SETTINGS(BASIN_SETTING_ENTRY)
                    BASIN_NODE_MEMBER_SETTINGS(BASIN_SETTING_ENTRY)
                        BASIN_LOOSE_SETTINGS(BASIN_LOOSE_ENTRY) BASIN_SETTINGS_END,
};

/* What only detectors have. */
static const basin_nodes_settings base = {.threshold = "all", .calibrate = "none"};

static basin_status check_classes(const void *values, basin_error *error) {
    const basin_nodes_settings *r = values;
    if (r->smoothing > 0 && !basin_choice_is(r->relations, "one"))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "smoothing %lld with relations %s: it runs over one graph; needs "
                          "relations one, or smoothing 0",
                          (long long)r->smoothing, r->relations);
    return check_settings(r, error);
}

const basin_task_settings basin_node_task = {
    "node", classes_table, sizeof(basin_nodes_settings), check_classes, &base, NULL, NULL};
