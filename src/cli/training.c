/* Training commands; see training.h. */
#include "cli/training.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "basin/version.h"

static basin_training training_of(const basin_training_flags *flags, basin_backend *backend,
                                  const basin_watch *watch) {
    return (basin_training){
        .size = sizeof(basin_training),
        .backend = backend,
        .watch = watch,
        .output = flags->output,
        .checkpoint = flags->checkpoint,
        .log = flags->log,
        .from = flags->from,
        .resume = flags->resume,
        .restart = flags->restart,
        .keep_checkpoint = flags->keep_checkpoint,
        .save_every = flags->save_every > 0 ? flags->save_every : 1e-9,
        .log_every = flags->log_every,
        .score_every = flags->score_every,
        .memory = (size_t)(flags->memory * (double)(1 << 30)),
        .ranks = flags->ranks,
        .divide = flags->divide,
    };
}

basin_status basin_training_open(basin_training_work *work, const basin_training_flags *flags,
                                 const char *backend, int64_t threads, const char *products,
                                 const char *dtype, bool quiet, bool rehearse, basin_error *error) {
    static const double moment = 1.5; /* seconds */
    *work = (basin_training_work){0};
    basin_status status =
        basin_option_backend(&work->backend, backend, threads, products, dtype, error);
    if (status) return status;
    basin_cli_watch_begin(&work->watch, quiet || rehearse);
    work->training = training_of(flags, work->backend, &work->watch.watch);
    work->training.rehearse = rehearse ? moment : 0;
    return BASIN_OK;
}

void basin_training_close(basin_training_work *work) {
    basin_cli_watch_end(&work->watch);
    basin_backend_close(work->backend);
}

void basin_training_line(const basin_outcome *outcome, const basin_training_flags *flags,
                         const char *more, int64_t count, const char *things, const char *unit) {
    const basin_outcome *o = outcome;
    printf("%s: %lld parameters, ", flags->output, (long long)o->parameters);
    if (!o->steps) {
        printf("not trained: epochs is 0");
        return;
    }
    printf("%strained on %lld %s for %lld epoch%s: loss %.4f; %.0f s, %.0f %s/s, %.2f GiB", more,
           (long long)count, things, (long long)o->epochs, o->epochs == 1 ? "" : "s", o->loss,
           o->seconds, o->items_per_second, unit, (double)o->memory / (1 << 30));
}

void basin_training_fields(basin_json *json, const basin_outcome *outcome,
                           const basin_training_flags *flags, int64_t count, const char *things) {
    const basin_outcome *o = outcome;
    basin_json_text(json, "model", flags->output);
    basin_json_boolean(json, "finished", !o->stopped);
    basin_json_integer(json, "parameters", o->parameters);
    basin_json_integer(json, things, count);
    basin_json_integer(json, "epochs", o->epochs);
    basin_json_integer(json, "best_epoch", o->best_epoch);
    basin_json_integer(json, "steps", o->steps);
    basin_json_integer(json, "steps_wanted", o->steps_wanted);
    basin_json_number(json, "loss", o->loss);
    basin_json_number(json, "seconds", o->seconds);
    basin_json_number(json, "epoch_seconds", o->epoch_seconds);
    basin_json_number(json, "step_seconds", o->step_seconds);
    basin_json_number(json, "items_per_second", o->items_per_second);
    basin_json_integer(json, "memory_bytes", (int64_t)o->memory);
}

void basin_put_percent(basin_json *json, const char *key, const basin_score *score) {
    if (!score) return;
    basin_json_object(json, key);
    for (int i = 0; i < score->measures; i++)
        basin_json_number(json, score->measure[i].name, 100 * score->measure[i].value);
    basin_json_end(json);
}

bool basin_training_is_told(const basin_outcome *outcome, bool json) {
    return !outcome->finished_before && (json || !outcome->stopped);
}

int basin_training_end(const basin_outcome *outcome, const basin_training_flags *flags) {
    if (outcome->finished_before)
        printf("%s is finished; there is no checkpoint to go on from\n", flags->output);
    if (!outcome->stopped) return BASIN_EXIT_OK;
    fprintf(stderr,
            "basin: interrupted at step %lld of %lld; to go on, give the same command with "
            "--resume\n",
            (long long)outcome->steps, (long long)outcome->steps_wanted);
    return basin_cli_watch_signal() == SIGINT ? BASIN_EXIT_FAILURE : BASIN_EXIT_AGAIN;
}

int basin_print_config(const basin_settings *settings, const basin_outcome *rehearsed) {
    basin_error error;
    char *text = basin_settings_json(settings);
    if (!text) {
        basin_fail(&error, BASIN_NO_MEMORY, "out of memory to print settings");
        return basin_report(&error);
    }
    printf("{\n\"basin\": \"%s\",\n\"task\": \"%s\",\n\"settings\": %s", BASIN_VERSION_STRING,
           basin_settings_task(settings), text);
    if (rehearsed)
        printf(
            ",\n\"estimate\": {\n\t\"parameters\": %lld,\n\t\"memory_bytes\": %zu,\n\t\"steps\": "
            "%lld,\n\t\"step_seconds\": %.4g,\n\t\"seconds\": %.4g\n}",
            (long long)rehearsed->parameters, rehearsed->memory, (long long)rehearsed->steps_wanted,
            rehearsed->step_seconds, rehearsed->step_seconds * (double)rehearsed->steps_wanted);
    puts("\n}");
    free(text);
    return BASIN_EXIT_OK;
}
