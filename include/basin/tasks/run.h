/* Training runs, the same for all tasks: who watches, where results go, what came of it.
 *
 *     basin_training training = {.output = "model.safetensors"};
 *
 * A run writes a checkpoint beside its output now and then and when it is stopped. Resumed, it ends
 * with the same bits, and the same log, as one that was never cut. */
#ifndef BASIN_TASKS_RUN_H
#define BASIN_TASKS_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "basin/plan.h"
#include "basin/tasks/ranks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- watching ---- */

/* How far a task is. Unknown numbers are NaN, unknown counts 0. */
typedef struct basin_progress_report {
    const char *what;    /* "training", "scoring" */
    int64_t done, total; /* in units of the task */
    double loss;         /* mean of this epoch so far */
    double speed;        /* `unit` a second */
    const char *unit;    /* "images" */
    double seconds_left;
    int64_t epoch, epochs;   /* from 1 */
    int64_t member, members; /* from 1, of several that are trained in turn */
} basin_progress_report;

/* A watcher may be absent (NULL) and so may each part of it. */
typedef struct basin_watch {
    void (*show)(void *context,
                 const basin_progress_report *news); /* after every step, and at the end */
    void (*note)(void *context, const char *line);   /* what happened: a checkpoint, a skip */
    void *context;
    const volatile sig_atomic_t *stop; /* when it becomes true, the run saves itself and returns */
} basin_watch;

/* ---- what a run is given ---- */

typedef struct basin_training {
    basin_backend *backend;
    const basin_watch *watch;
    const char *output; /* the model file; NULL: the model stays in memory, nothing is written */
    const char *checkpoint; /* NULL: `output` + ".checkpoint" */
    const char *log;        /* one JSON object a line; NULL: none */
    const char *from;       /* a model file whose weights the run begins with; NULL: drawn */
    bool resume;            /* go on from the checkpoint; begin where there is none */
    bool restart;           /* begin anew although there is a checkpoint, which is kept as .old */
    bool keep_checkpoint;   /* also after the end, so that more epochs can follow */
    double save_every;      /* seconds between checkpoints; 0: 60 */
    int64_t log_every;      /* steps that a line of the log stands for; 0: the task's own */
    int64_t score_every;    /* epochs between scores; 0: the task's own */
    size_t memory;          /* bytes that may be used; 0: three quarters of what is free */
    double rehearse;        /* > 0: train for so many seconds, write nothing, tell the speed */
    basin_ranks *ranks;     /* who trains; NULL: this process alone. Rank 0 writes all files */
} basin_training;

/* ---- what came of it ---- */

enum { BASIN_MEASURES = 8, BASIN_MEASURE_NAME = 32 };

/* Scores by name: "accuracy", "test_mse". */
typedef struct basin_score {
    double merit, tie; /* what chooses the best epoch: more is better, then this */
    int measures;
    struct {
        char name[BASIN_MEASURE_NAME];
        double value;
    } measure[BASIN_MEASURES];
} basin_score;

/* NaN where there is no such measure. */
BASIN_API double basin_score_get(const basin_score *score, const char *name);
/* Adds one; those beyond BASIN_MEASURES are dropped. */
BASIN_API void basin_score_add(basin_score *score, const char *name, double value);

/* What descents to rest did not reach, in a line of text cut to `size` bytes; false, and no text,
 * where all rested. For what a model's basin_*_take_convergence gives. */
BASIN_API bool basin_convergence_tell(char *text, size_t size,
                                      const basin_convergence *convergence);

typedef struct basin_outcome {
    bool resumed, stopped;
    bool finished_before; /* there was nothing to resume: the output is a finished model */
    int64_t parameters;
    int64_t epochs, steps,
        steps_wanted;                   /* done; of the last member (rehearsed: requested of all) */
    int64_t best_epoch;                 /* from 1; whose weights were kept; 0: the last */
    basin_score best;                   /* its score; of the last scored epoch without a choice */
    double loss;                        /* mean of the last epoch begun */
    double seconds;                     /* of all legs of the run */
    double step_seconds, epoch_seconds; /* of this leg: mean; median, scores left out */
    double items_per_second;            /* of this leg */
    size_t memory;                      /* bytes of the training plan */
    int64_t items;                      /* what an epoch passes over: graphs, pictures */
} basin_outcome;

#ifdef __cplusplus
}
#endif
#endif
