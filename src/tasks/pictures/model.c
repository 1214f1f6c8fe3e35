/* Models of masked image completion: settings, masks, models in memory and in files; see image.h.
 */
#include "base/bundle.h"
#include "base/sort.h"
#include "base/states.h"
#include "basin/random.h"
#include "tasks/common/digest.h"
#include "tasks/common/shards/shards.h"
#include "tasks/pictures/image.h"

/* ---- settings: the table of their names, and what is refused ---- */

#define BASIN_SETTINGS_TYPE basin_image_settings
static const basin_setting_entry table[] = {
    BASIN_IMAGE_MODEL_SETTINGS(BASIN_SETTING_ENTRY) BASIN_IMAGE_TRAINING_SETTINGS(
        BASIN_SETTING_ENTRY) BASIN_LOOSE_SETTINGS(BASIN_LOOSE_ENTRY) BASIN_SETTINGS_END,
};

int64_t basin_image_tokens(const basin_image_settings *s) {
    return (s->size / s->patch) * (s->size / s->patch);
}

int64_t basin_image_patch_values(const basin_image_settings *s) {
    return s->channels * s->patch * s->patch;
}

/* Just below a whole number is that number: 0.51 of 100 is 51. */
static int64_t count_of(double count_or_share, int64_t all) {
    double count = count_or_share < 1 ? count_or_share * (double)all : count_or_share;
    return (int64_t)floor(count + 1e-6);
}

int64_t basin_image_occluded(const basin_image_settings *s) {
    int64_t count = count_of(s->occlude, basin_image_tokens(s));
    return count > 1 ? count : 1;
}

int64_t basin_image_kept(const basin_image_settings *s) {
    return count_of(s->keep, basin_image_occluded(s));
}

void basin_image_settings_resolve(basin_image_settings *s) {
    int64_t occluded = basin_image_occluded(s), kept = basin_image_kept(s);
    s->occlude = (double)occluded;
    s->keep = (double)kept;
}

static basin_status check_sizes(const basin_image_settings *s, basin_error *error) {
    if (s->channels != 1 && s->channels != 3)
        return basin_fail(error, BASIN_BAD_VALUE, "channels is %lld; expected 1 or 3",
                          (long long)s->channels);
    if (s->patch < 1 || s->size % s->patch != 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "patch is %lld; expected a divisor of the size, %lld",
                          (long long)s->patch, (long long)s->size);
    return BASIN_OK;
}

static bool is_whole_or_share(double x) { return x < 1 || x == floor(x); }

static basin_status check_masks(const basin_image_settings *s, basin_error *error) {
    int64_t tokens = basin_image_tokens(s);
    if (!(s->occlude > 0) || s->occlude > (double)tokens || !is_whole_or_share(s->occlude))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "occlude is %.15g; expected 1 to %lld patches, or a share below 1",
                          s->occlude, (long long)tokens);
    if (!is_whole_or_share(s->keep) || basin_image_kept(s) >= basin_image_occluded(s))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "keep is %.15g; expected fewer than the %lld occluded", s->keep,
                          (long long)basin_image_occluded(s));
    return BASIN_OK;
}

basin_status basin_image_settings_check(const void *values, basin_error *error) {
    const basin_image_settings *s = values;
    BASIN_TRY(check_sizes(s, error));
    BASIN_TRY(check_masks(s, error));
    if (s->positive_gamma && !basin_choice_is(s->arch, "et"))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "positive_gamma with arch %s, which has no gamma; expected arch et",
                          s->arch);
    if (!s->attention && !s->hopfield)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "attention and hopfield are both off; at least one must be on");
    return BASIN_OK;
}

const basin_task_settings basin_image_task = {
    "image", table, sizeof(basin_image_settings), basin_image_settings_check, NULL, NULL, NULL};

/* ---- Masks and patches of masked image completion; see image.h ---- */

/* Selection sampling: patch i is taken with the chance that leaves every subset equally likely,
 * then the kept ones are chosen among the taken in the same way. */
void basin_image_mask_draw(uint8_t *mask, int64_t tokens, int64_t occlude, int64_t keep,
                           uint64_t seed, uint64_t stream) {
    basin_random random = basin_random_start(seed, stream, 0);
    int64_t open = occlude, kept = keep;
    for (int64_t i = 0; i < tokens; i++) {
        mask[i] = BASIN_PATCH_SHOWN;
        if ((int64_t)basin_random_below(&random, (uint64_t)(tokens - i)) >= open) continue;
        bool stays = (int64_t)basin_random_below(&random, (uint64_t)open) < kept;
        mask[i] = stays ? BASIN_PATCH_KEPT : BASIN_PATCH_REPLACED;
        kept -= stays;
        open--;
    }
}

void basin_image_hole_draw(uint8_t *mask, int64_t side, uint64_t seed, uint64_t stream) {
    basin_random random = basin_random_start(seed, stream, 0);
    int64_t min = (side + 3) / 7, max = (4 * side + 3) / 7, size[2], from[2];
    if (min < 1) min = 1;
    if (max < min) max = min;
    for (int i = 0; i < 2; i++) {
        size[i] = min + (int64_t)basin_random_below(&random, (uint64_t)(max - min + 1));
        from[i] = (int64_t)basin_random_below(&random, (uint64_t)(side - size[i] + 1));
    }
    for (int64_t i = 0; i < side * side; i++) {
        int64_t y = i / side - from[0], x = i % side - from[1];
        bool inside = y >= 0 && y < size[0] && x >= 0 && x < size[1];
        mask[i] = inside ? BASIN_PATCH_REPLACED : BASIN_PATCH_SHOWN;
    }
}

/* Hides the patches whose centres are at most `radius` from the line from (y, x) to (y + dy, x +
 * dx), and the one that it begins in. */
static void paint_stroke(uint8_t *mask, int64_t side, double y, double x, double dy, double dx,
                         double radius) {
    double length = fmax(dy * dy + dx * dx, 1e-9);
    for (int64_t i = 0; i < side * side; i++) {
        double py = (double)(i / side) + 0.5 - y, px = (double)(i % side) + 0.5 - x;
        double along = fmin(fmax((py * dy + px * dx) / length, 0), 1);
        double far = hypot(py - along * dy, px - along * dx);
        if (far <= radius || (fabs(py) <= 0.5 && fabs(px) <= 0.5)) mask[i] = BASIN_PATCH_REPLACED;
    }
}

void basin_image_strokes_draw(uint8_t *mask, int64_t side, uint64_t seed, uint64_t stream) {
    enum { DRAWN = 5, MAX_STROKES = 3 };
    double wide = (double)side;
    memset(mask, BASIN_PATCH_SHOWN, (size_t)(side * side));
    uint64_t strokes = 1 + basin_random_word_at(seed, stream, DRAWN * MAX_STROKES) % MAX_STROKES;
    for (uint64_t k = 0; k < strokes; k++) {
        double u[DRAWN];
        for (uint64_t i = 0; i < DRAWN; i++)
            u[i] = (double)basin_random_uniform_at(seed, stream, k * DRAWN + i);
        double length = fmax(u[2] - 0.2, 0) * wide, turn = 6.283185307179586 * u[3];
        paint_stroke(mask, side, u[0] * wide, u[1] * wide, length * sin(turn), length * cos(turn),
                     wide * (1.0 / 28 + u[4] * (0.1 - 1.0 / 28)));
    }
    if (!memchr(mask, BASIN_PATCH_SHOWN, (size_t)(side * side))) mask[0] = BASIN_PATCH_SHOWN;
}

/* The choice has a separate seed, so that scattered masks do not depend on `holes`. */
void basin_image_mask_train(uint8_t *mask, const basin_image_settings *s, uint64_t seed,
                            uint64_t stream) {
    enum { HOLE_SALT = 0x686f6c65 };
    double drawn = (double)basin_random_uniform_at(seed ^ HOLE_SALT, stream, 0);
    if (drawn < s->holes * s->strokes)
        basin_image_strokes_draw(mask, s->size / s->patch, seed, stream);
    else if (drawn < s->holes)
        basin_image_hole_draw(mask, s->size / s->patch, seed, stream);
    else
        basin_image_mask_draw(mask, basin_image_tokens(s), basin_image_occluded(s),
                              basin_image_kept(s), seed, stream);
}

basin_patching basin_image_patching(const basin_image_settings *s) {
    basin_patching p = {.size = s->size, .patch = s->patch, .channels = s->channels};
    for (int c = 0; c < 3; c++) p.mean[c] = s->mean[c], p.deviation[c] = s->deviation[c];
    return p;
}

/* ---- a model on a graph ---- */

static basin_image_net_config net_config(const basin_image_settings *s) {
    return (basin_image_net_config){
        .arch = !strcmp(s->arch, "et")    ? BASIN_IMAGE_ET
                : !strcmp(s->arch, "vit") ? BASIN_IMAGE_VIT
                                          : BASIN_IMAGE_ALBERT,
        .tokens = basin_image_tokens(s),
        .patch = basin_image_patch_values(s),
        .block = {BASIN_BLOCK_OF(s)},
        .descent = {BASIN_DESCENT_OF(s), .recompute = s->recompute},
        .self_attention = s->self_attention,
        .cls = s->cls,
        .published_init = !strcmp(s->arch, "et") && !strcmp(s->init, "published"),
        .holes_apart = s->holes_apart,
    };
}

static void build(basin_image_graph *g, const basin_image_settings *s) {
    int64_t N = basin_image_tokens(s), P = basin_image_patch_values(s);
    basin_image_net_config config = net_config(s);
    g->patches = basin_input(g->graph, "patches", BASIN_SHAPE(g->batch, N, P));
    g->replaced = basin_input(g->graph, "replaced", BASIN_SHAPE(g->batch, N));
    g->occluded = basin_input(g->graph, "occluded", BASIN_SHAPE(g->batch, N));
    if (basin_image_net_declare(&g->net, &g->params, &config) == BASIN_OK)
        g->output = basin_image_net_forward(&g->net, g->patches, g->replaced, NULL);
}

basin_status basin_image_graph_new(basin_image_graph *graph, const basin_image_settings *settings,
                                   int64_t batch, basin_error *error) {
    *graph = (basin_image_graph){.batch = batch};
    graph->graph = basin_graph_new();
    if (!graph->graph) return basin_fail_memory(error, "a graph");
    basin_params_begin(&graph->params, graph->graph);
    build(graph, settings);
    BASIN_TRY_OR(basin_graph_check(graph->graph, error), basin_image_graph_free(graph));
    return BASIN_OK;
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
    BASIN_TRY(basin_image_settings_check(settings, error));
    basin_image_model *m = NULL;
    BASIN_TRY(BASIN_NEW(&m, 1, "a model", error));
    m->settings = *settings;
    basin_image_settings_resolve(&m->settings);
    m->described = (basin_settings){.kind = &basin_image_task, .values = &m->settings};
    m->info.settings = &m->described;
    m->backend = backend;
    BASIN_TRY_OR(basin_store_new(&m->store, backend, error), basin_image_close(m));
    *model = m;
    return BASIN_OK;
}

/* `bundle` has the weights; NULL: first weights are drawn. */
static basin_status start(basin_image_model **model, const basin_image_settings *settings,
                          basin_backend *backend, const basin_bundle *bundle, basin_error *error) {
    BASIN_AT_EXIT(basin_image_graph_free) basin_image_graph graph = {0};
    BASIN_TRY(basin_image_model_bare(model, settings, backend, error));
    basin_store *store = (*model)->store;
    BASIN_TRY(basin_image_graph_new(&graph, settings, 1, error));
    (*model)->info.parameters = basin_params_total(&graph.params);
    return bundle ? basin_params_read(&graph.params, store, bundle, error)
                  : basin_params_init(&graph.params, store, (uint64_t)settings->seed, error);
}

/* The model of a whole file. */
static basin_status open_bundle(basin_image_model **model, const basin_bundle *bundle,
                                basin_backend *backend, basin_error *error) {
    basin_image_settings settings;
    if (basin_bundle_find(bundle, "Wk") && basin_bundle_find(bundle, "Wenc"))
        return basin_fail(
            error, BASIN_UNSUPPORTED,
            "%s: the authors' weights; share/basin/published.py makes a model of them",
            basin_bundle_path(bundle));
    BASIN_TRY(basin_settings_take(&settings, &basin_image_task, bundle, error));
    settings.holes_apart = basin_bundle_find(bundle, "hole_w") != NULL;
    BASIN_TRY(start(model, &settings, backend, bundle, error));
    return basin_image_card_read(&(*model)->card, bundle, error);
}

static void drop(basin_image_model **model) {
    basin_image_close(*model);
    *model = NULL;
}

basin_status basin_image_model_new(basin_image_model **model, const basin_image_settings *settings,
                                   basin_backend *backend, basin_error *error) {
    BASIN_TRY_OR(start(model, settings, backend, NULL, error), drop(model));
    return BASIN_OK;
}

basin_status basin_image_open(basin_image_model **model, const char *path, basin_backend *backend,
                              basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    *model = NULL;
    BASIN_TRY(basin_model_read(&bundle, path, error));
    BASIN_TRY_OR(open_bundle(model, bundle, backend, error), drop(model));
    return BASIN_OK;
}

void basin_image_close(basin_image_model *model) {
    if (!model) return;
    basin_image_runner_drop(model);
    basin_store_free(model->store);
    basin_image_card_free(&model->card);
    free(model);
}

const basin_image_info *basin_image_get_info(const basin_image_model *model) {
    return &model->info;
}

/* ---- The settings that a run trains with; see image.h ---- */

/* Fills in the mean and deviation where the settings leave them 0. */
static basin_status image_measure(basin_image_settings *settings, const basin_image_set *set,
                                  basin_error *error) {
    enum { MAX_PICTURES = 60000 };
    float mean[3] = {0}, deviation[3] = {1, 1, 1};
    if (settings->deviation[0] > 0) return BASIN_OK;
    BASIN_TRY(basin_pictures_statistics(mean, deviation, set->pictures, set->item, set->items,
                                        (int)settings->channels, MAX_PICTURES, error));
    for (int c = 0; c < 3; c++) {
        settings->mean[c] = c < settings->channels ? (double)mean[c] : 0;
        settings->deviation[c] = c < settings->channels ? (double)deviation[c] : 1;
    }
    return BASIN_OK;
}

/* A dry run measures only the time of a step and skips the pass over the pictures; rank 0 makes it
 * for all. */
static basin_status measure(basin_image_settings *settings, const basin_training_options *training,
                            const basin_image_set *set, basin_error *error) {
    basin_ranks *ranks = training->ranks;
    if (training->dry_run_seconds > 0) {
        for (int c = 0; c < 3 && !(settings->deviation[c] > 0); c++)
            settings->mean[c] = 0.5, settings->deviation[c] = 0.25;
        return BASIN_OK;
    }
    basin_status status = basin_ranks_rank(ranks) ? BASIN_OK : image_measure(settings, set, error);
    BASIN_TRY(basin_ranks_agree(ranks, status, error));
    BASIN_TRY(basin_ranks_broadcast(ranks, settings->mean, sizeof settings->mean, 0, error));
    return basin_ranks_broadcast(ranks, settings->deviation, sizeof settings->deviation, 0, error);
}

/* Statistics that were not given are those of the checkpoint or of the model to begin with, whose
 * weights know them. */
static void inherit(basin_image_settings *settings, const basin_image_settings *from) {
    if (settings->deviation[0] > 0) return;
    memcpy(settings->mean, from->mean, sizeof settings->mean);
    memcpy(settings->deviation, from->deviation, sizeof settings->deviation);
}

static basin_status go_on(basin_image_settings *settings, const basin_run *run,
                          basin_error *error) {
    basin_image_settings saved;
    BASIN_TRY(basin_settings_take(&saved, &basin_image_task, run->saved, error));
    inherit(settings, &saved);
    settings->shards = basin_shards_choose(settings->shards, saved.shards, settings->batch, NULL);
    return basin_run_match(run, &saved, settings, basin_image_task.table, error);
}

/* Layers are weights, steps of a descent are not. */
static const char *const same_et[] = {"arch",       "channels", "size",     "patch",     "dim",
                                      "heads",      "head_dim", "memories", "attention", "hopfield",
                                      "learn_beta", "cls",      NULL};
static const char *const same_vit[] = {"arch",     "channels", "size",  "patch", "dim", "heads",
                                       "head_dim", "memories", "steps", "cls",   NULL};

/* What has no weights may differ: steps, alpha. */
static basin_status read_weights(basin_image_settings *its, const basin_image_settings *settings,
                                 const basin_bundle *from, basin_error *error) {
    BASIN_TRY(basin_settings_take(its, &basin_image_task, from, error));
    return basin_settings_match_weights(its, settings, basin_image_task.table,
                                        strcmp(settings->arch, "et") ? same_vit : same_et,
                                        basin_bundle_path(from), error);
}

static basin_status begin(basin_image_settings *settings, const basin_training_options *training,
                          const basin_bundle *from, const basin_image_set *set,
                          basin_error *error) {
    basin_image_settings first;
    if (from) BASIN_TRY(read_weights(&first, settings, from, error));
    if (from) inherit(settings, &first);
    settings->shards = basin_shards_choose(settings->shards, 0, settings->batch, training->ranks);
    return measure(settings, training, set, error);
}

basin_status basin_image_start(basin_image_settings *settings, const basin_run *run,
                               const basin_image_set *set, basin_error *error) {
    const basin_training_options *training = &run->training;
    BASIN_TRY(run->saved ? go_on(settings, run, error)
                         : begin(settings, training, run->from, set, error));
    return basin_shards_check(settings->shards, settings->batch, error);
}

/* ---- into a file, perhaps with narrower weights ---- */

static basin_status give_rounded(basin_bundle *bundle, basin_store *store, const char *name,
                                 basin_dtype dtype, basin_error *error) {
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor tensor = {0};
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor rounded = {0};
    BASIN_TRY(basin_store_get(&tensor, store, name, error));
    BASIN_TRY(basin_tensor_new(&rounded, dtype, tensor.shape, error));
    BASIN_TRY(basin_tensor_convert(&rounded, &tensor, error));
    return basin_bundle_add(bundle, name, &rounded, error);
}

static basin_status give_weights(basin_bundle *bundle, const basin_params *params,
                                 basin_store *store, basin_dtype dtype, basin_error *error) {
    if (dtype == BASIN_F32) return basin_params_add(bundle, params, store, error);
    for (size_t i = 0; i < params->count; i++)
        BASIN_TRY(
            give_rounded(bundle, store, basin_expr_name(params->param[i].state), dtype, error));
    return BASIN_OK;
}

static basin_status write_model(const char *path, basin_bundle *bundle, basin_image_model *model,
                                basin_dtype dtype, basin_error *error) {
    BASIN_AT_EXIT(basin_image_graph_free) basin_image_graph graph = {0};
    BASIN_TRY(basin_image_graph_new(&graph, &model->settings, 1, error));
    BASIN_TRY(basin_settings_store(bundle, "image", &model->settings, &basin_image_task, error));
    BASIN_TRY(basin_image_card_add(bundle, &model->card, error));
    BASIN_TRY(give_weights(bundle, &graph.params, model->store, dtype, error));
    BASIN_TRY(basin_bundle_digest(bundle, error));
    return basin_bundle_write(path, bundle, error);
}

basin_status basin_image_write(const char *path, basin_image_model *model, basin_dtype dtype,
                               basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    if (dtype != BASIN_F32 && dtype != BASIN_BF16)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: dtype is %s; expected F32 or BF16", path,
                          basin_dtype_name(dtype));
    BASIN_TRY(basin_bundle_new(&bundle, NULL, error));
    return write_model(path, bundle, model, dtype, error);
}
