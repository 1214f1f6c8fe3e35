/* The tasks by name, for those who ask for settings; see include/basin/tasks/settings.h. */
#include <string.h>

#include "tasks/common/run/settings.h"

/* One row per task: a task NAME defines basin_NAME_task. */
#define TASKS(X) X(image) X(anomaly) X(node) X(graphs)

#define DECLARE(name) extern const basin_task_settings basin_##name##_task;
TASKS(DECLARE)

static const basin_task_settings *find(const char *task) {
#define ROW(name) &basin_##name##_task,
    static const basin_task_settings *const known[] = {TASKS(ROW)};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i]->task, task)) return known[i];
    return NULL;
}

#define NAME(name) " " #name
basin_status basin_settings_new(basin_settings **settings, const char *task, const char *preset,
                                basin_error *error) {
    const basin_task_settings *kind = find(task);
    *settings = NULL;
    if (kind) return basin_settings_make(settings, kind, preset, error);
    return basin_fail(error, BASIN_BAD_VALUE,
                      "there is no task '%.60s'; expected one of" TASKS(NAME), task);
}

const basin_setting *basin_setting_at(const char *task, int number) {
    const basin_task_settings *kind = find(task);
    int i = 0;
    if (!kind || number < 0) return NULL;
    while (kind->table[i].is.name && i < number) i++;
    return kind->table[i].is.name ? &kind->table[i].is : NULL;
}

const char *const *basin_settings_presets(const char *task) {
    const basin_task_settings *kind = find(task);
    return kind ? basin_preset_list_of(kind)->name : NULL;
}
