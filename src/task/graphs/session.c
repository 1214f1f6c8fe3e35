/* Graph models in memory and in files; see graphs.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/json.h"
#include "task/graphs/build.h"

static basin_status no_memory(basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "no memory for a graph model");
}

/* ---- the model's configuration ---- */

static basin_adjacency adjacency_of(const char *name) {
    if (!strcmp(name, "bilinear")) return BASIN_ADJACENCY_BILINEAR;
    if (!strcmp(name, "edges")) return BASIN_ADJACENCY_EDGES;
    return strcmp(name, "none") ? BASIN_ADJACENCY_CONV : BASIN_ADJACENCY_NONE;
}

static int read_of(const basin_graphs_session *session) {
    const char *name = session->settings.readout;
    if (session->task == BASIN_NODE_CLASSES) return BASIN_READ_NODES;
    if (!strcmp(name, "auto"))
        name = session->task == BASIN_GRAPHS_VALUES ? "cls+sum" : "cls+mean+sized";
    int read = 0;
    if (strstr(name, "cls")) read |= BASIN_READ_CLS;
    if (strstr(name, "mean")) read |= BASIN_READ_MEAN;
    if (strstr(name, "sum")) read |= BASIN_READ_SUM;
    if (strstr(name, "sized")) read |= BASIN_READ_SIZED;
    return read;
}

basin_graphs_config basin_graphs_session_config(const basin_graphs_session *session) {
    const basin_graphs_settings *s = &session->settings;
    double root = 1 / sqrt((double)s->dim);
    basin_init query = {BASIN_INIT_NORMAL, s->query_deviation > 0 ? s->query_deviation : root};
    basin_init memory = {BASIN_INIT_NORMAL, s->memory_deviation > 0 ? s->memory_deviation : root};
    return (basin_graphs_config){
        .features = session->encoding.features,
        .edge_features = session->encoding.edge_features,
        .positions = s->eigenvectors + s->walks,
        .outputs = session->outputs,
        .blocks = (int)s->blocks,
        .block = {.dim = s->dim,
                  .heads = s->heads,
                  .head_dim = s->head_dim,
                  .memories = s->memories,
                  .no_attention = !s->attention,
                  .no_hopfield = !s->hopfield,
                  .hopfield = basin_hopfield_named(s->hopfield_kind),
                  .power = s->hopfield_power,
                  .beta = s->beta,
                  .learn_beta = s->learn_beta,
                  .mix = s->mix,
                  .couplings = s->couplings,
                  .coupling_features = session->encoding.edge_features,
                  .init_query = query,
                  .init_memory = memory},
        .descent = {.steps = (int)s->steps, .alpha = s->alpha, .recompute = s->recompute},
        .adjacency = adjacency_of(s->adjacency),
        .read = read_of(session),
        .hidden = s->hidden,
        .norm_head = s->norm_head,
        .drop = s->dropout,
        .reconstruct = s->reconstruct};
}

/* The parameters alone, on a graph of their own. */
static basin_status declare(basin_graph **graph, basin_params *params,
                            const basin_graphs_session *session, basin_error *error) {
    basin_graphs model;
    basin_graphs_config config = basin_graphs_session_config(session);
    *graph = basin_graph_new();
    if (!*graph) return no_memory(error);
    basin_params_begin(params, *graph);
    basin_graphs_declare(&model, params, &config);
    const basin_error *found = basin_graph_error(*graph);
    if (!found) return BASIN_OK;
    basin_status status = basin_fail(error, found->status, "%s", found->text);
    basin_params_free(params);
    basin_graph_free(*graph);
    return status;
}

/* ---- making and opening ---- */

void basin_graphs_session_close(basin_graphs_session *session) {
    free(session->class_value);
    free(session->target_mean);
    free(session->target_scale);
    basin_graphset_encoding_free(&session->encoding);
    basin_store_free(session->store);
    *session = (basin_graphs_session){0};
}

static basin_status start(basin_graphs_session *session, const basin_bundle *bundle,
                          basin_error *error) {
    basin_graph *graph;
    basin_params params;
    basin_status status = basin_store_new(&session->store, session->backend, error);
    if (!status) basin_store_share_results(session->store); /* plans of all sizes run in turn */
    if (!status) status = declare(&graph, &params, session, error);
    if (status) return status;
    if (bundle)
        status = basin_params_read(&params, session->store, bundle, error);
    else
        status =
            basin_params_init(&params, session->store, (uint64_t)session->settings.seed, error);
    basin_params_free(&params);
    basin_graph_free(graph);
    return status;
}

/* Each value to mean 0 and deviation 1: they may be in units far apart. */
static void target_statistics(basin_graphs_session *session, const basin_graphset *set,
                              const int64_t *graph, int64_t count) {
    for (int64_t c = 0; c < set->targets; c++) {
        double sum = 0, squares = 0, n = count > 0 ? (double)count : 1;
        for (int64_t i = 0; i < count; i++) {
            double y = (double)set->target[graph[i] * set->targets + c];
            sum += y, squares += y * y;
        }
        double variance = squares / n - sum / n * sum / n;
        session->target_mean[c] = sum / n;
        session->target_scale[c] = variance > 1e-12 * squares / n ? sqrt(variance) : 1;
    }
}

static basin_status set_targets(basin_graphs_session *session, const basin_graphset *set,
                                const int64_t *graph, int64_t count, basin_error *error) {
    session->outputs = set->targets;
    session->target_mean = calloc((size_t)set->targets + 1, sizeof *session->target_mean);
    session->target_scale = calloc((size_t)set->targets + 1, sizeof *session->target_scale);
    if (!session->target_mean || !session->target_scale) return no_memory(error);
    for (int64_t c = 0; c < set->targets; c++) session->target_scale[c] = 1;
    if (session->settings.standardise) target_statistics(session, set, graph, count);
    return BASIN_OK;
}

static basin_status set_classes(basin_graphs_session *session, const basin_graphset *set,
                                basin_error *error) {
    int64_t outputs = session->settings.outputs;
    session->classes = set->classes;
    session->outputs = outputs > set->classes ? outputs : set->classes;
    session->class_value = basin_array_new((size_t)set->classes, sizeof *set->class_value);
    if (!session->class_value) return no_memory(error);
    memcpy(session->class_value, set->class_value, (size_t)set->classes * sizeof *set->class_value);
    return BASIN_OK;
}

basin_status basin_graphs_check_labels(const basin_graphset *set, const char *path,
                                       basin_error *error) {
    if (set->task == BASIN_GRAPHS_VALUES ? set->target != NULL : set->class_of && set->classes > 1)
        return BASIN_OK;
    if (set->task != BASIN_GRAPHS_VALUES && set->class_of && set->classes == 1)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: all %s have the class %lld; wanted two classes or more", path,
                          set->task == BASIN_NODE_CLASSES ? "nodes" : "graphs",
                          (long long)set->class_value[0]);
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: no labels and no values; wanted a set that has them (of a TUDataset, "
                      "DS_graph_labels.txt or DS_graph_attributes.txt)",
                      path);
}

basin_status basin_graphs_session_new(basin_graphs_session *session,
                                      const basin_graphs_settings *settings,
                                      const basin_graphset *set, const int64_t *graph,
                                      int64_t count, basin_backend *backend, basin_error *error) {
    *session = (basin_graphs_session){.settings = *settings, .task = set->task, .backend = backend};
    session->settings.epochs = basin_graphs_epochs(settings, set, graph, count);
    basin_encoding_spec spec = {settings->raw, settings->standardise, settings->edge_sums,
                                settings->degrees};
    basin_status status = basin_graphs_settings_check(settings, error);
    if (!status)
        status = basin_graphset_encoding_new(&session->encoding, set, graph, count, &spec, error);
    if (!status)
        status = set->task == BASIN_GRAPHS_VALUES ? set_targets(session, set, graph, count, error)
                                                  : set_classes(session, set, error);
    if (!status) status = start(session, NULL, error);
    if (status) basin_graphs_session_close(session);
    return status;
}

int64_t basin_graphs_session_parameters(const basin_graphs_session *session) {
    basin_graph *graph;
    basin_params params;
    if (declare(&graph, &params, session, NULL)) return 0;
    int64_t total = basin_params_total(&params);
    basin_params_free(&params);
    basin_graph_free(graph);
    return total;
}

basin_status basin_graphs_session_positions_part(basin_positions *positions,
                                                 const basin_graphs_settings *settings,
                                                 const basin_graphset *set, int64_t first,
                                                 int64_t count, const char *cache,
                                                 basin_error *error) {
    basin_position_spec spec = {settings->eigenvectors, settings->walks, settings->cls_laplacian};
    return basin_positions_new_part(positions, set, &spec, first, count, cache, error);
}

basin_status basin_graphs_session_positions(basin_positions *positions,
                                            const basin_graphs_settings *settings,
                                            const basin_graphset *set, const char *cache,
                                            basin_error *error) {
    return basin_graphs_session_positions_part(positions, settings, set, 0, set->graphs, cache,
                                               error);
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

static cJSON *classes_json(const basin_graphs_session *s) {
    cJSON *array = cJSON_CreateArray();
    for (int64_t c = 0; c < s->classes && array; c++) {
        cJSON *item = cJSON_CreateNumber((double)s->class_value[c]);
        if (item && cJSON_AddItemToArray(array, item)) continue;
        cJSON_Delete(item);
        cJSON_Delete(array);
        return NULL;
    }
    return array;
}

static char *data_json(const basin_graphs_session *s) {
    const basin_graphset_encoding *e = &s->encoding;
    int columns = (int)(e->attributes + e->edge_attributes);
    cJSON *o = cJSON_CreateObject();
    bool good =
        o && put(o, "task", cJSON_CreateNumber((double)s->task)) &&
        put(o, "outputs", cJSON_CreateNumber((double)s->outputs)) &&
        put(o, "classes", classes_json(s)) &&
        (!s->target_mean ||
         (put(o, "target_mean", cJSON_CreateDoubleArray(s->target_mean, (int)s->outputs)) &&
          put(o, "target_scale", cJSON_CreateDoubleArray(s->target_scale, (int)s->outputs)))) &&
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

/* A number for each value; files of before had one for all. */
static bool get_targets(double **to, const basin_graphs_session *s, const cJSON *o,
                        const char *name, bool *memory) {
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(o, name);
    if (s->task != BASIN_GRAPHS_VALUES) return true;
    if (!cJSON_IsNumber(all) && !(cJSON_IsArray(all) && cJSON_GetArraySize(all) == s->outputs))
        return false;
    *to = calloc((size_t)s->outputs, sizeof **to);
    if (!*to) return *memory = false;
    const cJSON *item = cJSON_IsArray(all) ? all->child : all;
    for (int64_t c = 0; c < s->outputs; c++, item = cJSON_IsArray(all) ? item->next : all) {
        if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble)) return false;
        (*to)[c] = item->valuedouble;
    }
    return true;
}

static bool get_classes(basin_graphs_session *s, const cJSON *o, bool *memory) {
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(o, "classes"), *item;
    if (!cJSON_IsArray(array)) return false;
    s->class_value = basin_array_new((size_t)cJSON_GetArraySize(array), sizeof *s->class_value);
    if (!s->class_value) return *memory = false;
    cJSON_ArrayForEach(item, array) {
        if (!cJSON_IsNumber(item)) return false;
        s->class_value[s->classes++] = (int64_t)item->valuedouble;
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

static basin_status read_data(basin_graphs_session *s, const char *json, const char *path,
                              basin_error *error) {
    cJSON *o;
    int64_t task;
    basin_status status = basin_json_parse(&o, json, strlen(json), path, "the encoding", error);
    if (status) return status;
    bool memory = true;
    bool good = get_integer(&task, o, "task", 0, 2) &&
                get_integer(&s->outputs, o, "outputs", 1, 1 << 20) && get_classes(s, o, &memory);
    s->task = good ? (basin_graphs_target)task : BASIN_GRAPHS_CLASSES;
    good = good && get_targets(&s->target_mean, s, o, "target_mean", &memory) &&
           get_targets(&s->target_scale, s, o, "target_scale", &memory) &&
           get_encoding(&s->encoding, o, &memory);
    cJSON_Delete(o);
    if (!memory) return no_memory(error);
    if (!good)
        return basin_fail(error, BASIN_BAD_FILE, "%s: the encoding of nodes and edges is damaged",
                          path);
    return BASIN_OK;
}

/* ---- files ---- */

basin_status basin_graphs_session_meta(basin_meta meta[3], const basin_graphs_session *session,
                                       basin_error *error) {
    meta[0] = (basin_meta){"basin.model", "graph"};
    meta[1] = (basin_meta){
        "basin.config", basin_settings_print(&session->settings, basin_graphs_task.table, false)};
    meta[2] = (basin_meta){"basin.data", data_json(session)};
    if (meta[1].value && meta[2].value) return BASIN_OK;
    basin_graphs_session_meta_free(meta);
    return no_memory(error);
}

void basin_graphs_session_meta_free(basin_meta meta[3]) {
    for (int i = 1; i < 3; i++) cJSON_free((void *)(uintptr_t)meta[i].value);
}

basin_status basin_graphs_session_write(const char *path, basin_graphs_session *session,
                                        basin_error *error) {
    basin_graph *graph;
    basin_params params;
    basin_meta meta[3];
    basin_status status = declare(&graph, &params, session, error);
    if (status) return status;
    status = basin_graphs_session_meta(meta, session, error);
    if (!status) {
        status = basin_params_write(path, &params, session->store, meta, 3, error);
        basin_graphs_session_meta_free(meta);
    }
    basin_params_free(&params);
    basin_graph_free(graph);
    return status;
}

basin_status basin_graphs_session_read(basin_graphs_session *session, const basin_bundle *bundle,
                                       basin_backend *backend, basin_error *error) {
    const char *path = basin_bundle_path(bundle), *kind = basin_bundle_meta(bundle, "basin.model");
    const char *json = basin_bundle_meta(bundle, "basin.config");
    const char *data = basin_bundle_meta(bundle, "basin.data");
    *session = (basin_graphs_session){.backend = backend};
    if (!kind || strcmp(kind, "graph") != 0 || !json || !data)
        return basin_fail(error, BASIN_BAD_FILE, "%s: the model is '%s', wanted 'graph'", path,
                          kind ? kind : "absent");
    basin_status status =
        basin_settings_parse(&session->settings, basin_graphs_task.table, json, true, path, error);
    if (!status) status = read_data(session, data, path, error);
    if (!status) status = start(session, bundle, error);
    if (status) basin_graphs_session_close(session);
    return status;
}

basin_status basin_graphs_session_open(basin_graphs_session *session, const char *path,
                                       basin_backend *backend, basin_error *error) {
    basin_bundle *bundle;
    *session = (basin_graphs_session){0};
    basin_status status = basin_bundle_read(&bundle, path, error);
    if (status) return status;
    status = basin_graphs_session_read(session, bundle, backend, error);
    basin_bundle_free(bundle);
    return status;
}
