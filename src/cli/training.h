/* Options that all training commands share, and how they become a basin_training. */
#ifndef BASIN_CLI_TRAINING_H
#define BASIN_CLI_TRAINING_H

#include "basin/tasks/run.h"
#include "basin/tasks/settings.h"
#include "cli/command.h"
#include "cli/watch.h"
#include "io/json_writer.h"

typedef struct basin_training_flags {
    const char *output, *checkpoint, *log, *from;
    bool resume, restart, keep_checkpoint;
    double save_every, memory;
    int64_t log_every, score_every;
    bool divide;
    basin_ranks *ranks; /* no option: who trains; the command's `ranks_at` */
} basin_training_flags;

#define BASIN_TRAINING_DEFAULT                                                                     \
    { .output = "model.safetensors", .save_every = 60 }

/* `type` has a member `training` of these. */
#define BASIN_TRAINING_OPTIONS(type)                                                               \
    BASIN_TEXT(type, training.output, 'o', "output", "FILE", "The model file to write.",           \
               .writes = true),                                                                    \
        BASIN_TEXT(type, training.log, 0, "log", "FILE", "Write a log, one JSON object a line.",   \
                   .writes = true),                                                                \
        BASIN_FLAG(type, training.resume, 0, "resume",                                             \
                   "Go on from the checkpoint that an interrupted or killed run left. Ends with "  \
                   "the same bits, and the same log, as a run that was never cut."),               \
        BASIN_FLAG(type, training.restart, 0, "restart",                                           \
                   "Begin anew where such a checkpoint is; it is kept as FILE.checkpoint.old."),   \
        BASIN_TEXT(type, training.from, 0, "from", "MODEL",                                        \
                   "Begin with the weights of this model, of the same shapes, instead of random "  \
                   "ones."),                                                                       \
        BASIN_TEXT(type, training.checkpoint, 0, "checkpoint", "FILE",                             \
                   "Where the run is saved until it ends [OUTPUT.checkpoint].", .writes = true),   \
        BASIN_FLAG(type, training.keep_checkpoint, 0, "keep-checkpoint",                           \
                   "Keep the checkpoint after the end: --resume with more --epochs then goes "     \
                   "on."),                                                                         \
        BASIN_REAL(type, training.save_every, "save-every", "SECONDS", 0, 1e9,                     \
                   "How often a checkpoint is written."),                                          \
        BASIN_INTEGER(type, training.log_every, "log-every", "STEPS", 0, 1e9,                      \
                      "Steps that a line of the log stands for; 0: the task's own choice."),       \
        BASIN_INTEGER(type, training.score_every, "score-every", "EPOCHS", 0, 1e9,                 \
                      "Epochs between scores; 0: the task's own choice."),                         \
        BASIN_REAL(type, training.memory, "memory", "GIB", 0, 1e6,                                 \
                   "Memory to stay within; 0: three quarters of what is free.")

/* Of commands whose ranks share batches of large models. */
#define BASIN_OPTION_DIVIDE(type)                                                                  \
    BASIN_FLAG(type, training.divide, 0, "divide",                                                 \
               "With several ranks: each keeps the optimiser's moments of some parameters alone "  \
               "(ZeRO stage 1). Less memory, and the weights travel once more; the same bits.")

/* What a command trains with: the backend that its options name, progress on standard error, and
 * `training` made of them and of the flags. It must stay where it is. */
typedef struct basin_training_work {
    basin_backend *backend;
    basin_cli_watch watch;
    basin_training training;
} basin_training_work;

/* Opens it. With `rehearse` (--print-config) training lasts a moment and shows nothing. */
basin_status basin_training_open(basin_training_work *work, const basin_training_flags *flags,
                                 const char *backend, int64_t threads, const char *products,
                                 const char *dtype, bool quiet, bool rehearse, basin_error *error);
/* After the models that use its backend are closed. */
void basin_training_close(basin_training_work *work);

/* The line that says what was trained: "FILE: N parameters, 6 members, trained on 1379 nodes ..",
 * `more` being "6 members, " and `things` what there are `count` of; `unit` a second. No line end.
 */
void basin_training_line(const basin_outcome *outcome, const basin_training_flags *flags,
                         const char *more, int64_t count, const char *things, const char *unit);
/* The same as fields of JSON, alike for all tasks. */
void basin_training_fields(basin_json *json, const basin_outcome *outcome,
                           const basin_training_flags *flags, int64_t count, const char *things);

/* The measures of a score in percent, as an object; nothing where there is no score. */
void basin_put_percent(basin_json *json, const char *key, const basin_score *score);

/* Whether a result is printed: that of a run that was stopped as JSON alone, that of one that was
 * finished before not at all. */
bool basin_training_is_told(const basin_outcome *outcome, bool json);

/* The exit code of a run that ended without an error, after its result was printed: a run that was
 * stopped has failed, and says how to go on. */
int basin_training_end(const basin_outcome *outcome, const basin_training_flags *flags);

/* Whether anything was given but the task's default settings; `heard` (or NULL), NULL-terminated,
 * does not count. For commands that may train nothing. */
bool basin_training_settings_given(const basin_settings *settings, const basin_start *start,
                                   const char *const *heard);

/* --print-config: the settings and, where the run was rehearsed, parameters, memory and time. */
int basin_print_config(const basin_settings *settings, const basin_outcome *rehearsed);

#endif
