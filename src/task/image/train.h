/* Training a model of masked images: a run that logs, saves, and can be cut at any moment. */
#ifndef BASIN_TASK_IMAGE_TRAIN_H
#define BASIN_TASK_IMAGE_TRAIN_H

#include "task/image/input.h"

typedef struct basin_image_run {
    basin_image_settings settings;
    basin_image_source train;
    basin_image_source test; /* paths 0: none; else scored after every epoch */
    basin_backend *backend;
    const char *out;    /* the model file; the checkpoint is `out` + ".checkpoint" */
    const char *log;    /* JSON lines; NULL: none */
    bool resume;        /* go on from the checkpoint where there is one */
    int64_t log_every;  /* steps a line of the log stands for; 0: 20 */
    int64_t test_every; /* epochs between scores of the test pictures; 0: 1. The last is scored */
    double save_every;  /* seconds between checkpoints */
    const char *keep;   /* where decoded pictures are kept, as basin_image_input_config has it; */
    const char *cut;    /* NULL: auto */
    int loader_threads; /* 0: as many as fit */
    const basin_watch *watch;
} basin_image_run;

typedef struct basin_image_outcome {
    basin_image_settings settings; /* as trained, statistics filled in */
    int64_t parameters, steps, steps_wanted, pictures, unreadable;
    double seconds, images_per_second, waited; /* of this run; seconds spent waiting for pictures */
    double loss;                               /* mean over the last epoch begun */
    double test_mse;                           /* NaN without test pictures */
    const char *keep, *cut; /* what came of the run's; NULL where no step was taken */
    size_t kept;            /* bytes of pictures kept decoded */
    bool resumed, stopped, finished_before;
    size_t memory; /* bytes of the training plan */
} basin_image_outcome;

basin_status basin_image_train(basin_image_outcome *outcome, const basin_image_run *run,
                               basin_error *error);
/* out + ".checkpoint"; free it. */
char *basin_image_checkpoint_path(const char *out);

#endif
