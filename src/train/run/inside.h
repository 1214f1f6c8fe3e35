/* A run, as run.c and open.c see it. */
#ifndef BASIN_TRAIN_RUN_INSIDE_H
#define BASIN_TRAIN_RUN_INSIDE_H

#include "train/run/log.h"
#include "train/run/state.h"

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
    basin_run_log log;
    double began, saved_at; /* clock: of this leg, of the last checkpoint */
    double seconds_before;  /* of earlier legs */
    double recent_since;    /* clock: of the last line of steps */
    int64_t leg_steps;      /* taken in this leg */
    double leg_seconds;     /* spent in them */
    double *epoch_seconds;  /* [epochs_timed] of whole epochs, scores left out */
    size_t epochs_timed, epochs_room;
    double this_epoch; /* seconds of its steps */
    bool epoch_whole;  /* it began in this leg */
    basin_dtype dtype; /* of the store's numbers, where moments are divided */
};

#endif
