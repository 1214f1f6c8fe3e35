/* The tasks by name, for those who ask for settings; see include/basin/tasks/settings.h. */
#include <string.h>

#include "task/graphs/graphs.h"
#include "task/image/image.h"
#include "task/nodes/nodes.h"
#include "task/text/text.h"

static const basin_task_settings *find(const char *task) {
    static const basin_task_settings *const known[] = {&basin_image_task, &basin_anomaly_task,
                                                       &basin_node_task, &basin_graphs_task,
                                                       &basin_text_task};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i]->task, task)) return known[i];
    return NULL;
}

basin_status basin_settings_new(basin_settings **settings, const char *task, const char *preset,
                                basin_error *error) {
    const basin_task_settings *kind = find(task);
    *settings = NULL;
    if (kind) return basin_settings_make(settings, kind, preset, error);
    return basin_fail(error, BASIN_BAD_VALUE,
                      "there is no task '%.60s'; wanted image, anomaly, node, graphs or text",
                      task);
}

const basin_setting *basin_settings_table(const char *task) {
    const basin_task_settings *kind = find(task);
    return kind ? kind->table : NULL;
}

const char *const *basin_settings_presets(const char *task) {
    const basin_task_settings *kind = find(task);
    return kind ? basin_preset_list_of(kind)->name : NULL;
}
