/* Metadata of a bundle as a JSON object, and back. */

#include "base/json.h"
#include "engine/io/bundle.h"

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
    const char *key, *value;
    for (size_t i = 0; object && (key = basin_bundle_meta_at(bundle, i, &value)); i++)
        if (!cJSON_AddStringToObject(object, key, value)) {
            cJSON_Delete(object);
            object = NULL;
        }
    return object;
}
