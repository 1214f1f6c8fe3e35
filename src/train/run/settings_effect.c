/* Settings without effect: one that was set by its name although the values of others make it idle,
 * as `alpha` of a model without a descent; see `needs` in include/basin/tasks/settings.h. */
#include <stdio.h>
#include <string.h>

#include "train/run/settings.h"

enum { VALUE = 200, TEXT = 600 };

/* Whether one of the words "a|b|c", `length` characters, is `value`. */
static bool is_among(const char *words, size_t length, const char *value) {
    size_t wanted = strlen(value);
    for (const char *end = words + length; words < end;) {
        const char *bar = memchr(words, '|', (size_t)(end - words));
        size_t size = (size_t)((bar ? bar : end) - words);
        if (size == wanted && !strncmp(words, value, size)) return true;
        words += size + 1;
    }
    return false;
}

/* The setting that `condition`, "name=a|b" or "name!=a|b", is about; NULL: the task has none. */
static const basin_setting *subject(const char *condition, const basin_setting *table) {
    size_t length = strcspn(condition, "!=");
    for (; table->name; table++)
        if (strlen(table->name) == length && !strncmp(table->name, condition, length)) return table;
    return NULL;
}

/* Whether `condition`, which is about `other`, holds. */
static bool holds(const char *condition, const void *values, const basin_setting *other) {
    char value[VALUE];
    size_t name = strcspn(condition, "!="), whole = strcspn(condition, ", ");
    bool unlike = condition[name] == '!';
    size_t words = name + (unlike ? 2 : 1);
    basin_setting_print(value, sizeof value, values, other);
    return is_among(condition + words, whole - words, value) != unlike;
}

/* The setting to blame where no condition of `clause`, "a=x,b!=y|z" up to a space, holds: that of
 * the first; NULL where one holds, or where the task has none of these settings. */
static const basin_setting *culprit(const char *clause, const void *values,
                                    const basin_setting *table) {
    const basin_setting *first = NULL;
    for (const char *end = clause + strcspn(clause, " "); clause < end;) {
        const basin_setting *other = subject(clause, table);
        if (other && holds(clause, values, other)) return NULL;
        if (!first) first = other;
        clause += strcspn(clause, ", ");
        if (clause < end) clause++;
    }
    return first;
}

static bool is_idle(const basin_setting *setting, const basin_settings *settings,
                    const basin_setting *other) {
    for (const char *at = setting->needs; at && *at; at += strspn(at, " ")) {
        if (culprit(at, settings->values, settings->kind->table) == other) return true;
        at += strcspn(at, " ");
    }
    return false;
}

/* "alpha and beta have no effect with arch vit": what the value of `other` makes idle. */
static basin_status check_against(const basin_settings *settings, const basin_setting *other,
                                  basin_error *error) {
    const basin_setting *table = settings->kind->table;
    const char *last = NULL;
    char names[TEXT] = "", value[VALUE];
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
