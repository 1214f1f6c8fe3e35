/* Settings by name: one field to and from text, presets, settings as objects; see settings.h. JSON
 * is in settings_json.c. */
#include "train/run/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/try.h"
#include "io/json_writer.h"

const basin_setting *basin_setting_find(const basin_setting *table, const char *name) {
    for (const basin_setting *s = table; s->name; s++)
        if (!strcmp(s->name, name)) return s;
    return NULL;
}

bool basin_choice_is(const char *choice, const char *name) { return !strcmp(choice, name); }

/* ---- one setting from text ---- */

static basin_status parse_number(double *value, const basin_setting *s, const char *text,
                                 basin_error *error) {
    char *end;
    *value = basin_real_read(text, &end);
    bool integer = s->kind == BASIN_SETTING_INTEGER;
    if (end == text || *end || !isfinite(*value) || (integer && *value != floor(*value)))
        return basin_fail(error, BASIN_BAD_VALUE, "%s: '%.60s' is not a %snumber", s->name, text,
                          integer ? "whole " : "");
    if (*value < s->low)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %.60s is too small; at least %.15g", s->name,
                          text, s->low);
    if (*value > s->high)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %.60s is too large; at most %.15g", s->name,
                          text, s->high);
    return BASIN_OK;
}

static basin_status parse_switch(bool *value, const basin_setting *s, const char *text,
                                 basin_error *error) {
    static const char *const word[2][3] = {{"off", "false", "0"}, {"on", "true", "1"}};
    for (int on = 0; on < 2; on++)
        for (int i = 0; i < 3; i++)
            if (!strcmp(text, word[on][i])) {
                *value = on;
                return BASIN_OK;
            }
    return basin_fail(error, BASIN_BAD_VALUE, "%s: '%.60s' is neither on nor off", s->name, text);
}

static void list_choices(char *text, size_t size, const char *const *choice) {
    size_t at = 0;
    for (int i = 0; choice[i] && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i ? "|" : "", choice[i]);
}

static basin_status parse_choice(const char **value, const basin_setting *s, const char *text,
                                 basin_error *error) {
    char list[400];
    for (const char *const *choice = s->choices; *choice; choice++)
        if (!strcmp(*choice, text)) {
            *value = *choice;
            return BASIN_OK;
        }
    list_choices(list, sizeof list, s->choices);
    return basin_fail(error, BASIN_BAD_VALUE, "%s: '%.60s' is not one of %s", s->name, text, list);
}

static basin_status parse_channels(double value[3], const basin_setting *s, const char *text,
                                   basin_error *error) {
    double read[3];
    const char *at = text;
    bool good = true;
    for (int i = 0; i < 3 && good; i++) {
        char *end;
        read[i] = basin_real_read(at, &end);
        good = end != at && isfinite(read[i]) && *end == (i < 2 ? ',' : 0);
        at = end + 1;
    }
    if (!good)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: '%.60s' is not three numbers", s->name,
                          text);
    memcpy(value, read, sizeof read);
    return BASIN_OK;
}

basin_status basin_setting_parse(void *values, const basin_setting *s, const char *text,
                                 basin_error *error) {
    void *at = (char *)values + s->offset;
    double number;
    basin_status status = BASIN_OK;
    switch (s->kind) {
    case BASIN_SETTING_INTEGER:
        status = parse_number(&number, s, text, error);
        if (!status) *(int64_t *)at = (int64_t)number;
        break;
    case BASIN_SETTING_REAL:
        status = parse_number(&number, s, text, error);
        if (!status) *(double *)at = number;
        break;
    case BASIN_SETTING_SWITCH: status = parse_switch(at, s, text, error); break;
    case BASIN_SETTING_CHOICE: status = parse_choice(at, s, text, error); break;
    case BASIN_SETTING_CHANNELS: status = parse_channels(at, s, text, error); break;
    }
    return status;
}

void basin_setting_print(char *text, size_t size, const void *values, const basin_setting *s) {
    const void *at = (const char *)values + s->offset;
    char number[3][BASIN_NUMBER_TEXT];
    const double *channel = at;
    switch (s->kind) {
    case BASIN_SETTING_INTEGER: snprintf(text, size, "%lld", *(const long long *)at); break;
    case BASIN_SETTING_REAL:
        snprintf(text, size, "%s", basin_number_print(number[0], *(const double *)at));
        break;
    case BASIN_SETTING_SWITCH: snprintf(text, size, "%s", *(const bool *)at ? "on" : "off"); break;
    case BASIN_SETTING_CHOICE: snprintf(text, size, "%s", *(const char *const *)at); break;
    case BASIN_SETTING_CHANNELS:
        for (int i = 0; i < 3; i++) basin_number_print(number[i], channel[i]);
        snprintf(text, size, "%s,%s,%s", number[0], number[1], number[2]);
        break;
    }
}

/* ---- all of a task's ---- */

basin_status basin_settings_preset(void *values, const basin_task_settings *kind,
                                   const char *preset, basin_error *error) {
    char list[400];
    for (const char *const *name = kind->preset; *name; name++)
        if (!strcmp(*name, preset)) {
            kind->fill(values, preset);
            return BASIN_OK;
        }
    list_choices(list, sizeof list, kind->preset);
    return basin_fail(error, BASIN_BAD_VALUE, "there is no preset '%.60s'; wanted one of %s",
                      preset, list);
}

static int table_size(const basin_setting *table) {
    int count = 0;
    while (table[count].name) count++;
    return count;
}

basin_status basin_settings_make(basin_settings **settings, const basin_task_settings *kind,
                                 const char *preset, basin_error *error) {
    basin_settings *s = *settings = calloc(1, sizeof *s);
    if (s) s->values = calloc(1, kind->size);
    if (s) s->given = calloc((size_t)table_size(kind->table) + 1, sizeof *s->given);
    basin_status status = BASIN_OK;
    if (!s || !s->values || !s->given)
        status = basin_fail(error, BASIN_NO_MEMORY, "out of memory for settings");
    else
        status = basin_settings_preset(s->values, kind, preset ? preset : "default", error);
    if (status) {
        basin_settings_free(s);
        *settings = NULL;
    } else
        s->kind = kind;
    return status;
}

basin_status basin_settings_start(basin_settings *settings, const char *preset,
                                  basin_error *error) {
    if (settings->given)
        memset(settings->given, 0,
               (size_t)table_size(settings->kind->table) * sizeof *settings->given);
    return basin_settings_preset(settings->values, settings->kind, preset, error);
}

void basin_settings_underlay(basin_settings *settings, const void *values) {
    enum { TEXT = 200 };
    const basin_setting *table = settings->kind->table;
    for (int i = 0; table[i].name; i++) {
        char text[TEXT];
        if (settings->given && settings->given[i]) continue;
        basin_setting_print(text, sizeof text, values, &table[i]);
        basin_setting_parse(settings->values, &table[i], text, NULL);
    }
}

basin_status basin_settings_check(const basin_settings *settings, basin_error *error) {
    basin_status status = settings->kind->check(settings->values, error);
    return status ? status : basin_settings_check_effect(settings, error);
}

void basin_settings_free(basin_settings *settings) {
    if (!settings) return;
    free(settings->values);
    free(settings->given);
    free(settings);
}

const char *basin_settings_task(const basin_settings *settings) { return settings->kind->task; }

static basin_status look_up(const basin_setting **found, const basin_settings *settings,
                            const char *name, basin_error *error) {
    *found = basin_setting_find(settings->kind->table, name);
    if (*found) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "the task %s has no setting '%.60s'",
                      settings->kind->task, name);
}

basin_status basin_settings_set(basin_settings *settings, const char *name, const char *text,
                                basin_error *error) {
    const basin_setting *setting;
    BASIN_TRY(look_up(&setting, settings, name, error));
    BASIN_TRY(basin_setting_parse(settings->values, setting, text, error));
    if (settings->given) settings->given[setting - settings->kind->table] = true;
    return BASIN_OK;
}

basin_status basin_settings_get(char *text, size_t size, const basin_settings *settings,
                                const char *name, basin_error *error) {
    const basin_setting *setting;
    basin_status status = look_up(&setting, settings, name, error);
    if (!status) basin_setting_print(text, size, settings->values, setting);
    return status;
}

char *basin_settings_json(const basin_settings *settings) {
    return basin_settings_print(settings->values, settings->kind->table, true);
}

basin_status basin_settings_read(basin_settings *settings, const char *path, basin_error *error) {
    return basin_settings_load(settings->values, settings->kind->table, path, error);
}

/* ---- meanings ---- */

basin_schedule basin_schedule_make(int64_t steps, int64_t epochs, int64_t warmup, double rate,
                                   double first, double last) {
    if (first < 0) first = warmup ? 0 : rate;
    if (last < 0) last = warmup ? 0.05 * rate : rate;
    return (basin_schedule){steps * warmup, steps * epochs, first, rate, last};
}
