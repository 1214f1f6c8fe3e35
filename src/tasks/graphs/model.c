/* Graph models: settings, what they describe, model files (safetensors with settings and encoding
 * as JSON in the metadata). See graphs.h. */
#include "base/bundle.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sort.h"
#include "base/states.h"
#include "basin/plan.h"
#include "tasks/common/digest.h"
#include "tasks/graphs/graphs.h"

/* ---- the model's configuration ---- */

/* The place of a word in a list; 0 where it is not there. */
static int place_of(const char *word, const char *list) {
    int place = 0;
    for (const char *at = strstr(list, word); at && list < at; list++) place += *list == ' ';
    return place;
}

static int read_of(const basin_graphs_model *model) {
    static const char *const part[] = {"cls", "mean", "sum", NULL, "sized"};
    const char *name = model->settings.readout;
    int read = 0;
    if (model->target == BASIN_GRAPHS_NODE_CLASSES) return BASIN_GRAPH_READOUT_NODES;
    if (!strcmp(name, "auto"))
        name = model->target == BASIN_GRAPHS_VALUES ? "cls+sum" : "cls+mean+sized";
    for (int i = 0; i < 5; i++)
        if (part[i] && strstr(name, part[i])) read |= 1 << i;
    return read;
}

basin_graph_net_config basin_graphs_model_config(const basin_graphs_model *model, basin_expr seed) {
    const basin_graphs_settings *s = &model->settings;
    double root = 1 / sqrt((double)s->dim);
    basin_init query = {BASIN_INIT_NORMAL, s->query_deviation > 0 ? s->query_deviation : root};
    basin_init memory = {BASIN_INIT_NORMAL, s->memory_deviation > 0 ? s->memory_deviation : root};
    bool classes = model->target != BASIN_GRAPHS_VALUES || model->binary;
    return (basin_graph_net_config){
        .features = model->encoding.features,
        .edge_features = model->encoding.edge_features,
        .positions = s->eigenvectors + s->walks,
        .outputs = model->outputs,
        .blocks = (int)s->blocks,
        .block = {BASIN_BLOCK_OF(s), .mix = s->mix, .init_query = query, .init_memory = memory,
                  .norm = BASIN_NORM_LAYER},
        .graph = {.couplings = s->couplings,
                  .neighbour_heads = s->neighbour_heads,
                  .pair_features = model->encoding.edge_features + s->pair_hidden,
                  .graph_norm = !strcmp(s->norm, "graph")},
        .descent = {BASIN_DESCENT_OF(s), .recompute = s->recompute, .seed = seed,
                    .noise = seed && !s->implicit ? s->noise : 0},
        .adjacency = (basin_adjacency)place_of(s->adjacency, "conv bilinear edges none bias"),
        .read = read_of(model),
        .hidden = s->hidden,
        .pair_hidden = s->pair_hidden,
        .norm_head = s->norm_head,
        .drop = s->dropout >= 0 ? s->dropout
                : classes       ? 0.2
                                : 0,
        .reconstruct = s->reconstruct};
}

/* ---- making one ---- */

/* The last step of making or reading one: the store, and the parameters declared. */
static basin_status start(basin_graphs_model *model, basin_error *error) {
    basin_graph_net declared;
    basin_graph_net_config config = basin_graphs_model_config(model, NULL);
    model->view = (basin_settings){.kind = &basin_graphs_task, .values = &model->settings};
    model->encoding.no_cls_self = !model->settings.cls_self;
    BASIN_TRY(basin_graphs_task.check(&model->settings, error));
    BASIN_TRY(basin_store_new(&model->store, model->backend, error));
    model->shares_results =
        basin_store_share_results(model->store); /* plans of all sizes run in turn */
    model->graph = basin_graph_new();
    if (!model->graph) return basin_fail_memory(error, "a graph model");
    basin_params_begin(&model->params, model->graph);
    basin_graph_net_declare(&declared, &model->params, &config);
    return basin_graph_check(model->graph, error);
}

void basin_graphs_close(basin_graphs_model *model) {
    if (!model) return;
    if (model->one) basin_graphs_plans_free(model->one);
    BASIN_FREE(model->one, model->class_value, model->target_mean, model->target_scale,
               model->names, model->column, model->remembered);
    basin_graphs_near_free(&model->near);
    basin_graphs_calibration_free(&model->calibration);
    BASIN_FREE(model->seen[0].print, model->seen[1].print);
    basin_graphset_encoding_free(&model->encoding);
    if (model->graph) basin_params_free(&model->params);
    basin_graph_free(model->graph);
    basin_store_free(model->store);
    free(model);
}

/* Mean and deviation of each value that is known, since values may be in units far apart. Returns
 * the first that is known of no graph; -1: there is none. */
static int64_t value_scale(double *mean, double *scale, const basin_graphset *set,
                           const int64_t *graph, int64_t count) {
    int64_t unknown = -1;
    for (int64_t c = 0; c < set->targets; c++) {
        double sum = 0, squares = 0, n = 0;
        for (int64_t i = 0; i < count; i++) {
            double y = (double)set->target[graph[i] * set->targets + c];
            if (!isnan(y)) sum += y, squares += y * y, n++;
        }
        if (n == 0 && unknown < 0) unknown = c;
        n = fmax(1, n);
        double variance = squares / n - sum / n * sum / n;
        mean[c] = sum / n;
        scale[c] = variance > 1e-12 * squares / n ? sqrt(variance) : 1;
    }
    return unknown;
}

static basin_status set_targets(basin_graphs_model *m, const basin_graphset *set,
                                const int64_t *graph, int64_t count, basin_error *error) {
    m->outputs = set->targets;
    m->binary = set->binary;
    BASIN_TRY(BASIN_NEW(&m->target_mean, set->targets, "a graph model", error));
    BASIN_TRY(BASIN_NEW(&m->target_scale, set->targets, "a graph model", error));
    int64_t none = value_scale(m->target_mean, m->target_scale, set, graph, count);
    if (none >= 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: value %lld%s%s is known of none of the %lld graphs to train on; "
                          "needs one at least",
                          set->name, (long long)none + 1, set->column ? ", " : "",
                          set->column ? set->column[none] : "", (long long)count);
    for (int64_t c = 0; c < set->targets && (m->binary || !m->settings.standardise); c++)
        m->target_mean[c] = 0, m->target_scale[c] = 1;
    return BASIN_OK;
}

static basin_status set_classes(basin_graphs_model *model, const basin_graphset *set,
                                basin_error *error) {
    int64_t outputs = model->settings.outputs;
    model->classes = set->classes;
    model->outputs = outputs > set->classes ? outputs : set->classes;
    BASIN_TRY(BASIN_NEW(&model->class_value, set->classes, "a graph model", error));
    memcpy(model->class_value, set->class_value, (size_t)set->classes * sizeof *set->class_value);
    return BASIN_OK;
}

static basin_status fit_model(basin_graphs_model *m, const basin_graphset *set,
                              const int64_t *graph, int64_t count, basin_error *error) {
    const basin_graphs_settings *s = &m->settings;
    basin_encoding_spec spec = {s->raw, s->standardise, s->edge_sums, s->degrees};
    if (set->columns && !(m->names = basin_string_copy(set->columns)))
        return basin_fail_memory(error, "a graph model");
    BASIN_TRY(basin_graphset_encoding_new(&m->encoding, set, graph, count, &spec, error));
    BASIN_TRY(set->task == BASIN_GRAPHS_VALUES ? set_targets(m, set, graph, count, error)
                                               : set_classes(m, set, error));
    return start(m, error);
}

static void drop(basin_graphs_model **model) {
    basin_graphs_close(*model);
    *model = NULL;
}

basin_status basin_graphs_model_new(basin_graphs_model **model,
                                    const basin_graphs_settings *settings,
                                    const basin_graphset *set, const int64_t *graph, int64_t count,
                                    basin_backend *backend, basin_error *error) {
    BASIN_TRY(BASIN_NEW(model, 1, "a graph model", error));
    basin_graphs_model *m = *model;
    m->settings = *settings;
    m->target = set->task;
    m->members = 1;
    m->backend = backend;
    m->settings.epochs = basin_graphs_epochs(settings, set, graph, count);
    basin_graphs_choose_adjacency(&m->settings, set);
    BASIN_TRY_OR(fit_model(m, set, graph, count, error), drop(model));
    return BASIN_OK;
}

int32_t basin_graphs_class_number(const basin_graphs_model *model, int64_t value) {
    for (int64_t c = 0; c < model->classes; c++)
        if (model->class_value[c] == value) return (int32_t)c;
    return -1;
}

basin_status basin_graphs_model_take_classes(basin_graphs_model *model, const basin_graphset *set,
                                             basin_error *error) {
    bool known = true;
    if (model->target == BASIN_GRAPHS_VALUES || set->task != model->target) return BASIN_OK;
    for (int64_t c = 0; c < set->classes && known; c++)
        known = basin_graphs_class_number(model, set->class_value[c]) >= 0;
    if (known) return BASIN_OK;
    if (set->classes > model->outputs)
        return basin_fail(error, BASIN_BAD_VALUE, "%s has %lld classes, the model %lld outputs",
                          set->name, (long long)set->classes, (long long)model->outputs);
    int64_t outputs = model->outputs;
    free(model->class_value);
    basin_status status = set_classes(model, set, error);
    model->outputs = outputs;
    return status;
}

basin_status basin_graphs_model_describe(basin_graphs_model *m, basin_error *error) {
    bool values = m->target == BASIN_GRAPHS_VALUES, words = m->names && strstr(m->names, "\n\t");
    int64_t columns = basin_graphs_columns(m);
    BASIN_FREE(m->column, m->remembered);
    m->column = NULL, m->remembered = NULL;
    if (m->names && (values || words))
        BASIN_TRY(basin_column_names(&m->column, m->names, values ? NULL : m->class_value, columns,
                                     error));
    if (m->near.name) BASIN_TRY(BASIN_NEW(&m->remembered, m->near.count, "names", error));
    const char *at = m->near.name;
    for (int64_t i = 0; at && i < m->near.count; i++, at += strlen(at) + 1) m->remembered[i] = at;
    m->info = (basin_graphs_info){
        .settings = &m->view,
        .target = m->target,
        .columns = columns,
        .class_value = values ? NULL : m->class_value,
        .column = (const char *const *)m->column,
        .table_target = m->names,
        .binary = m->binary,
        .parameters = basin_params_total(&m->params),
        .members = m->members,
        .temperature = m->calibration.temperature > 0 ? m->calibration.temperature : 1,
        .calibrated = m->calibration.lists ? m->calibration.start[m->calibration.lists] : 0,
        .remembered = m->near.count,
        .memory_share = m->near.share,
        .remembered_name = m->remembered};
    return BASIN_OK;
}

const basin_graphs_info *basin_graphs_get_info(const basin_graphs_model *model) {
    return &model->info;
}

/* ---- settings ---- */

#define BASIN_SETTINGS_TYPE basin_graphs_settings
static const basin_setting_entry table[] = {
    BASIN_GRAPHS_INPUT_SETTINGS(BASIN_SETTING_ENTRY)
        BASIN_GRAPHS_MODEL_SETTINGS(BASIN_SETTING_ENTRY)
            BASIN_GRAPHS_TRAINING_SETTINGS(BASIN_SETTING_ENTRY)
                BASIN_LOOSE_SETTINGS(BASIN_LOOSE_ENTRY) BASIN_SETTINGS_END,
};

void basin_graphs_choose_adjacency(basin_graphs_settings *s, const basin_graphset *set) {
    if (strcmp(s->adjacency, "auto") != 0) return;
    s->adjacency = set->line ? "bias" : "bilinear";
    if (set->line && !s->couplings) s->couplings = 4;
    if (set->line && !s->pair_hidden) s->pair_hidden = 16;
}

/* 100 epochs; fewer for large graphs, 12 million tokens in all, but at least 30. */
int64_t basin_graphs_epochs(const basin_graphs_settings *settings, const basin_graphset *set,
                            const int64_t *graph, int64_t count) {
    if (settings->epochs) return settings->epochs;
    int64_t tokens = 1;
    for (int64_t i = 0; i < count; i++) tokens += basin_graphset_tokens(set, graph[i]);
    bool values = set->task == BASIN_GRAPHS_VALUES && !set->binary;
    int64_t epochs = 12000000 / tokens, max = 100;
    if (set->line && !values) max = 30;
    if (set->line && values) /* more have the tokens of 900 small ones */
        max = basin_int_min(basin_int_max(1300000 / tokens, 75), 100);
    return epochs > max ? max : epochs < 30 ? 30 : epochs;
}

static basin_status check(const void *values, basin_error *error) {
    const basin_graphs_settings *s = values;
    if (!s->attention && !s->hopfield)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "attention and hopfield are both off; at least one must be on");
    if (s->reconstruct && (!strcmp(s->adjacency, "none") || !strcmp(s->adjacency, "bias")))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "reconstruct needs an adjacency other than none and bias");
    return BASIN_OK;
}

const basin_task_settings basin_graphs_task = {
    "graphs", table, sizeof(basin_graphs_settings), check, NULL, NULL, "graph"};

/* ---- what a model knows of its data, as JSON ---- */

/* Plain fields: their place, range, and value in older files (NaN: it must be there). Fields out of
 * range are not written. */
typedef struct field {
    const char *name;
    enum { INTEGER, REAL, FLAG } kind;
    size_t offset;
    double low, high, absent;
} field;
#define AT(member) offsetof(basin_graphs_model, member)
static const field fields[] = {
    {"outputs", INTEGER, AT(outputs), 1, 1 << 20, NAN},
    {"members", INTEGER, AT(members), 1, BASIN_MAX_MEMBERS, 1},
    {"binary", FLAG, AT(binary), 0, 1, 0},
    {"temperature", REAL, AT(calibration.temperature), 1e-3, 1e3, 1},
    {"near_share", REAL, AT(near.share), 0, 1, -1},
    {"near_width", REAL, AT(near.width), 0, 1e3, 0},
    {"attributes", INTEGER, AT(encoding.attributes), 0, 1 << 20, NAN},
    {"edge_attributes", INTEGER, AT(encoding.edge_attributes), 0, 1 << 20, NAN},
    {"degrees", INTEGER, AT(encoding.degrees), 0, 1 << 20, NAN},
    {"raw", FLAG, AT(encoding.raw), 0, 1, 0},
    {"edge_sums", FLAG, AT(encoding.edge_sums), 0, 1, 0},
};
#undef AT
enum { FIELDS = (int)(sizeof fields / sizeof *fields) };

static void put_field(basin_json *j, const field *f, const basin_graphs_model *m) {
    const char *at = (const char *)m + f->offset;
    double real = f->kind == REAL ? *(const double *)at : 0;
    if (f->kind == FLAG)
        basin_json_boolean(j, f->name, *(const bool *)at);
    else if (f->kind == INTEGER)
        basin_json_integer(j, f->name, *(const int64_t *)at);
    else if (real >= f->low && real <= f->high)
        basin_json_number(j, f->name, real);
}

static void put_array(basin_json *j, const char *name, const void *array, basin_dtype dtype,
                      int64_t count) {
    basin_json_array(j, name);
    for (int64_t i = 0; i < count; i++)
        basin_json_number(j, NULL,
                          dtype == BASIN_F32   ? (double)((const float *)array)[i]
                          : dtype == BASIN_I64 ? (double)((const int64_t *)array)[i]
                                               : ((const double *)array)[i]);
    basin_json_end(j);
}

static void put_columns(basin_json *j, const char *name, const basin_label_column *column,
                        int64_t count) {
    basin_json_array(j, name);
    for (int64_t c = 0; c < count; c++) { /* first, count, those that training did not see */
        const basin_label_column *own = &column[c];
        basin_json_array(j, NULL);
        basin_json_integer(j, NULL, own->first);
        basin_json_integer(j, NULL, own->count);
        for (int32_t k = 0; k < own->count; k++)
            if (!basin_label_known(own, own->first + k))
                basin_json_integer(j, NULL, own->first + k);
        basin_json_end(j);
    }
    basin_json_end(j);
}

static char *data_json(const basin_graphs_model *m) {
    const basin_graphset_encoding *e = &m->encoding;
    int64_t columns = e->attributes + e->edge_attributes;
    basin_memory_file memory;
    FILE *file = basin_memory_file_open(&memory);
    if (!file) return NULL;
    basin_json j = basin_json_begin_line(file);
    basin_json_integer(&j, "task", m->target);
    for (int i = 0; i < FIELDS; i++) put_field(&j, &fields[i], m);
    put_array(&j, "classes", m->class_value, BASIN_I64, m->classes);
    if (m->target_mean) {
        put_array(&j, "target_mean", m->target_mean, BASIN_F64, m->outputs);
        put_array(&j, "target_scale", m->target_scale, BASIN_F64, m->outputs);
    }
    put_columns(&j, "labels", e->label, e->labels);
    put_columns(&j, "edge_labels", e->edge_label, e->edge_labels);
    put_array(&j, "mean", e->mean, BASIN_F32, columns);
    put_array(&j, "scale", e->scale, BASIN_F32, columns);
    if (m->names) basin_json_text(&j, "names", m->names);
    basin_json_end(&j);
    return basin_memory_file_close(&memory);
}

/* Where fields are read from, and errors go. */
typedef struct source {
    const cJSON *o;
    const char *path;
    basin_error *error;
} source;

static basin_status damaged(const source *s, const char *name) {
    return basin_fail(s->error, BASIN_BAD_FILE,
                      "%s: the encoding of nodes and edges is damaged at '%s'", s->path, name);
}

static basin_status get_field(void *to, const field *f, const source *s) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(s->o, f->name);
    double value = !item                  ? f->absent
                   : cJSON_IsNumber(item) ? item->valuedouble
                   : cJSON_IsBool(item)   ? (double)cJSON_IsTrue(item)
                                          : NAN;
    bool good = item ? value >= f->low && value <= f->high : !isnan(value);
    if (!good || (f->kind != REAL && value != floor(value))) return damaged(s, f->name);
    if (f->kind == REAL) *(double *)to = value;
    if (f->kind == FLAG) *(bool *)to = value > 0;
    if (f->kind == INTEGER) *(int64_t *)to = (int64_t)value;
    return BASIN_OK;
}

/* The numbers of an array, all finite; free them. `*count` -1: as many as there are. Older files
 * store one number for all. */
static basin_status get_array(void **to, int64_t *count, basin_dtype dtype, const char *name,
                              const source *s) {
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(s->o, name), *item = array;
    bool one = cJSON_IsNumber(array) && *count >= 0;
    if (!one && !cJSON_IsArray(array)) return damaged(s, name);
    if (*count < 0) *count = cJSON_GetArraySize(array);
    if (!one && cJSON_GetArraySize(array) != *count) return damaged(s, name);
    if (!(*to = basin_zeros_new((size_t)*count, 8))) return basin_fail_memory(s->error, s->path);
    for (int64_t i = 0; i < *count; i++) {
        item = one ? array : i ? item->next : array->child;
        if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble)) return damaged(s, name);
        if (dtype == BASIN_F32) ((float *)*to)[i] = (float)item->valuedouble;
        if (dtype == BASIN_F64) ((double *)*to)[i] = item->valuedouble;
        if (dtype == BASIN_I64) ((int64_t *)*to)[i] = (int64_t)item->valuedouble;
    }
    return BASIN_OK;
}

static basin_status get_columns(basin_label_column *column, int64_t *count, const char *name,
                                const source *s) {
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(s->o, name), *item;
    if (!cJSON_IsArray(array) || cJSON_GetArraySize(array) > BASIN_MAX_LABELS)
        return damaged(s, name);
    *count = 0;
    cJSON_ArrayForEach(item, array) {
        const cJSON *first = cJSON_GetArrayItem(item, 0), *kinds = cJSON_GetArrayItem(item, 1);
        if (!cJSON_IsNumber(first) || !cJSON_IsNumber(kinds) || kinds->valueint < 1 ||
            kinds->valueint > 1 << 20)
            return damaged(s, name);
        basin_label_column own = {first->valueint, kinds->valueint, {0}};
        for (const cJSON *unseen = kinds->next; unseen; unseen = unseen->next) {
            int64_t at = (int64_t)unseen->valueint - own.first;
            if (at >= 0 && at < 256) own.unseen[at / 64] |= UINT64_C(1) << at % 64;
        }
        column[(*count)++] = own;
    }
    return BASIN_OK;
}

static basin_status get_data(basin_graphs_model *m, const source *s) {
    static const field task = {"task", INTEGER, 0, 0, 2, NAN};
    basin_graphset_encoding *e = &m->encoding;
    const cJSON *names = cJSON_GetObjectItemCaseSensitive(s->o, "names");
    int64_t target;
    BASIN_TRY(get_field(&target, &task, s));
    m->target = (basin_graphs_target)target, m->classes = -1;
    for (int i = 0; i < FIELDS; i++)
        BASIN_TRY(get_field((char *)m + fields[i].offset, &fields[i], s));
    int64_t columns = e->attributes + e->edge_attributes;
    BASIN_TRY(get_array((void **)&m->class_value, &m->classes, BASIN_I64, "classes", s));
    BASIN_TRY(get_array((void **)&e->mean, &columns, BASIN_F32, "mean", s));
    BASIN_TRY(get_array((void **)&e->scale, &columns, BASIN_F32, "scale", s));
    BASIN_TRY(get_columns(e->label, &e->labels, "labels", s));
    BASIN_TRY(get_columns(e->edge_label, &e->edge_labels, "edge_labels", s));
    basin_graphset_encoding_count(e);
    if (cJSON_IsString(names) && !(m->names = basin_string_copy(names->valuestring)))
        return basin_fail_memory(s->error, s->path);
    if (m->target != BASIN_GRAPHS_VALUES)
        return m->classes < 1 || m->classes > m->outputs ? damaged(s, "classes") : BASIN_OK;
    BASIN_TRY(get_array((void **)&m->target_mean, &m->outputs, BASIN_F64, "target_mean", s));
    return get_array((void **)&m->target_scale, &m->outputs, BASIN_F64, "target_scale", s);
}

static basin_status read_data(basin_graphs_model *m, const char *json, const char *path,
                              basin_error *error) {
    BASIN_JSON_AT_EXIT cJSON *o;
    BASIN_TRY(basin_json_parse(&o, json, strlen(json), path, "the encoding", error));
    return get_data(m, &(source){o, path, error});
}

/* ---- arrays beside the weights ---- */

/* In a file where they are not NULL: name, place, type, and the rows, `more` than a count of the
 * model, which they set when they are read. */
typedef struct array {
    const char *name;
    void **data;
    basin_dtype dtype;
    int64_t *count, more, columns; /* columns 0: a vector */
} array;
enum { SEEN = 0, KNOWN = 2, ARRAYS = 9 };

static void list_arrays(array list[ARRAYS], basin_graphs_model *m, int64_t items[3]) {
    const array all[ARRAYS] = {
        {"seen.trained", (void **)&m->seen[0].print, BASIN_I64, &m->seen[0].count, 0, 0},
        {"seen.validated", (void **)&m->seen[1].print, BASIN_I64, &m->seen[1].count, 0, 0},
        {"near.start", (void **)&m->near.start, BASIN_I64, &m->near.count, 1, 0},
        {"near.feature", (void **)&m->near.feature, BASIN_I32, &items[0], 0, 0},
        {"near.weight", (void **)&m->near.weight, BASIN_F32, &m->near.count, 1, m->outputs},
        {"near.name", (void **)&m->near.name, BASIN_U8, &m->near.names, 0, 0},
        {"conformal.start", (void **)&m->calibration.start, BASIN_I64, &m->calibration.lists, 1, 0},
        {"conformal.score", (void **)&m->calibration.score, BASIN_F32, &items[1], 0, 0},
        {"conformal.near", (void **)&m->calibration.near, BASIN_F32, &items[2], 0, 0},
    };
    memcpy(list, all, sizeof all);
}

static basin_shape array_shape(const array *a, int64_t rows) {
    return a->columns ? BASIN_SHAPE(rows, a->columns) : BASIN_SHAPE(rows);
}

static basin_status write_arrays(basin_bundle *bundle, basin_graphs_model *m, basin_error *error) {
    int64_t scores = m->calibration.start ? m->calibration.start[m->calibration.lists] : 0;
    int64_t items[3] = {m->near.start ? m->near.start[m->near.count] : 0, scores, scores};
    array list[ARRAYS];
    list_arrays(list, m, items);
    for (const array *a = list; a < list + ARRAYS; a++)
        if (*a->data && *a->count)
            BASIN_TRY(basin_bundle_put(bundle, a->name, *a->data, a->dtype,
                                       array_shape(a, *a->count + a->more), error));
    return BASIN_OK;
}

/* Arrays first .. end - 1; older files lack some. */
static basin_status read_arrays(basin_graphs_model *m, int64_t items[3], int first, int end,
                                const basin_bundle *bundle, basin_error *error) {
    array list[ARRAYS];
    list_arrays(list, m, items);
    for (const array *a = list + first; a < list + end; a++) {
        const basin_tensor *t;
        if (!basin_bundle_find(bundle, a->name)) continue;
        BASIN_TRY(basin_bundle_expect(&t, bundle, a->name, a->dtype, array_shape(a, -1), error));
        int64_t count = t->shape.dim[0] - a->more;
        if (count < a->more || (a->columns && count != *a->count))
            return basin_fail(error, BASIN_BAD_FILE, "%s: '%s' has %lld rows",
                              basin_bundle_path(bundle), a->name, (long long)t->shape.dim[0]);
        *a->count = count;
        size_t bytes = (size_t)basin_shape_count(t->shape) * basin_dtype_size(a->dtype);
        if (!(*a->data = malloc(bytes + 8))) return basin_fail_memory(error, a->name);
        memcpy(*a->data, t->data, bytes);
    }
    return BASIN_OK;
}

basin_status basin_graphs_seen_read(basin_graphs_model *m, const basin_bundle *bundle,
                                    basin_error *error) {
    BASIN_TRY(read_arrays(m, (int64_t[3]){0}, SEEN, KNOWN, bundle, error));
    for (int part = 0; part < 2; part++)
        if (m->seen[part].count)
            qsort(m->seen[part].print, (size_t)m->seen[part].count, 8, basin_compare_int64);
    return BASIN_OK;
}

/* The memory and the calibration, whose arrays must fit each other. */
static basin_status read_known(basin_graphs_model *m, const basin_bundle *bundle,
                               basin_error *error) {
    basin_graphs_near *near = &m->near;
    basin_graphs_calibration *c = &m->calibration;
    int64_t items[3] = {0}, ends = 0;
    BASIN_TRY(read_arrays(m, items, KNOWN, ARRAYS, bundle, error));
    for (int64_t i = 0; i < near->names; i++) ends += !near->name[i];
    bool memory = near->start && near->feature && near->weight &&
                  basin_starts_rise(near->start, near->count, items[0]) &&
                  m->target != BASIN_GRAPHS_NODE_CLASSES &&
                  (!near->names || (ends == near->count && !near->name[near->names - 1]));
    bool lists = c->start && c->score && basin_starts_rise(c->start, c->lists, items[1]) &&
                 c->lists == basin_graphs_columns(m) * (m->binary ? 2 : 1) &&
                 (!c->near || items[2] == items[1]);
    if ((near->start && !memory) || (c->start && !lists))
        return basin_fail(error, BASIN_BAD_FILE, "%s: '%s' do not fit the model",
                          basin_bundle_path(bundle),
                          near->start && !memory ? "near.*" : "conformal.*");
    if (near->count && near->share < 0) near->share = basin_graphs_near_usual(m);
    if (near->count) BASIN_TRY(basin_graphs_near_index(near, error));
    return BASIN_OK;
}

/* ---- files ---- */

basin_status basin_graphs_describe(basin_bundle *bundle, const basin_graphs_model *model,
                                   basin_error *error) {
    BASIN_FREE_AT_EXIT char *data = data_json(model);
    if (!data) return basin_fail_memory(error, "a graph model");
    BASIN_TRY(basin_settings_store(bundle, NULL, &model->settings, &basin_graphs_task, error));
    BASIN_TRY(basin_bundle_meta_set(bundle, "basin.data", data, error));
    return basin_bundle_meta_set(bundle, "basin.model", "graph", error);
}

/* The state of a member's parameter. */
enum { STATE_NAME = 200 };
static const char *member_name(char text[STATE_NAME], const basin_graphs_model *model,
                               int64_t member, basin_expr state) {
    if (model->members == 1) return basin_expr_name(state);
    snprintf(text, STATE_NAME, "member%lld.%s", (long long)member, basin_expr_name(state));
    return text;
}

basin_status basin_graphs_take_member(basin_graphs_model *model, int64_t member,
                                      basin_error *error) {
    char prefix[32];
    if (model->members == 1) return BASIN_OK;
    snprintf(prefix, sizeof prefix, "member%lld.", (long long)member);
    return basin_states_copy(model->store, &model->params, "", prefix, error);
}

int64_t basin_graphs_members(const basin_graphs_settings *settings, const basin_graphset *set) {
    bool values = set->task == BASIN_GRAPHS_VALUES && !set->binary;
    return settings->members ? settings->members : !set->line ? 1 : values ? 3 : 5;
}

basin_status basin_graphs_write(const char *path, basin_graphs_model *model, basin_error *error) {
    char name[STATE_NAME];
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    BASIN_TRY(basin_bundle_new(&bundle, NULL, error));
    BASIN_TRY(basin_graphs_describe(bundle, model, error));
    for (int64_t k = 0; k < model->members; k++)
        for (size_t i = 0; i < model->params.count; i++)
            BASIN_TRY(basin_state_add(bundle, model->store,
                                      member_name(name, model, k, model->params.param[i].state),
                                      error));
    BASIN_TRY(write_arrays(bundle, model, error));
    BASIN_TRY(basin_bundle_digest(bundle, error));
    return basin_bundle_write(path, bundle, error);
}

static basin_status fill_model(basin_graphs_model *m, const basin_bundle *bundle,
                               const basin_graphs_settings *settings, basin_error *error) {
    const char *path = basin_bundle_path(bundle), *data = basin_bundle_meta(bundle, "basin.data");
    BASIN_TRY(basin_settings_take(&m->settings, &basin_graphs_task, bundle, error));
    if (!data)
        return basin_fail(error, BASIN_BAD_FILE, "%s: 'basin.data', the encoding, is absent", path);
    BASIN_TRY(read_data(m, data, path, error));
    BASIN_TRY(basin_graphs_seen_read(m, bundle, error));
    if (settings) m->settings = *settings;
    return start(m, error);
}

basin_status basin_graphs_model_read(basin_graphs_model **model, const basin_bundle *bundle,
                                     const basin_graphs_settings *settings, basin_backend *backend,
                                     basin_error *error) {
    BASIN_TRY(BASIN_NEW(model, 1, "a graph model", error));
    (*model)->backend = backend;
    BASIN_TRY_OR(fill_model(*model, bundle, settings, error), drop(model));
    return BASIN_OK;
}

static basin_status read_members(basin_graphs_model *m, const basin_bundle *bundle,
                                 basin_error *error) {
    char name[STATE_NAME];
    for (int64_t k = 0; k < m->members; k++)
        for (size_t i = 0; i < m->params.count; i++) {
            basin_expr state = m->params.param[i].state;
            BASIN_TRY(basin_state_restore(m->store, member_name(name, m, k, state),
                                          basin_expr_shape(state), bundle, error));
        }
    BASIN_TRY(read_known(m, bundle, error));
    return basin_graphs_take_member(m, 0, error);
}

basin_status basin_graphs_open(basin_graphs_model **model, const char *path, basin_backend *backend,
                               basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    *model = NULL;
    BASIN_TRY(basin_model_read(&bundle, path, error));
    BASIN_TRY(basin_graphs_model_read(model, bundle, NULL, backend, error));
    BASIN_TRY_OR(read_members(*model, bundle, error), drop(model));
    BASIN_TRY_OR(basin_graphs_model_describe(*model, error), drop(model));
    return BASIN_OK;
}
