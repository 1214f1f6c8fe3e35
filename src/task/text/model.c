/* Models of text: their settings and presets, their graphs, in memory and in files; see text.h. */
#include "base/text.h"
#include "task/text/text.h"

/* ---- settings ---- */

#define BASIN_SETTINGS_TYPE basin_text_settings
static const basin_setting table[] = {
    BASIN_TEXT_MODEL_SETTINGS(BASIN_SETTING_ENTRY) BASIN_TEXT_TRAINING_SETTINGS(BASIN_SETTING_ENTRY)
        BASIN_LOOSE_SETTINGS(BASIN_LOOSE_ENTRY) BASIN_SETTINGS_END,
};

static basin_status check(const void *values, basin_error *error) {
    const basin_text_settings *s = values;
    if (basin_choice_is(s->arch, "gpt") && s->dim % s->heads != 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "heads is %lld, wanted a divisor of dim, %lld, in a GPT",
                          (long long)s->heads, (long long)s->dim);
    return BASIN_OK;
}

basin_text_tokens basin_text_tokens_of(const basin_text_settings *s) {
    if (basin_choice_is(s->tokens, "bytes")) return BASIN_TEXT_BYTES;
    return basin_choice_is(s->tokens, "ids") ? BASIN_TEXT_IDS : BASIN_TEXT_CHARACTERS;
}

static basin_language_config language_of(const basin_text_settings *s) {
    return (basin_language_config){
        .arch = basin_choice_is(s->arch, "gpt") ? BASIN_LANGUAGE_GPT : BASIN_LANGUAGE_NRGPT,
        .vocabulary = s->vocabulary,
        .context = s->context,
        .dim = s->dim,
        .heads = s->heads,
        .hidden = s->hidden,
        .steps = (int)s->steps,
        .tied = s->tied,
        .dropout = s->dropout,
        .dropout_step = s->dropout_step,
        .recompute = s->recompute,
        .feed = basin_choice_is(s->feed, "ff1")   ? BASIN_ZOO_FEED_1
                : basin_choice_is(s->feed, "ff2") ? BASIN_ZOO_FEED_2
                                                  : BASIN_ZOO_FEED_2W,
        .strict = s->strict,
        .alpha = s->alpha,
        .beta = s->beta,
        .bias = s->bias,
    };
}

const basin_task_settings basin_text_task = {
    "text", table, sizeof(basin_text_settings), check, NULL, NULL, NULL};

basin_status basin_text_fit(basin_settings *settings, const char *from, basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    basin_text_settings its;
    BASIN_TRY(basin_settings_of(settings, &basin_text_task, error));
    BASIN_TRY(basin_bundle_read(&bundle, from, error));
    BASIN_TRY(basin_settings_take(&its, &basin_text_task, bundle, error));
    basin_settings_underlay(settings, &its);
    return BASIN_OK;
}

/* ---- a model on a graph ---- */

static void build(basin_text_graph *g, const basin_text_settings *s, basin_text_wish wish) {
    basin_language_config config = language_of(s);
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
    BASIN_TRY_OR(basin_graph_check(graph->graph, error), basin_text_graph_free(graph));
    return BASIN_OK;
}

void basin_text_graph_free(basin_text_graph *graph) {
    basin_params_free(&graph->params);
    basin_graph_free(graph->graph);
    free(graph->energy);
    *graph = (basin_text_graph){0};
}

/* ---- models ---- */

basin_status basin_text_model_bare(basin_text_model **model, const basin_text_settings *settings,
                                   basin_vocabulary *vocabulary, basin_backend *backend,
                                   basin_error *error) {
    basin_text_model *m;
    *model = NULL;
    BASIN_TRY_OR(BASIN_NEW(&m, 1, "a model", error), basin_vocabulary_free(vocabulary));
    m->settings = *settings;
    m->described = (basin_settings){.kind = &basin_text_task, .values = &m->settings};
    m->vocabulary = *vocabulary;
    m->backend = backend;
    *vocabulary = (basin_vocabulary){0};
    BASIN_TRY_OR(check(settings, error), basin_text_close(m));
    BASIN_TRY_OR(basin_store_new(&m->store, backend, error), basin_text_close(m));
    *model = m;
    return BASIN_OK;
}

void basin_text_close(basin_text_model *model) {
    if (!model) return;
    basin_store_free(model->store);
    basin_vocabulary_free(&model->vocabulary);
    free(model);
}

basin_text_info basin_text_about(const basin_text_model *model) {
    return (basin_text_info){.settings = &model->described,
                             .parameters = model->parameters,
                             .energies = basin_choice_is(model->settings.arch, "nrgpt")};
}

/* ---- what files say ---- */

/* Appends the characters of a text, which must be in the order of code points. */
static bool add_characters(basin_vocabulary *v, const char *text, size_t length) {
    for (size_t at = 0, bytes; at < length; at += bytes) {
        uint32_t point;
        bytes = basin_text_character(&point, text + at, length - at);
        if (!bytes || (v->count && v->point[v->count - 1] >= point)) return false;
        v->point[v->count++] = point;
    }
    return true;
}

/* Files of earlier versions have Hugging Face's tokenizer.json, ordered by number. */
static bool add_vocabulary(basin_vocabulary *v, const cJSON *vocabulary) {
    const cJSON *entry;
    cJSON_ArrayForEach(entry, vocabulary) {
        size_t length = strlen(entry->string);
        if (length > BASIN_CHARACTER_BYTES || !add_characters(v, entry->string, length))
            return false;
    }
    return true;
}

static basin_status read_characters(basin_vocabulary *v, int64_t count, const basin_bundle *bundle,
                                    basin_error *error) {
    const char *path = basin_bundle_path(bundle);
    const char *text = basin_bundle_meta(bundle, "basin.characters");
    BASIN_JSON_AT_EXIT cJSON *json =
        text ? NULL : cJSON_Parse(basin_bundle_meta(bundle, "basin.tokenizer"));
    const cJSON *old = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "model"), "vocab");
    size_t length = text ? strlen(text) : 0;
    size_t most = text ? length : (size_t)cJSON_GetArraySize(old) * BASIN_CHARACTER_BYTES;
    basin_status status = BASIN_NEW_RAW(&v->point, most, "a vocabulary", error);
    bool good = !status && (text ? add_characters(v, text, length) : add_vocabulary(v, old));
    if (status || (good && v->count && v->count == count)) return status;
    return basin_fail(error, BASIN_BAD_FILE, "%s: its metadata list %lld characters, wanted %lld",
                      path, (long long)v->count, (long long)count);
}

basin_status basin_text_vocabulary_read(basin_vocabulary *v, const basin_text_settings *settings,
                                        const basin_bundle *bundle, basin_error *error) {
    *v = (basin_vocabulary){.tokens = basin_text_tokens_of(settings)};
    if (v->tokens == BASIN_TEXT_CHARACTERS) {
        BASIN_TRY_OR(read_characters(v, settings->vocabulary, bundle, error),
                     basin_vocabulary_free(v));
        return BASIN_OK;
    }
    v->count = v->tokens == BASIN_TEXT_BYTES ? 256 : settings->vocabulary;
    if (v->count && v->count == settings->vocabulary) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: its vocabulary is %lld, wanted %s",
                      basin_bundle_path(bundle), (long long)settings->vocabulary,
                      v->tokens == BASIN_TEXT_BYTES ? "256, the bytes" : "1 or more");
}

/* What cannot be, a part of the text beyond its end, is as if nothing were said. */
basin_text_origin basin_text_origin_read(const basin_bundle *bundle) {
    enum { DIGITS = 53 }; /* of a number in JSON */
    basin_text_origin origin = {0};
    BASIN_JSON_AT_EXIT cJSON *json = cJSON_Parse(basin_bundle_meta(bundle, "basin.text"));
    const cJSON *length = cJSON_GetObjectItem(json, "bytes");
    const cJSON *train = cJSON_GetObjectItem(json, "train");
    const char *hash = cJSON_GetStringValue(cJSON_GetObjectItem(json, "hash"));
    if (cJSON_IsNumber(length) && cJSON_IsNumber(train) && train->valuedouble >= 0 &&
        train->valuedouble <= length->valuedouble && length->valuedouble < ldexp(1, DIGITS)) {
        origin.length = (int64_t)length->valuedouble;
        origin.train = (int64_t)train->valuedouble;
        if (hash && strlen(hash) < sizeof origin.hash) strcpy(origin.hash, hash);
    }
    return origin;
}

static basin_status write_origin(basin_bundle *bundle, const basin_text_origin *origin,
                                 basin_error *error) {
    if (!origin->length) return BASIN_OK;
    BASIN_JSON_AT_EXIT cJSON *json = cJSON_CreateObject();
    bool made = json && cJSON_AddStringToObject(json, "hash", origin->hash) &&
                cJSON_AddNumberToObject(json, "bytes", (double)origin->length) &&
                cJSON_AddNumberToObject(json, "train", (double)origin->train);
    BASIN_FREE_AT_EXIT char *text = made ? cJSON_PrintUnformatted(json) : NULL;
    if (!text) return basin_fail_memory(error, "a description");
    return basin_bundle_meta_set(bundle, "basin.text", text, error);
}

basin_status basin_text_describe(basin_bundle *bundle, const basin_text_model *model,
                                 basin_error *error) {
    BASIN_FREE_AT_EXIT char *characters = NULL;
    BASIN_TRY(basin_settings_store(bundle, "text", &model->settings, &basin_text_task, error));
    BASIN_TRY(write_origin(bundle, &model->origin, error));
    if (!model->vocabulary.point) return BASIN_OK;
    BASIN_TRY(basin_vocabulary_print(&characters, &model->vocabulary, error));
    return basin_bundle_meta_set(bundle, "basin.characters", characters, error);
}

/* ---- model files ---- */

static basin_status read_weights(basin_text_model *model, const basin_bundle *bundle,
                                 basin_error *error) {
    BASIN_AT_EXIT(basin_text_graph_free) basin_text_graph graph = {0};
    BASIN_TRY(basin_text_graph_new(&graph, &model->settings, 1, 1, (basin_text_wish){0}, error));
    BASIN_TRY(basin_params_read(&graph.params, model->store, bundle, error));
    model->parameters = basin_params_total(&graph.params);
    return BASIN_OK;
}

basin_status basin_text_open(basin_text_model **model, const char *path, basin_backend *backend,
                             basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    basin_text_settings settings;
    basin_vocabulary vocabulary;
    *model = NULL;
    BASIN_TRY(basin_bundle_read(&bundle, path, error));
    BASIN_TRY(basin_settings_take(&settings, &basin_text_task, bundle, error));
    BASIN_TRY(basin_text_vocabulary_read(&vocabulary, &settings, bundle, error));
    BASIN_TRY(basin_text_model_bare(model, &settings, &vocabulary, backend, error));
    (*model)->origin = basin_text_origin_read(bundle);
    BASIN_TRY_OR(read_weights(*model, bundle, error), (basin_text_close(*model), *model = NULL));
    return BASIN_OK;
}

basin_status basin_text_write(const char *path, basin_text_model *model, basin_error *error) {
    BASIN_AT_EXIT(basin_text_graph_free) basin_text_graph graph = {0};
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    BASIN_TRY(basin_bundle_new(&bundle, error));
    BASIN_TRY(basin_text_graph_new(&graph, &model->settings, 1, 1, (basin_text_wish){0}, error));
    BASIN_TRY(basin_text_describe(bundle, model, error));
    BASIN_TRY(basin_params_add(bundle, &graph.params, model->store, error));
    return basin_bundle_write(path, bundle, error);
}
