/* The tasks by name, for those who ask for settings; see include/basin/tasks/settings.h. */
#include <string.h>

#include "tasks/common/run/settings.h"

enum { TASKS = 16 }; /* named in a message, at most */

static const basin_task_settings *find(const char *task) {
    const basin_preset_list *list = basin_presets;
    while (list->task && strcmp(list->task, task) != 0) list++;
    return list->settings;
}

basin_status basin_settings_new(basin_settings **settings, const char *task, const char *preset,
                                basin_error *error) {
    const basin_task_settings *kind = find(task);
    const char *known[TASKS + 1] = {NULL};
    char list[200];
    *settings = NULL;
    if (kind) return basin_settings_make(settings, kind, preset, error);
    for (int i = 0; i < TASKS && basin_presets[i].task; i++) known[i] = basin_presets[i].task;
    basin_choices_print(list, sizeof list, known);
    return basin_fail(error, BASIN_BAD_VALUE, "there is no task '%.60s'; expected one of %s", task,
                      list);
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
