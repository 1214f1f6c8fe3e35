/* Settings by name: one field to and from text and JSON, presets, settings as objects, settings
 * without effect; see settings.h. */
#include "tasks/common/run/settings.h"
#include "base/file.h"

#include "base/json.h"
#include "base/needs.h"
#include "base/number.h"

const basin_setting_entry *basin_setting_find(const basin_setting_entry *table, const char *name) {
    for (const basin_setting_entry *s = table; s->is.name; s++)
        if (!strcmp(s->is.name, name)) return s;
    return NULL;
}

bool basin_choice_is(const char *choice, const char *name) { return !strcmp(choice, name); }

/* ---- one setting from text ---- */

static basin_status parse_number(void *at, const basin_setting *s, const char *text,
                                 basin_error *error) {
    char *end;
    double value = basin_real_read(text, &end);
    bool integer = s->kind == BASIN_SETTING_INTEGER;
    if (end == text || *end || !isfinite(value) || (integer && value != floor(value)))
        return basin_fail(error, BASIN_BAD_VALUE, "%s: '%.60s' is not a %snumber", s->name, text,
                          integer ? "whole " : "");
    if (value < s->low)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %.60s is too small; at least %.16g", s->name,
                          text, s->low);
    if (value > s->high)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %.60s is too large; at most %.16g", s->name,
                          text, s->high);
    if (integer)
        *(int64_t *)at = (int64_t)value;
    else
        *(double *)at = value;
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

void basin_choices_print(char *text, size_t size, const char *const *choice) {
    size_t at = 0;
    for (int i = 0; choice[i] && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i ? "|" : "", choice[i]);
}

/* Settings list their words, an option has them in its value. */
static basin_status parse_choice(const char **value, const basin_setting *s, const char *text,
                                 basin_error *error) {
    char list[400];
    for (const char *const *choice = s->choices; choice && *choice; choice++)
        if (!strcmp(*choice, text)) return *value = *choice, BASIN_OK;
    if (!s->choices && basin_word_among(s->value, strlen(s->value), text))
        return *value = text, BASIN_OK;
    if (s->choices) basin_choices_print(list, sizeof list, s->choices);
    return basin_fail(error, BASIN_BAD_VALUE, "%s: '%.60s' is not one of %s", s->name, text,
                      s->choices ? list : s->value);
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

basin_status basin_setting_parse(void *values, const basin_setting_entry *s, const char *text,
                                 basin_error *error) {
    void *at = (char *)values + s->offset;
    switch (s->is.kind) {
    case BASIN_SETTING_INTEGER:
    case BASIN_SETTING_REAL: return parse_number(at, &s->is, text, error);
    case BASIN_SETTING_SWITCH: return parse_switch(at, &s->is, text, error);
    case BASIN_SETTING_CHOICE: return parse_choice(at, &s->is, text, error);
    case BASIN_SETTING_CHANNELS: return parse_channels(at, &s->is, text, error);
    case BASIN_SETTING_TEXT:
        if (!*text) return basin_fail(error, BASIN_BAD_VALUE, "%s: empty value", s->is.name);
        *(const char **)at = text;
    }
    return BASIN_OK;
}

void basin_setting_print(char *text, size_t size, const void *values,
                         const basin_setting_entry *s) {
    const void *at = (const char *)values + s->offset;
    char number[3][BASIN_NUMBER_TEXT];
    const double *channel = at;
    const char *word = NULL;
    switch (s->is.kind) {
    case BASIN_SETTING_INTEGER: snprintf(text, size, "%lld", *(const long long *)at); return;
    case BASIN_SETTING_REAL: word = basin_number_print(number[0], *channel); break;
    case BASIN_SETTING_SWITCH: word = *(const bool *)at ? "on" : "off"; break;
    case BASIN_SETTING_TEXT:
    case BASIN_SETTING_CHOICE: word = *(const char *const *)at; break;
    case BASIN_SETTING_CHANNELS:
        for (int i = 0; i < 3; i++) basin_number_print(number[i], channel[i]);
        snprintf(text, size, "%s,%s,%s", number[0], number[1], number[2]);
        return;
    }
    snprintf(text, size, "%s", word ? word : "");
}

/* ---- JSON: the configuration of model files, configuration files, presets ---- */

/* As it is printed: cJSON prints fifteen digits where they nearly suffice; a configuration must
 * read back exactly. */
static cJSON *to_json(const void *values, const basin_setting_entry *s) {
    char text[BASIN_SETTING_VALUE], list[BASIN_SETTING_VALUE + 2];
    const void *at = (const char *)values + s->offset;
    if (s->is.kind == BASIN_SETTING_SWITCH) return cJSON_CreateBool(*(const bool *)at);
    if (s->is.kind == BASIN_SETTING_CHOICE) return cJSON_CreateString(*(const char *const *)at);
    basin_setting_print(text, sizeof text, values, s);
    snprintf(list, sizeof list, "[%s]", text);
    return cJSON_CreateRaw(s->is.kind == BASIN_SETTING_CHANNELS ? list : text);
}

char *basin_settings_print(const void *values, const basin_setting_entry *table, bool indented) {
    BASIN_JSON_AT_EXIT cJSON *object = cJSON_CreateObject();
    bool good = object != NULL;
    for (const basin_setting_entry *s = table; s->is.name && good; s++) {
        cJSON *item = to_json(values, s);
        good = item && cJSON_AddItemToObject(object, s->is.name, item);
        if (!good) cJSON_Delete(item);
    }
    return !good ? NULL : indented ? cJSON_Print(object) : cJSON_PrintUnformatted(object);
}

/* A JSON value as the text that basin_setting_parse reads, where its kind is the setting's. */
static bool to_text(char *text, size_t size, const basin_setting_entry *s, const cJSON *item) {
    static const int type[] = {cJSON_Number, cJSON_Number, cJSON_True | cJSON_False, cJSON_String,
                               cJSON_Array};
    const cJSON *one;
    size_t used = 0;
    if (!(item->type & type[s->is.kind])) return false;
    if (cJSON_IsNumber(item)) return basin_real_print(text, size, 17, item->valuedouble), true;
    if (!cJSON_IsArray(item)) {
        const char *word = cJSON_IsTrue(item) ? "on" : "off";
        snprintf(text, size, "%s", cJSON_IsString(item) ? item->valuestring : word);
        return true;
    }
    *text = 0;
    cJSON_ArrayForEach(one, item) {
        if (!cJSON_IsNumber(one) || used + 30 > size) return false;
        if (used) text[used++] = ',';
        basin_real_print(text + used, size - used, 17, one->valuedouble);
        used += strlen(text + used);
    }
    return true;
}

static const char *expected_kind(const basin_setting_entry *s) {
    static const char *const name[] = {"a whole number", "a number", "true or false", "a word",
                                       "three numbers"};
    return name[s->is.kind];
}

static basin_status from_json(void *values, const basin_setting_entry *s, const cJSON *item,
                              const char *path, basin_error *error) {
    char text[120];
    basin_error why;
    if (item && to_text(text, sizeof text, s, item)) {
        if (!basin_setting_parse(values, s, text, &why)) return BASIN_OK;
        return basin_fail(error, BASIN_BAD_FILE, "%s: configuration: %s", path, why.text);
    }
    char *found = item ? cJSON_PrintUnformatted(item) : NULL;
    basin_status status =
        basin_fail(error, BASIN_BAD_FILE, "%s: configuration: %s is %.60s, expected %s", path,
                   s->is.name, found ? found : "absent", expected_kind(s));
    cJSON_free(found);
    return status;
}

/* Settings that files of earlier versions have and that went, with the one value that still means
 * what it did. */
static const struct {
    const char *name, *json;
} gone[] = {{"arch", "\"et\""},
            {"learn_epsilon", "false"},
            {"degree_power", "0"},
            {"eigenvectors", "16"},
            {"field", "\"energy\""},
            {"scales", "1"},
            {"objective", "\"complete\""},
            {"scales", "4"},
            {"sinks", "0"},
            {"step_dropout", "0"},
            {"residual", "\"block\""},
            {"degree_scalers", "false"},
            {"reconstruct_all", "true"},
            {"best_of", "0"},
            {"best_of", "1"},
            {"reach", "1"},
            {"tabular", "0"},
            {"embedding", "0"},
            {"random_pairs", "0"},
            {"random_draws", "0"}};

/* A setting that this version does not know may have gone; then its value must be the one above. */
static basin_status check_unknown(const cJSON *item, const char *path, basin_error *error) {
    char *value = cJSON_PrintUnformatted(item);
    bool known = false, same = false;
    for (size_t i = 0; value && i < sizeof gone / sizeof *gone; i++) {
        if (strcmp(gone[i].name, item->string) != 0) continue;
        known = true;
        same = same || !strcmp(gone[i].json, value);
    }
    basin_status status = BASIN_OK;
    if (known && !same)
        status = basin_fail(error, BASIN_UNSUPPORTED,
                            "%s: configuration: %s %.60s is no longer supported; "
                            "a model with it must be trained again",
                            path, item->string, value);
    else if (!known)
        status = basin_fail(error, BASIN_BAD_FILE,
                            "%s: configuration: '%.60s' is not known to this version", path,
                            item->string);
    cJSON_free(value);
    return status;
}

static basin_status check_names(const cJSON *object, const basin_setting_entry *table,
                                const char *path, basin_error *error) {
    const cJSON *item;
    cJSON_ArrayForEach(item, object) {
        if (!basin_setting_find(table, item->string)) BASIN_TRY(check_unknown(item, path, error));
        if (cJSON_GetObjectItemCaseSensitive(object, item->string) != item)
            return basin_fail(error, BASIN_BAD_FILE, "%s: configuration: '%.60s' is there twice",
                              path, item->string);
    }
    return BASIN_OK;
}

static basin_status read_object(void *values, const basin_setting_entry *table, const cJSON *object,
                                bool whole, const char *path, basin_error *error) {
    BASIN_TRY(check_names(object, table, path, error));
    for (const basin_setting_entry *s = table; s->is.name; s++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, s->is.name);
        if (item || (whole && !s->is.absent))
            BASIN_TRY(from_json(values, s, item, path, error));
        else if (whole)
            BASIN_TRY(basin_setting_parse(values, s, s->is.absent, error));
    }
    return BASIN_OK;
}

basin_status basin_settings_parse(void *values, const basin_setting_entry *table, const char *json,
                                  bool whole, const char *path, basin_error *error) {
    BASIN_JSON_AT_EXIT cJSON *object;
    BASIN_TRY(basin_json_parse(&object, json, strlen(json), path, "the configuration", error));
    return read_object(values, table, object, whole, path, error);
}

/* An object of settings, or one that has them under "settings" and may name its task. */
static basin_status read_configuration(void *values, const basin_task_settings *kind,
                                       const char *text, size_t length, const char *path,
                                       basin_error *error) {
    BASIN_JSON_AT_EXIT cJSON *object;
    BASIN_TRY(basin_json_parse(&object, text, length, path, "the configuration", error));
    const cJSON *inner = cJSON_GetObjectItemCaseSensitive(object, "settings");
    const char *task = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "task"));
    if (inner && task && strcmp(task, kind->task) != 0)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: configuration of the task '%.40s', needs one of %s", path, task,
                          kind->task);
    return read_object(values, kind->table, inner ? inner : object, false, path, error);
}

basin_status basin_settings_load(void *values, const basin_task_settings *kind, const char *path,
                                 basin_error *error) {
    basin_map map;
    BASIN_TRY(basin_map_open(&map, path, error));
    basin_status status =
        read_configuration(values, kind, (const char *)map.data, map.size, path, error);
    basin_map_close(&map);
    return status;
}

/* ---- presets ---- */

/* The last, which has no task, where there is none of that name. */
static const basin_preset_list *find_task(const char *task) {
    const basin_preset_list *list = basin_presets;
    while (list->task && strcmp(list->task, task) != 0) list++;
    return list;
}

static const basin_preset_list *presets_of(const basin_task_settings *kind) {
    return kind->presets ? kind->presets : find_task(kind->task);
}

const char *const *basin_settings_presets(const char *task) {
    const basin_task_settings *kind = find_task(task)->settings;
    return kind ? presets_of(kind)->name : NULL;
}

static bool is_path(const char *preset) {
    size_t length = strlen(preset);
    return length > 5 && !strcmp(preset + length - 5, ".json");
}

static void clear(void *values, const basin_task_settings *kind) {
    if (kind->base)
        memcpy(values, kind->base, kind->size);
    else
        memset(values, 0, kind->size);
}

basin_status basin_settings_preset(void *values, const basin_task_settings *kind,
                                   const char *preset, basin_error *error) {
    char list[600];
    const basin_preset_list *all = presets_of(kind);
    int i = 0;
    while (all->name[i] && strcmp(all->name[i], preset) != 0) i++;
    if (!all->name[i] && !is_path(preset)) {
        basin_choices_print(list, sizeof list, all->name);
        return basin_fail(error, BASIN_BAD_VALUE,
                          "there is no preset '%.60s'; expected one of %s, or a file NAME.json",
                          preset, list);
    }
    clear(values, kind);
    BASIN_TRY(
        read_configuration(values, kind, all->json[0], strlen(all->json[0]), all->name[0], error));
    if (!all->name[i]) return basin_settings_load(values, kind, preset, error);
    return read_configuration(values, kind, all->json[i], strlen(all->json[i]), preset, error);
}

/* ---- all of a task's ---- */

static int table_size(const basin_setting_entry *table) {
    int count = 0;
    while (table[count].is.name) count++;
    return count;
}

static basin_status fill(basin_settings *s, const char *preset, basin_error *error) {
    BASIN_TRY(BASIN_NEW(&s->given, table_size(s->kind->table), "settings", error));
    s->values = basin_zeros_new(1, s->kind->size);
    if (!s->values) return basin_fail_memory(error, "settings");
    return basin_settings_preset(s->values, s->kind, preset, error);
}

basin_status basin_settings_make(basin_settings **settings, const basin_task_settings *kind,
                                 const char *preset, basin_error *error) {
    BASIN_TRY(BASIN_NEW(settings, 1, "settings", error));
    (*settings)->kind = kind;
    basin_status status = fill(*settings, preset ? preset : "default", error);
    if (!status) return BASIN_OK;
    basin_settings_free(*settings);
    *settings = NULL;
    return status;
}

basin_status basin_settings_new(basin_settings **settings, const char *task, const char *preset,
                                basin_error *error) {
    const basin_preset_list *list = find_task(task);
    char known[200] = "";
    *settings = NULL;
    if (list->settings) return basin_settings_make(settings, list->settings, preset, error);
    for (list = basin_presets; list->task; list++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? "|" : "", list->task);
    }
    return basin_fail(error, BASIN_BAD_VALUE, "there is no task '%.60s'; expected one of %s", task,
                      known);
}

const basin_setting *basin_setting_at(const char *task, int number) {
    const basin_task_settings *kind = find_task(task)->settings;
    bool there = kind && number >= 0 && number < table_size(kind->table);
    return there ? &kind->table[number].is : NULL;
}

basin_status basin_settings_start(basin_settings *settings, const char *preset,
                                  basin_error *error) {
    if (settings->given)
        memset(settings->given, 0,
               (size_t)table_size(settings->kind->table) * sizeof *settings->given);
    return basin_settings_preset(settings->values, settings->kind, preset, error);
}

void basin_settings_underlay(basin_settings *settings, const void *values) {
    static const size_t size[] = {sizeof(int64_t), sizeof(double), sizeof(bool),
                                  sizeof(const char *), sizeof(basin_channels)};
    const basin_setting_entry *s = settings->kind->table;
    for (int i = 0; s[i].is.name; i++)
        if (!settings->given || !settings->given[i])
            memcpy((char *)settings->values + s[i].offset, (const char *)values + s[i].offset,
                   size[s[i].is.kind]);
}

basin_status basin_settings_check(const basin_settings *settings, basin_error *error) {
    BASIN_TRY(settings->kind->check(settings->values, error));
    return basin_settings_check_effect(settings, error);
}

void basin_settings_free(basin_settings *settings) {
    if (!settings) return;
    BASIN_FREE(settings->values, settings->given, settings);
}

const char *basin_settings_task(const basin_settings *settings) { return settings->kind->task; }

static basin_status look_up(const basin_setting_entry **found, const basin_settings *settings,
                            const char *name, basin_error *error) {
    *found = basin_setting_find(settings->kind->table, name);
    if (*found) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "the task %s has no setting '%.60s'",
                      settings->kind->task, name);
}

static void mark(basin_settings *settings, const basin_setting_entry *setting) {
    if (settings->given) settings->given[setting - settings->kind->table] = true;
}

basin_status basin_settings_set(basin_settings *settings, const char *name, const char *text,
                                basin_error *error) {
    const basin_setting_entry *setting;
    BASIN_TRY(look_up(&setting, settings, name, error));
    BASIN_TRY(basin_setting_parse(settings->values, setting, text, error));
    mark(settings, setting);
    return BASIN_OK;
}

basin_status basin_settings_set_number(basin_settings *settings, const char *name, double value,
                                       basin_error *error) {
    char text[BASIN_NUMBER_TEXT];
    return basin_settings_set(settings, name, basin_number_print(text, value), error);
}

basin_status basin_settings_get(char *text, size_t size, const basin_settings *settings,
                                const char *name, basin_error *error) {
    const basin_setting_entry *setting;
    BASIN_TRY(look_up(&setting, settings, name, error));
    basin_setting_print(text, size, settings->values, setting);
    return BASIN_OK;
}

basin_status basin_settings_get_number(double *value, const basin_settings *settings,
                                       const char *name, basin_error *error) {
    const basin_setting_entry *s;
    BASIN_TRY(look_up(&s, settings, name, error));
    const void *at = (const char *)settings->values + s->offset;
    if (s->is.kind >= BASIN_SETTING_CHOICE)
        return basin_fail(error, BASIN_BAD_VALUE, "%s is %s, not a number", s->is.name,
                          expected_kind(s));
    *value = s->is.kind == BASIN_SETTING_INTEGER ? (double)*(const int64_t *)at
             : s->is.kind == BASIN_SETTING_REAL  ? *(const double *)at
                                                 : (double)*(const bool *)at;
    return BASIN_OK;
}

char *basin_settings_json(const basin_settings *settings) {
    return basin_settings_print(settings->values, settings->kind->table, true);
}

basin_status basin_settings_read(basin_settings *settings, const char *path, basin_error *error) {
    return basin_settings_load(settings->values, settings->kind, path, error);
}

basin_status basin_settings_of(const basin_settings *settings, const basin_task_settings *kind,
                               basin_error *error) {
    if (settings->kind == kind) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "settings of the task %s, needs those of %s",
                      settings->kind->task, kind->task);
}

/* ---- files ---- */

basin_status basin_settings_check_model(const basin_bundle *bundle, const char *model,
                                        basin_error *error) {
    const char *found = basin_bundle_meta(bundle, "basin.model");
    size_t length = strlen(model);
    if (!found)
        return basin_fail(error, BASIN_BAD_FILE, "%s: is not a model, expected one of '%s'",
                          basin_bundle_path(bundle), model);
    if (!strncmp(found, model, length) && (!found[length] || found[length] == ' ')) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: the model is '%.40s', expected '%s'",
                      basin_bundle_path(bundle), found, model);
}

basin_status basin_settings_take(void *values, const basin_task_settings *kind,
                                 const basin_bundle *bundle, basin_error *error) {
    const char *path = basin_bundle_path(bundle);
    const char *json = basin_bundle_meta(bundle, "basin.config");
    BASIN_TRY(basin_settings_check_model(bundle, kind->model ? kind->model : kind->task, error));
    if (!json)
        return basin_fail(error, BASIN_BAD_FILE, "%s: no configuration (basin.config)", path);
    return basin_settings_parse(values, kind->table, json, true, path, error);
}

basin_status basin_settings_store(basin_bundle *bundle, const char *model, const void *values,
                                  const basin_task_settings *kind, basin_error *error) {
    BASIN_FREE_AT_EXIT char *config = basin_settings_print(values, kind->table, false);
    if (!config) return basin_fail_memory(error, "a configuration");
    if (model) BASIN_TRY(basin_bundle_meta_set(bundle, "basin.model", model, error));
    return basin_bundle_meta_set(bundle, "basin.config", config, error);
}

/* ---- resuming, and beginning with a model ---- */

/* Whether both have the same value, and what each has as text. */
static bool same_value(char found[BASIN_SETTING_VALUE], char expected[BASIN_SETTING_VALUE],
                       const void *its, const void *asked, const basin_setting_entry *s) {
    basin_setting_print(found, BASIN_SETTING_VALUE, its, s);
    basin_setting_print(expected, BASIN_SETTING_VALUE, asked, s);
    return !strcmp(found, expected);
}

basin_status basin_settings_match(const void *saved, const void *asked,
                                  const basin_setting_entry *table, const char *path,
                                  basin_error *error) {
    char found[BASIN_SETTING_VALUE], expected[BASIN_SETTING_VALUE];
    for (const basin_setting_entry *s = table; s->is.name; s++)
        if (!s->is.loose && !same_value(found, expected, saved, asked, s))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: its run has %s %s, requested is %s; resume with the same "
                              "settings, or begin a new run",
                              path, s->is.name, found, expected);
    return BASIN_OK;
}

basin_status basin_settings_match_weights(const void *its, const void *asked,
                                          const basin_setting_entry *table,
                                          const char *const *names, const char *path,
                                          basin_error *error) {
    char found[BASIN_SETTING_VALUE], expected[BASIN_SETTING_VALUE];
    while (*names && same_value(found, expected, its, asked, basin_setting_find(table, *names)))
        names++;
    if (!*names) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_SHAPE,
                      "%s: its %s is %s, requested is %s; they must be equal to start from its "
                      "weights",
                      path, *names, found, expected);
}

/* ---- settings without effect: set by name although the values of others make them idle ---- */

bool basin_settings_given(const basin_settings *settings, const char *name) {
    const basin_setting_entry *table = settings->kind->table, *s = basin_setting_find(table, name);
    return s && settings->given && settings->given[s - table];
}

static bool value_of(char text[BASIN_NEEDS_VALUE], const void *context, const char *name,
                     size_t length) {
    const basin_settings *settings = context;
    for (const basin_setting_entry *s = settings->kind->table; s->is.name; s++)
        if (strlen(s->is.name) == length && !strncmp(s->is.name, name, length)) {
            basin_setting_print(text, BASIN_NEEDS_VALUE, settings->values, s);
            return true;
        }
    return false;
}

/* Whether the value of `other` is why. */
static bool is_idle(const basin_setting_entry *setting, const basin_settings *settings,
                    const basin_setting_entry *other) {
    for (const char *at = setting->is.needs; (at = basin_needs_unmet(at, value_of, settings));
         at = basin_needs_next(at))
        if (basin_needs_names(at, other->is.name)) return true;
    return false;
}

/* "alpha and beta have no effect with arch vit": what the value of `other` makes idle. */
static basin_status check_against(const basin_settings *settings, const basin_setting_entry *other,
                                  basin_error *error) {
    const basin_setting_entry *table = settings->kind->table;
    const char *last = NULL;
    char names[600] = "", value[BASIN_NEEDS_VALUE];
    int count = 0;
    for (int i = 0; table[i].is.name; i++) {
        if (!settings->given[i] || !is_idle(&table[i], settings, other)) continue;
        size_t at = strlen(names);
        if (last) snprintf(names + at, sizeof names - at, "%s%s", count > 1 ? ", " : "", last);
        last = table[i].is.name;
        count++;
    }
    if (!count) return BASIN_OK;
    basin_setting_print(value, sizeof value, settings->values, other);
    return basin_fail(error, BASIN_BAD_VALUE, "%s%s%s %s no effect with %s %s; leave %s out", names,
                      count > 1 ? " and " : "", last, count > 1 ? "have" : "has", other->is.name,
                      value, count > 1 ? "them" : "it");
}

basin_status basin_settings_check_effect(const basin_settings *settings, basin_error *error) {
    for (const basin_setting_entry *s = settings->kind->table; settings->given && s->is.name; s++)
        BASIN_TRY(check_against(settings, s, error));
    return BASIN_OK;
}

/* ---- meanings ---- */

basin_schedule basin_schedule_make(int64_t steps, int64_t epochs, int64_t warmup, double rate,
                                   double first, double last) {
    if (first < 0) first = warmup ? 0 : rate;
    if (last < 0) last = warmup ? 0.05 * rate : rate;
    return (basin_schedule){steps * warmup, steps * epochs, first, rate, last};
}
