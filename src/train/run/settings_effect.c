/* Settings without effect: one that was set by its name although the values of others make it idle,
 * as `alpha` of a model without a descent; see `needs` in include/basin/tasks/settings.h. */
#include <stdio.h>
#include <string.h>

#include "base/needs.h"
#include "train/run/settings.h"

enum { TEXT = 600 };

bool basin_settings_given(const basin_settings *settings, const char *name) {
    const basin_setting *table = settings->kind->table;
    for (int i = 0; settings->given && table[i].name; i++)
        if (!strcmp(table[i].name, name)) return settings->given[i];
    return false;
}

static bool value_of(char text[BASIN_NEEDS_VALUE], const void *context, const char *name,
                     size_t length) {
    const basin_settings *settings = context;
    for (const basin_setting *s = settings->kind->table; s->name; s++)
        if (strlen(s->name) == length && !strncmp(s->name, name, length)) {
            basin_setting_print(text, BASIN_NEEDS_VALUE, settings->values, s);
            return true;
        }
    return false;
}

/* Whether the value of `other` is why. */
static bool is_idle(const basin_setting *setting, const basin_settings *settings,
                    const basin_setting *other) {
    for (const char *at = setting->needs; (at = basin_needs_unmet(at, value_of, settings));
         at = basin_needs_next(at))
        if (basin_needs_names(at, other->name)) return true;
    return false;
}

/* "alpha and beta have no effect with arch vit": what the value of `other` makes idle. */
static basin_status check_against(const basin_settings *settings, const basin_setting *other,
                                  basin_error *error) {
    const basin_setting *table = settings->kind->table;
    const char *last = NULL;
    char names[TEXT] = "", value[BASIN_NEEDS_VALUE];
    int count = 0;
    for (int i = 0; table[i].name; i++) {
        if (!settings->given[i] || !is_idle(&table[i], settings, other)) continue;
        size_t at = strlen(names);
        if (last) snprintf(names + at, sizeof names - at, "%s%s", count > 1 ? ", " : "", last);
        last = table[i].name;
        count++;
    }
    if (!count) return BASIN_OK;
    basin_setting_print(value, sizeof value, settings->values, other);
    return basin_fail(error, BASIN_BAD_VALUE, "%s%s%s %s no effect with %s %s; leave %s out", names,
                      count > 1 ? " and " : "", last, count > 1 ? "have" : "has", other->name,
                      value, count > 1 ? "them" : "it");
}

basin_status basin_settings_check_effect(const basin_settings *settings, basin_error *error) {
    basin_status status = BASIN_OK;
    for (const basin_setting *s = settings->kind->table; settings->given && s->name && !status; s++)
        status = check_against(settings, s, error);
    return status;
}
