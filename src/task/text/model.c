/* Models of text in memory and in files; see text.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/memory.h"
#include "task/text/text.h"
#include "train/restore.h"

/* ---- a model on a graph ---- */

static void build(basin_text_graph *g, const basin_text_settings *s, basin_text_wish wish) {
    basin_language_config config = basin_text_language(s);
    g->ids = basin_index(g->graph, "ids", BASIN_SHAPE(g->windows * g->tokens));
    if (wish.training && (s->dropout > 0 || s->dropout_step > 0))
        g->seed = basin_index(g->graph, "seed", BASIN_SHAPE(2));
    if (basin_language_declare(&g->net, &g->params, &config) == BASIN_OK)
        g->x = basin_language_tokens(&g->net, g->ids, g->windows, g->seed, g->energy);
}

basin_status basin_text_graph_new(basin_text_graph *graph, const basin_text_settings *settings,
                                  int64_t windows, int64_t tokens, basin_text_wish wish,
                                  basin_error *error) {
    size_t energies = 2 * (size_t)(settings->steps + 1);
    *graph = (basin_text_graph){.windows = windows, .tokens = tokens};
    graph->graph = basin_graph_new();
    if (wish.energies) graph->energy = calloc(energies, sizeof *graph->energy);
    if (!graph->graph || (wish.energies && !graph->energy)) {
        basin_text_graph_free(graph);
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a graph");
    }
    basin_params_begin(&graph->params, graph->graph);
    build(graph, settings, wish);
    basin_status status = basin_text_graph_check(graph, error);
    if (status) basin_text_graph_free(graph);
    return status;
}

basin_status basin_text_graph_check(const basin_text_graph *graph, basin_error *error) {
    const basin_error *found = basin_graph_error(graph->graph);
    return found ? basin_fail(error, found->status, "%s", found->text) : BASIN_OK;
}

void basin_text_graph_free(basin_text_graph *graph) {
    basin_params_free(&graph->params);
    basin_graph_free(graph->graph);
    free(graph->energy);
    *graph = (basin_text_graph){0};
}

/* ---- models ---- */

basin_status basin_text_model_bare(basin_text_model **model, const basin_text_settings *settings,
                                   basin_tokenizer *tokenizer, basin_backend *backend,
                                   basin_error *error) {
    basin_text_model *m = *model = calloc(1, sizeof *m);
    if (!m) {
        basin_tokenizer_free(tokenizer);
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a model");
    }
    m->settings = *settings;
    m->described = (basin_settings){.kind = &basin_text_task, .values = &m->settings};
    m->tokenizer = tokenizer;
    m->backend = backend;
    basin_status status = basin_text_settings_check(settings, error);
    if (!status) status = basin_store_new(&m->store, backend, error);
    if (!status) return BASIN_OK;
    basin_text_close(m);
    *model = NULL;
    return status;
}

void basin_text_close(basin_text_model *model) {
    if (!model) return;
    basin_store_free(model->store);
    basin_tokenizer_free(model->tokenizer);
    free(model);
}

const basin_settings *basin_text_get_settings(const basin_text_model *model) {
    return &model->described;
}

int64_t basin_text_parameters(const basin_text_model *model) { return model->parameters; }

const basin_tokenizer *basin_text_get_tokenizer(const basin_text_model *model) {
    return model->tokenizer;
}

bool basin_text_has_energy(const basin_text_model *model) {
    return basin_choice_is(model->settings.arch, "nrgpt");
}

int64_t basin_text_steps(const basin_text_model *model) {
    return basin_text_has_energy(model) ? model->settings.steps : 0;
}

/* ---- what files say ---- */

basin_status basin_text_settings_read(basin_text_settings *settings, const basin_bundle *bundle,
                                      basin_error *error) {
    const char *path = basin_bundle_path(bundle), *kind = basin_bundle_meta(bundle, "basin.model");
    const char *json = basin_bundle_meta(bundle, "basin.config");
    if (!kind || strcmp(kind, "text") != 0 || !json)
        return basin_fail(error, BASIN_BAD_FILE, "%s: the model is '%s', wanted 'text'", path,
                          kind ? kind : "absent");
    return basin_settings_parse(settings, basin_text_task.table, json, true, path, error);
}

basin_status basin_text_tokenizer_read(basin_tokenizer **tokenizer, const basin_bundle *bundle,
                                       basin_error *error) {
    const char *path = basin_bundle_path(bundle);
    const char *json = basin_bundle_meta(bundle, "basin.tokenizer");
    *tokenizer = NULL;
    if (json) return basin_tokenizer_parse(tokenizer, json, path, error);
    return basin_fail(error, BASIN_BAD_FILE, "%s: no 'basin.tokenizer' in its metadata", path);
}

static basin_status check_sizes(const basin_text_settings *s, const basin_tokenizer *tokenizer,
                                const char *path, basin_error *error) {
    int64_t found = basin_tokenizer_size(tokenizer);
    if (found == s->vocabulary) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: its tokenizer has %lld tokens, and its vocabulary is %lld", path,
                      (long long)found, (long long)s->vocabulary);
}

/* What cannot be, parts of the text beyond its end, is as if nothing were said. */
basin_text_origin basin_text_origin_read(const basin_bundle *bundle) {
    enum { DIGITS = 53 }; /* of a number in JSON */
    basin_text_origin origin = {0};
    cJSON *json = cJSON_Parse(basin_bundle_meta(bundle, "basin.text"));
    const cJSON *bytes = cJSON_GetObjectItem(json, "bytes");
    const cJSON *train = cJSON_GetObjectItem(json, "train");
    const char *digest = cJSON_GetStringValue(cJSON_GetObjectItem(json, "sha256"));
    if (cJSON_IsNumber(bytes) && cJSON_IsNumber(train) && digest && train->valuedouble >= 0 &&
        train->valuedouble <= bytes->valuedouble && bytes->valuedouble < ldexp(1, DIGITS) &&
        strlen(digest) + 1 == sizeof origin.digest) {
        origin.bytes = (int64_t)bytes->valuedouble;
        origin.train = (int64_t)train->valuedouble;
        memcpy(origin.digest, digest, sizeof origin.digest);
    }
    cJSON_Delete(json);
    return origin;
}

static basin_status write_origin(basin_bundle *bundle, const basin_text_origin *origin,
                                 basin_error *error) {
    if (!origin->bytes) return BASIN_OK;
    cJSON *json = cJSON_CreateObject();
    bool made = json && cJSON_AddStringToObject(json, "sha256", origin->digest) &&
                cJSON_AddNumberToObject(json, "bytes", (double)origin->bytes) &&
                cJSON_AddNumberToObject(json, "train", (double)origin->train);
    char *text = made ? cJSON_PrintUnformatted(json) : NULL;
    basin_status status =
        text ? basin_bundle_meta_set(bundle, "basin.text", text, error)
             : basin_fail(error, BASIN_NO_MEMORY, "out of memory for a description");
    cJSON_free(text);
    cJSON_Delete(json);
    return status;
}

static basin_status write_settings(basin_bundle *bundle, const basin_text_settings *settings,
                                   basin_error *error) {
    char *config = basin_settings_print(settings, basin_text_task.table, false);
    if (!config) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a configuration");
    basin_status status = basin_bundle_meta_set(bundle, "basin.model", "text", error);
    if (!status) status = basin_bundle_meta_set(bundle, "basin.config", config, error);
    cJSON_free(config);
    return status;
}

basin_status basin_text_describe(basin_bundle *bundle, const basin_text_model *model,
                                 basin_error *error) {
    char *tokens = NULL;
    basin_status status = write_settings(bundle, &model->settings, error);
    if (!status) status = write_origin(bundle, &model->origin, error);
    if (!status) status = basin_tokenizer_print(&tokens, model->tokenizer, error);
    if (!status) status = basin_bundle_meta_set(bundle, "basin.tokenizer", tokens, error);
    free(tokens);
    return status;
}

/* ---- model files ---- */

static basin_status read_weights(basin_text_model *model, const basin_bundle *bundle,
                                 basin_error *error) {
    basin_text_graph graph;
    basin_status status =
        basin_text_graph_new(&graph, &model->settings, 1, 1, (basin_text_wish){0}, error);
    if (status) return status;
    status = basin_params_read(&graph.params, model->store, bundle, error);
    model->parameters = basin_params_total(&graph.params);
    basin_text_graph_free(&graph);
    return status;
}

basin_status basin_text_open(basin_text_model **model, const char *path, basin_backend *backend,
                             basin_error *error) {
    basin_bundle *bundle;
    basin_text_settings settings;
    basin_tokenizer *tokenizer = NULL;
    *model = NULL;
    basin_status status = basin_bundle_read(&bundle, path, error);
    if (status) return status;
    status = basin_text_settings_read(&settings, bundle, error);
    if (!status) status = basin_text_tokenizer_read(&tokenizer, bundle, error);
    if (!status) status = check_sizes(&settings, tokenizer, path, error);
    if (!status) {
        status = basin_text_model_bare(model, &settings, tokenizer, backend, error);
        tokenizer = NULL;
    }
    if (!status) status = read_weights(*model, bundle, error);
    if (!status) (*model)->origin = basin_text_origin_read(bundle);
    if (status) {
        basin_text_close(*model);
        *model = NULL;
    }
    basin_tokenizer_free(tokenizer);
    basin_bundle_free(bundle);
    return status;
}

basin_status basin_text_write(const char *path, basin_text_model *model, basin_error *error) {
    basin_text_graph graph = {0};
    basin_bundle *bundle;
    basin_status status = basin_bundle_new(&bundle, error);
    if (!status)
        status = basin_text_graph_new(&graph, &model->settings, 1, 1, (basin_text_wish){0}, error);
    if (!status) status = basin_text_describe(bundle, model, error);
    if (!status) status = basin_params_add(bundle, &graph.params, model->store, error);
    if (!status) status = basin_bundle_write(path, bundle, error);
    basin_text_graph_free(&graph);
    basin_bundle_free(bundle);
    return status;
}
