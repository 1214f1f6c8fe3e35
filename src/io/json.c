/* JSON headers and metadata; see json.h. */
#include "io/json.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* cJSON cuts strings at an escaped NUL, and two names could become one. */
static bool has_nul(const char *text, size_t length) {
    if (memchr(text, 0, length)) return true;
    for (size_t i = 0; i + 1 < length; i++) {
        if (text[i] != '\\') continue;
        if (length - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0) return true;
        i++;
    }
    return false;
}

/* The text is parsed from a copy with a NUL behind it: cJSON before 1.7.18 can look one byte past
 * an unfinished text. */
basin_status basin_json_parse(cJSON **tree, const void *text, size_t length, const char *path,
                              const char *what, basin_error *error) {
    const char *end = NULL;
    *tree = NULL;
    if (!length) return basin_fail(error, BASIN_BAD_FILE, "%s: %s is empty", path, what);
    if (has_nul(text, length))
        return basin_fail(error, BASIN_BAD_FILE, "%s: %s contains a NUL character", path, what);
    char *copy = basin_array_new(length + 1, 1);
    if (!copy)
        return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for %s of %zu bytes", path,
                          what, length);
    memcpy(copy, text, length);
    copy[length] = '\0';
    *tree = cJSON_ParseWithLengthOpts(copy, length + 1, &end, true);
    basin_status status = BASIN_OK;
    if (!*tree)
        status = basin_fail(error, BASIN_BAD_FILE, "%s: %s is not JSON from byte %zu: '%.20s'",
                            path, what, end ? (size_t)(end - copy) : 0, end ? end : copy);
    else if (!cJSON_IsObject(*tree))
        status = basin_fail(error, BASIN_BAD_FILE, "%s: %s is not a JSON object: '%.20s'", path,
                            what, copy);
    free(copy);
    return status;
}

basin_status basin_json_to_meta(basin_bundle *bundle, const cJSON *object, basin_error *error) {
    const cJSON *item;
    const char *path = basin_bundle_path(bundle);
    if (!cJSON_IsObject(object))
        return basin_fail(error, BASIN_BAD_FILE, "%s: __metadata__ is not a JSON object", path);
    cJSON_ArrayForEach(item, object) {
        const char *reason = !cJSON_IsString(item)                     ? "is not a string"
                             : basin_bundle_meta(bundle, item->string) ? "is there twice"
                                                                       : NULL;
        if (reason)
            return basin_fail(error, BASIN_BAD_FILE, "%s: __metadata__ '%.100s' %s", path,
                              item->string, reason);
        basin_status status = basin_bundle_meta_set(bundle, item->string, item->valuestring, error);
        if (status != BASIN_OK) return basin_bundle_blame_file(status, error);
    }
    return BASIN_OK;
}

cJSON *basin_json_from_meta(const basin_bundle *bundle) {
    cJSON *object = cJSON_CreateObject();
    for (size_t i = 0; object && i < basin_bundle_meta_count(bundle); i++)
        if (!cJSON_AddStringToObject(object, basin_bundle_meta_key(bundle, i),
                                     basin_bundle_meta_value(bundle, i))) {
            cJSON_Delete(object);
            object = NULL;
        }
    return object;
}
