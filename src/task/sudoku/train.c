/* Training a Sudoku model: what a step and a score are; the run (train/run/run.h) does the rest.
 * The boards of step t and their symmetries are functions of the seed and t. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/given.h"
#include "task/sudoku/sudoku.h"
#include "train/run/average.h"
#include "train/run/run.h"

enum { LOG_STEPS = 20, STREAM_ORDER = 1 << 20 };

typedef struct job {
    basin_run *run;
    const basin_training *training;
    basin_sudoku_data data;
    basin_sudoku_model *model;
    basin_sudoku_net net;
    basin_sudoku_target target;
    basin_trainer trainer;
    basin_average average; /* where the setting asks for it */
    int64_t per_epoch;     /* steps */
    int64_t *order;        /* [boards] of the epoch `ordered` */
    int64_t ordered;
    int32_t *board, *labels; /* [batch * 81] */
    float *late;             /* [batch] */
    size_t memory;           /* bytes of the plan */
} job;

static void job_free(job *j) {
    free(j->order);
    free(j->board);
    free(j->labels);
    free(j->late);
    basin_average_free(&j->average);
    basin_trainer_free(&j->trainer);
    basin_sudoku_net_free(&j->net);
    basin_sudoku_close(j->model);
    basin_run_close(j->run);
}

/* ---- before the run ---- */

static basin_status check_boards(const basin_sudoku_boards *boards, const char *what,
                                 basin_error *error) {
    for (int64_t i = 0; i < boards->count; i++)
        if (boards->solutions[i] != 1)
            return basin_fail(error, BASIN_BAD_VALUE, "%s board %lld has %s, wanted one", what,
                              (long long)i,
                              boards->solutions[i] ? "several solutions" : "no solution");
    return BASIN_OK;
}

static basin_status check_data(const job *j, const basin_sudoku_settings *s, basin_error *error) {
    const basin_sudoku_boards *train = j->data.train, *validation = j->data.validation;
    if (!train || train->count < s->batch)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "batch is %lld, wanted at most %lld: the boards to train on",
                          (long long)s->batch, (long long)(train ? train->count : 0));
    if (s->patience && !validation)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "patience is %lld without boards to score; wanted some for validation",
                          (long long)s->patience);
    basin_status status = check_boards(train, "training", error);
    return status || !validation ? status : check_boards(validation, "validation", error);
}

/* Boards with the same solution as one to train on would tell less than their score says. */
static void note_shared(const job *j) {
    const basin_sudoku_boards *train = j->data.train, *validation = j->data.validation;
    int64_t shared = 0;
    if (!validation || train->count * validation->count > (int64_t)1 << 27) return;
    for (int64_t v = 0; v < validation->count; v++) {
        const uint8_t *one = validation->solution + v * BASIN_SUDOKU_CELLS;
        bool found = false;
        for (int64_t t = 0; t < train->count && !found; t++)
            found = !memcmp(one, train->solution + t * BASIN_SUDOKU_CELLS, BASIN_SUDOKU_CELLS);
        shared += found;
    }
    if (shared)
        basin_watch_note(j->training->watch,
                         "%lld of the %lld boards to score have the solution of a training board",
                         (long long)shared, (long long)validation->count);
}

static basin_status choose_settings(basin_sudoku_settings *s, const job *j, basin_error *error) {
    basin_sudoku_settings saved;
    const basin_bundle *checkpoint = basin_run_checkpoint(j->run);
    if (!checkpoint) return BASIN_OK;
    basin_status status = basin_sudoku_settings_read(&saved, checkpoint, error);
    return status ? status
                  : basin_settings_match(&saved, s, basin_sudoku_task.table,
                                         basin_bundle_path(checkpoint), error);
}

/* ---- what trains ---- */

static basin_schedule schedule(const job *j) {
    const basin_sudoku_settings *s = &j->model->settings;
    return basin_schedule_make(j->per_epoch, s->epochs, s->warmup, s->rate, s->rate_first,
                               s->rate_last);
}

static basin_status make_arrays(job *j, basin_error *error) {
    size_t cells = (size_t)j->net.batch * BASIN_SUDOKU_CELLS;
    j->order = basin_array_new((size_t)j->data.train->count, sizeof *j->order);
    j->board = basin_array_new(cells, sizeof *j->board);
    j->labels = basin_array_new(cells, sizeof *j->labels);
    j->late = basin_array_new((size_t)j->net.batch, sizeof *j->late);
    j->ordered = -1;
    if (j->order && j->board && j->labels && j->late) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a batch of boards");
}

static basin_status make_trainer(job *j, basin_error *error) {
    const basin_sudoku_settings *s = &j->model->settings;
    j->per_epoch = j->data.train->count / s->batch;
    basin_status status = basin_sudoku_net_new(&j->net, s, s->batch, error);
    if (status) return status;
    j->model->parameters = basin_params_total(&j->net.params);
    j->target = basin_sudoku_net_target(&j->net);
    basin_expr loss = basin_sudoku_net_loss(&j->net, &j->target);
    basin_trainer_spec spec = {
        .adamw = {0.9, s->beta2, 1e-8, s->decay, s->clip, .decay_of = basin_decay_matrices},
        .schedule = schedule(j)};
    status = basin_sudoku_net_check(&j->net, error);
    if (!status)
        status =
            basin_trainer_new(&j->trainer, j->model->store, &j->net.params, loss, &spec, error);
    if (!status && s->average > 0)
        status = basin_average_new(&j->average, j->model->store, &j->net.params, s->average, error);
    if (status) return status;
    basin_plan_stats stats = basin_plan_get_stats(j->trainer.plan);
    j->memory = stats.arena_bytes + stats.input_bytes + stats.state_bytes;
    if (!strcmp(basin_backend_name(j->model->backend), "cuda") && !j->training->memory)
        return BASIN_OK;
    return basin_run_hold(j->run, j->memory, "a smaller batch, or recompute", error);
}

static basin_status make(job *j, const basin_settings *asked, basin_error *error) {
    basin_sudoku_settings settings = *(const basin_sudoku_settings *)asked->values;
    basin_status status = check_data(j, &settings, error);
    if (!status) status = choose_settings(&settings, j, error);
    if (!status)
        status = basin_sudoku_model_bare(&j->model, &settings, j->training->backend, error);
    if (!status) status = make_trainer(j, error);
    if (!status) status = make_arrays(j, error);
    if (!status) note_shared(j);
    return status;
}

/* ---- steps ---- */

static const char *scored(const job *j) { return j->model->settings.average > 0 ? "average." : ""; }

static basin_status begin(void *context, int64_t member, basin_error *error) {
    (void)member;
    job *j = context;
    basin_status status = basin_params_init(&j->net.params, j->model->store,
                                            (uint64_t)j->model->settings.seed, error);
    return status ? status : basin_average_begin(&j->average, error);
}

static basin_status adopt(void *context, int64_t member, const basin_bundle *from,
                          basin_error *error) {
    (void)member;
    job *j = context;
    basin_sudoku_settings its;
    basin_status status = basin_sudoku_settings_read(&its, from, error);
    if (!status) status = basin_params_read(&j->net.params, j->model->store, from, error);
    return status ? status : basin_average_begin(&j->average, error);
}

/* Puts a drawn share of the solution into empty cells. */
static void reveal(uint8_t given[81], const uint8_t solution[81], double most,
                   basin_random *random) {
    double share = most * basin_random_next(random) / 0x1p32;
    for (int i = 0; i < BASIN_SUDOKU_CELLS; i++)
        if (basin_random_next(random) / 0x1p32 < share) given[i] = solution[i];
}

/* Board number `item` into place `at` of the batch; how many cells are empty. */
static int64_t load_board(job *j, int64_t at, int64_t item, uint64_t stream) {
    const basin_sudoku_boards *boards = j->data.train;
    const basin_sudoku_settings *s = &j->model->settings;
    basin_random random = basin_random_start((uint64_t)s->seed, stream, 0);
    uint8_t given[BASIN_SUDOKU_CELLS], solution[BASIN_SUDOKU_CELLS];
    j->late[at] = (float)(basin_random_next(&random) >> 31);
    basin_sudoku_symmetry symmetry = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {0}};
    int64_t empty = 0;
    for (int i = 0; i < BASIN_SUDOKU_CELLS; i++) symmetry.from[i] = (uint8_t)i;
    if (s->augment) basin_sudoku_symmetry_draw(&symmetry, &random);
    basin_sudoku_symmetry_apply(given, boards->given + item * BASIN_SUDOKU_CELLS, &symmetry);
    basin_sudoku_symmetry_apply(solution, boards->solution + item * BASIN_SUDOKU_CELLS, &symmetry);
    if (s->reveal > 0) reveal(given, solution, s->reveal, &random);
    for (int i = 0; i < BASIN_SUDOKU_CELLS; i++) {
        j->board[at * BASIN_SUDOKU_CELLS + i] = given[i];
        j->labels[at * BASIN_SUDOKU_CELLS + i] = given[i] ? -1 : solution[i] - 1;
        empty += !given[i];
    }
    return empty;
}

static basin_status write_batch(job *j, const basin_run_place *place, basin_error *error) {
    int64_t batch = j->net.batch, empty = 0;
    uint64_t seed = (uint64_t)j->model->settings.seed;
    if (j->ordered != place->epoch) {
        basin_random_permutation(j->order, (size_t)j->data.train->count, seed,
                                 (uint64_t)STREAM_ORDER + (uint64_t)place->epoch);
        j->ordered = place->epoch;
    }
    uint64_t first = ((uint64_t)1 << 32) + (uint64_t)(place->step * batch);
    for (int64_t i = 0; i < batch; i++)
        empty += load_board(j, i, j->order[place->batch * batch + i], first + (uint64_t)i);
    double share = 1 / (double)(empty ? empty : 1);
    basin_shape cells = BASIN_SHAPE(batch * BASIN_SUDOKU_CELLS);
    basin_tensor board = basin_tensor_borrow(j->board, BASIN_I32, cells);
    basin_tensor labels = basin_tensor_borrow(j->labels, BASIN_I32, cells);
    basin_tensor one = basin_tensor_borrow(&share, BASIN_F64, BASIN_SCALAR);
    basin_tensor late = basin_tensor_borrow(j->late, BASIN_F32, BASIN_SHAPE(batch, 1, 1));
    basin_status status = basin_plan_write(j->trainer.plan, j->net.board, &board, error);
    if (!status) status = basin_plan_write(j->trainer.plan, j->target.label, &labels, error);
    if (!status) status = basin_plan_write(j->trainer.plan, j->target.share, &one, error);
    if (!status && j->target.late)
        status = basin_plan_write(j->trainer.plan, j->target.late, &late, error);
    return status;
}

static basin_status step(void *context, basin_run_sum *sum, const basin_run_place *place,
                         basin_error *error) {
    job *j = context;
    double loss;
    j->trainer.step = place->step;
    basin_status status = write_batch(j, place, error);
    if (!status) status = basin_trainer_step(&j->trainer, NULL, error);
    if (!status && j->average.plan)
        status = basin_average_step(&j->average, place->step + 1, error);
    if (!status) status = basin_trainer_loss(&j->trainer, &loss, error);
    if (status) return status;
    sum->loss += loss;
    sum->weight += 1;
    return BASIN_OK;
}

/* The averages, where there are any, take the place of the weights meanwhile. */
static basin_status score_weights(basin_sudoku_scores *scores, job *j, basin_error *error) {
    basin_sudoku_scoring how = {.size = sizeof how, .boards = j->data.validation};
    basin_status status = basin_average_lend(&j->average, error);
    if (!status) status = basin_sudoku_score(scores, j->model, &how, error);
    return status ? status : basin_average_end_lending(&j->average, error);
}

static basin_status score(void *context, basin_score *score, const basin_run_place *place,
                          basin_error *error) {
    job *j = context;
    basin_sudoku_scores scores;
    basin_status status = score_weights(&scores, j, error);
    if (status) return status;
    double solved = (double)scores.row[0].solved / (double)scores.boards;
    double right = (double)scores.row[0].right / (double)(scores.empty ? scores.empty : 1);
    score->merit = solved;
    score->tie = right;
    basin_score_add(score, "boards", solved);
    basin_score_add(score, "cells", right);
    basin_watch_note(j->training->watch, "epoch %lld: boards solved %.2f %%, cells right %.2f %%",
                     (long long)place->epoch, 100 * solved, 100 * right);
    return BASIN_OK;
}

/* ---- the whole ---- */

static basin_status describe(void *context, basin_bundle *checkpoint, basin_error *error) {
    job *j = context;
    return basin_sudoku_settings_write(checkpoint, &j->model->settings, error);
}

static basin_status write_model(void *context, const char *path, basin_error *error) {
    job *j = context;
    return basin_sudoku_write(path, j->model, error);
}

/* FNV-1a of the boards and their solutions; not 0. */
static uint64_t digest(const basin_sudoku_boards *boards) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (int64_t i = 0; i < boards->count * BASIN_SUDOKU_CELLS; i++) {
        hash = (hash ^ boards->given[i]) * 0x100000001b3u;
        hash = (hash ^ boards->solution[i]) * 0x100000001b3u;
    }
    return hash ? hash : 1;
}

static basin_run_task task_of(job *j) {
    const basin_sudoku_settings *s = &j->model->settings;
    return (basin_run_task){
        .context = j,
        .unit = "boards",
        .members = 1,
        .epochs = s->epochs,
        .steps = j->per_epoch,
        .items = j->per_epoch * s->batch,
        .log_every = LOG_STEPS,
        .score_every = 1,
        .patience = s->patience,
        .choose = j->data.validation != NULL,
        .memory = j->memory,
        .schedule = schedule(j),
        .store = j->model->store,
        .params = &j->net.params,
        .scored = scored(j),
        .data = digest(j->data.train),
        .begin = begin,
        .adopt = adopt,
        .step = step,
        .score = j->data.validation ? score : NULL,
        .describe = describe,
        .write = write_model,
    };
}

static basin_status open_finished(basin_sudoku_model **model, basin_outcome *outcome,
                                  const basin_training *training, basin_error *error) {
    basin_sudoku_model *finished;
    basin_status status = basin_sudoku_open(&finished, training->output, training->backend, error);
    if (status) return status;
    outcome->finished_before = true;
    outcome->parameters = finished->parameters;
    if (model)
        *model = finished;
    else
        basin_sudoku_close(finished);
    return BASIN_OK;
}

static basin_status train(basin_sudoku_model **model, basin_outcome *outcome, job *j,
                          const basin_settings *settings, basin_error *error) {
    j->training = basin_run_training(j->run);
    if (!j->training->backend)
        return basin_fail(error, BASIN_BAD_VALUE, "training has no backend; wanted an open one");
    if (basin_run_finished(j->run)) return open_finished(model, outcome, j->training, error);
    basin_status status = make(j, settings, error);
    if (status) return status;
    basin_run_task task = task_of(j);
    status = basin_run_train(outcome, j->run, &task, error);
    if (!status && model) {
        *model = j->model;
        j->model = NULL;
    }
    return status;
}

static basin_status check(const basin_settings *settings, basin_error *error) {
    if (settings->kind != &basin_sudoku_task)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "the settings are of the task '%s', wanted sudoku", settings->kind->task);
    return basin_settings_check(settings, error);
}

basin_status basin_sudoku_train(basin_sudoku_model **model, basin_outcome *outcome,
                                const basin_settings *settings, const basin_sudoku_data *data,
                                const basin_training *training, basin_error *error) {
    job j = {0};
    if (model) *model = NULL;
    *outcome = (basin_outcome){.loss = NAN};
    basin_status status =
        basin_given_take(&j.data, sizeof j.data, data, "basin_sudoku_data", error);
    if (!status) status = check(settings, error);
    if (!status) status = basin_run_open(&j.run, training, "sudoku", error);
    if (!status) status = train(model, outcome, &j, settings, error);
    job_free(&j);
    return status;
}
