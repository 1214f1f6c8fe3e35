/* Training runs, the same for all tasks: progress, output files, results.
 *
 *     basin_training_options training = {.backend = backend, .output = "model.safetensors"};
 *     basin_training_result result = {.size = sizeof result};
 *
 * A run writes a checkpoint next to its output at intervals and when it is stopped. A resumed run
 * ends with the same bits, and the same log, as one that was never interrupted. */
#ifndef BASIN_TASKS_RUN_H
#define BASIN_TASKS_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "basin/plan.h"
#include "basin/tasks/ranks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- watching ---- */

/* How far a task is. Unknown numbers are NaN, unknown counts 0. Fields may be added at the end. */
typedef struct basin_progress_report {
    const char *what;    /* "training", "scoring" */
    int64_t done, total; /* in units of the task */
    double loss;         /* mean of this epoch so far */
    double speed;        /* `unit` per second */
    const char *unit;    /* "images" */
    double seconds_left;
    int64_t epoch, epochs;   /* from 1 */
    int64_t member, members; /* from 1, of several that are trained one after the other */
} basin_progress_report;

/* A watcher may be absent (NULL), and so may each of its functions. They are called from threads
 * of the task, one at a time. */
typedef struct basin_watch {
    size_t size; /* sizeof(basin_watch), or 0 */
    /* After every step, and at the end. */
    void (*show)(void *context, const basin_progress_report *report);
    /* What happened: a checkpoint was written, a file was skipped. */
    void (*note)(void *context, const char *line);
    /* Whether to stop: asked between steps. The run then saves its state and returns. */
    bool (*stop)(void *context);
    void *context;
} basin_watch;

/* ---- options of a run ---- */

typedef struct basin_training_options {
    size_t size; /* sizeof(basin_training_options), or 0 */
    basin_backend *backend;
    const basin_watch *watch;
    const char *output; /* the model file; NULL: the model stays in memory, nothing is written */
    const char *checkpoint; /* NULL: `output` + ".checkpoint" */
    const char *log;        /* one JSON object per line; NULL: none */
    const char *from;       /* a model file whose weights the run starts from; NULL: random ones */
    bool resume;            /* continue from the checkpoint; start a new run where there is none */
    bool restart;           /* start a new run although there is a checkpoint, kept as .old */
    bool keep_checkpoint;   /* also after the end, so that the run can be extended */
    double save_every;      /* seconds between checkpoints; 0: 60 */
    int64_t log_every;      /* steps per line of the log; 0: the task's default */
    int64_t score_every;    /* epochs between validations; 0: the task's default */
    size_t memory;          /* limit in bytes; 0: three quarters of what is free */
    double dry_run_seconds; /* > 0: train for this long, write nothing, measure the speed */
    basin_ranks *ranks;     /* NULL: this process only. Rank 0 writes all files */
} basin_training_options;

/* ---- results of a run ---- */

enum { BASIN_MAX_MEASURES = 8, BASIN_MAX_MEASURE_NAME = 32 };

/* Scores by name: "accuracy", "test_mse". An element of results; it does not grow. */
typedef struct basin_score {
    double merit, tie; /* choose the best epoch: the highest merit, then the highest tie */
    int measures;
    struct {
        char name[BASIN_MAX_MEASURE_NAME];
        double value;
    } measure[BASIN_MAX_MEASURES];
} basin_score;

/* NaN where there is no such measure. */
BASIN_API double basin_score_get(const basin_score *score, const char *name);

/* Describes in one line, cut to `size` bytes, which descents to fixed points did not converge;
 * false, and no text, where all did. */
BASIN_API bool basin_convergence_describe(char *text, size_t size,
                                          const basin_convergence *convergence);

typedef struct basin_training_result {
    size_t size; /* set by the caller */
    bool resumed, stopped;
    bool finished_before; /* there was nothing to resume: the output is a finished model */
    int64_t parameters;
    int64_t epochs, steps; /* done, of the last member */
    int64_t steps_planned; /* for the last member; for all members in a dry run */
    int64_t best_epoch;    /* from 1: whose weights were kept; 0: the last */
    basin_score best;      /* of the best epoch; without a choice, of the last one validated */
    double loss;           /* mean of the last epoch begun */
    double seconds;        /* of the run and of those that it continues */
    /* For this process, since it began or resumed: mean; median, without validation; mean. */
    double step_seconds, epoch_seconds, items_per_second;
    size_t memory; /* bytes of the training plan */
    int64_t items; /* per epoch: graphs, pictures */
} basin_training_result;

#ifdef __cplusplus
}
#endif
#endif
