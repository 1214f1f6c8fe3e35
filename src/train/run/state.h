/* Where a run stands, as a checkpoint keeps it: named numbers, one place. Internal to run.c,
 * state.c and checkpoint.c. */
#ifndef BASIN_TRAIN_RUN_STATE_H
#define BASIN_TRAIN_RUN_STATE_H

#include "train/run/rests.h"
#include "train/run/run.h"

typedef struct basin_run_state {
    int64_t member, epoch, step;              /* done so far; epoch and step of this member */
    basin_run_sum epoch_loss;                 /* since the epoch began */
    basin_run_sum recent_loss;                /* since the last line of steps */
    basin_rests epoch_rests, recent_rests;    /* the same of rest points */
    int64_t best_epoch;                       /* from 1; 0: none yet */
    basin_score best, last;                   /* the best score and the last one */
    double seconds;                           /* of all legs */
    basin_run_member done[BASIN_MAX_MEMBERS]; /* [member] */
} basin_run_state;

/* As the metadata "basin.run". */
basin_status basin_run_state_write(basin_bundle *bundle, const basin_run_state *state,
                                   basin_error *error);
/* Checked against what the task can have. */
basin_status basin_run_state_read(basin_run_state *state, const basin_bundle *bundle,
                                  const basin_run_task *task, basin_error *error);

/* Fills the store: parameters, moments, kept copies. A tensor that is none of these, lacks, or has
 * another shape is an error. */
basin_status basin_run_restore(basin_run_state *state, const basin_run_task *task,
                               const basin_bundle *checkpoint, basin_error *error);

#endif
