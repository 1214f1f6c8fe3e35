/* The loop of a run: members, epochs, steps, and what happens between them; see run.h. */
#include "tasks/common/run/run.h"
#include "base/file.h"
#include "base/info.h"
#include "base/training.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sort.h"
#include "basin/train.h"

static basin_run_place place_of(const basin_run *r) {
    const basin_run_state *at = &r->at;
    return (basin_run_place){.member = at->member,
                             .epoch = at->epoch,
                             .step = at->step,
                             .batch = at->step - at->epoch * r->task->steps};
}

static void add(basin_run_sum *to, const basin_run_sum *sum) {
    to->loss += sum->loss;
    to->weight += sum->weight;
}

static double mean(const basin_run_sum *sum) {
    return sum->weight > 0 ? sum->loss / sum->weight : NAN;
}

static basin_status settle(basin_run *r, basin_error *error) {
    basin_run_sum sum = {0};
    if (!r->task->settle) return BASIN_OK;
    basin_status status = r->task->settle(r->task->context, &sum, error);
    add(&r->at.epoch_loss, &sum);
    add(&r->at.recent_loss, &sum);
    return status;
}

/* ---- reports and the log ---- */

static void show(const basin_run *r) {
    const basin_run_task *t = r->task;
    const basin_run_state *at = &r->at;
    int64_t all = t->epochs * t->steps;
    int64_t done = at->member * all + at->step, total = t->members * all;
    double pace = r->leg_steps ? (basin_clock() - r->began) / (double)r->leg_steps : NAN;
    double items = (double)t->items / (double)t->steps;
    basin_progress_report news = {.what = "training",
                                  .done = done,
                                  .total = total,
                                  .loss = mean(&at->epoch_loss),
                                  .speed = items / pace,
                                  .unit = t->unit,
                                  .seconds_left = pace * (double)(total - done),
                                  .epoch = at->epoch < t->epochs ? at->epoch + 1 : t->epochs,
                                  .epochs = t->epochs,
                                  .member = at->member + 1,
                                  .members = t->members};
    basin_watch_show(r->training.watch, &news);
}

/* The fields that every line has. */
static basin_json begin_line(basin_run *r, const basin_run_sum *loss) {
    basin_json line = basin_json_begin_line(r->log);
    basin_json_integer(&line, "step", r->at.step);
    if (r->task->members > 1) basin_json_integer(&line, "member", r->at.member);
    basin_json_number(&line, "loss", mean(loss));
    basin_json_number(&line, "rate", basin_schedule_rate(&r->task->schedule, r->at.step - 1));
    return line;
}

static basin_status end_line(const basin_run *r, basin_json *line, basin_error *error) {
    basin_json_end(line);
    if (fflush(r->log) == 0) return BASIN_OK;
    return basin_fail_errno(r->training.log, "write", error);
}

static basin_status log_steps(basin_run *r, basin_error *error) {
    double now = basin_clock();
    int64_t every = r->training.log_every ? r->training.log_every : r->task->log_every;
    if (!every || r->at.step % every != 0) return BASIN_OK;
    if (r->log) {
        BASIN_TRY(settle(r, error));
        double items = (double)(r->task->items * every) / (double)r->task->steps;
        basin_json line = begin_line(r, &r->at.recent_loss);
        basin_json_number(&line, "items_per_second", items / (now - r->recent_since));
        BASIN_TRY(end_line(r, &line, error));
    }
    r->at.recent_loss = (basin_run_sum){0};
    r->recent_since = now;
    return BASIN_OK;
}

static basin_status log_epoch(basin_run *r, const basin_score *score, basin_error *error) {
    if (!r->log) return BASIN_OK;
    basin_json line = begin_line(r, &r->at.epoch_loss);
    basin_json_integer(&line, "epoch", r->at.epoch);
    for (int i = 0; i < score->measures; i++)
        basin_json_number(&line, score->measure[i].name, score->measure[i].value);
    if (r->task->log) r->task->log(r->task->context, &line);
    basin_json_number(&line, "seconds", r->seconds_before + basin_clock() - r->began);
    return end_line(r, &line, error);
}

/* ---- saving ---- */

static basin_status save(basin_run *r, basin_error *error) {
    if (!r->checkpoint) return BASIN_OK;
    BASIN_TRY(settle(r, error));
    r->at.seconds = r->seconds_before + basin_clock() - r->began;
    BASIN_TRY(basin_run_save(r, error));
    r->saved_at = basin_clock();
    return BASIN_OK;
}

static basin_status save_now_and_then(basin_run *r, basin_error *error) {
    bool due = r->checkpoint && basin_clock() - r->saved_at > r->training.save_every;
    return due ? save(r, error) : BASIN_OK;
}

/* ---- the best weights ---- */

/* Ties of the merit go to the other number: validation sets are small, and ties common. */
static bool is_better(const basin_run_state *at, const basin_score *score) {
    if (!at->best_epoch || score->merit > at->best.merit) return true;
    return score->merit == at->best.merit && score->tie > at->best.tie;
}

/* What is scored and kept. */
static const char *scored(const basin_run *r) { return r->task->average > 0 ? "average." : ""; }

/* The averages, where there are any, take the place of the weights meanwhile. */
static basin_status score_weights(basin_run *r, basin_score *score, basin_error *error) {
    const basin_run_task *t = r->task;
    basin_run_place place = place_of(r);
    if (r->task->average > 0) {
        BASIN_TRY(basin_states_copy(t->store, t->params, "aside.", "", error));
        BASIN_TRY(basin_states_copy(t->store, t->params, "", "average.", error));
    }
    BASIN_TRY(t->score(t->context, score, &place, error));
    return r->task->average > 0 ? basin_states_copy(t->store, t->params, "", "aside.", error)
                                : BASIN_OK;
}

/* Rank 0 scores for all, or all together. */
static basin_status find_score(basin_run *r, basin_score *score, basin_error *error) {
    basin_ranks *ranks = r->training.ranks;
    if (r->task->score_together) return score_weights(r, score, error);
    basin_status status = basin_ranks_rank(ranks) ? BASIN_OK : score_weights(r, score, error);
    BASIN_TRY(basin_ranks_agree(ranks, status, error));
    return basin_ranks_broadcast(ranks, score, sizeof *score, 0, error);
}

static basin_status judge(basin_run *r, basin_score *score, basin_error *error) {
    const basin_run_task *t = r->task;
    int64_t every = r->training.score_every ? r->training.score_every : t->score_every;
    bool due = r->at.epoch == t->epochs || every < 2 || r->at.epoch % every == 0;
    *score = (basin_score){0};
    if (!t->score || !due) return BASIN_OK;
    BASIN_TRY(find_score(r, score, error));
    r->at.last = *score;
    if (!t->choose || !is_better(&r->at, score)) return BASIN_OK;
    r->at.best = *score;
    r->at.best_epoch = r->at.epoch;
    return basin_states_copy(t->store, t->params, "best.", scored(r), error);
}

/* The weights to be kept, under their own names. */
static basin_status take_best(basin_run *r, basin_error *error) {
    const basin_run_task *t = r->task;
    const char *from = r->at.best_epoch ? "best." : scored(r);
    if (!*from || !basin_states_exist(t->store, t->params, from)) return BASIN_OK;
    return basin_states_copy(t->store, t->params, "", from, error);
}

/* ---- steps and epochs ---- */

static basin_status run_step(basin_run *r, basin_error *error) {
    const basin_run_task *t = r->task;
    basin_run_place place = place_of(r);
    basin_run_sum sum = {0};
    double began = basin_clock();
    BASIN_TRY(t->step(t->context, &sum, &place, error));
    r->at.step++;
    if (r->task->average > 0)
        BASIN_TRY(basin_run_average(r->task->store, r->task->params, r->task->average, r->at.step,
                                    error));
    r->leg_steps++;
    add(&r->at.epoch_loss, &sum);
    add(&r->at.recent_loss, &sum);
    double seconds = basin_clock() - began;
    r->leg_seconds += seconds;
    r->this_epoch += seconds;
    return log_steps(r, error);
}

static basin_status note_epoch_time(basin_run *r, basin_error *error) {
    bool whole = r->epoch_whole;
    double seconds = r->this_epoch;
    r->epoch_whole = true;
    r->this_epoch = 0;
    if (!whole) return BASIN_OK;
    BASIN_TRY(BASIN_GROW(&r->epoch_seconds, &r->epochs_room, r->epochs_timed + 1, "a training run",
                         error));
    r->epoch_seconds[r->epochs_timed++] = seconds;
    return BASIN_OK;
}

static basin_status end_epoch(basin_run *r, basin_training_result *outcome, basin_error *error) {
    basin_score score;
    char when[40];
    BASIN_TRY(settle(r, error));
    BASIN_TRY(note_epoch_time(r, error));
    r->at.epoch++;
    snprintf(when, sizeof when, "epoch %lld", (long long)r->at.epoch);
    outcome->loss = mean(&r->at.epoch_loss);
    basin_convergence_note(r->training.watch, when, r->task->store);
    BASIN_TRY(judge(r, &score, error));
    (void)basin_convergence_of(r->task->store); /* of scores, which their maker reports */
    BASIN_TRY(log_epoch(r, &score, error));
    r->at.epoch_loss = (basin_run_sum){0};
    return BASIN_OK;
}

static bool rehearsed(const basin_run *r) {
    enum { MIN_STEPS = 4 };
    double limit = r->training.dry_run_seconds;
    return limit > 0 && r->leg_steps >= MIN_STEPS && basin_clock() - r->began > limit;
}

/* Before each step all ranks learn whether one of them is to stop, so that none continues by
 * itself. */
static basin_status ask_to_stop(basin_run *r, basin_error *error) {
    r->stopping = r->stopping || basin_watch_stopped(r->training.watch) || rehearsed(r);
    return basin_ranks_any(r->training.ranks, &r->stopping, error);
}

/* Until the epoch ends or the run is stopped. */
static basin_status run_epoch(basin_run *r, basin_training_result *outcome, basin_error *error) {
    int64_t end = (r->at.epoch + 1) * r->task->steps;
    BASIN_TRY(ask_to_stop(r, error));
    while (r->at.step < end && !r->stopping) {
        BASIN_TRY(run_step(r, error));
        show(r);
        if (r->at.step == end) break;
        BASIN_TRY(save_now_and_then(r, error));
        BASIN_TRY(ask_to_stop(r, error));
    }
    if (r->at.step < end) return BASIN_OK;
    BASIN_TRY(end_epoch(r, outcome, error));
    return save_now_and_then(r, error);
}

/* ---- members ---- */

static bool member_done(const basin_run *r) {
    const basin_run_task *t = r->task;
    if (r->at.epoch >= t->epochs) return true;
    return t->patience && t->score && r->at.best_epoch &&
           r->at.epoch - r->at.best_epoch >= t->patience;
}

static basin_status begin_member(basin_run *r, basin_error *error) {
    const basin_run_task *t = r->task;
    basin_run_state *at = &r->at;
    int64_t member = at->member;
    at->epoch = at->step = at->best_epoch = 0;
    at->epoch_loss = at->recent_loss = (basin_run_sum){0};
    at->best = at->last = (basin_score){0};
    BASIN_TRY(t->begin ? t->begin(t->context, member, error)
                       : basin_params_init(t->params, t->store, t->seed, error));
    if (r->from)
        BASIN_TRY(t->adopt ? t->adopt(t->context, member, r->from, error)
                           : basin_params_read(t->params, t->store, r->from, error));
    if (!(r->task->average > 0)) return BASIN_OK;
    return basin_states_copy(t->store, t->params, "average.", "", error);
}

static basin_status end_member(basin_run *r, basin_error *error) {
    const basin_run_task *t = r->task;
    basin_run_member *how = &r->at.done[r->at.member];
    *how = (basin_run_member){r->at.best_epoch, r->at.epoch, r->at.best.merit};
    BASIN_TRY(take_best(r, error));
    if (t->finish) BASIN_TRY(t->finish(t->context, r->at.member, how, error));
    return BASIN_OK;
}

static basin_status run_member(basin_run *r, basin_training_result *outcome, basin_error *error) {
    while (!member_done(r) && !r->stopping) BASIN_TRY(run_epoch(r, outcome, error));
    outcome->stopped = !member_done(r);
    /* So that more epochs can follow; before the best weights take the place of the last. */
    bool keep = r->training.keep_checkpoint && r->at.member + 1 == r->task->members;
    if (outcome->stopped || keep) BASIN_TRY(save(r, error));
    if (outcome->stopped) outcome->loss = mean(&r->at.epoch_loss);
    return end_member(r, error);
}

static basin_status run_members(basin_run *r, basin_training_result *outcome, basin_error *error) {
    for (bool fresh = !r->saved;; fresh = true, r->at.member++) {
        if (fresh) BASIN_TRY(begin_member(r, error));
        BASIN_TRY(run_member(r, outcome, error));
        if (outcome->stopped || r->at.member + 1 >= r->task->members) return BASIN_OK;
    }
}

/* ---- all of it ---- */

/* Options that would have no effect. */
static basin_status check_options(const basin_run *r, basin_error *error) {
    const basin_training_options *t = &r->training;
    if (t->score_every && !r->task->score)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "score_every is %lld, but there is no data for validation",
                          (long long)t->score_every);
    if (t->log_every && !t->log)
        return basin_fail(error, BASIN_BAD_VALUE, "log_every is %lld, but no log is written",
                          (long long)t->log_every);
    return BASIN_OK;
}

/* A short trial may end while the learning rate still rises. */
static void note_rate(const basin_run *r) {
    const basin_schedule *s = &r->task->schedule;
    if (s->total < 1 || s->warmup < s->total || s->first >= s->peak) return;
    basin_watch_note(r->training.watch,
                     "the run ends in its warmup: the learning rate rises to %.3g, of %.3g",
                     basin_schedule_rate(s, s->total - 1), s->peak);
}

/* Found before the first step rather than after the last: the weights, without what else the file
 * has. */
static basin_status check_space(const basin_run *r, basin_error *error) {
    int64_t weights = basin_params_total(r->task->params) * r->task->members;
    if (!r->training.output) return BASIN_OK;
    return basin_writer_space(r->training.output, sizeof(float) * (uint64_t)weights, error);
}

static basin_status begin(basin_run *r, basin_error *error) {
    basin_run_state *at = &r->at;
    BASIN_TRY(check_options(r, error));
    if (!basin_ranks_rank(r->training.ranks)) note_rate(r);
    if (r->task->steps < 1 || r->task->members < 1 || r->task->members > BASIN_MAX_MEMBERS)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%lld steps per epoch and %lld members must both be positive",
                          (long long)r->task->steps, (long long)r->task->members);
    BASIN_TRY(basin_run_share_sizes(r, error));
    if (r->saved) BASIN_TRY(basin_run_restore(at, r->task, r->saved, error));
    r->seconds_before = isfinite(at->seconds) ? at->seconds : 0;
    r->epoch_whole = at->step == at->epoch * r->task->steps;
    basin_run_place done = place_of(r);
    r->began = r->saved_at = r->recent_since = basin_clock();
    if (r->training.dry_run_seconds > 0 || basin_ranks_rank(r->training.ranks)) return BASIN_OK;
    BASIN_TRY(check_space(r, error));
    return basin_log_open(&r->log, r->training.log, r->saved ? &done : NULL, error);
}

static void fill_result(basin_training_result *o, basin_run *r) {
    const basin_run_task *t = r->task;
    double spent = basin_clock() - r->began;
    o->resumed = r->saved != NULL;
    o->parameters = basin_params_total(t->params);
    o->epochs = r->at.epoch;
    o->steps = r->at.step;
    o->steps_planned = t->epochs * t->steps * (r->training.dry_run_seconds > 0 ? t->members : 1);
    o->best_epoch = r->at.best_epoch;
    o->best = r->at.best_epoch ? r->at.best : r->at.last;
    o->seconds = r->seconds_before + spent;
    o->memory = t->memory;
    o->items = t->items;
    if (r->leg_steps) {
        double items = (double)(t->items * r->leg_steps) / (double)t->steps;
        o->step_seconds = r->leg_seconds / (double)r->leg_steps;
        o->items_per_second = items / fmax(spent, 1e-9);
    }
    if (r->epochs_timed) {
        qsort(r->epoch_seconds, r->epochs_timed, sizeof *r->epoch_seconds, basin_compare_double);
        o->epoch_seconds = r->epoch_seconds[r->epochs_timed / 2];
    }
}

/* The model; then the checkpoint is not needed any more, unless more epochs are to follow. */
static basin_status deliver(basin_run *r, basin_error *error) {
    const basin_training_options *t = &r->training;
    if (t->output && !basin_ranks_rank(t->ranks))
        BASIN_TRY(r->task->write(r->task->context, t->output, error));
    if (r->checkpoint && !t->keep_checkpoint) unlink(r->checkpoint);
    return BASIN_OK;
}

/* A file could not be written: also what is left of the run. */
static basin_status name_kept(const basin_run *r, basin_status status, basin_error *error) {
    if (status != BASIN_IO || !r->checkpoint || !error) return status;
    basin_error why = *error;
    bool kept = access(r->checkpoint, F_OK) == 0;
    basin_fail(error, status, "%.400s; %s", why.text,
               kept ? "the last checkpoint is kept, and resume continues from it"
                    : "there is no checkpoint");
    error->number = why.number;
    return status;
}

static basin_status train(basin_training_result *outcome, basin_run *run, basin_error *error) {
    BASIN_TRY(begin(run, error));
    basin_status status = run_members(run, outcome, error);
    if (status) return name_kept(run, status, error);
    fill_result(outcome, run);
    bool whole = !outcome->stopped && !(run->training.dry_run_seconds > 0);
    if (whole) status = name_kept(run, deliver(run, error), error);
    return basin_ranks_agree(run->training.ranks, status, error);
}

basin_status basin_run_train(basin_training_result *outcome, basin_run *run,
                             const basin_run_task *task, basin_error *error) {
    *outcome = (basin_training_result){.loss = NAN};
    run->task = task;
    return train(outcome, run, error);
}
