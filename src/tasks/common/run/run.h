/* The one training run: members, epochs and steps in turn, with log, checkpoints, best weights,
 * early stop, interrupts and resume. A task says what a step and a score are (basin_run_task); when
 * they happen, and what is kept of them, is decided here. Everything random in a step is a function
 * of the seed and the step's place, so a checkpoint is the store and a few named numbers
 * ("basin.run" in the metadata). */
#ifndef BASIN_TRAIN_RUN_RUN_H
#define BASIN_TRAIN_RUN_RUN_H

#include "base/json.h"
#include "base/sized.h"
#include "basin/tasks/run.h"
#include "tasks/common/ranks/ranks.h"
#include "tasks/common/run/settings.h"

enum { BASIN_MAX_MEMBERS = 64 };

/* ---- a task ---- */

/* Where a step stands. */
typedef struct basin_run_place {
    int64_t member, epoch; /* from 0 */
    int64_t step;          /* of this member, from 0 */
    int64_t batch;         /* of this epoch, from 0 */
} basin_run_place;

/* Losses, each times what it weighs, and the sum of weights. */
typedef struct basin_run_sum {
    double loss, weight;
} basin_run_sum;

/* How a finished member went. */
typedef struct basin_run_member {
    int64_t best_epoch, epochs;
    double merit;
} basin_run_member;

typedef struct basin_run_task {
    void *context;                /* of all functions below */
    const char *unit;             /* what an epoch has `items` of: "images" */
    int64_t members;              /* models trained in turn, 1 to BASIN_MAX_MEMBERS */
    int64_t epochs, steps, items; /* at most; steps and items of an epoch */
    int64_t log_every;            /* steps; 0: only a line per epoch */
    int64_t score_every;          /* epochs */
    int64_t patience;             /* epochs without a better score; 0: any number */
    bool choose;                  /* keep the weights of the best score */
    bool score_together;          /* all ranks make the call `score`; else rank 0 does for all */
    size_t memory;                /* bytes of the plans, for the outcome */
    basin_schedule schedule;      /* for the log */
    basin_store *store;
    const basin_params *params;
    uint64_t seed;     /* of first values, where there is no `begin` */
    double average;    /* averages "average.NAME" of the parameters over steps are scored and kept,
                          see basin_run_average; 0: none */
    bool some_moments; /* not every parameter has two: Lion, SGD, parameters that are frozen */

    uint64_t data; /* a digest of the training data, `unit`s: a run is resumed only with the
                      same; 0: not known */

    /* Before a member's first step: first values, cleared moments. NULL: values by the seed. */
    basin_status (*begin)(void *context, int64_t member, basin_error *error);
    /* Takes a member's first values from the model file `from`; NULL: parameters by their names. */
    basin_status (*adopt)(void *context, int64_t member, const basin_bundle *from,
                          basin_error *error);
    /* One step; adds to `sum` the losses that are known by now. */
    basin_status (*step)(void *context, basin_run_sum *sum, const basin_run_place *place,
                         basin_error *error);
    /* Waits for losses that `step` left open; NULL: there are none. */
    basin_status (*settle)(void *context, basin_run_sum *sum, basin_error *error);
    /* The validation score; NULL: there is nothing to score on. */
    basin_status (*score)(void *context, basin_score *score, const basin_run_place *place,
                          basin_error *error);
    /* A member is done, or stopped: its best weights are in the store under their own names. */
    basin_status (*finish)(void *context, int64_t member, const basin_run_member *how,
                           basin_error *error); /* NULL: nothing */
    /* What of the task's own is in a checkpoint, as a bundle's metadata: "basin.model", .. */
    basin_status (*describe)(void *context, basin_bundle *checkpoint, basin_error *error);
    /* In place of `begin`, after a checkpoint filled the store; NULL: nothing is to be done. */
    basin_status (*restore)(void *context, int64_t member, const basin_bundle *checkpoint,
                            basin_error *error);
    /* Further fields of a line of the log; NULL: none. */
    void (*log)(void *context, basin_json *line);
    /* The finished model into a file. */
    basin_status (*write)(void *context, const char *path, basin_error *error);
} basin_run_task;

/* ---- the run ---- */

typedef struct basin_run basin_run;

/* How the training of a task begins: an error where settings are not those of `kind`, or not the
 * same on all ranks; then basin_run_open. outcome->finished_before: nothing is to be done, the
 * output is there. Close the run, also on failure. */
basin_status basin_run_begin(basin_run **run, basin_training_result *outcome,
                             const basin_settings *settings, const basin_task_settings *kind,
                             const basin_training_options *training, basin_error *error);
/* Decides whether the run is new, goes on, or is finished already; looks whether output, log and
 * checkpoint can be written. `kind` is the "basin.model" that a checkpoint must have. */
basin_status basin_run_open(basin_run **run, const basin_training_options *training,
                            const char *kind, basin_error *error);
void basin_run_close(basin_run *run);
/* An error where ranks were given other settings than rank 0. */
basin_status basin_run_compare(basin_run *run, const void *settings,
                               const basin_setting_entry *table, basin_error *error);
/* A run that goes on: basin_settings_match, and a note where the number of epochs is another. */
basin_status basin_run_match(const basin_run *run, const void *saved, const void *asked,
                             const basin_setting_entry *table, basin_error *error);
/* Bytes that may be used. */
size_t basin_run_memory(const basin_run *run);
/* What a plan takes; an error where that is more than the run may use. `advice` says what would
 * make it smaller. */
size_t basin_plan_bytes(const basin_plan *plan);
basin_status basin_run_hold(const basin_run *run, size_t bytes, const char *advice,
                            basin_error *error);
/* Trains. Afterwards the store has the best weights of the last member. */
basin_status basin_run_train(basin_training_result *outcome, basin_run *run,
                             const basin_run_task *task, basin_error *error);

/* ---- scores ---- */

/* Adds a measure; those beyond BASIN_MAX_MEASURES are dropped. */
void basin_score_add(basin_score *score, const char *name, double value);

/* ---- states by prefix ---- */

/* Every parameter NAME may have kin in the store: "best.NAME", "average.NAME", "member0.NAME".
 * Copies those with prefix `from` to those with prefix `to`. */
basin_status basin_states_copy(basin_store *store, const basin_params *params, const char *to,
                               const char *from, basin_error *error);
bool basin_states_exist(basin_store *store, const basin_params *params, const char *prefix);

/* ---- reports to a watcher, which may be NULL, and whether to stop ---- */

void basin_watch_show(const basin_watch *watch, const basin_progress_report *report);
/* The same of what has no loss; `speed` in units per second, or NAN. */
void basin_watch_progress(const basin_watch *watch, const char *what, int64_t done, int64_t total,
                          double speed, const char *unit);
void basin_watch_note(const basin_watch *watch, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool basin_watch_stopped(const basin_watch *watch);
/* A line that says `when` and which descents to fixed points on that store did not converge since
 * the last call; nothing where all did. */
void basin_convergence_note(const basin_watch *watch, const char *when, basin_store *store);

/* Averages of parameters over the steps of a run, kept as states "average.NAME" beside them:
 * average <- keep average + (1 - keep) parameter after step t = 1, 2, ..; early steps count more,
 * keep = t / (10 + t), at most `limit`, so that the first weights are forgotten. */
basin_status basin_run_average(basin_store *store, const basin_params *params, double limit,
                               int64_t t, basin_error *error);

/* ---- its log, where it stands (what a checkpoint keeps), what ranks share ---- */

/* `path` NULL: no log. `resumed` NULL: a new log, which replaces an old one; else lines of later
 * steps and epochs than what was done are dropped. */
basin_status basin_log_open(FILE **log, const char *path, const basin_run_place *resumed,
                            basin_error *error);

typedef struct basin_run_state {
    int64_t member, epoch, step;              /* done so far; epoch and step of this member */
    basin_run_sum epoch_loss;                 /* since the epoch began */
    basin_run_sum recent_loss;                /* since the last line of steps */
    int64_t best_epoch;                       /* from 1; 0: none yet */
    basin_score best, last;                   /* the best score and the last one */
    double seconds;                           /* of all legs */
    basin_run_member done[BASIN_MAX_MEMBERS]; /* [member] */
} basin_run_state;

/* Fills the store: parameters, moments, kept copies. A tensor that is none of these, lacks, or has
 * another shape is an error. */
basin_status basin_run_restore(basin_run_state *state, const basin_run_task *task,
                               const basin_bundle *checkpoint, basin_error *error);

struct basin_run {
    basin_training_options training; /* as given */
    char *checkpoint;                /* where the run is saved; NULL: nowhere */
    basin_bundle *saved;             /* what it goes on from; NULL: it is new */
    basin_bundle *from;              /* whose weights it begins with; NULL: drawn ones */
    void *shared[2];                 /* what these two borrow from, where rank 0 read them */
    bool finished; /* nothing is to be done: the output is there and no checkpoint */
    bool stopping; /* all ranks have agreed to stop */
    const basin_run_task *task;
    basin_run_state at;
    FILE *log;              /* NULL: none is kept */
    double began, saved_at; /* clock: of this leg, of the last checkpoint */
    double seconds_before;  /* of earlier legs */
    double recent_since;    /* clock: of the last line of steps */
    int64_t leg_steps;      /* taken in this leg */
    double leg_seconds;     /* spent in them */
    double *epoch_seconds;  /* [epochs_timed] of whole epochs, scores left out */
    size_t epochs_timed, epochs_room;
    double this_epoch; /* seconds of its steps */
    bool epoch_whole;  /* it began in this leg */
};

/* Before the first step: an error where ranks found other data or sizes than rank 0. */
basin_status basin_run_share_sizes(basin_run *run, basin_error *error);

/* The checkpoint: the store and where the run stands, aside and renamed. */
basin_status basin_run_save(basin_run *run, basin_error *error);

#endif
