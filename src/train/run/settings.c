/* Settings to and from JSON; see settings.h. */
#include "train/run/settings.h"

#include <math.h>
#include <string.h>

#include "io/json.h"
#include "io/json_writer.h"

static const void *field(const void *settings, const basin_setting *s) {
    return (const char *)settings + s->offset;
}

/* cJSON prints fifteen digits where they nearly suffice; a configuration must read back exactly. */
static cJSON *exact_number(double value) {
    char text[BASIN_NUMBER_TEXT];
    return cJSON_CreateRaw(basin_number_print(text, value));
}

static cJSON *exact_numbers(const double *value, int count) {
    cJSON *array = cJSON_CreateArray();
    for (int i = 0; i < count && array; i++) {
        cJSON *item = exact_number(value[i]);
        if (item && cJSON_AddItemToArray(array, item)) continue;
        cJSON_Delete(item);
        cJSON_Delete(array);
        return NULL;
    }
    return array;
}

static cJSON *to_json(const void *settings, const basin_setting *s) {
    const void *at = field(settings, s);
    switch (s->kind) {
    case BASIN_SETTING_INTEGER: return cJSON_CreateNumber((double)*(const int64_t *)at);
    case BASIN_SETTING_REAL: return exact_number(*(const double *)at);
    case BASIN_SETTING_SWITCH: return cJSON_CreateBool(*(const bool *)at);
    case BASIN_SETTING_CHOICE: return cJSON_CreateString(*(const char *const *)at);
    case BASIN_SETTING_REALS: return exact_numbers(at, s->count);
    }
    return NULL;
}

char *basin_settings_print(const void *settings, const basin_setting *table, bool indented) {
    cJSON *object = cJSON_CreateObject();
    bool good = object != NULL;
    for (const basin_setting *s = table; s->name && good; s++) {
        cJSON *item = to_json(settings, s);
        good = item && cJSON_AddItemToObject(object, s->name, item);
        if (!good) cJSON_Delete(item);
    }
    char *text = !good ? NULL : indented ? cJSON_Print(object) : cJSON_PrintUnformatted(object);
    cJSON_Delete(object);
    return text;
}

static const char *choose(const char *const *choices, const char *text) {
    while (*choices && strcmp(*choices, text) != 0) choices++;
    return *choices;
}

static bool number_in(double *value, const cJSON *item, const basin_setting *s) {
    if (!cJSON_IsNumber(item)) return false;
    *value = item->valuedouble;
    return *value >= s->low && *value <= s->high;
}

static bool read_reals(double *at, const cJSON *item, int count) {
    if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != count) return false;
    for (int i = 0; i < count; i++) {
        const cJSON *number = cJSON_GetArrayItem(item, i);
        if (!cJSON_IsNumber(number)) return false;
        at[i] = number->valuedouble;
    }
    return true;
}

static bool from_json(void *settings, const basin_setting *s, const cJSON *item) {
    void *at = (char *)settings + s->offset;
    double value;
    switch (s->kind) {
    case BASIN_SETTING_INTEGER:
        if (!number_in(&value, item, s) || value != floor(value)) return false;
        *(int64_t *)at = (int64_t)value;
        return true;
    case BASIN_SETTING_REAL:
        if (!number_in(&value, item, s)) return false;
        *(double *)at = value;
        return true;
    case BASIN_SETTING_SWITCH:
        if (!cJSON_IsBool(item)) return false;
        *(bool *)at = cJSON_IsTrue(item);
        return true;
    case BASIN_SETTING_CHOICE: {
        const char *found = cJSON_IsString(item) ? choose(s->choices, item->valuestring) : NULL;
        if (found) *(const char **)at = found;
        return found != NULL;
    }
    case BASIN_SETTING_REALS: return read_reals(at, item, s->count);
    }
    return false;
}

static void put_absent(void *settings, const basin_setting *s) {
    void *at = (char *)settings + s->offset;
    if (s->kind == BASIN_SETTING_INTEGER)
        *(int64_t *)at = (int64_t)s->absent;
    else
        *(double *)at = s->absent;
}

static void list_choices(char *text, size_t size, const char *const *choices) {
    size_t at = 0;
    for (int i = 0; choices[i] && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i ? " or " : "", choices[i]);
}

static basin_status bad_value(const basin_setting *s, const cJSON *item, const char *path,
                              basin_error *error) {
    char *found = item ? cJSON_PrintUnformatted(item) : NULL;
    char wanted[120];
    if (s->kind == BASIN_SETTING_INTEGER || s->kind == BASIN_SETTING_REAL)
        snprintf(wanted, sizeof wanted, "%s from %g to %g",
                 s->kind == BASIN_SETTING_INTEGER ? "an integer" : "a number", s->low, s->high);
    else if (s->kind == BASIN_SETTING_REALS)
        snprintf(wanted, sizeof wanted, "%d numbers", s->count);
    else if (s->kind == BASIN_SETTING_SWITCH)
        snprintf(wanted, sizeof wanted, "true or false");
    else
        list_choices(wanted, sizeof wanted, s->choices);
    basin_status status =
        basin_fail(error, BASIN_BAD_FILE, "%s: configuration: %s is %.60s, wanted %s", path,
                   s->name, found ? found : "absent", wanted);
    cJSON_free(found);
    return status;
}

static const basin_setting *find(const basin_setting *table, const char *name) {
    for (const basin_setting *s = table; s->name; s++)
        if (!strcmp(s->name, name)) return s;
    return NULL;
}

basin_status basin_settings_parse(void *settings, const basin_setting *table, const char *json,
                                  const char *path, basin_error *error) {
    cJSON *object;
    basin_status status =
        basin_json_parse(&object, json, strlen(json), path, "the configuration", error);
    if (status) return status;
    const cJSON *item;
    cJSON_ArrayForEach(item, object) if (!status && !find(table, item->string)) status =
        basin_fail(error, BASIN_BAD_FILE, "%s: configuration: '%.60s' is not known to this version",
                   path, item->string);
    for (const basin_setting *s = table; s->name && !status; s++) {
        item = cJSON_GetObjectItemCaseSensitive(object, s->name);
        if (!item && s->later)
            put_absent(settings, s);
        else if (!item || !from_json(settings, s, item))
            status = bad_value(s, item, path, error);
    }
    cJSON_Delete(object);
    return status;
}

static bool equal(const void *a, const void *b, const basin_setting *s) {
    switch (s->kind) {
    case BASIN_SETTING_INTEGER: return *(const int64_t *)a == *(const int64_t *)b;
    case BASIN_SETTING_REAL: return *(const double *)a == *(const double *)b;
    case BASIN_SETTING_SWITCH: return *(const bool *)a == *(const bool *)b;
    case BASIN_SETTING_CHOICE: return !strcmp(*(const char *const *)a, *(const char *const *)b);
    case BASIN_SETTING_REALS: return !memcmp(a, b, (size_t)s->count * sizeof(double));
    }
    return false;
}

const char *basin_settings_differ(const void *a, const void *b, const basin_setting *table) {
    for (const basin_setting *s = table; s->name; s++)
        if (!equal(field(a, s), field(b, s), s)) return s->name;
    return NULL;
}
