/* Settings of detectors and of models of classes: their tables, and what is refused. */

#include <math.h>
#include <string.h>

#include "task/nodes/net.h"

#define BASIN_SETTINGS_TYPE basin_nodes_settings
static const basin_setting table[] = {
    BASIN_NODES_INPUT_SETTINGS(BASIN_SETTING_ENTRY) BASIN_NODES_MODEL_SETTINGS(BASIN_SETTING_ENTRY)
        BASIN_NODES_TRAINING_SETTINGS(BASIN_SETTING_ENTRY) BASIN_LOOSE_SETTINGS(BASIN_LOOSE_ENTRY)
            BASIN_SETTINGS_END,
};

basin_status basin_nodes_check(const void *values, basin_error *error) {
    const basin_nodes_settings *r = values;
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
    "anomaly", table, sizeof(basin_nodes_settings), basin_nodes_check, NULL, NULL};

/* ---- Settings of models of classes: the table, and what is refused. */

#define BASIN_SETTINGS_TYPE basin_nodes_settings
static const basin_setting classes_table[] = {
    BASIN_NODES_INPUT_SETTINGS(BASIN_SETTING_ENTRY) BASIN_NODES_MODEL_SETTINGS(BASIN_SETTING_ENTRY)
        BASIN_NODE_OWN_SETTINGS(BASIN_SETTING_ENTRY) BASIN_NODE_PACE_SETTINGS(BASIN_SETTING_ENTRY)
            BASIN_NODE_JUDGE_SETTINGS(BASIN_SETTING_ENTRY)
                BASIN_NODE_SAMPLING_SETTINGS(BASIN_SETTING_ENTRY)
                    BASIN_NODE_MEMBER_SETTINGS(BASIN_SETTING_ENTRY)
                        BASIN_LOOSE_SETTINGS(BASIN_LOOSE_ENTRY) BASIN_SETTINGS_END,
};

/* What detectors alone have. */
static const basin_nodes_settings base = {.threshold = "all", .calibrate = "none"};

static basin_status check(const void *values, basin_error *error) {
    const basin_nodes_settings *r = values;
    if (r->smoothing > 0 && !basin_choice_is(r->relations, "one"))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "smoothing %lld with relations %s: it runs over one graph; wanted "
                          "relations one, or smoothing 0",
                          (long long)r->smoothing, r->relations);
    return basin_nodes_check(r, error);
}

const basin_task_settings basin_node_task = {"node", classes_table, sizeof(basin_nodes_settings),
                                             check,  &base,         NULL};
