/* Models of masked image completion in memory and in files; see image.h. */
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "task/image/card.h"
#include "task/image/interchange.h"
#include "train/restore.h"

/* ---- a model on a graph ---- */

static basin_image_config et_config(const basin_image_settings *s) {
    return (basin_image_config){
        .tokens = basin_image_tokens(s),
        .patch = basin_image_patch_values(s),
        .block = {BASIN_BLOCK_OF(s)},
        .descent = {BASIN_DESCENT_OF(s), .recompute = s->recompute},
        .self_attention = s->self_attention,
        .cls = s->cls,
        .published_init = !strcmp(s->init, "published"),
    };
}

static basin_vit_config vit_config(const basin_image_settings *s) {
    return (basin_vit_config){
        .tokens = basin_image_tokens(s),
        .patch = basin_image_patch_values(s),
        .dim = s->dim,
        .heads = s->heads,
        .head_dim = s->head_dim,
        .hidden = s->memories,
        .depth = (int)s->steps,
        .cls = s->cls,
        .recompute = s->recompute,
    };
}

static basin_image_net_config net_config(const basin_image_settings *s) {
    basin_image_net_config config = {.arch = BASIN_IMAGE_ET};
    if (!strcmp(s->arch, "vit")) config.arch = BASIN_IMAGE_VIT;
    if (!strcmp(s->arch, "albert")) config.arch = BASIN_IMAGE_ALBERT;
    if (config.arch == BASIN_IMAGE_ET)
        config.et = et_config(s);
    else
        config.vit = vit_config(s);
    return config;
}

static void build(basin_image_graph *g, const basin_image_settings *s) {
    int64_t N = basin_image_tokens(s), P = basin_image_patch_values(s);
    basin_image_net_config config = net_config(s);
    g->patches = basin_input(g->graph, "patches", BASIN_SHAPE(g->batch, N, P));
    g->replaced = basin_input(g->graph, "replaced", BASIN_SHAPE(g->batch, N));
    g->occluded = basin_input(g->graph, "occluded", BASIN_SHAPE(g->batch, N));
    if (basin_image_net_declare(&g->net, &g->params, &config) == BASIN_OK)
        g->output = basin_image_net_forward(&g->net, g->patches, g->replaced);
}

basin_status basin_image_graph_new(basin_image_graph *graph, const basin_image_settings *settings,
                                   int64_t batch, basin_error *error) {
    *graph = (basin_image_graph){.batch = batch};
    graph->graph = basin_graph_new();
    if (!graph->graph) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a graph");
    basin_params_begin(&graph->params, graph->graph);
    build(graph, settings);
    basin_status status = basin_image_graph_check(graph, error);
    if (status) basin_image_graph_free(graph);
    return status;
}

basin_status basin_image_graph_check(const basin_image_graph *graph, basin_error *error) {
    const basin_error *found = basin_graph_error(graph->graph);
    return found ? basin_fail(error, found->status, "%s", found->text) : BASIN_OK;
}

void basin_image_graph_free(basin_image_graph *graph) {
    basin_params_free(&graph->params);
    basin_graph_free(graph->graph);
    *graph = (basin_image_graph){0};
}

/* ---- models ---- */

basin_status basin_image_model_bare(basin_image_model **model, const basin_image_settings *settings,
                                    basin_backend *backend, basin_error *error) {
    *model = NULL;
    basin_status status = basin_image_settings_check(settings, error);
    if (status) return status;
    basin_image_model *m = calloc(1, sizeof *m);
    if (!m) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a model");
    m->settings = *settings;
    basin_image_settings_resolve(&m->settings);
    m->described = (basin_settings){.kind = &basin_image_task, .values = &m->settings};
    m->backend = backend;
    status = basin_store_new(&m->store, backend, error);
    if (status)
        basin_image_close(m);
    else
        *model = m;
    return status;
}

/* `bundle` has the weights; NULL: first weights are drawn. */
static basin_status start(basin_image_model **model, const basin_image_settings *settings,
                          basin_backend *backend, const basin_bundle *bundle, basin_error *error) {
    basin_image_graph graph = {0};
    basin_status status = basin_image_model_bare(model, settings, backend, error);
    if (status) return status;
    basin_store *store = (*model)->store;
    status = basin_image_graph_new(&graph, settings, 1, error);
    if (!status && bundle)
        status = basin_params_read(&graph.params, store, bundle, error);
    else if (!status)
        status = basin_params_init(&graph.params, store, (uint64_t)settings->seed, error);
    if (!status) (*model)->parameters = basin_params_total(&graph.params);
    basin_image_graph_free(&graph);
    if (!status) return BASIN_OK;
    basin_image_close(*model);
    *model = NULL;
    return status;
}

basin_status basin_image_model_new(basin_image_model **model, const basin_image_settings *settings,
                                   basin_backend *backend, basin_error *error) {
    return start(model, settings, backend, NULL, error);
}

basin_status basin_image_open(basin_image_model **model, const char *path, basin_backend *backend,
                              basin_error *error) {
    basin_bundle *bundle, *renamed = NULL;
    basin_image_settings settings;
    *model = NULL;
    basin_status status = basin_bundle_read(&bundle, path, error);
    if (status) return status;
    if (basin_image_is_published(bundle))
        status = basin_image_published_read(&settings, &renamed, bundle, error);
    else
        status = basin_image_settings_read(&settings, bundle, error);
    if (!status) status = start(model, &settings, backend, renamed ? renamed : bundle, error);
    if (!status) status = basin_image_card_read(&(*model)->card, bundle, error);
    if (status) {
        basin_image_close(*model);
        *model = NULL;
    }
    basin_bundle_free(renamed);
    basin_bundle_free(bundle);
    return status;
}

void basin_image_close(basin_image_model *model) {
    if (!model) return;
    basin_image_runner_drop(model);
    basin_store_free(model->store);
    basin_image_card_free(&model->card);
    free(model);
}

const basin_settings *basin_image_get_settings(const basin_image_model *model) {
    return &model->described;
}

int64_t basin_image_parameters(const basin_image_model *model) { return model->parameters; }

/* ---- model files ---- */

basin_status basin_image_settings_read(basin_image_settings *settings, const basin_bundle *bundle,
                                       basin_error *error) {
    const char *path = basin_bundle_path(bundle), *kind = basin_bundle_meta(bundle, "basin.model");
    const char *json = basin_bundle_meta(bundle, "basin.config");
    if (!kind || strcmp(kind, "image") != 0 || !json)
        return basin_fail(error, BASIN_BAD_FILE, "%s: the model is '%s', wanted 'image'", path,
                          kind ? kind : "absent");
    return basin_settings_parse(settings, basin_image_task.table, json, true, path, error);
}

basin_status basin_image_settings_write(basin_bundle *bundle, const basin_image_settings *settings,
                                        basin_error *error) {
    char *config = basin_settings_print(settings, basin_image_task.table, false);
    if (!config) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a configuration");
    basin_status status = basin_bundle_meta_set(bundle, "basin.model", "image", error);
    if (!status) status = basin_bundle_meta_set(bundle, "basin.config", config, error);
    cJSON_free(config);
    return status;
}

basin_status basin_image_write(const char *path, basin_image_model *model, basin_error *error) {
    basin_image_graph graph = {0};
    basin_bundle *bundle;
    basin_status status = basin_bundle_new(&bundle, error);
    if (!status) status = basin_image_graph_new(&graph, &model->settings, 1, error);
    if (!status) status = basin_image_settings_write(bundle, &model->settings, error);
    if (!status) status = basin_image_card_add(bundle, &model->card, error);
    if (!status) status = basin_params_add(bundle, &graph.params, model->store, error);
    if (!status) status = basin_bundle_write(path, bundle, error);
    basin_bundle_free(bundle);
    basin_image_graph_free(&graph);
    return status;
}
