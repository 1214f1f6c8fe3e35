/* The driver of all commands that train: settings, --print-config, ranks and backend, training,
 * progress, the printed result and the exit code are the same for all; a task fills in a table of
 * functions. */
#ifndef BASIN_CLI_TRAIN_H
#define BASIN_CLI_TRAIN_H

#include "basin/tasks/run.h"
#include "basin/tasks/settings.h"
#include "cli/command.h"
#include "cli/record.h"
#include "cli/watch.h"
#include "io/json_writer.h"

typedef struct basin_training_flags {
    const char *output, *checkpoint, *log, *from;
    bool resume, restart, keep_checkpoint;
    double save_every, memory;
    int64_t log_every, score_every;
    basin_ranks *ranks; /* no option: who trains; the command's `ranks_at` */
} basin_training_flags;

#define BASIN_TRAINING_DEFAULT                                                                     \
    { .output = "model.safetensors", .save_every = 60 }

/* `field` is the basin_training_flags in `type`. */
#define BASIN_TRAINING_ENTRIES(type, field)                                                        \
    BASIN_TEXT(type, field.output, 'o', "output", "FILE", "The model file to write.",              \
               .writes = true),                                                                    \
        BASIN_TEXT(type, field.log, 0, "log", "FILE", "Write a log, one JSON object per line.",    \
                   .writes = true),                                                                \
        BASIN_FLAG(type, field.resume, 0, "resume",                                                \
                   "Go on from the checkpoint that an interrupted or killed run left. Ends with "  \
                   "the same bits, and the same log, as an uninterrupted run."),                   \
        BASIN_FLAG(type, field.restart, 0, "restart",                                              \
                   "Begin anew where such a checkpoint is; it is kept as FILE.checkpoint.old.",    \
                   .more = true),                                                                  \
        BASIN_TEXT(type, field.from, 0, "from", "MODEL",                                           \
                   "Begin with the weights of this model, of the same shapes, instead of random "  \
                   "ones."),                                                                       \
        BASIN_TEXT(type, field.checkpoint, 0, "checkpoint", "FILE",                                \
                   "Where the run is saved until it ends [OUTPUT.checkpoint].", .writes = true,    \
                   .more = true),                                                                  \
        BASIN_FLAG(type, field.keep_checkpoint, 0, "keep-checkpoint",                              \
                   "Keep the checkpoint after the end: --resume with more --epochs then goes on.", \
                   .more = true),                                                                  \
        BASIN_REAL(type, field.save_every, "save-every", "SECONDS", 0, 1e9,                        \
                   "How often a checkpoint is written.", .more = true),                            \
        BASIN_INTEGER(type, field.log_every, "log-every", "STEPS", 0, 1e9,                         \
                      "Steps per line of the log; 0: the task's own choice.", .more = true),       \
        BASIN_INTEGER(type, field.score_every, "score-every", "EPOCHS", 0, 1e9,                    \
                      "Epochs between scores; 0: the task's own choice.", .more = true),           \
        BASIN_REAL(type, field.memory, "memory", "GIB", 0, 1e6,                                    \
                   "Memory to stay within; 0: three quarters of what is free.", .more = true)
#define BASIN_TRAINING_OPTIONS(type) BASIN_TRAINING_ENTRIES(type, training)

/* What all commands that train have, as the first member of their options, called `train`. */
typedef struct basin_train_options {
    basin_settings *settings;
    basin_start start;
    basin_training_flags training;
    basin_compute_flags compute;
    bool json, quiet;
} basin_train_options;

#define BASIN_TRAIN_DEFAULT                                                                        \
    {                                                                                              \
        .start = {.preset = "default"}, .training = BASIN_TRAINING_DEFAULT,                        \
        .compute = BASIN_COMPUTE_DEFAULT                                                           \
    }
#define BASIN_TRAIN_OPTIONS(type)                                                                  \
    BASIN_START_ENTRIES(type, train.start), BASIN_TRAINING_ENTRIES(type, train.training),          \
        BASIN_COMPUTE_ENTRIES(type, train.compute),                                                \
        BASIN_FLAG(type, train.json, 0, "json", "Print the results as JSON."),                     \
        BASIN_FLAG(type, train.quiet, 'q', "quiet", "No progress and no notes.")
/* The fields of a basin_command that trains `task_` with options `type`. */
#define BASIN_TRAIN_COMMAND(type, task_)                                                           \
    .size = sizeof(type), .task = task_, .settings_at = offsetof(type, train.settings),            \
    .start_at = offsetof(type, train.start), .ranks_at = offsetof(type, train.training.ranks)

/* ---- the driver ---- */

typedef struct basin_train_job {
    const void *options; /* those of the command; they begin with basin_train_options */
    const basin_train_options *o;
    int operands;
    char **operand;
    basin_training training;
    basin_outcome outcome;
    void *model, *more; /* the task's own */
} basin_train_job;

typedef struct basin_train_task {
    const char *things; /* what there are `count` of: "nodes"; or NULL, and things_of says it */
    /* Before anything is opened: usage, settings that follow from the data; or NULL. */
    basin_status (*prepare)(basin_train_job *job, basin_error *error);
    /* Fills in outcome and model. With --print-config training lasts a moment. */
    basin_status (*train)(basin_train_job *job, basin_error *error);
    int64_t (*count)(const basin_train_job *job);
    /* What the result has besides the fields of all tasks. */
    void (*print)(basin_record *r, const basin_train_job *job);
    void (*close)(basin_train_job *job); /* or NULL */
    const char *(*things_of)(const basin_train_job *job);
} basin_train_task;

basin_status basin_train_run(const basin_train_task *task, const void *options, int operands,
                             char **operand, basin_error *error);

/* The measures of a score in percent, as an object; nothing where there is no score. */
void basin_record_percent(basin_record *r, const char *key, const basin_score *score);

/* Whether anything was given but the task's default settings; `heard` (or NULL), NULL-terminated,
 * does not count. For commands that may train nothing. */
bool basin_training_settings_given(const basin_settings *settings, const basin_start *start,
                                   const char *const *heard);

/* --print-config: the settings and, where the run was rehearsed, parameters, memory and time. */
basin_status basin_config_print(const basin_settings *settings, const basin_outcome *rehearsed,
                                basin_error *error);

#endif
