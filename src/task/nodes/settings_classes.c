/* Settings of models of classes: the table, and what is refused. */
#include <string.h>

#include "task/nodes/net.h"

#define BASIN_SETTINGS_TYPE basin_nodes_settings
static const basin_setting table[] = {
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

const basin_task_settings basin_node_task = {"node", table, sizeof(basin_nodes_settings),
                                             check,  &base, NULL};
