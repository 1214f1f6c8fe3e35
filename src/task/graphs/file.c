/* Graph models in files: safetensors with the settings and the encoding of nodes and edges as JSON
 * in the metadata; see graphs.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/json.h"
#include "task/graphs/graphs.h"
#include "train/restore.h"

static basin_status no_memory(basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a graph model");
}

/* ---- the encoding as JSON ---- */

static bool put(cJSON *object, const char *name, cJSON *item) {
    if (item && cJSON_AddItemToObject(object, name, item)) return true;
    cJSON_Delete(item);
    return false;
}

static cJSON *columns_json(const basin_label_column *column, int64_t count) {
    cJSON *array = cJSON_CreateArray();
    for (int64_t c = 0; c < count && array; c++) {
        cJSON *pair = cJSON_CreateIntArray((const int[]){column[c].first, column[c].count}, 2);
        if (pair && cJSON_AddItemToArray(array, pair)) continue;
        cJSON_Delete(pair);
        cJSON_Delete(array);
        return NULL;
    }
    return array;
}

static cJSON *classes_json(const basin_graphs_model *m) {
    cJSON *array = cJSON_CreateArray();
    for (int64_t c = 0; c < m->classes && array; c++) {
        cJSON *item = cJSON_CreateNumber((double)m->class_value[c]);
        if (item && cJSON_AddItemToArray(array, item)) continue;
        cJSON_Delete(item);
        cJSON_Delete(array);
        return NULL;
    }
    return array;
}

static char *data_json(const basin_graphs_model *m) {
    const basin_graphset_encoding *e = &m->encoding;
    int columns = (int)(e->attributes + e->edge_attributes);
    cJSON *o = cJSON_CreateObject();
    bool good =
        o && put(o, "task", cJSON_CreateNumber((double)m->target)) &&
        put(o, "outputs", cJSON_CreateNumber((double)m->outputs)) &&
        put(o, "classes", classes_json(m)) &&
        (!m->target_mean ||
         (put(o, "target_mean", cJSON_CreateDoubleArray(m->target_mean, (int)m->outputs)) &&
          put(o, "target_scale", cJSON_CreateDoubleArray(m->target_scale, (int)m->outputs)))) &&
        put(o, "attributes", cJSON_CreateNumber((double)e->attributes)) &&
        put(o, "edge_attributes", cJSON_CreateNumber((double)e->edge_attributes)) &&
        put(o, "labels", columns_json(e->label, e->labels)) &&
        put(o, "edge_labels", columns_json(e->edge_label, e->edge_labels)) &&
        put(o, "mean", cJSON_CreateFloatArray(e->mean, columns)) &&
        put(o, "scale", cJSON_CreateFloatArray(e->scale, columns)) &&
        put(o, "raw", cJSON_CreateBool(e->raw)) &&
        put(o, "degrees", cJSON_CreateNumber((double)e->degrees)) &&
        put(o, "edge_sums", cJSON_CreateBool(e->edge_sums));
    char *text = good ? cJSON_PrintUnformatted(o) : NULL;
    cJSON_Delete(o);
    return text;
}

static bool get_integer(int64_t *to, const cJSON *o, const char *name, double low, double high) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, name);
    if (!cJSON_IsNumber(item) || item->valuedouble < low || item->valuedouble > high ||
        item->valuedouble != floor(item->valuedouble))
        return false;
    *to = (int64_t)item->valuedouble;
    return true;
}

static bool get_columns(basin_label_column *column, int64_t *count, const cJSON *o,
                        const char *name) {
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(o, name), *item;
    if (!cJSON_IsArray(array) || cJSON_GetArraySize(array) > BASIN_MAX_LABELS) return false;
    *count = 0;
    cJSON_ArrayForEach(item, array) {
        const cJSON *first = cJSON_GetArrayItem(item, 0), *kinds = cJSON_GetArrayItem(item, 1);
        if (!cJSON_IsNumber(first) || !cJSON_IsNumber(kinds) || kinds->valueint < 1 ||
            kinds->valueint > 1 << 20)
            return false;
        column[(*count)++] = (basin_label_column){first->valueint, kinds->valueint};
    }
    return true;
}

static bool get_floats(float **to, const cJSON *o, const char *name, int64_t count, bool *memory) {
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(o, name);
    if (!cJSON_IsArray(array) || cJSON_GetArraySize(array) != count) return false;
    *to = calloc((size_t)count + 1, sizeof **to);
    if (!*to) return *memory = false;
    int64_t i = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, array) {
        if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble)) return false;
        (*to)[i++] = (float)item->valuedouble;
    }
    return true;
}

/* A number for each value; older files store one for all. */
static bool get_targets(double **to, const basin_graphs_model *m, const cJSON *o, const char *name,
                        bool *memory) {
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(o, name);
    if (m->target != BASIN_GRAPHS_VALUES) return true;
    if (!cJSON_IsNumber(all) && !(cJSON_IsArray(all) && cJSON_GetArraySize(all) == m->outputs))
        return false;
    *to = calloc((size_t)m->outputs, sizeof **to);
    if (!*to) return *memory = false;
    const cJSON *item = cJSON_IsArray(all) ? all->child : all;
    for (int64_t c = 0; c < m->outputs; c++, item = cJSON_IsArray(all) ? item->next : all) {
        if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble)) return false;
        (*to)[c] = item->valuedouble;
    }
    return true;
}

static bool get_classes(basin_graphs_model *m, const cJSON *o, bool *memory) {
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(o, "classes"), *item;
    if (!cJSON_IsArray(array)) return false;
    m->class_value = basin_array_new((size_t)cJSON_GetArraySize(array), sizeof *m->class_value);
    if (!m->class_value) return *memory = false;
    cJSON_ArrayForEach(item, array) {
        if (!cJSON_IsNumber(item)) return false;
        m->class_value[m->classes++] = (int64_t)item->valuedouble;
    }
    return true;
}

static bool get_encoding(basin_graphset_encoding *e, const cJSON *o, bool *memory) {
    if (!get_integer(&e->attributes, o, "attributes", 0, 1 << 20) ||
        !get_integer(&e->edge_attributes, o, "edge_attributes", 0, 1 << 20) ||
        !get_columns(e->label, &e->labels, o, "labels") ||
        !get_columns(e->edge_label, &e->edge_labels, o, "edge_labels") ||
        !get_integer(&e->degrees, o, "degrees", 0, 1 << 20))
        return false;
    int64_t columns = e->attributes + e->edge_attributes;
    if (!get_floats(&e->mean, o, "mean", columns, memory) ||
        !get_floats(&e->scale, o, "scale", columns, memory))
        return false;
    e->raw = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "raw"));
    e->edge_sums = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "edge_sums"));
    basin_graphset_encoding_count(e);
    return true;
}

static basin_status read_data(basin_graphs_model *m, const char *json, const char *path,
                              basin_error *error) {
    cJSON *o;
    int64_t task;
    basin_status status = basin_json_parse(&o, json, strlen(json), path, "the encoding", error);
    if (status) return status;
    bool memory = true;
    bool good = get_integer(&task, o, "task", 0, 2) &&
                get_integer(&m->outputs, o, "outputs", 1, 1 << 20) && get_classes(m, o, &memory);
    m->target = good ? (basin_graphs_target)task : BASIN_GRAPHS_CLASSES;
    if (m->target != BASIN_GRAPHS_VALUES)
        good = good && m->classes >= 1 && m->classes <= m->outputs;
    good = good && get_targets(&m->target_mean, m, o, "target_mean", &memory) &&
           get_targets(&m->target_scale, m, o, "target_scale", &memory) &&
           get_encoding(&m->encoding, o, &memory);
    cJSON_Delete(o);
    if (!memory) return no_memory(error);
    if (!good)
        return basin_fail(error, BASIN_BAD_FILE, "%s: the encoding of nodes and edges is damaged",
                          path);
    return BASIN_OK;
}

/* ---- files ---- */

basin_status basin_graphs_meta(basin_meta meta[BASIN_GRAPHS_META], const basin_graphs_model *model,
                               basin_error *error) {
    meta[0] = (basin_meta){"basin.model", "graph"};
    meta[1] = (basin_meta){"basin.config",
                           basin_settings_print(&model->settings, basin_graphs_task.table, false)};
    meta[2] = (basin_meta){"basin.data", data_json(model)};
    if (meta[1].value && meta[2].value) return BASIN_OK;
    basin_graphs_meta_free(meta);
    return no_memory(error);
}

void basin_graphs_meta_free(basin_meta meta[BASIN_GRAPHS_META]) {
    for (int i = 1; i < BASIN_GRAPHS_META; i++) cJSON_free((void *)(uintptr_t)meta[i].value);
}

basin_status basin_graphs_write(const char *path, basin_graphs_model *model, basin_error *error) {
    basin_meta meta[BASIN_GRAPHS_META];
    basin_status status = basin_graphs_meta(meta, model, error);
    if (status) return status;
    basin_bundle *bundle;
    status =
        basin_params_bundle(&bundle, &model->params, model->store, meta, BASIN_GRAPHS_META, error);
    if (!status) status = basin_graphs_seen_write(bundle, model, error);
    if (!status) status = basin_bundle_write(path, bundle, error);
    basin_bundle_free(bundle);
    basin_graphs_meta_free(meta);
    return status;
}

basin_status basin_graphs_settings_read(basin_graphs_settings *settings, const basin_bundle *bundle,
                                        basin_error *error) {
    const char *path = basin_bundle_path(bundle), *kind = basin_bundle_meta(bundle, "basin.model");
    const char *json = basin_bundle_meta(bundle, "basin.config");
    if (!kind || strcmp(kind, "graph") != 0 || !json)
        return basin_fail(error, BASIN_BAD_FILE, "%s: the model is '%.40s', wanted 'graph'", path,
                          kind ? kind : "absent");
    basin_status status =
        basin_settings_parse(settings, basin_graphs_task.table, json, true, path, error);
    if (!status && settings->reconstruct && !strstr(json, "\"reconstruct_all\""))
        settings->reconstruct_all = false; /* older files have the first feature alone */
    return status;
}

basin_status basin_graphs_model_read(basin_graphs_model **model, const basin_bundle *bundle,
                                     const basin_graphs_settings *settings, basin_backend *backend,
                                     basin_error *error) {
    const char *path = basin_bundle_path(bundle), *data = basin_bundle_meta(bundle, "basin.data");
    basin_graphs_model *m = *model = calloc(1, sizeof *m);
    if (!m) return no_memory(error);
    m->backend = backend;
    basin_status status = basin_graphs_settings_read(&m->settings, bundle, error);
    if (!status && !data)
        status =
            basin_fail(error, BASIN_BAD_FILE, "%s: 'basin.data', the encoding, is absent", path);
    if (!status) status = read_data(m, data, path, error);
    if (!status) status = basin_graphs_seen_read(m, bundle, error);
    if (settings) m->settings = *settings;
    if (!status) status = basin_graphs_model_start(m, error);
    if (!status) return BASIN_OK;
    basin_graphs_close(m);
    *model = NULL;
    return status;
}

basin_status basin_graphs_open(basin_graphs_model **model, const char *path, basin_backend *backend,
                               basin_error *error) {
    basin_bundle *bundle;
    *model = NULL;
    basin_status status = basin_bundle_read(&bundle, path, error);
    if (status) return status;
    status = basin_graphs_model_read(model, bundle, NULL, backend, error);
    if (!status) status = basin_params_read(&(*model)->params, (*model)->store, bundle, error);
    basin_bundle_free(bundle);
    if (!status) return BASIN_OK;
    basin_graphs_close(*model);
    *model = NULL;
    return status;
}
