/* Settings from checkpoints and models: what the caller left open is taken from there, what was
 * asked for must match; see fit.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "task/nodes/fit.h"

basin_status basin_nodes_describe(basin_bundle *checkpoint, const basin_task_settings *task,
                                  const basin_nodes_settings *settings, basin_error *error) {
    char kind[60], *config = basin_settings_print(settings, task->table, false);
    if (!config) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a checkpoint");
    snprintf(kind, sizeof kind, "%s checkpoint", task->task);
    basin_status status = basin_bundle_meta_set(checkpoint, "basin.model", kind, error);
    if (!status) status = basin_bundle_meta_set(checkpoint, "basin.config", config, error);
    free(config);
    return status;
}

basin_status basin_nodes_settle(basin_nodes_settings *settings, const basin_task_settings *task,
                                const basin_bundle *bundle, basin_error *error) {
    basin_nodes_settings found = *settings;
    basin_status status = basin_nodes_read_settings(&found, task, bundle, error);
    if (status) return status;
    if (basin_choice_is(settings->scaling, "auto")) settings->scaling = found.scaling;
    if (basin_choice_is(settings->facts, "auto")) settings->facts = found.facts;
    if (settings->hops < 0) settings->hops = found.hops;
    if (settings->smoothing < 0) settings->smoothing = found.smoothing;
    if (!settings->members) settings->members = found.members;
    return BASIN_OK;
}

/* What samples and looks at validation were, where that was left open. */
static void take_pace(basin_nodes_settings *settings, const basin_nodes_settings *found) {
    if (settings->fraction <= 0) settings->fraction = found->fraction;
    if (!settings->evaluate) settings->evaluate = found->evaluate;
}

/* Whether the batches asked for, halved some times or not at all, are those found. */
static bool is_halved(int64_t asked, int64_t found) {
    while (asked > found && asked > 0) asked /= 2;
    return asked == found;
}

basin_status basin_nodes_resume(basin_nodes_settings *settings, const basin_task_settings *task,
                                const basin_bundle *checkpoint, const basin_watch *watch,
                                basin_error *error) {
    basin_nodes_settings found = *settings;
    basin_status status = basin_nodes_read_settings(&found, task, checkpoint, error);
    if (status) return status;
    if (basin_choice_is(settings->sampling, "auto")) {
        settings->sampling = found.sampling;
        if (is_halved(settings->batch, found.batch)) settings->batch = found.batch;
    }
    take_pace(settings, &found);
    if (settings->epochs != found.epochs)
        basin_watch_note(
            watch, "%lld epochs instead of %lld: the learning rate follows the new number%s",
            (long long)settings->epochs, (long long)found.epochs,
            settings->members > 1 ? "; members that are finished stay as they are" : "");
    return basin_settings_match(&found, settings, task->table, basin_bundle_path(checkpoint),
                                error);
}
