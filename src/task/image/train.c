/* The training run of masked images; see image_train.h.
 *
 * Everything drawn in step t (the pictures, their crops, their masks) is a function of the seed and
 * t, so a checkpoint is the store and the step. */
#include "task/image/train.h"
#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/memory.h"
#include "io/file.h"
#include "task/image/eval.h"
#include "train/run/log.h"

/* Masks of training and of evaluation come from other seeds than weights and crops do. */
enum { MASK_SALT = 0x6d61736b, LOG_STEPS = 20 };

typedef struct state {
    const basin_image_run *run;
    basin_image_outcome *outcome;
    basin_image_session session;
    basin_image_graph graph;
    basin_trainer trainer;
    basin_image_data data, test;
    basin_image_input *input;
    basin_run_log log;
    char *checkpoint;
    uint8_t *mask;            /* [B, N] */
    float *replaced, *counts; /* [B, N] */
    int64_t masked_step;      /* the step that they are of; -1: none yet */
    int64_t first_step, per_epoch, total;
    double begun, saved;
    double epoch_loss, recent_loss; /* sums */
    int64_t epoch_steps, recent_steps;
    double recent_since;
} state;

char *basin_image_checkpoint_path(const char *out) {
    static const char suffix[] = ".checkpoint";
    size_t length = strlen(out);
    char *path = malloc(length + sizeof suffix);
    if (!path) return NULL;
    memcpy(path, out, length);
    memcpy(path + length, suffix, sizeof suffix);
    return path;
}

/* ---- beginning ---- */

static basin_status make_trainer(state *s, basin_error *error) {
    const basin_image_settings *c = &s->session.settings;
    int64_t per_epoch = s->per_epoch = s->data.items / c->batch;
    basin_status status = basin_image_graph_new(&s->graph, c, c->batch, error);
    if (status) return status;
    s->total = per_epoch * c->epochs;
    basin_expr loss = basin_image_loss(s->graph.output, s->graph.patches, s->graph.occluded);
    basin_trainer_spec spec = {
        .adamw = {0.9, c->beta2, 1e-8, c->decay, c->clip},
        .schedule = basin_schedule_make(per_epoch, c->epochs, c->warmup, c->rate, c->rate_first,
                                        c->rate_last),
    };
    status = basin_trainer_new(&s->trainer, s->session.store, &s->graph.params, loss, &spec, error);
    if (status) return status;
    basin_plan_stats stats = basin_plan_get_stats(s->trainer.plan);
    s->outcome->memory = stats.arena_bytes + stats.input_bytes + stats.state_bytes;
    s->outcome->parameters = basin_params_total(&s->graph.params);
    return BASIN_OK;
}

static basin_status make_buffers(state *s, basin_error *error) {
    const basin_image_settings *c = &s->session.settings;
    size_t count = (size_t)(c->batch * basin_image_tokens(c));
    s->mask = basin_array_new(count, sizeof *s->mask);
    s->replaced = basin_array_new(count, sizeof *s->replaced);
    s->counts = basin_array_new(count, sizeof *s->counts);
    if (s->mask && s->replaced && s->counts) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "no memory for a batch of masks");
}

/* What a checkpoint may not differ in: all but how it is to go on. */
static basin_status same_run(const basin_image_settings *saved, const basin_image_settings *asked,
                             const char *path, basin_error *error) {
    basin_image_settings like = *asked;
    like.recompute = saved->recompute;
    if (!(like.deviation[0] > 0)) {
        memcpy(like.mean, saved->mean, sizeof like.mean);
        memcpy(like.deviation, saved->deviation, sizeof like.deviation);
    }
    return basin_settings_match(saved, &like, basin_image_task.table, path, error);
}

/* What crops are cut from stays as it was when the run began, so that "auto" may see another memory
 * after a kill. */
static basin_status make_input(state *s, const basin_bundle *checkpoint, basin_error *error) {
    const basin_image_run *run = s->run;
    const char *cut = run->cut ? run->cut : "auto", *saved = NULL;
    if (checkpoint) {
        saved = basin_bundle_meta(checkpoint, "basin.cut");
        if (!saved) saved = "files";
        if (strcmp(cut, "auto") != 0 && strcmp(cut, saved) != 0)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: its crops are cut from '%s', wanted '%s'; resume with the same, "
                              "or train without --resume",
                              s->checkpoint, saved, cut);
        cut = saved;
    }
    basin_image_input_config config = {.data = &s->data,
                                       .settings = &s->session.settings,
                                       .backend = run->backend,
                                       .keep = run->keep ? run->keep : "auto",
                                       .cut = cut,
                                       .threads = run->loader_threads,
                                       .watch = run->watch};
    basin_status status = basin_image_input_new(&s->input, &config, error);
    if (!status) {
        s->outcome->keep = basin_image_input_keep(s->input);
        s->outcome->cut = basin_image_input_cut(s->input);
    }
    return status;
}

/* The settings to train with: the run's, with the statistics of the checkpoint or measured. */
static basin_status choose_settings(basin_image_settings *settings, state *s,
                                    const basin_bundle *checkpoint, basin_error *error) {
    *settings = s->run->settings;
    if (!checkpoint) return basin_image_measure(settings, &s->data, error);
    basin_image_settings saved;
    basin_status status = basin_image_settings_read(&saved, checkpoint, error);
    if (!status) status = same_run(&saved, settings, s->checkpoint, error);
    memcpy(settings->mean, saved.mean, sizeof saved.mean);
    memcpy(settings->deviation, saved.deviation, sizeof saved.deviation);
    return status;
}

static basin_status begin(state *s, const basin_bundle *checkpoint, basin_error *error) {
    const basin_image_run *run = s->run;
    basin_image_settings settings;
    basin_status status = basin_image_data_open(&s->data, &run->train, error);
    if (!status && run->test.paths) status = basin_image_data_open(&s->test, &run->test, error);
    if (!status) status = choose_settings(&settings, s, checkpoint, error);
    if (!status && s->data.items < settings.batch)
        status = basin_fail(error, BASIN_BAD_VALUE,
                            "%lld pictures to train on, wanted at least a batch of %lld",
                            (long long)s->data.items, (long long)settings.batch);
    if (!status) status = basin_image_session_new(&s->session, &settings, run->backend, error);
    if (!status) status = make_trainer(s, error);
    if (!status) status = make_buffers(s, error);
    if (!status) status = make_input(s, checkpoint, error);
    if (!status && checkpoint)
        status = basin_checkpoint_read(&s->trainer.step, s->session.store, checkpoint, error);
    s->first_step = s->trainer.step;
    if (!status)
        status = basin_log_open(
            &s->log, run->log,
            s->first_step ? &(basin_log_place){0, s->first_step / s->per_epoch, s->first_step}
                          : NULL,
            error);
    return status;
}

/* ---- going on ---- */

static basin_status save(state *s, basin_error *error) {
    char *config = basin_settings_print(&s->session.settings, basin_image_task.table, false);
    if (!config) return basin_fail(error, BASIN_NO_MEMORY, "no memory for a configuration");
    basin_meta meta[] = {{"basin.model", "image"},
                         {"basin.config", config},
                         {"basin.cut", basin_image_input_cut(s->input)}};
    basin_status status =
        basin_checkpoint_write(s->checkpoint, s->session.store, s->trainer.step, meta, 3, error);
    cJSON_free(config);
    s->saved = basin_clock();
    return status;
}

static basin_status write_input(state *s, basin_expr input, const float *values,
                                basin_error *error) {
    basin_tensor tensor =
        basin_tensor_borrow((void *)(uintptr_t)values, BASIN_F32, basin_expr_shape(input));
    return basin_plan_write(s->trainer.plan, input, &tensor, error);
}

/* What the host draws for a step, crops and masks. */
static void prepare(state *s, int64_t step) {
    const basin_image_settings *c = &s->session.settings;
    int64_t tokens = basin_image_tokens(c);
    basin_image_input_prepare(s->input, step);
    if (s->masked_step == step) return;
    s->masked_step = step;
    for (int64_t i = 0; i < c->batch; i++)
        basin_image_mask_draw(s->mask + i * tokens, tokens, c->occlude, c->keep,
                              (uint64_t)c->seed ^ MASK_SALT, (uint64_t)(step * c->batch + i));
    for (int64_t i = 0; i < c->batch * tokens; i++) {
        s->replaced[i] = s->mask[i] == BASIN_PATCH_REPLACED;
        s->counts[i] = s->mask[i] != BASIN_PATCH_SHOWN;
    }
}

static basin_status write_batch(state *s, basin_error *error) {
    int64_t step = s->trainer.step;
    prepare(s, step);
    basin_status status =
        basin_image_input_write(s->input, s->trainer.plan, s->graph.patches, step, error);
    if (!status) status = write_input(s, s->graph.replaced, s->replaced, error);
    if (!status) status = write_input(s, s->graph.occluded, s->counts, error);
    return status;
}

static void show(state *s) {
    double now = basin_clock(), speed = NAN;
    const basin_image_settings *c = &s->session.settings;
    int64_t done = s->trainer.step - s->first_step;
    if (done > 0 && now > s->begun) speed = (double)done / (now - s->begun);
    basin_news news = {
        .what = "training",
        .done = s->trainer.step,
        .total = s->total,
        .loss = s->epoch_steps ? s->epoch_loss / (double)s->epoch_steps : NAN,
        .speed = speed * (double)c->batch,
        .unit = "images",
        .seconds_left = (double)(s->total - s->trainer.step) / speed,
    };
    basin_watch_show(s->run->watch, &news);
}

static basin_status log_step(state *s, basin_error *error) {
    double now = basin_clock();
    int64_t every = s->run->log_every > 0 ? s->run->log_every : LOG_STEPS;
    if (!s->log.file || s->trainer.step % every != 0) return BASIN_OK;
    const basin_schedule *r = &s->trainer.schedule;
    basin_json line = basin_log_line(&s->log);
    basin_json_integer(&line, "step", s->trainer.step);
    basin_json_number(&line, "loss", s->recent_loss / (double)s->recent_steps);
    basin_json_number(
        &line, "rate",
        basin_rate_cosine(s->trainer.step - 1, r->warmup, r->total, r->first, r->peak, r->last));
    basin_json_number(&line, "images_per_second",
                      (double)(s->recent_steps * s->session.settings.batch) /
                          (now - s->recent_since));
    s->recent_loss = 0;
    s->recent_steps = 0;
    s->recent_since = now;
    return basin_log_end(&s->log, &line, error);
}

static basin_status end_epoch(state *s, int64_t epoch, basin_error *error) {
    basin_image_outcome *o = s->outcome;
    basin_status status = BASIN_OK;
    bool scored = s->test.pictures && (s->trainer.step == s->total || s->run->test_every < 2 ||
                                       epoch % s->run->test_every == 0);
    o->loss = s->epoch_steps ? s->epoch_loss / (double)s->epoch_steps : NAN;
    if (scored) {
        basin_image_scoring scoring = {.data = &s->test, .masks = 1, .batch = 0};
        basin_image_scores scores;
        status = basin_image_score(&scores, &s->session, &scoring, error);
        if (!status) o->test_mse = scores.mse;
        if (!status) basin_image_scores_free(&scores);
    }
    if (!status && s->log.file) {
        basin_json line = basin_log_line(&s->log);
        basin_json_integer(&line, "step", s->trainer.step);
        basin_json_integer(&line, "epoch", epoch);
        basin_json_number(&line, "train_mse", o->loss);
        if (scored) basin_json_number(&line, "test_mse", o->test_mse);
        basin_json_number(&line, "seconds", basin_clock() - s->begun);
        status = basin_log_end(&s->log, &line, error);
    }
    if (scored)
        basin_watch_note(s->run->watch, "epoch %lld: training loss %.4f, test MSE %.4f",
                         (long long)epoch, o->loss, o->test_mse);
    s->epoch_loss = 0;
    s->epoch_steps = 0;
    return status;
}

static basin_status step(state *s, basin_error *error) {
    double loss;
    basin_status status = write_batch(s, error);
    if (!status) status = basin_trainer_step(&s->trainer, NULL, error);
    if (!status && s->trainer.step < s->total) prepare(s, s->trainer.step);
    if (!status) status = basin_trainer_loss(&s->trainer, &loss, error);
    if (status) return status;
    s->epoch_loss += loss;
    s->recent_loss += loss;
    s->epoch_steps++;
    s->recent_steps++;
    status = log_step(s, error);
    if (!status && s->trainer.step % s->per_epoch == 0)
        status = end_epoch(s, s->trainer.step / s->per_epoch, error);
    if (!status && basin_clock() - s->saved > s->run->save_every) status = save(s, error);
    return status;
}

static basin_status go(state *s, basin_error *error) {
    basin_status status = BASIN_OK;
    s->begun = s->saved = s->recent_since = basin_clock();
    while (!status && s->trainer.step < s->total && !basin_watch_stopped(s->run->watch)) {
        status = step(s, error);
        show(s);
    }
    if (status) return status;
    basin_image_outcome *o = s->outcome;
    o->stopped = s->trainer.step < s->total;
    if (o->stopped) {
        status = save(s, error);
        o->loss = s->epoch_steps ? s->epoch_loss / (double)s->epoch_steps : NAN;
    } else {
        status = basin_image_session_write(s->run->out, &s->session, error);
        if (!status) unlink(s->checkpoint);
    }
    return status;
}

static void finish(state *s) {
    basin_image_outcome *o = s->outcome;
    o->settings = s->session.settings;
    o->steps = s->trainer.step;
    o->steps_wanted = s->total;
    o->pictures = s->data.items;
    o->seconds = basin_clock() - s->begun;
    o->images_per_second =
        (double)((o->steps - s->first_step) * o->settings.batch) / fmax(o->seconds, 1e-9);
    o->unreadable = basin_image_input_unreadable(s->input);
    o->waited = basin_image_input_waited(s->input);
    o->kept = basin_image_input_bytes(s->input);
}

static void clean(state *s) {
    basin_log_close(&s->log);
    basin_image_input_free(s->input);
    basin_trainer_free(&s->trainer);
    basin_image_graph_free(&s->graph);
    basin_image_session_close(&s->session);
    basin_image_data_close(&s->data);
    basin_image_data_close(&s->test);
    free(s->checkpoint);
    free(s->mask);
    free(s->replaced);
    free(s->counts);
}

basin_status basin_image_train(basin_image_outcome *outcome, const basin_image_run *run,
                               basin_error *error) {
    state s = {.run = run, .outcome = outcome, .masked_step = -1};
    basin_bundle *checkpoint = NULL;
    *outcome = (basin_image_outcome){.loss = NAN, .test_mse = NAN};
    basin_status status = basin_image_settings_check(&run->settings, error);
    if (status) return status;
    s.checkpoint = basin_image_checkpoint_path(run->out);
    if (!s.checkpoint) return basin_fail(error, BASIN_NO_MEMORY, "no memory for a path");
    if (run->resume) basin_writer_sweep(s.checkpoint);
    if (run->resume && access(s.checkpoint, F_OK) == 0) {
        status = basin_bundle_read(&checkpoint, s.checkpoint, error);
        outcome->resumed = !status;
    } else if (run->resume && access(run->out, F_OK) == 0)
        outcome->finished_before = true;
    if (!status && !outcome->finished_before) {
        status = begin(&s, checkpoint, error);
        if (!status) status = go(&s, error);
        if (!status) finish(&s);
    }
    basin_bundle_free(checkpoint);
    clean(&s);
    return status;
}
