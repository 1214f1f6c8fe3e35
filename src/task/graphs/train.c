/* Training of graph models: epochs of shuffled batches, a score on the validation graphs after
 * each, the weights of the best epoch kept (in the store, as "best.NAME", so that a checkpoint has
 * them, too). Everything random is a function of seed and epoch or step: a resumed run goes on to
 * the same bits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "basin/random.h"
#include "task/graphs/build.h"

enum { STREAM_SHUFFLE = 44 };

typedef struct state {
    basin_graphs_session *session;
    const basin_graphs_run *run;
    basin_graphs_outcome *outcome;
    basin_graphs_plans train, score;
    basin_run_log log;
    int64_t *order, *batch; /* [trains] */
    int64_t epoch;          /* epochs done */
    double sum;             /* of this epoch's losses so far */
    double saved;           /* when the last checkpoint was written */
    double best;            /* merit of the best epoch */
    double *seconds;        /* [epochs] */
    int64_t timed;
} state;

int64_t *basin_graphs_range(int64_t first, int64_t count) {
    int64_t *list = basin_array_new((size_t)count, sizeof *list);
    for (int64_t i = 0; list && i < count; i++) list[i] = first + i;
    return list;
}

/* ---- the best weights ---- */

static basin_status copy_state(basin_store *store, const char *from, const char *to,
                               basin_error *error) {
    basin_tensor tensor;
    basin_status status = basin_store_read(store, from, &tensor, error);
    if (status) return status;
    status = basin_store_write(store, to, &tensor, error);
    basin_tensor_free(&tensor);
    return status;
}

/* Whether a state is a parameter: neither a moment nor a copy. */
static bool is_parameter(const char *name) {
    size_t n = strlen(name);
    bool moment = n > 2 && (!strcmp(name + n - 2, ".m") || !strcmp(name + n - 2, ".v"));
    return !moment && strncmp(name, "best.", 5) != 0 && strncmp(name, "run.", 4) != 0;
}

/* Names move when states are added, so they are copied first. */
static basin_status keep_best(basin_store *store, bool back, basin_error *error) {
    int count = basin_store_count(store);
    basin_status status = BASIN_OK;
    for (int i = 0; i < count && !status; i++) {
        char name[300], best[320];
        snprintf(name, sizeof name, "%s", basin_store_name(store, i));
        snprintf(best, sizeof best, "best.%s", name);
        if (is_parameter(name))
            status =
                back ? copy_state(store, best, name, error) : copy_state(store, name, best, error);
    }
    return status;
}

/* ---- checkpoints ---- */

/* The numbers of a run beside its weights: epochs done, best epoch, its scores. */
enum { RUN_NUMBERS = 9 };

static basin_status write_numbers(state *s, basin_error *error) {
    const basin_graphs_score *v = &s->outcome->validation;
    double number[RUN_NUMBERS] = {(double)s->epoch, (double)s->outcome->best_epoch,
                                  s->best,          (double)v->items,
                                  v->accuracy,      v->balanced,
                                  v->loss,          v->deviation};
    if (!isfinite(number[2])) number[2] = -1e30;
    basin_tensor t = basin_tensor_borrow(number, BASIN_F64, BASIN_SHAPE(RUN_NUMBERS));
    return basin_store_write(s->session->store, "run.numbers", &t, error);
}

static basin_status read_numbers(state *s, basin_error *error) {
    basin_tensor t;
    basin_status status = basin_store_read(s->session->store, "run.numbers", &t, error);
    if (status) return status;
    s->epoch = (int64_t)basin_tensor_at(&t, 0);
    s->outcome->best_epoch = (int64_t)basin_tensor_at(&t, 1);
    s->best = basin_tensor_at(&t, 2);
    s->outcome->validation = (basin_graphs_score){(int64_t)basin_tensor_at(&t, 3),
                                                  basin_tensor_at(&t, 4), basin_tensor_at(&t, 5),
                                                  basin_tensor_at(&t, 6), basin_tensor_at(&t, 7)};
    s->sum = basin_tensor_at(&t, 8);
    basin_tensor_free(&t);
    return BASIN_OK;
}

static basin_status write_checkpoint(state *s, basin_error *error) {
    basin_meta meta[3];
    if (!s->run->checkpoint) return BASIN_OK;
    basin_status status = write_numbers(s, error);
    if (!status) status = basin_graphs_session_meta(meta, s->session, error);
    if (status) return status;
    status = basin_checkpoint_write(s->run->checkpoint, s->session->store, s->train.step, meta, 3,
                                    error);
    basin_graphs_session_meta_free(meta);
    return status;
}

/* States that training makes must be there before a checkpoint can fill them. */
static basin_status make_states(state *s, basin_error *error) {
    basin_graphs_plan *plan;
    basin_graphs_capacity room = {1, 3, 8};
    basin_status status = keep_best(s->session->store, false, error);
    if (!status) status = write_numbers(s, error);
    if (!status) status = basin_graphs_plan_new(&plan, s->session, room, &s->train.schedule, error);
    if (!status) basin_graphs_plan_free(plan);
    return status;
}

static basin_status resume(state *s, basin_error *error) {
    basin_bundle *bundle;
    basin_status status = make_states(s, error);
    if (!status) status = basin_bundle_read(&bundle, s->run->checkpoint, error);
    if (status) return status;
    status = basin_checkpoint_read(&s->train.step, s->session->store, bundle, error);
    basin_bundle_free(bundle);
    return status ? status : read_numbers(s, error);
}

/* ---- epochs ---- */

static void show(const state *s, int64_t done, double loss, double began) {
    int64_t total = s->run->trains;
    double spent = basin_clock() - began;
    double speed = spent > 0 ? (double)done / spent : 0;
    int64_t all = s->session->settings.epochs * total, past = s->epoch * total + done;
    basin_news news = {.what = "training",
                       .done = past,
                       .total = all,
                       .loss = loss,
                       .speed = speed,
                       .unit = "graphs",
                       .seconds_left = speed > 0 ? (double)(all - past) / speed : NAN};
    basin_watch_show(s->run->watch, &news);
}

/* Begins where a checkpoint left the epoch. */
static basin_status run_epoch(state *s, basin_error *error) {
    const basin_graphs_run *r = s->run;
    int64_t size = s->train.batch, steps = (r->trains + size - 1) / size;
    int64_t from = (s->train.step - s->epoch * steps) * size;
    double began = basin_clock();
    basin_status status = BASIN_OK;
    basin_random_permutation(s->order, (size_t)r->trains, (uint64_t)s->session->settings.seed,
                             STREAM_SHUFFLE + ((uint64_t)s->epoch << 8));
    for (int64_t i = 0; i < r->trains; i++) s->batch[i] = r->train[s->order[i]];
    for (int64_t at = from; at < r->trains && !status; at += size) {
        int64_t now = r->trains - at < size ? r->trains - at : size;
        if (basin_watch_stopped(r->watch)) break;
        status = basin_graphs_plans_step(&s->train, &s->sum, r->set, r->positions, s->batch + at,
                                         now, (uint64_t)s->epoch, error);
        if (!status) show(s, at + now, at > 0 ? s->sum / (double)at : NAN, began);
    }
    if (!status) status = basin_graphs_plans_settle(&s->train, &s->sum, error);
    s->seconds[s->timed++] = basin_clock() - began;
    return status;
}

static basin_status write_log(state *s, double loss, const basin_graphs_score *score,
                              basin_error *error) {
    if (!s->log.file) return BASIN_OK;
    const basin_schedule *c = &s->train.schedule;
    basin_json line = basin_log_line(&s->log);
    basin_json_integer(&line, "step", s->train.step);
    basin_json_integer(&line, "epoch", s->epoch);
    if (s->run->protocol) basin_json_text(&line, "protocol", s->run->protocol);
    basin_json_number(&line, "loss", loss);
    basin_json_number(
        &line, "rate",
        basin_rate_cosine(s->train.step, c->warmup, c->total, c->first, c->peak, c->last));
    if (s->run->validations && s->session->task == BASIN_GRAPHS_VALUES)
        basin_json_number(&line, "validation_mae", score->loss);
    else if (s->run->validations) {
        basin_json_number(&line, "validation_accuracy", score->accuracy);
        basin_json_number(&line, "validation_balanced", score->balanced);
        basin_json_number(&line, "validation_loss", score->loss);
    }
    basin_json_number(&line, "seconds", s->seconds[s->timed - 1]);
    basin_json_integer(&line, "bytes", (int64_t)basin_graphs_plans_bytes(&s->train));
    return basin_log_end(&s->log, &line, error);
}

/* As a checkpoint keeps it, so that a resumed run judges alike. */
static double merit_of(const state *s, const basin_graphs_score *score) {
    return (double)(float)basin_graphs_merit(score, s->session->task);
}

/* Ties of the merit go to the lower loss: validation sets are small, and ties common. */
static bool is_better(const state *s, const basin_graphs_score *score) {
    double merit = merit_of(s, score);
    if (!s->outcome->best_epoch || merit > s->best) return true;
    return merit == s->best && (float)score->loss < (float)s->outcome->validation.loss;
}

static basin_status judge(state *s, basin_graphs_score *score, basin_error *error) {
    const basin_graphs_run *r = s->run;
    *score = (basin_graphs_score){0};
    if (!r->validations) {
        s->outcome->best_epoch = s->epoch;
        return BASIN_OK;
    }
    basin_status status = basin_graphs_evaluate(score, &s->score, r->set, r->positions,
                                                r->validation, r->validations, error);
    if (status || !is_better(s, score)) return status;
    s->best = merit_of(s, score);
    s->outcome->validation = *score;
    s->outcome->best_epoch = s->epoch;
    return keep_best(s->session->store, false, error);
}

static bool done(const state *s) {
    const basin_graphs_run *r = s->run;
    if (s->epoch >= s->session->settings.epochs) return true;
    return r->patience && r->validations && s->epoch - s->outcome->best_epoch >= r->patience;
}

/* A checkpoint now and then, at the end, and wherever the run is stopped. */
static basin_status save(state *s, bool now, basin_error *error) {
    double time = basin_clock();
    if (!now && time - s->saved < s->run->checkpoint_seconds) return BASIN_OK;
    s->saved = time;
    return write_checkpoint(s, error);
}

static basin_status run_all(state *s, basin_error *error) {
    const basin_graphs_run *r = s->run;
    basin_status status = BASIN_OK;
    s->saved = basin_clock();
    while (!done(s) && !status) {
        basin_graphs_score score;
        status = run_epoch(s, error);
        s->outcome->stopped = basin_watch_stopped(r->watch);
        if (status) break;
        if (s->outcome->stopped) return save(s, true, error);
        s->epoch++;
        double loss = s->outcome->loss = s->sum / (double)r->trains;
        s->sum = 0;
        status = judge(s, &score, error);
        if (!status) status = write_log(s, loss, &score, error);
        if (!status && r->epoch) r->epoch(r->context, s->epoch, loss, &score);
        if (!status) status = save(s, done(s), error);
    }
    return status;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static basin_status prepare(state *s, basin_error *error) {
    const basin_graphs_run *r = s->run;
    const basin_graphs_settings *c = &s->session->settings;
    int64_t batch = c->batch < r->trains ? c->batch : r->trains;
    int64_t steps = batch ? (r->trains + batch - 1) / batch : 0;
    basin_schedule schedule =
        basin_schedule_make(steps, c->epochs, c->warmup, c->rate, c->rate_first, c->rate_last);
    if (!r->trains) return basin_fail(error, BASIN_BAD_VALUE, "no graphs to train on");
    basin_graphs_plans_begin(&s->train, s->session, r->set, r->train, r->trains, &schedule);
    basin_graphs_plans_begin(&s->score, s->session, r->set, r->validation, r->validations, NULL);
    s->order = basin_array_new((size_t)r->trains, sizeof *s->order);
    s->batch = basin_array_new((size_t)r->trains, sizeof *s->batch);
    s->seconds = basin_array_new((size_t)c->epochs + 1, sizeof *s->seconds);
    if (!s->order || !s->batch || !s->seconds)
        return basin_fail(error, BASIN_NO_MEMORY, "no memory for a training run");
    basin_status status = r->resume ? resume(s, error) : BASIN_OK;
    return status
               ? status
               : basin_log_open(&s->log, r->log,
                                r->resume ? &(basin_log_place){0, s->epoch, s->train.step} : NULL,
                                error);
}

basin_status basin_graphs_train(basin_graphs_outcome *outcome, basin_graphs_session *session,
                                const basin_graphs_run *run, basin_error *error) {
    state s = {.session = session, .run = run, .outcome = outcome, .best = -INFINITY};
    *outcome = (basin_graphs_outcome){0};
    double began = basin_clock();
    basin_status status = prepare(&s, error);
    if (!status) status = run_all(&s, error);
    outcome->bytes = basin_graphs_plans_bytes(&s.train);
    if (!status && run->validations && outcome->best_epoch && !outcome->stopped)
        status = keep_best(session->store, true, error);
    outcome->epochs = s.epoch;
    outcome->seconds = basin_clock() - began;
    if (s.timed) {
        qsort(s.seconds, (size_t)s.timed, sizeof *s.seconds, by_size);
        outcome->epoch_seconds = s.seconds[s.timed / 2];
    }
    basin_log_close(&s.log);
    basin_graphs_plans_free(&s.train);
    basin_graphs_plans_free(&s.score);
    free(s.order);
    free(s.batch);
    free(s.seconds);
    return status;
}
