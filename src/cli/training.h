/* Options that all training commands share, and how they become a basin_training. */
#ifndef BASIN_CLI_TRAINING_H
#define BASIN_CLI_TRAINING_H

#include "basin/tasks/run.h"
#include "basin/tasks/settings.h"
#include "cli/train.h"
#include "cli/watch.h"
#include "io/json_writer.h"

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

/* --print-config: the settings and, where the run was rehearsed, parameters, memory and time. */
int basin_print_config(const basin_settings *settings, const basin_outcome *rehearsed);

#endif
