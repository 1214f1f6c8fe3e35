/* Training a model of masked images: what a step and a score are; the run (common/run/run.h) does
 * the rest.
 *
 * Everything drawn in step t (the pictures, their crops, their masks) is a function of the seed and
 * t. */
#include "base/bundle.h"
#include "base/sort.h"
#include "base/states.h"
#include "base/training.h"
#include "tasks/common/digest.h"
#include "tasks/common/shards/shards.h"
#include "tasks/pictures/image.h"

enum { LOG_STEPS = 20 };

/* ---- a run ---- */

typedef struct job {
    basin_run *run;
    const basin_training_options *training;
    basin_image_data data;
    basin_image_model *model;
    basin_image_graph graph;
    basin_trainer *trainer;
    basin_shards shards;
    basin_image_set train, test;
    basin_picture_feed *feed;
    const float *fed;         /* [count, N, P] the feed's last batch */
    int64_t fed_step;         /* the step that it is of; -1: none */
    int64_t first, count;     /* the pictures of each batch that are this rank's */
    uint8_t *mask;            /* [count, N] */
    float *replaced, *counts; /* [count, N] */
    basin_image_data_result read;
    int64_t prepared;               /* the step that the masks are of; -1: none yet */
    int64_t per_epoch, total;       /* steps */
    size_t memory;                  /* bytes of the plan */
    basin_training_result *outcome; /* what the run has come to, once it is known */
} job;

/* ---- before the run ---- */

/* What a few pictures, spread over a set, look like. */
typedef struct appearance {
    bool colour;  /* one of them is in colour, not only stored so */
    int64_t side; /* the shortest side, in pixels */
} appearance;

/* Grey pictures are often stored in three channels; compression leaves a trace of colour. */
static bool has_colour(const basin_picture *p) {
    enum { TRACE = 8 };
    int64_t area = p->height * p->width;
    for (int64_t i = 0; i < area && p->channels == 3; i++) {
        const uint8_t *c = p->pixel + 3 * i;
        if (abs(c[0] - c[1]) > TRACE || abs(c[1] - c[2]) > TRACE) return true;
    }
    return false;
}

static basin_status look_at(appearance *look, const basin_image_set *set, basin_error *error) {
    enum { SAMPLES = 16 };
    basin_picture picture = {0};
    basin_status status = BASIN_OK;
    int64_t max = set->items < SAMPLES ? set->items : SAMPLES;
    *look = (appearance){0};
    for (int64_t i = 0; i < max && status != BASIN_NO_MEMORY; i++) {
        int64_t at = i * (set->items / max);
        status = basin_pictures_load(&picture, set->pictures, set->item[at], error);
        if (status) continue;
        int64_t side = basin_int_min(picture.height, picture.width);
        look->colour = look->colour || has_colour(&picture);
        look->side = look->side ? basin_int_min(look->side, side) : side;
    }
    basin_picture_free(&picture);
    if (look->side && status != BASIN_NO_MEMORY) return BASIN_OK;
    return status ? status : basin_fail(error, BASIN_BAD_VALUE, "no pictures to look at");
}

/* Notes that a grey model is trained on colour photographs, or the reverse. */
static basin_status compare_channels(const job *j, const basin_image_settings *settings,
                                     basin_error *error) {
    appearance look;
    basin_status status = look_at(&look, &j->train, error);
    if (status || look.colour == (settings->channels == 3)) return status;
    basin_watch_note(j->training->watch, "channels is %lld, and the pictures are %s",
                     (long long)settings->channels, look.colour ? "in colour" : "grey");
    return BASIN_OK;
}

static basin_status open_pictures(job *j, const basin_image_settings *settings,
                                  basin_error *error) {
    uint64_t seed = (uint64_t)settings->seed;
    basin_image_source train = j->data.train ? *j->data.train : (basin_image_source){0};
    if (train.hold_out && j->data.test)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "hold_out is %lld and there are test pictures; expected one of the two",
                          (long long)train.hold_out);
    BASIN_TRY(basin_image_set_open(&j->train, &train, false, seed, error));
    if (train.hold_out) BASIN_TRY(basin_image_set_open(&j->test, &train, true, seed, error));
    if (j->data.test) BASIN_TRY(basin_image_set_open(&j->test, j->data.test, true, seed, error));
    if (j->train.items < settings->batch)
        return basin_fail(
            error, BASIN_BAD_VALUE,
            "batch is %lld; expected at most %lld, the number of pictures to train on",
            (long long)settings->batch, (long long)j->train.items);
    if (settings->patience && !j->test.items)
        return basin_fail(
            error, BASIN_BAD_VALUE,
            "patience is %lld without pictures to score; expected test pictures, or hold_out",
            (long long)settings->patience);
    return compare_channels(j, settings, error);
}

/* ---- what trains ---- */

static basin_status check_memory(const job *j, basin_error *error) {
    const basin_image_settings *s = &j->model->settings;
    char advice[80];
    double share = (double)basin_run_memory(j->run) / (double)j->memory;
    int64_t batch = 1; /* memory grows with the batch, less what is always there */
    while (batch * 2 < (int64_t)(share * (double)s->batch)) batch *= 2;
    snprintf(advice, sizeof advice, "batch %lld or so instead of %lld%s", (long long)batch,
             (long long)s->batch, s->recompute ? "" : ", or recompute");
    return basin_run_hold(j->run, j->memory, advice, error);
}

static basin_status make_trainer(job *j, basin_error *error) {
    const basin_image_settings *s = &j->model->settings;
    j->per_epoch = j->train.items / s->batch;
    j->total = j->per_epoch * s->epochs;
    basin_image_graph *g = &j->graph;
    BASIN_TRY(basin_image_graph_new(g, s, s->batch / s->shards, error));
    j->model->info.parameters = basin_params_total(&g->params);
    basin_expr loss = basin_image_net_loss(g->output, g->patches, g->occluded);
    basin_trainer_spec spec = {.optimizer = {.beta1 = 0.9,
                                             .beta2 = s->beta2,
                                             .epsilon = 1e-8,
                                             .weight_decay = s->decay,
                                             .clip = s->clip},
                               .schedule = BASIN_SCHEDULE_OF(s, j->per_epoch)};
    BASIN_TRY(basin_shards_trainer_new(&j->shards, &j->trainer, j->training, s->shards,
                                       j->model->store, &g->params, loss, &spec, error));
    j->memory = basin_plan_bytes(basin_trainer_plan(j->trainer));
    return check_memory(j, error);
}

/* A share of what the plan left free keeps decoded pictures, if they are needed again. */
static basin_status make_input(job *j, basin_error *error) {
    const basin_image_settings *s = &j->model->settings;
    int64_t each = s->batch / s->shards;
    bool again = s->epochs > 1 && !(j->training->dry_run_seconds > 0);
    j->first = j->shards.share.first * each, j->count = j->shards.share.count * each;
    j->prepared = j->fed_step = -1;
    basin_picture_feed_config config = {.batch = s->batch,
                                        .training = true,
                                        .threads = j->data.threads,
                                        .keep_bytes = again ? basin_memory_free() / 4 : 0,
                                        .first = j->first,
                                        .count = j->count};
    int64_t patches = j->count * basin_image_tokens(s);
    BASIN_TRY(basin_image_feed(&j->feed, &j->train, s, &config, j->training->watch, error));
    BASIN_TRY(BASIN_NEW_RAW(&j->mask, patches, "a batch of masks", error));
    BASIN_TRY(BASIN_NEW_RAW(&j->replaced, patches, "a batch of masks", error));
    return BASIN_NEW_RAW(&j->counts, patches, "a batch of masks", error);
}

/* Pictures to score must not be trained on: copies of one may lie on both sides. Rank 0 keeps the
 * card; the others compare what they read with it. */
static basin_status remember(job *j, basin_error *error) {
    basin_image_card *card = &j->model->card;
    basin_image_overlap overlap = {0};
    /* read again: a resumed run has its weights from the checkpoint */
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *from = NULL;
    bool first = basin_ranks_rank(j->training->ranks) == 0;
    if (j->training->dry_run_seconds > 0) return BASIN_OK;
    if (j->training->from && first) BASIN_TRY(basin_model_read(&from, j->training->from, error));
    BASIN_TRY(basin_image_card_begin(card, &j->train, &j->test, from, error));
    if (!j->test.items || !first) return BASIN_OK;
    BASIN_TRY(basin_image_card_compare(&overlap, card, &j->test, error));
    if (overlap.trained_on > 0)
        basin_watch_note(
            j->training->watch, "%s%lld of the %lld pictures to score are also trained on",
            overlap.exact ? "" : "about ", (long long)overlap.trained_on, (long long)j->test.items);
    return BASIN_OK;
}

static basin_status make(job *j, const basin_settings *asked, basin_error *error) {
    basin_image_settings settings = *(const basin_image_settings *)asked->values;
    basin_image_settings_resolve(&settings);
    BASIN_TRY(open_pictures(j, &settings, error));
    BASIN_TRY(basin_image_start(&settings, j->run, &j->train, error));
    BASIN_TRY(basin_image_model_bare(&j->model, &settings, j->training->backend, error));
    BASIN_TRY(make_trainer(j, error));
    BASIN_TRY(basin_ranks_agree(j->training->ranks, make_input(j, error), error));
    return remember(j, error);
}

static void job_free(job *j) {
    basin_picture_feed_free(j->feed);
    BASIN_FREE(j->mask, j->replaced, j->counts);
    basin_shards_end(&j->shards);
    basin_trainer_free_at(&j->trainer);
    basin_image_graph_free(&j->graph);
    basin_image_close(j->model);
    basin_image_set_close(&j->train);
    basin_image_set_close(&j->test);
    basin_run_close(j->run);
}

/* ---- steps ---- */

/* Draws what a step needs, ahead of writing it, while a device is busy. Masks come from another
 * seed than weights and crops do. */
static void prepare(job *j, int64_t step) {
    enum { MASK_SALT = 0x6d61736b };
    const basin_image_settings *s = &j->model->settings;
    int64_t tokens = basin_image_tokens(s);
    if (j->prepared == step) return;
    j->prepared = step;
    for (int64_t i = 0; i < j->count; i++)
        basin_image_mask_train(j->mask + i * tokens, s, (uint64_t)s->seed ^ MASK_SALT,
                               (uint64_t)(step * s->batch + j->first + i));
    for (int64_t i = 0; i < j->count * tokens; i++) {
        j->replaced[i] = j->mask[i] == BASIN_PATCH_REPLACED;
        j->counts[i] = j->mask[i] != BASIN_PATCH_SHOWN;
    }
}

static basin_status await_pictures(job *j, int64_t step, basin_error *error) {
    basin_picture_feed_batch batch = {0};
    if (j->fed_step == step) return BASIN_OK;
    if (j->fed_step + 1 != step || step == 0) basin_picture_feed_seek(j->feed, step);
    j->fed_step = -1;
    BASIN_TRY(basin_picture_feed_next(&batch, j->feed, error));
    j->fed_step = step;
    j->fed = batch.values;
    return BASIN_OK;
}

/* The pictures of one shard; `*weight` is how many of their patches count in the loss. */
static basin_status write_shard(void *context, double *weight, int64_t step, int64_t shard,
                                basin_error *error) {
    job *j = context;
    const basin_image_graph *g = &j->graph;
    basin_plan *plan = basin_trainer_plan(j->trainer);
    int64_t at = (shard - j->shards.share.first) * g->batch;
    int64_t tokens = basin_image_tokens(&j->model->settings), from = at * tokens;
    prepare(j, step);
    *weight = 0;
    for (int64_t i = from; i < from + g->batch * tokens; i++) *weight += (double)j->counts[i];
    BASIN_TRY(await_pictures(j, step, error));
    const float *patches = j->fed + from * basin_image_patch_values(&j->model->settings);
    BASIN_TRY(basin_values_write(plan, g->patches, patches, BASIN_F32, error));
    BASIN_TRY(basin_values_write(plan, g->replaced, j->replaced + from, BASIN_F32, error));
    return basin_values_write(plan, g->occluded, j->counts + from, BASIN_F32, error);
}

/* The next batch is prepared while a device computes this step, before its loss is waited for. */
static basin_status step(void *context, basin_run_sum *sum, const basin_run_place *place,
                         basin_error *error) {
    job *j = context;
    double loss;
    BASIN_TRY(basin_shards_run(&j->shards, j->trainer, place->step, write_shard, j, error));
    if (place->step + 1 < j->total) prepare(j, place->step + 1);
    BASIN_TRY(basin_shards_loss(&j->shards, &loss, j->trainer, error));
    sum->loss += loss;
    sum->weight += 1;
    return BASIN_OK;
}

static basin_status score(void *context, basin_score *score, const basin_run_place *place,
                          basin_error *error) {
    job *j = context;
    BASIN_AT_EXIT(basin_image_evaluate_result_free)
    basin_image_evaluate_result scores = {0};
    basin_image_evaluate_options scoring = {.masks = 1, .fast = true};
    BASIN_TRY(basin_image_evaluate_set(&scores, j->model, &j->test, &scoring, error));
    score->merit = -scores.mse;
    basin_score_add(score, "test_mse", scores.mse);
    j->read.mean_mse = scores.mean_mse;
    basin_watch_note(j->training->watch, "epoch %lld: test MSE %.4f (mean colour %.4f)",
                     (long long)place->epoch, scores.mse, scores.mean_mse);
    return BASIN_OK;
}

/* ---- files ---- */

static basin_status describe(void *context, basin_bundle *checkpoint, basin_error *error) {
    job *j = context;
    return basin_settings_store(checkpoint, "image", &j->model->settings, &basin_image_task, error);
}

static basin_status write_card(job *j, basin_error *error) {
    basin_image_facts facts = {.train = j->data.train,
                               .from = j->training->from,
                               .outcome = j->outcome,
                               .held_out = j->test.items,
                               .batch = j->model->settings.batch};
    if (basin_ranks_rank(j->training->ranks)) return BASIN_OK;
    return basin_image_card_end(&j->model->card, &facts, error);
}

static basin_status write_model(void *context, const char *path, basin_error *error) {
    job *j = context;
    BASIN_TRY(write_card(j, error));
    return basin_image_write(path, j->model, BASIN_F32, error);
}

/* ---- the whole ---- */

static basin_run_task task_of(job *j) {
    const basin_image_settings *s = &j->model->settings;
    return (basin_run_task){
        .context = j,
        .unit = "images",
        .members = 1,
        .epochs = s->epochs,
        .steps = j->per_epoch,
        .items = j->per_epoch * s->batch,
        .log_every = LOG_STEPS,
        .patience = s->patience,
        .choose = s->patience > 0,
        .memory = j->memory,
        .schedule = BASIN_SCHEDULE_OF(s, j->per_epoch),
        .store = j->model->store,
        .params = &j->graph.params,
        .seed = (uint64_t)s->seed,
        .average = s->average,
        .data = j->model->card.run,
        .step = step,
        .score = j->test.items ? score : NULL,
        .describe = describe,
        .write = write_model,
    };
}

static basin_status train(basin_training_result *outcome, job *j, const basin_settings *settings,
                          bool with_card, basin_error *error) {
    j->training = &j->run->training;
    if (outcome->finished_before) {
        BASIN_TRY(basin_image_open(&j->model, j->training->output, j->training->backend, error));
        outcome->parameters = j->model->info.parameters;
        return BASIN_OK;
    }
    BASIN_TRY(make(j, settings, error));
    basin_run_task task = task_of(j);
    j->outcome = outcome;
    BASIN_TRY(basin_run_train(outcome, j->run, &task, error));
    if (with_card) BASIN_TRY(write_card(j, error));
    basin_picture_feed_counts counts = basin_picture_feed_count(j->feed);
    j->read = (basin_image_data_result){.pictures = j->train.items,
                                        .kept = counts.kept,
                                        .unreadable = counts.unreadable,
                                        .waited = counts.waited,
                                        .mean_mse = j->read.mean_mse};
    return BASIN_OK;
}

basin_status basin_image_train(basin_image_model **model, basin_training_result *result,
                               basin_image_data_result *read, const basin_settings *settings,
                               const basin_image_data *data, const basin_training_options *training,
                               basin_error *error) {
    BASIN_AT_EXIT(job_free) job j = {.data = *data};
    basin_training_result all;
    if (model) *model = NULL;
    BASIN_TRY(BASIN_SIZE_CHECK(data, "basin_image_data", error));
    BASIN_TRY(basin_run_begin(&j.run, &all, settings, &basin_image_task, training, error));
    BASIN_TRY(train(&all, &j, settings, model != NULL, error));
    basin_info_fill(result, &all, sizeof all);
    if (read) basin_info_fill(read, &j.read, sizeof j.read);
    if (model) *model = j.model, j.model = NULL;
    return BASIN_OK;
}

/* ---- Settings that fit the pictures, or the model to begin with, where the caller has not said
 * any: see basin_image_fit in include/basin/tasks/image.h ---- */

/* Small pictures keep their size, cut to whole patches; larger ones are trained on in parts. */
static basin_status from_pictures(basin_image_settings *s, const char **preset,
                                  const basin_image_set *set, basin_error *error) {
    enum { SMALL = 48, MIN_SIZE = 8 };
    appearance look;
    BASIN_TRY(look_at(&look, set, error));
    *preset = look.side > SMALL ? "photos" : look.colour ? "cifar10" : "fashion";
    BASIN_TRY(basin_settings_preset(s, &basin_image_task, *preset, error));
    int64_t size = look.side < s->size || look.side <= SMALL ? look.side : s->size;
    size -= size % s->patch;
    s->size = size < MIN_SIZE ? MIN_SIZE : size;
    s->channels = look.colour ? 3 : 1;
    return BASIN_OK;
}

/* Settings under those that were given; a batch larger than the set is halved until it fits. */
static basin_status fit(basin_settings *settings, const char **preset, const basin_image_set *set,
                        const char *from, basin_error *error) {
    basin_image_settings s;
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    if (from) BASIN_TRY(basin_model_read(&bundle, from, error));
    BASIN_TRY(from ? basin_settings_take(&s, &basin_image_task, bundle, error)
                   : from_pictures(&s, preset, set, error));
    while (s.batch > set->items && s.batch > 1) s.batch /= 2;
    s.shards = 0; /* of that run's ranks */
    basin_settings_underlay(settings, &s);
    return BASIN_OK;
}

basin_status basin_image_fit(basin_settings *settings, char *summary, size_t size,
                             const basin_image_source *source, const char *from,
                             basin_error *error) {
    const basin_image_settings *s = settings->values;
    const char *preset = NULL;
    BASIN_AT_EXIT(basin_image_set_close) basin_image_set set = {0};
    if (size) *summary = 0;
    BASIN_TRY(basin_settings_of(settings, &basin_image_task, error));
    BASIN_TRY(basin_image_set_open(&set, source, false, (uint64_t)s->seed, error));
    BASIN_TRY(fit(settings, &preset, &set, from, error));
    snprintf(summary, size, "%s %s, %lld channel%s, %lld pixels, batch %lld: from the %s",
             from ? "settings of" : "preset", from ? from : preset, (long long)s->channels,
             s->channels == 1 ? "" : "s", (long long)s->size, (long long)s->batch,
             from ? "model" : "pictures");
    return BASIN_OK;
}
