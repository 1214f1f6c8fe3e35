/* Training a model of text: what a step and a score are; the run (train/run/run.h) does the rest.
 *
 * The windows of step t, and what dropout takes from them, are functions of the seed and t. */
#include "basin/random.h"
#include "task/text/text.h"
#include "train/shards/shards.h"

/* Windows come from another seed than weights and dropout do. */
enum { LOG_STEPS = 20, SCORED_WINDOWS = 512, WINDOW_SALT = 0x77696e64 };

/* ---- settings and vocabulary ---- */

/* A run that goes on, or begins with a model, has that file's vocabulary. */
static basin_status open_vocabulary(basin_vocabulary *vocabulary, basin_text_settings *s,
                                    const basin_run *run, const basin_text *text,
                                    basin_error *error) {
    const basin_bundle *file = run->saved;
    if (!file) file = run->from;
    if (!file) {
        BASIN_TRY(
            basin_vocabulary_make(vocabulary, basin_text_tokens_of(s), s->vocabulary, text, error));
    } else {
        basin_text_settings its;
        BASIN_TRY(basin_settings_take(&its, &basin_text_task, file, error));
        BASIN_TRY(basin_text_vocabulary_read(vocabulary, &its, file, error));
    }
    s->vocabulary = vocabulary->count;
    return BASIN_OK;
}

static basin_status match_checkpoint(basin_text_settings *s, const basin_run *run,
                                     basin_error *error) {
    basin_text_settings saved = {0};
    const basin_training *training = &run->training;
    const basin_bundle *checkpoint = run->saved;
    if (checkpoint) BASIN_TRY(basin_settings_take(&saved, &basin_text_task, checkpoint, error));
    s->shards = basin_shards_choose(s->shards, saved.shards, s->batch, training->ranks);
    if (checkpoint) BASIN_TRY(basin_run_match(run, &saved, s, basin_text_task.table, error));
    return basin_shards_check(s->shards, s->batch, error);
}

/* Shapes are compared where weights are read; this is what shapes do not show. */
static basin_status match_from(const basin_text_settings *s, const basin_run *run,
                               basin_error *error) {
    static const char *const same[] = {"arch", "tokens", "context", "heads", "steps",
                                       "feed", "tied",   "bias",    NULL};
    basin_text_settings its;
    const basin_bundle *from = run->from;
    if (!from) return BASIN_OK;
    BASIN_TRY(basin_settings_take(&its, &basin_text_task, from, error));
    return basin_settings_match_weights(&its, s, basin_text_task.table, same,
                                        basin_bundle_path(from), error);
}

typedef struct job {
    basin_run *run;
    const basin_training *training;
    basin_text_data data;
    basin_text_model *model;
    basin_text_graph graph;
    basin_expr label;
    basin_trainer trainer;
    basin_shards shards;
    basin_text_corpus train, validation;
    int32_t *id, *wanted; /* [batch, context] of all shards */
    int64_t per_epoch;    /* steps */
} job;

/* ---- the text ---- */

static basin_status check_data(const basin_text_data *d, const basin_text_settings *s,
                               basin_error *error) {
    if (!d->train.length || (!d->train.bytes && !d->train.id))
        return basin_fail(error, BASIN_BAD_VALUE, "there is no text to train on");
    if (d->train.id && !basin_choice_is(s->tokens, "ids"))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "the text is numbers of tokens and tokens is '%s', wanted 'ids'",
                          s->tokens);
    if (!(d->hold_out >= 0 && d->hold_out <= 0.5))
        return basin_fail(error, BASIN_BAD_VALUE, "hold_out is %g, wanted 0 to 0.5", d->hold_out);
    if (d->hold_out > 0 && d->validation.length)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "hold_out is %g and there is a validation text; wanted one of the two",
                          d->hold_out);
    return BASIN_OK;
}

static basin_status check_sizes(const job *j, basin_error *error) {
    const basin_text_settings *s = &j->model->settings;
    if (j->train.count <= s->context)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "the training text has %lld tokens, wanted more than the context, %lld",
                          (long long)j->train.count, (long long)s->context);
    if (s->patience && j->validation.count < 2)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "patience is %lld without a validation text; wanted one, or a part that "
                          "is held out",
                          (long long)s->patience);
    return BASIN_OK;
}

static basin_status check_origin(const job *j, basin_error *error) {
    const basin_bundle *checkpoint = j->run->saved;
    if (!checkpoint) return BASIN_OK;
    basin_text_origin saved = basin_text_origin_read(checkpoint);
    if (basin_text_origin_equal(&saved, &j->model->origin) && saved.train == j->model->origin.train)
        return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: its run trains on the first %lld of %lld bytes of a text, this one has "
                      "%lld of %lld, or other ones; wanted the same text",
                      basin_bundle_path(checkpoint), (long long)saved.train,
                      (long long)saved.length, (long long)j->model->origin.train,
                      (long long)j->model->origin.length);
}

/* A long validation text is scored in parts: nobody waits for all of it after every epoch. */
static void tell_limit(const job *j) {
    int64_t windows = j->validation.count / j->model->settings.context;
    if (windows > SCORED_WINDOWS)
        basin_watch_note(j->training->watch,
                         "of about %lld windows of the validation text, %d are scored after an "
                         "epoch",
                         (long long)windows, SCORED_WINDOWS);
}

static basin_status open_text(job *j, basin_error *error) {
    const basin_text_data *d = &j->data;
    const basin_vocabulary *vocabulary = &j->model->vocabulary;
    size_t cut = basin_text_cut(&d->train, d->hold_out);
    basin_text train = basin_text_slice(&d->train, 0, cut);
    basin_text other =
        d->validation.length ? d->validation : basin_text_slice(&d->train, cut, d->train.length);
    j->model->origin = basin_text_origin_of(&d->train, cut);
    BASIN_TRY(check_origin(j, error));
    BASIN_TRY(basin_text_corpus_new(&j->train, vocabulary, &train, "the training text", error));
    if (other.length)
        BASIN_TRY(basin_text_corpus_new(&j->validation, vocabulary, &other, "the validation text",
                                        error));
    BASIN_TRY(check_sizes(j, error));
    tell_limit(j);
    return BASIN_OK;
}

/* ---- what trains ---- */

static basin_optimiser optimiser_named(const char *name) {
    if (basin_choice_is(name, "lion")) return BASIN_LION;
    return basin_choice_is(name, "sgd") ? BASIN_SGD : BASIN_ADAMW;
}

static basin_status make_trainer(job *j, basin_error *error) {
    const basin_text_settings *s = &j->model->settings;
    int64_t rows = s->batch * s->context, windows = s->batch / s->shards;
    j->per_epoch = s->epoch_steps ? s->epoch_steps : (j->train.count + rows - 1) / rows;
    BASIN_TRY(basin_text_graph_new(&j->graph, s, windows, s->context,
                                   (basin_text_wish){.training = true}, error));
    j->model->parameters = basin_params_total(&j->graph.params);
    j->label = basin_index(j->graph.graph, "label", BASIN_SHAPE(windows * s->context));
    basin_expr logits = basin_language_logits(&j->graph.net, j->graph.x);
    basin_expr loss = basin_language_loss(logits, j->label);
    const basin_adamw_group vectors[] = {{"tok", s->embedding_rate, 1},
                                         {"pos", s->embedding_rate, 1}};
    basin_trainer_spec spec = {
        .adamw = {0.9, s->beta2, 1e-8, s->decay, s->clip, optimiser_named(s->optimiser),
                  .decay_of = basin_decay_matrices, .group = vectors, .groups = 2},
        .schedule = BASIN_SCHEDULE_OF(s, j->per_epoch)};
    BASIN_TRY(basin_shards_trainer_new(&j->shards, &j->trainer, j->training, s->shards,
                                       j->model->store, &j->graph.params, loss, &spec, error));
    BASIN_TRY(BASIN_NEW_RAW(&j->id, rows, "a batch", error));
    BASIN_TRY(BASIN_NEW_RAW(&j->wanted, rows, "a batch", error));
    return basin_run_hold(j->run, basin_plan_bytes(j->trainer.plan),
                          s->recompute ? "more shards" : "more shards, or recompute", error);
}

static void job_free(job *j) {
    basin_shards_end(&j->shards);
    basin_trainer_free(&j->trainer);
    basin_text_graph_free(&j->graph);
    basin_text_corpus_free(&j->train);
    basin_text_corpus_free(&j->validation);
    basin_text_close(j->model);
    basin_run_close(j->run);
    BASIN_FREE(j->id, j->wanted);
}

/* ---- steps ---- */

/* Random windows, every one equally likely. */
static void draw_windows(job *j, int64_t step) {
    const basin_text_settings *s = &j->model->settings;
    uint64_t starts = (uint64_t)(j->train.count - s->context);
    basin_random random = basin_random_start((uint64_t)s->seed ^ WINDOW_SALT, (uint64_t)step, 0);
    for (int64_t i = 0; i < s->batch; i++) {
        const int32_t *from = j->train.id + basin_random_below(&random, starts);
        size_t bytes = (size_t)s->context * sizeof *from;
        memcpy(j->id + i * s->context, from, bytes);
        memcpy(j->wanted + i * s->context, from + 1, bytes);
    }
}

/* Shard `shard` of the batch that was drawn; all weigh the same. Each draws its own dropout. */
static basin_status write_shard(void *context, double *weight, int64_t step, int64_t shard,
                                basin_error *error) {
    job *j = context;
    basin_plan *plan = j->trainer.plan;
    const basin_text_settings *s = &j->model->settings;
    int64_t at = shard * j->graph.windows * s->context, draw = step * s->shards + shard;
    int32_t seed[2] = {(int32_t)(s->seed & 0x7fffffff), (int32_t)(draw & 0x7fffffff)};
    *weight = (double)j->graph.windows;
    BASIN_TRY(basin_values_write(plan, j->graph.ids, j->id + at, BASIN_I32, error));
    BASIN_TRY(basin_values_write(plan, j->label, j->wanted + at, BASIN_I32, error));
    return basin_values_write(plan, j->graph.seed, seed, BASIN_I32, error);
}

static basin_status step(void *context, basin_run_sum *sum, const basin_run_place *place,
                         basin_error *error) {
    job *j = context;
    double loss;
    draw_windows(j, place->step);
    BASIN_TRY(basin_shards_run(&j->shards, &j->trainer, place->step, write_shard, j, error));
    BASIN_TRY(basin_shards_loss(&j->shards, &loss, &j->trainer, error));
    sum->loss += loss;
    sum->weight += 1;
    return BASIN_OK;
}

static basin_status score(void *context, basin_score *score, const basin_run_place *place,
                          basin_error *error) {
    job *j = context;
    basin_text_scores scores;
    basin_text_scoring scoring = {.limit = SCORED_WINDOWS};
    BASIN_TRY(basin_text_score_corpus(&scores, j->model, &j->validation, &scoring, false, error));
    score->merit = -scores.loss;
    basin_score_add(score, "validation_loss", scores.loss);
    if (j->validation.bytes) basin_score_add(score, "validation_bits", scores.bits);
    if (j->validation.bytes)
        basin_watch_note(j->training->watch, "epoch %lld: validation loss %.4f, %.3f bits per byte",
                         (long long)place->epoch, scores.loss, scores.bits);
    else
        basin_watch_note(j->training->watch, "epoch %lld: validation loss %.4f",
                         (long long)place->epoch, scores.loss);
    basin_text_scores_free(&scores);
    return BASIN_OK;
}

static basin_status describe(void *context, basin_bundle *checkpoint, basin_error *error) {
    return basin_text_describe(checkpoint, ((job *)context)->model, error);
}

static basin_status write_model(void *context, const char *path, basin_error *error) {
    return basin_text_write(path, ((job *)context)->model, error);
}

/* ---- the whole ---- */

static basin_run_task task_of(job *j) {
    const basin_text_settings *s = &j->model->settings;
    bool scored = j->validation.count > 1;
    return (basin_run_task){
        .context = j,
        .unit = "tokens",
        .members = 1,
        .epochs = s->epochs,
        .steps = j->per_epoch,
        .items = j->per_epoch * s->batch * s->context,
        .log_every = LOG_STEPS,
        .patience = s->patience,
        .choose = scored,
        .memory = basin_plan_bytes(j->trainer.plan),
        .schedule = j->trainer.schedule,
        .store = j->model->store,
        .params = &j->graph.params,
        .seed = (uint64_t)s->seed,
        .data = strtoull(j->model->origin.hash, NULL, 16),
        .some_moments = optimiser_named(s->optimiser) != BASIN_ADAMW || s->embedding_rate == 0,
        .step = step,
        .score = scored ? score : NULL,
        .describe = describe,
        .write = write_model,
    };
}

static basin_status open_model(job *j, const basin_text_settings *asked, basin_error *error) {
    BASIN_AT_EXIT(basin_vocabulary_free) basin_vocabulary vocabulary = {0};
    basin_text_settings settings = *asked;
    BASIN_TRY(match_from(&settings, j->run, error));
    BASIN_TRY(open_vocabulary(&vocabulary, &settings, j->run, &j->data.train, error));
    BASIN_TRY(match_checkpoint(&settings, j->run, error));
    return basin_text_model_bare(&j->model, &settings, &vocabulary, j->training->backend, error);
}

static basin_status train(basin_outcome *outcome, job *j, basin_text_settings settings,
                          basin_error *error) {
    j->training = &j->run->training;
    if (outcome->finished_before) {
        BASIN_TRY(basin_text_open(&j->model, j->training->output, j->training->backend, error));
        outcome->parameters = j->model->parameters;
        return BASIN_OK;
    }
    /* Numbers of tokens are read as such unless another kind of token was asked for. */
    if (j->data.train.id && basin_choice_is(settings.tokens, "characters")) settings.tokens = "ids";
    BASIN_TRY(check_data(&j->data, &settings, error));
    BASIN_TRY(open_model(j, &settings, error));
    BASIN_TRY(open_text(j, error));
    BASIN_TRY(make_trainer(j, error));
    basin_run_task task = task_of(j);
    return basin_run_train(outcome, j->run, &task, error);
}

basin_status basin_text_train(basin_text_model **model, basin_outcome *outcome,
                              const basin_settings *settings, const basin_text_data *data,
                              const basin_training *training, basin_error *error) {
    BASIN_AT_EXIT(job_free) job j = {.data = *data};
    if (model) *model = NULL;
    BASIN_TRY(basin_run_begin(&j.run, outcome, settings, &basin_text_task, training, error));
    BASIN_TRY(train(outcome, &j, *(const basin_text_settings *)settings->values, error));
    if (model) *model = j.model, j.model = NULL;
    return BASIN_OK;
}
