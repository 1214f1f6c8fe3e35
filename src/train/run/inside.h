/* The inside of a run: its log, where it stands (what a checkpoint keeps), what ranks share. */
#ifndef BASIN_TRAIN_RUN_INSIDE_H
#define BASIN_TRAIN_RUN_INSIDE_H

#include "basin/status.h"
#include "io/json.h"
#include "ranks/ranks.h"
#include "train/run/run.h"

/* `path` NULL: no log. `resumed` NULL: a new log, which replaces an old one; else lines of later
 * steps and epochs than what was done are dropped. */
basin_status basin_log_open(FILE **log, const char *path, const basin_run_place *resumed,
                            basin_error *error);

typedef struct basin_run_state {
    int64_t member, epoch, step;                 /* done so far; epoch and step of this member */
    basin_run_sum epoch_loss;                    /* since the epoch began */
    basin_run_sum recent_loss;                   /* since the last line of steps */
    basin_convergence epoch_rests, recent_rests; /* the same of rest points */
    int64_t best_epoch;                          /* from 1; 0: none yet */
    basin_score best, last;                      /* the best score and the last one */
    double seconds;                              /* of all legs */
    basin_run_member done[BASIN_MAX_MEMBERS];    /* [member] */
} basin_run_state;

/* Fills the store: parameters, moments, kept copies. A tensor that is none of these, lacks, or has
 * another shape is an error. */
basin_status basin_run_restore(basin_run_state *state, const basin_run_task *task,
                               const basin_bundle *checkpoint, basin_error *error);

struct basin_run {
    basin_training training;
    char *checkpoint;    /* where the run is saved; NULL: nowhere */
    basin_bundle *saved; /* what it goes on from; NULL: it is new */
    basin_bundle *from;  /* whose weights it begins with; NULL: drawn ones */
    void *shared[2];     /* what these two borrow from, where rank 0 read them */
    bool finished;
    bool stopping; /* all ranks have agreed to stop */
    const basin_run_task *task;
    basin_run_state at;
    FILE *log;              /* NULL: none is kept */
    basin_average average;  /* zeros: none */
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
