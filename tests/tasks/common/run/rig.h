/* A small task for tests of the run: a linear model on another batch every step, two members, a
 * score that is best in the middle, losses that arrive a step late. */
#ifndef TESTS_TRAIN_RUN_RIG_H
#define TESTS_TRAIN_RUN_RIG_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/folder.h"
#include "support/lab.h"
#include "support/test.h"
#include "tasks/common/run/run.h"

enum { ROWS = 6, WIDTH = 5, STEPS = 5, EPOCHS = 4, MEMBERS = 2 };

typedef struct rig {
    lab lab;
    basin_expr x;
    basin_expr loss;
    basin_trainer *trainer;
    basin_run_task task;
    bool open;          /* the last step's loss is still to be read */
    int64_t steps_left; /* until the watcher asks to stop */
    bool stop;
    basin_watch watch;
    int finished; /* members */
    int written;  /* models */
    char note[200];
} rig;

static inline double rig_weight(rig *r) {
    basin_tensor w;
    assert_ok(basin_store_get(&w, r->lab.store, "w", &failure));
    double value = basin_tensor_at(&w, 0);
    basin_tensor_free(&w);
    return value;
}

static inline basin_status rig_begin(void *context, int64_t member, basin_error *error) {
    rig *r = context;
    static const char *const moment[] = {"w.m", "w.v", "b.m", "b.v"};
    basin_status status =
        basin_params_init(&r->lab.params, r->lab.store, 7 + (uint64_t)member, error);
    for (int i = 0; i < 4 && !status; i++) {
        float zero[WIDTH * 3] = {0};
        basin_tensor t =
            basin_tensor_borrow(zero, BASIN_F32, i < 2 ? BASIN_SHAPE(WIDTH, 3) : BASIN_SHAPE(3));
        status = basin_store_write(r->lab.store, moment[i], &t, error);
    }
    return status;
}

static inline basin_status rig_settle(void *context, basin_run_sum *sum, basin_error *error) {
    rig *r = context;
    double loss;
    if (!r->open) return BASIN_OK;
    r->open = false;
    basin_status status = basin_trainer_loss(&loss, r->trainer, error);
    sum->loss += 2 * loss, sum->weight += 2;
    return status;
}

static inline basin_status rig_step(void *context, basin_run_sum *sum, const basin_run_place *place,
                                    basin_error *error) {
    rig *r = context;
    float x[ROWS * WIDTH];
    basin_status status = rig_settle(r, sum, error);
    assert_int_equal(place->step, place->epoch * STEPS + place->batch);
    basin_random_fill_normal(x, 11 + (uint64_t)place->member, (uint64_t)place->step, 0,
                             ROWS * WIDTH);
    basin_tensor tensor = basin_tensor_borrow(x, BASIN_F32, BASIN_SHAPE(ROWS, WIDTH));
    if (!status) status = basin_plan_write(basin_trainer_plan(r->trainer), r->x, &tensor, error);
    basin_trainer_set_step(r->trainer, place->step);
    if (!status) status = basin_trainer_step(NULL, r->trainer, error);
    r->open = true;
    if (--r->steps_left == 0) r->stop = true;
    return status;
}

/* Best after two epochs, with a tie after three that its second number loses. */
static inline basin_status rig_score(void *context, basin_score *score,
                                     const basin_run_place *place, basin_error *error) {
    static const double merit[] = {0, 0.25, 0.75, 0.75, 0.5};
    (void)error;
    *score = (basin_score){.merit = merit[place->epoch], .tie = -(double)place->epoch};
    basin_score_add(score, "validation_merit", merit[place->epoch]);
    basin_score_add(score, "validation_weight", rig_weight(context));
    return BASIN_OK;
}

static inline basin_status rig_finish(void *context, int64_t member, const basin_run_member *how,
                                      basin_error *error) {
    rig *r = context;
    char prefix[32];
    (void)how;
    r->finished++;
    snprintf(prefix, sizeof prefix, "member%d.", (int)member);
    return basin_states_copy(r->lab.store, &r->lab.params, prefix, "", error);
}

static inline basin_status rig_describe(void *context, basin_bundle *checkpoint,
                                        basin_error *error) {
    (void)context;
    return basin_bundle_meta_set(checkpoint, "basin.model", "rig", error);
}

static inline basin_status rig_write(void *context, const char *path, basin_error *error) {
    rig *r = context;
    basin_meta meta = {"basin.model", "rig"};
    r->written++;
    return basin_params_write(path, &r->lab.params, r->lab.store, &meta, 1, error);
}

static inline bool rig_stop(void *context) { return ((rig *)context)->stop; }

static inline void rig_note(void *context, const char *line) {
    rig *r = context;
    snprintf(r->note, sizeof r->note, "%s", line);
}

static inline void rig_train(rig *r, basin_schedule schedule, const basin_reduction *reduction) {
    basin_trainer_spec spec = {
        .optimizer = BASIN_OPTIMIZER_DEFAULT, .schedule = schedule, .reduction = reduction};
    basin_trainer_free(r->trainer);
    assert_ok(
        basin_trainer_new(&r->trainer, r->lab.store, &r->lab.params, r->loss, &spec, &failure));
}

static inline void rig_open(rig *r, const basin_reduction *reduction) {
    *r = (rig){0};
    lab *l = &r->lab;
    lab_open(l, "cpu", 1);
    const basin_init normal = {BASIN_INIT_NORMAL, 1};
    basin_expr w = basin_param_add(&l->params, "", "w", BASIN_SHAPE(WIDTH, 3), normal);
    basin_expr b = basin_param_add(&l->params, "", "b", BASIN_SHAPE(3), normal);
    r->x = basin_input(l->graph, "x", BASIN_SHAPE(ROWS, WIDTH));
    r->loss = basin_mean_all(basin_square(basin_offset(basin_add(basin_matmul(r->x, w), b), -1)));
    basin_schedule schedule = {STEPS, STEPS * EPOCHS, 0, 0.05, 0.001};
    rig_train(r, schedule, reduction);
    r->watch = (basin_watch){.note = rig_note, .context = r, .stop = rig_stop};
    r->task = (basin_run_task){.context = r,
                               .unit = "rows",
                               .members = MEMBERS,
                               .epochs = EPOCHS,
                               .steps = STEPS,
                               .items = ROWS * STEPS,
                               .log_every = 3,
                               .choose = true,
                               .schedule = schedule,
                               .store = l->store,
                               .params = &l->params,
                               .begin = rig_begin,
                               .step = rig_step,
                               .settle = rig_settle,
                               .score = rig_score,
                               .finish = rig_finish,
                               .describe = rig_describe,
                               .write = rig_write};
}

static inline void rig_close(rig *r) {
    basin_trainer_free(r->trainer);
    lab_close(&r->lab);
}

/* Runs until the end, or for `steps` steps where that is not 0. */
static inline basin_status rig_run(basin_training_result *outcome, rig *r,
                                   const basin_training_options *training, int64_t steps,
                                   basin_error *error) {
    basin_training_options t = *training;
    basin_run *run;
    t.watch = &r->watch, t.backend = r->lab.backend;
    r->steps_left = steps ? steps : -1;
    basin_status status = basin_run_open(&run, &t, "rig", error);
    if (status) return status;
    *outcome = (basin_training_result){.finished_before = run->finished};
    if (!outcome->finished_before) status = basin_run_train(outcome, run, &r->task, error);
    basin_run_close(run);
    return status;
}

#endif
