/* Models: made, written to one safetensors file and read back. */
#include "base/bundle.h"
#include "base/file.h"
#include "base/number.h"
#include "tasks/common/digest.h"
#include "tasks/nodes/net.h"

/* A copy of the network's schema, or one that is made from its features. */
static basin_status network_describe(basin_schema **schema, const basin_network *network,
                                     basin_error *error) {
    if (!network->schema) return basin_schema_of(schema, network, BASIN_MISSING_ERROR, error);
    BASIN_TRY(basin_schema_copy(schema, network->schema, error));
    return basin_schema_set_relations(*schema, network, error);
}

basin_status basin_nodes_model_new(basin_nodes_model **model, const basin_task_settings *task,
                                   const basin_nodes_settings *settings,
                                   const basin_network *network, basin_backend *backend,
                                   basin_error *error) {
    BASIN_TRY(BASIN_NEW(model, 1, "a model", error));
    basin_nodes_model *m = *model;
    m->backend = backend;
    m->task = task;
    m->settings = *settings;
    m->face = (basin_settings){.kind = task, .values = &m->settings};
    m->threshold = 0.5;
    m->ensemble = (basin_nodes_ensemble){.degree = settings->degree,
                                         .facts = basin_facts_are_features(settings),
                                         .share = 0.5,
                                         .scale = 1};
    m->nodes = network ? network->nodes : 0;
    m->features = network && network->feature ? network->features : 0;
    basin_status status = BASIN_NEW(&m->member, settings->members + 1, "a model", error);
    if (!status && network) status = network_describe(&m->schema, network, error);
    if (status) basin_nodes_close(m), *model = NULL;
    return status;
}

void basin_nodes_close(basin_nodes_model *model) {
    if (!model) return;
    for (int64_t m = 0; model->member && m < model->settings.members; m++)
        basin_bundle_free(model->member[m]);
    basin_schema_free(model->schema);
    basin_names_free(&model->class_name);
    BASIN_FREE(model->score, model->member);
    basin_nodes_samples_free(&model->judged);
    basin_nodes_memory_free(&model->memory);
    basin_nodes_reference_free(&model->reference);
    basin_calibration_free(&model->calibration);
    basin_nodes_ensemble_free(&model->ensemble);
    basin_scaler_free(&model->scale);
    basin_scaler_free(&model->edge_scale);
    free(model);
}

/* ---- asking ---- */

static int64_t count_parameters(const basin_nodes_model *model) {
    int64_t count = 0;
    const basin_bundle *first = model->members ? model->member[0] : NULL;
    for (size_t i = 0; first && i < basin_bundle_count(first); i++)
        count += basin_shape_count(basin_bundle_at(first, i)->shape);
    return count;
}

const basin_nodes_info *basin_nodes_get_info(const basin_nodes_model *model) {
    basin_nodes_model *m = (basin_nodes_model *)model; /* to keep what is handed out */
    const double *weight = m->ensemble.weight;
    double rows = weight[BASIN_VIEW_NET_OWN] + weight[BASIN_VIEW_NET_ALL];
    m->info = (basin_nodes_info){
        .settings = &m->face,
        .schema = m->schema,
        .parameters = count_parameters(m),
        .members = m->members,
        .nodes = m->nodes,
        .classes = m->settings.classes,
        .threshold = m->threshold,
        .share = m->ensemble.fits ? 1 - (1 - m->ensemble.share) * (1 - rows) : 1,
        .calibration = m->calibration.kind,
        .card = m->memory.card.date ? &m->memory.card : NULL,
        .scores = m->score,
        .trained_on = m->trained_on,
        .id = m->id,
    };
    for (int p = 0; p < BASIN_SPLIT_PARTS; p++) {
        if (m->reached[p].measures) {
            m->info.reached[p] = &m->reached[p];
            m->info.reliability[p] = &m->reliability[p];
        }
        for (int which = 0; which < 2; which++)
            if (m->ensemble.alone[which][p].measures)
                m->info.alone[which][p] = &m->ensemble.alone[which][p];
    }
    return &m->info;
}

const char *basin_nodes_class(const basin_nodes_model *model, int64_t number) {
    const basin_names *names = &model->class_name;
    return number >= 0 && number < names->count ? names->text + names->at[number] : NULL;
}

void basin_nodes_set_threshold(basin_nodes_model *model, double threshold) {
    model->threshold = threshold;
}

/* ---- writing ---- */

/* A pipe or a device gives none. */
static basin_status find_id(char id[BASIN_MODEL_ID + 1], const char *path, basin_error *error) {
    char text[BASIN_SHA256_TEXT] = "";
    if (!basin_file_special(path)) BASIN_TRY(basin_file_sha256(text, path, error));
    snprintf(id, BASIN_MODEL_ID + 1, "%.*s", BASIN_MODEL_ID, text);
    return BASIN_OK;
}

static basin_status add_members(basin_bundle *bundle, const basin_nodes_model *m,
                                basin_error *error) {
    for (int64_t k = 0; k < m->members; k++)
        for (size_t i = 0; i < basin_bundle_count(m->member[k]); i++) {
            const basin_tensor *tensor = basin_bundle_at(m->member[k], i);
            char name[300];
            snprintf(name, sizeof name, "%lld.%s", (long long)k,
                     basin_bundle_name(m->member[k], i));
            BASIN_TRY(
                basin_bundle_put(bundle, name, tensor->data, tensor->dtype, tensor->shape, error));
        }
    return BASIN_OK;
}

static basin_status add_meta(basin_bundle *bundle, const basin_nodes_model *m, basin_error *error) {
    BASIN_FREE_AT_EXIT char *schema = m->schema ? basin_schema_print(m->schema) : NULL;
    if (m->schema && !schema) return basin_fail_memory(error, "a schema");
    const basin_task_settings *table = m->settings.tabular ? &basin_anomaly_file : m->task;
    BASIN_TRY(basin_settings_store(bundle, m->task->task, &m->settings, table, error));
    BASIN_TRY(basin_bundle_meta_set(bundle, "relations", m->relations, error));
    if (schema) BASIN_TRY(basin_bundle_meta_set(bundle, "schema", schema, error));
    if (m->settings.classes) BASIN_TRY(basin_classes_store(bundle, m, error));
    BASIN_TRY(basin_nodes_set_number(bundle, "nodes", (double)m->nodes, error));
    BASIN_TRY(basin_nodes_set_number(bundle, "features", (double)m->features, error));
    BASIN_TRY(basin_nodes_set_number(bundle, "members", (double)m->members, error));
    return basin_nodes_set_number(bundle, "threshold", m->threshold, error);
}

basin_status basin_nodes_write(const char *path, const basin_nodes_model *model,
                               basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    BASIN_TRY(basin_bundle_new(&bundle, NULL, error));
    BASIN_TRY(add_meta(bundle, model, error));
    BASIN_TRY(add_members(bundle, model, error));
    BASIN_TRY(basin_scaler_store(bundle, "scale.", &model->scale, error));
    if (basin_facts_bias(&model->settings))
        BASIN_TRY(basin_scaler_store(bundle, "edge_scale.", &model->edge_scale, error));
    BASIN_TRY(basin_nodes_ensemble_store(bundle, &model->ensemble, error));
    BASIN_TRY(basin_nodes_judged_store(bundle, model, error));
    BASIN_TRY(basin_nodes_memory_store(bundle, &model->memory, error));
    BASIN_TRY(basin_nodes_reference_store(bundle, &model->reference, error));
    BASIN_TRY(basin_bundle_digest(bundle, error));
    BASIN_TRY(basin_bundle_write(path, bundle, error));
    return find_id(((basin_nodes_model *)model)->id, path, error);
}

/* ---- reading ---- */

basin_status basin_nodes_member_read(basin_bundle **member, const basin_bundle *file,
                                     int64_t number, basin_error *error) {
    char prefix[32];
    size_t length = (size_t)snprintf(prefix, sizeof prefix, "%lld.", (long long)number);
    BASIN_TRY(basin_bundle_new(member, basin_bundle_path(file), error));
    for (size_t i = 0; i < basin_bundle_count(file); i++) {
        const basin_tensor *from = basin_bundle_at(file, i);
        const char *name = basin_bundle_name(file, i);
        BASIN_AT_EXIT(basin_tensor_free) basin_tensor copy = {0};
        if (strncmp(name, prefix, length)) continue;
        BASIN_TRY(basin_tensor_new(&copy, BASIN_F32, from->shape, error));
        BASIN_TRY(basin_tensor_convert(&copy, from, error));
        BASIN_TRY(basin_bundle_add(*member, name + length, &copy, error));
    }
    return BASIN_OK;
}

static basin_status read_numbers(basin_nodes_model *m, const basin_bundle *bundle,
                                 basin_error *error) {
    double nodes, features, members, max = (double)m->settings.members;
    BASIN_TRY(basin_bundle_number(&nodes, bundle, "nodes", 0, 1e15, error));
    BASIN_TRY(basin_bundle_number(&features, bundle, "features", 0, 1e12, error));
    BASIN_TRY(basin_bundle_number(&members, bundle, "members", 1, max, error));
    BASIN_TRY(basin_bundle_number(&m->threshold, bundle, "threshold", -1e300, 1e300, error));
    m->nodes = (int64_t)nodes;
    m->features = (int64_t)features;
    m->members = (int64_t)members;
    return BASIN_OK;
}

static basin_status read_all(basin_nodes_model **model, const char *expected,
                             const basin_bundle *bundle, basin_backend *backend,
                             basin_error *error) {
    basin_nodes_settings settings;
    const char *kind = basin_bundle_meta(bundle, "basin.model");
    const char *relations = basin_bundle_meta(bundle, "relations");
    const char *schema = basin_bundle_meta(bundle, "schema");
    bool several = kind && !strcmp(kind, basin_node_task.task);
    const basin_task_settings *task = several ? &basin_node_task : &basin_anomaly_task;
    if (!kind) return basin_settings_check_model(bundle, expected ? expected : task->task, error);
    if (strcmp(kind, task->task) || (expected && strcmp(kind, expected)))
        return basin_fail(error, BASIN_BAD_FILE, "%s: the model is '%.40s', expected '%s'",
                          basin_bundle_path(bundle), kind, expected ? expected : task->task);
    /* What its table does not have. */
    BASIN_TRY(basin_settings_preset(&settings, task, "default", error));
    BASIN_TRY(basin_settings_take(&settings, several ? task : &basin_anomaly_file, bundle, error));
    BASIN_TRY(basin_nodes_model_new(model, task, &settings, NULL, backend, error));
    basin_nodes_model *m = *model;
    BASIN_TRY(read_numbers(m, bundle, error));
    if (several) BASIN_TRY(basin_classes_load(m, bundle, error));
    if (relations) basin_nodes_add_line(m->relations, relations);
    if (schema) /* files of 0.1 have none */
        BASIN_TRY(
            basin_schema_read(&m->schema, schema, m->features, basin_bundle_path(bundle), error));
    for (int64_t i = 0; i < m->members; i++)
        BASIN_TRY(basin_nodes_member_read(&m->member[i], bundle, i, error));
    BASIN_TRY(basin_scaler_load(&m->scale, bundle, "scale.", error));
    if (basin_facts_bias(&settings))
        BASIN_TRY(basin_scaler_load(&m->edge_scale, bundle, "edge_scale.", error));
    if (settings.trees || settings.tabular)
        BASIN_TRY(basin_nodes_ensemble_load(&m->ensemble, bundle, error));
    BASIN_TRY(basin_nodes_judged_load(m, bundle, error));
    BASIN_TRY(basin_nodes_memory_load(&m->memory, bundle, error));
    return basin_nodes_reference_load(&m->reference, bundle, m->features, error);
}

basin_status basin_nodes_open(basin_nodes_model **model, const char *task, const char *path,
                              basin_backend *backend, basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    char id[BASIN_MODEL_ID + 1];
    *model = NULL;
    BASIN_TRY(find_id(id, path, error));
    BASIN_TRY(basin_model_read(&bundle, path, error));
    basin_status status = read_all(model, task, bundle, backend, error);
    if (!status) status = find_id((*model)->id, path, error);
    if (!status && strcmp(id, (*model)->id) != 0)
        status = basin_fail(error, BASIN_BAD_FILE, "%s: changed while it was read", path);
    if (status) basin_nodes_close(*model), *model = NULL;
    return status;
}

/* ---- Settings left open come from checkpoints and models; given ones must match ---- */

/* Whether the batches asked for, halved some times or not at all, are those found. */
static bool is_halved(int64_t asked, int64_t found) {
    while (asked > found && asked > 0) asked /= 2;
    return asked == found;
}

basin_status basin_nodes_resume(basin_nodes_settings *settings, const basin_task_settings *task,
                                const basin_run *run, basin_error *error) {
    basin_nodes_settings found = *settings;
    BASIN_TRY(basin_settings_take(&found, task, run->saved, error));
    if (basin_choice_is(settings->sampling, "auto")) {
        settings->sampling = found.sampling;
        if (is_halved(settings->batch, found.batch)) settings->batch = found.batch;
    }
    if (settings->fraction <= 0) settings->fraction = found.fraction;
    if (!settings->evaluate) settings->evaluate = found.evaluate;
    if (!settings->fanout) settings->fanout = found.fanout;
    return basin_run_match(run, &found, settings, task->table, error);
}
