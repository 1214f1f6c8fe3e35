/* Settings to and from JSON: the configuration in model files, and configuration files; see
 * settings.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "io/file.h"
#include "io/json.h"
#include "io/json_writer.h"
#include "train/run/settings.h"

/* ---- writing ---- */

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

static cJSON *to_json(const void *values, const basin_setting *s) {
    const void *at = (const char *)values + s->offset;
    switch (s->kind) {
    case BASIN_SETTING_INTEGER: return exact_number((double)*(const int64_t *)at);
    case BASIN_SETTING_REAL: return exact_number(*(const double *)at);
    case BASIN_SETTING_SWITCH: return cJSON_CreateBool(*(const bool *)at);
    case BASIN_SETTING_CHOICE: return cJSON_CreateString(*(const char *const *)at);
    case BASIN_SETTING_CHANNELS: return exact_numbers(at, 3);
    }
    return NULL;
}

char *basin_settings_print(const void *values, const basin_setting *table, bool indented) {
    cJSON *object = cJSON_CreateObject();
    bool good = object != NULL;
    for (const basin_setting *s = table; s->name && good; s++) {
        cJSON *item = to_json(values, s);
        good = item && cJSON_AddItemToObject(object, s->name, item);
        if (!good) cJSON_Delete(item);
    }
    char *text = !good ? NULL : indented ? cJSON_Print(object) : cJSON_PrintUnformatted(object);
    cJSON_Delete(object);
    return text;
}

/* ---- reading ---- */

static bool print_channels(char *text, size_t size, const cJSON *item) {
    char number[3][BASIN_NUMBER_TEXT];
    if (cJSON_GetArraySize(item) != 3) return false;
    for (int i = 0; i < 3; i++) {
        const cJSON *one = cJSON_GetArrayItem(item, i);
        if (!cJSON_IsNumber(one)) return false;
        basin_real_print(number[i], sizeof number[i], 17, one->valuedouble);
    }
    snprintf(text, size, "%s,%s,%s", number[0], number[1], number[2]);
    return true;
}

/* A JSON value as the text that basin_setting_parse reads, where its kind is the setting's. */
static bool to_text(char *text, size_t size, const basin_setting *s, const cJSON *item) {
    switch (s->kind) {
    case BASIN_SETTING_INTEGER:
    case BASIN_SETTING_REAL:
        if (!cJSON_IsNumber(item)) return false;
        basin_real_print(text, size, 17, item->valuedouble);
        return true;
    case BASIN_SETTING_SWITCH:
        if (!cJSON_IsBool(item)) return false;
        snprintf(text, size, "%s", cJSON_IsTrue(item) ? "on" : "off");
        return true;
    case BASIN_SETTING_CHOICE:
        if (!cJSON_IsString(item)) return false;
        snprintf(text, size, "%s", item->valuestring);
        return true;
    case BASIN_SETTING_CHANNELS: return cJSON_IsArray(item) && print_channels(text, size, item);
    }
    return false;
}

static const char *wanted_kind(const basin_setting *s) {
    static const char *const name[] = {"a whole number", "a number", "true or false", "a word",
                                       "three numbers"};
    return name[s->kind];
}

static basin_status from_json(void *values, const basin_setting *s, const cJSON *item,
                              const char *path, basin_error *error) {
    char text[120];
    basin_error why;
    if (item && to_text(text, sizeof text, s, item)) {
        if (!basin_setting_parse(values, s, text, &why)) return BASIN_OK;
        return basin_fail(error, BASIN_BAD_FILE, "%s: configuration: %s", path, why.text);
    }
    char *found = item ? cJSON_PrintUnformatted(item) : NULL;
    basin_status status =
        basin_fail(error, BASIN_BAD_FILE, "%s: configuration: %s is %.60s, wanted %s", path,
                   s->name, found ? found : "absent", wanted_kind(s));
    cJSON_free(found);
    return status;
}

static basin_status check_names(const cJSON *object, const basin_setting *table, const char *path,
                                basin_error *error) {
    const cJSON *item;
    cJSON_ArrayForEach(item, object) {
        if (!basin_setting_find(table, item->string))
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: configuration: '%.60s' is not known to this version", path,
                              item->string);
    }
    return BASIN_OK;
}

static basin_status read_object(void *values, const basin_setting *table, const cJSON *object,
                                bool whole, const char *path, basin_error *error) {
    basin_status status = check_names(object, table, path, error);
    for (const basin_setting *s = table; s->name && !status; s++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, s->name);
        if (item || (whole && !s->absent))
            status = from_json(values, s, item, path, error);
        else if (whole)
            status = basin_setting_parse(values, s, s->absent, error);
    }
    return status;
}

basin_status basin_settings_parse(void *values, const basin_setting *table, const char *json,
                                  bool whole, const char *path, basin_error *error) {
    cJSON *object;
    basin_status status =
        basin_json_parse(&object, json, strlen(json), path, "the configuration", error);
    if (status) return status;
    status = read_object(values, table, object, whole, path, error);
    cJSON_Delete(object);
    return status;
}

basin_status basin_settings_load(void *values, const basin_setting *table, const char *path,
                                 basin_error *error) {
    basin_map map;
    cJSON *object;
    basin_status status = basin_map_open(&map, path, error);
    if (status) return status;
    status = basin_json_parse(&object, map.data, map.size, path, "the configuration", error);
    basin_map_close(&map);
    if (status) return status;
    const cJSON *inner = cJSON_GetObjectItemCaseSensitive(object, "settings");
    status = read_object(values, table, inner ? inner : object, false, path, error);
    cJSON_Delete(object);
    return status;
}

/* ---- resuming ---- */

basin_status basin_settings_match(const void *saved, const void *asked, const basin_setting *table,
                                  const char *path, basin_error *error) {
    enum { TEXT = 200 };
    for (const basin_setting *s = table; s->name; s++) {
        char found[TEXT], wanted[TEXT];
        basin_setting_print(found, sizeof found, saved, s);
        basin_setting_print(wanted, sizeof wanted, asked, s);
        if (s->loose || !strcmp(found, wanted)) continue;
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: its run has %s %s, asked for is %s; resume with the same settings, "
                          "or begin a new run",
                          path, s->name, found, wanted);
    }
    return BASIN_OK;
}
