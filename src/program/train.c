/* The drivers of commands that train, of those that use models, and of evaluation over splits; see
 * cli.h. */
#include <signal.h>

#include "base/clock.h"
#include "base/file.h"
#include "basin/tasks/metrics.h"
#include "basin/version.h"
#include "program/cli.h"

/* ---- the result ---- */

void basin_record_percent(basin_record *r, const char *key, const basin_score *score) {
    if (!score) return;
    basin_record_object(r, key);
    for (int i = 0; i < score->measures; i++)
        basin_record_number(r, score->measure[i].name, "%.2f", 100 * score->measure[i].value);
    basin_record_end(r);
}

/* The score of validation, as it is. */
static void put_validation(basin_record *r, const basin_score *best) {
    basin_record_object(r, "validation");
    for (int i = 0; i < best->measures; i++) {
        const char *name = best->measure[i].name, *bare = strchr(name, '_');
        bool said = bare && (!strncmp(name, "test_", 5) || !strncmp(name, "validation_", 11));
        char key[2 * BASIN_MAX_MEASURE_NAME]; /* text: "validation  MSE 0.4677" */
        snprintf(key, sizeof key, "%s|%s", name, said ? bare + 1 : name);
        basin_record_number(r, key, "%.4f", best->measure[i].value);
    }
    basin_record_end(r);
}

#define F(member, ...) BASIN_FIELD(basin_training_result, member, __VA_ARGS__)
static const basin_field outcome_fields[] = {F(epochs, "epochs"),
                                             F(best_epoch, "?best_epoch"),
                                             F(steps, ".steps"),
                                             F(steps_planned, ".steps_planned"),
                                             F(loss, "loss", "%.4f"),
                                             F(seconds, "seconds", "%.0f"),
                                             F(epoch_seconds, ".epoch_seconds"),
                                             F(step_seconds, ".step_seconds"),
                                             F(items_per_second, "items_per_second", "%.0f"),
                                             F(memory, "memory_bytes|memory"),
                                             {0}};
#undef F

static void print(basin_record *r, const void *context) {
    const basin_train_job *job = context;
    const basin_training_result *o = &job->outcome;
    basin_record_fields(r, "model=%s;.finished=%d;parameters=%lld", job->o->training.output,
                        !o->stopped, (long long)o->parameters);
    basin_record_integer(r, job->things, job->count);
    basin_record_number(r, o->resumed ? "total_seconds|seconds since resumed" : "total_seconds",
                        "%.0f", basin_clock() - job->began);
    basin_record_struct(r, outcome_fields, o);
    if (job->task->print) job->task->print(r, job);
    if (job->task->validates && o->best.measures) put_validation(r, &o->best);
    if (!o->steps) basin_record_note(r, "not trained: epochs is 0");
}

/* --print-config: the settings and, after a short run, its parameters, memory and time. */
static basin_status print_config(const basin_args *args, const basin_training_result *estimate,
                                 basin_error *error) {
    BASIN_FREE_AT_EXIT char *text = basin_settings_json(args->settings);
    if (!text) return basin_fail_memory(error, "settings");
    printf("{\n\"basin\": \"%s\",\n\"task\": \"%s\",\n\"settings\": %s", BASIN_VERSION_STRING,
           basin_settings_task(args->settings), text);
    if (estimate)
        printf(
            ",\n\"estimate\": {\n\t\"parameters\": %lld,\n\t\"memory_bytes\": %zu,\n\t\"steps\": "
            "%lld,\n\t\"step_seconds\": %.4g,\n\t\"seconds\": %.4g\n}",
            (long long)estimate->parameters, estimate->memory, (long long)estimate->steps_planned,
            estimate->step_seconds, estimate->step_seconds * (double)estimate->steps_planned);
    puts("\n}");
    return BASIN_OK;
}

/* A run that was stopped prints its result as JSON only; one that had finished before, nothing. */
static basin_status finish(const basin_train_job *job, basin_error *error) {
    const basin_training_result *outcome = &job->outcome;
    const basin_args *o = job->o;
    if (o->start.print_config) return print_config(o, outcome, error);
    bool written = !outcome->finished_before && !outcome->stopped && o->training.output &&
                   !basin_file_special(o->training.output);
    basin_error why; /* no reason to call a model lost that is there */
    if (written && job->record && basin_command_record_add(job->record, o->training.output, &why))
        basin_say("basin: note: the model lacks the command that trained it: %s", why.text);
    if (!outcome->finished_before && (o->json || !outcome->stopped) && !o->no_result)
        BASIN_TRY(basin_record_print(o->json, print, job, error));
    if (!basin_ranks_rank(o->ranks)) basin_note_gamma(o, o->training.output);
    if (outcome->finished_before) {
        fprintf(o->json ? stderr : stdout, "%s: already finished; nothing to resume\n",
                o->training.output);
        if (job->record) basin_command_record_compare(job->record, o);
    }
    if (!outcome->stopped) return BASIN_OK;
    basin_say("basin: interrupted at step %lld of %lld; to continue, run the same command with "
              "--resume",
              (long long)outcome->steps, (long long)outcome->steps_planned);
    return basin_caught_signal() == SIGINT ? BASIN_REPORTED : BASIN_AGAIN;
}

/* ---- the driver ---- */

/* A model too large for the memory: names the options that help; its settings are still printed. */
static basin_status fail_large(basin_train_job *job, basin_status status, basin_error *error) {
    char why[sizeof error->text];
    if (status != BASIN_NO_MEMORY || !strstr(error->text, "(recompute)")) return status;
    snprintf(why, sizeof why, "%s", error->text);
    basin_fail(error, status, "%.400s: --batch N, --recompute", why);
    if (!job->o->start.print_config) return status;
    basin_say("basin: note: %s", error->text);
    return print_config(job->o, NULL, error);
}

static basin_status train(basin_train_job *job, basin_error *error) {
    static const double moment = 1.5; /* seconds */
    basin_args *o = job->o;
    basin_training_options *t = &o->training;
    if (job->task->prepare) BASIN_TRY(job->task->prepare(job, error));
    basin_cli_watch_begin(&o->watch, o->quiet || o->start.print_config);
    BASIN_TRY(basin_compute_open(o, error));
    t->backend = o->compute;
    t->watch = &o->watch.watch;
    t->ranks = o->ranks;
    t->memory = (size_t)(o->memory * (double)(1 << 30));
    if (t->save_every <= 0) t->save_every = 1e-9; /* 0 would be the library's own choice */
    t->dry_run_seconds = o->start.print_config ? moment : 0;
    if (!basin_ranks_rank(o->ranks) && !o->start.print_config)
        (void)basin_command_record(&job->record, o, NULL); /* NULL: nothing is recorded */
    basin_status status = job->task->train(job, error);
    basin_cli_watch_end(&o->watch);
    return status ? fail_large(job, status, error) : finish(job, error);
}

basin_status basin_train_run(void *options, basin_error *error) {
    basin_args *args = options;
    basin_train_job job = {.o = args,
                           .task = args->command->train,
                           .outcome = {.size = sizeof job.outcome},
                           .began = basin_clock()};
    if (!args->operands && args->start.print_config) return print_config(args, NULL, error);
    if (!args->operands) return basin_usage(error, "needs data to train on");
    basin_status status = train(&job, error);
    if (job.task->close) job.task->close(&job);
    free(job.record);
    return status;
}

/* ---- settings ---- */

static bool is_listed(const char *const *list, const char *name) {
    while (list && *list && strcmp(*list, name) != 0) list++;
    return list && *list;
}

bool basin_training_settings_given(const basin_args *args, const char *const *heard) {
    const basin_setting *s;
    const basin_start *start = &args->start;
    for (int i = 0; (s = basin_setting_at(args->command->task, i)); i++)
        if (basin_settings_given(args->settings, s->name) && !is_listed(heard, s->name))
            return true;
    return start->config || (start->preset && strcmp(start->preset, "default") != 0);
}

/* ---- commands that use models ---- */

static basin_status print_record(const basin_use_task *task, const void *job, const basin_args *o,
                                 basin_error *error) {
    if (!task->print) return BASIN_OK;
    if (!task->rows) return basin_record_print(o->json, task->print, job, error);
    return basin_record_write(o->output, o->json ? BASIN_FORM_JSON : BASIN_FORM_CSV, task->print,
                              job, error);
}

static basin_status use(const basin_use_task *task, void *job, basin_args *o, basin_error *error) {
    if (task->prepare) BASIN_TRY(task->prepare(job, error));
    (task->no_stop ? basin_cli_watch_plain : basin_cli_watch_begin)(&o->watch, o->quiet);
    if (!task->no_backend) BASIN_TRY(basin_compute_open(o, error));
    BASIN_TRY(task->work(job, error));
    basin_cli_watch_end(&o->watch);
    if (basin_ranks_rank(o->ranks)) return BASIN_OK; /* the first prints */
    BASIN_TRY(print_record(task, job, o, error));
    return task->finish ? task->finish(job, error) : BASIN_OK;
}

basin_status basin_use_run(void *options, basin_error *error) {
    basin_args *args = options;
    const basin_use_task *task = args->command->use;
    if (args->start.print_config) return print_config(args, NULL, error);
    void *job = calloc(1, task->size);
    if (!job) return basin_fail_memory(error, args->command->name);
    memcpy(job, &options, sizeof options);
    basin_status status = use(task, job, args, error);
    task->close(job);
    free(job);
    return status;
}

/* ---- splits ---- */

basin_status basin_splits_run(basin_splits *s, basin_error *error) {
    for (int64_t i = 0; i < s->runs && !s->stopped; i++) BASIN_TRY(s->run(s->job, i, error));
    if (s->stopped && s->o->ranks) return basin_fail(error, BASIN_BAD_VALUE, "interrupted");
    return s->stopped ? BASIN_REPORTED : BASIN_OK;
}

static basin_spread spread_of(const double *value, int64_t count, double overlap) {
    basin_spread s = {.count = count, .lowest = INFINITY, .highest = -INFINITY};
    for (int64_t i = 0; i < count; i++) {
        s.lowest = fmin(s.lowest, value[i]);
        s.highest = fmax(s.highest, value[i]);
    }
    basin_mean_deviation(&s.mean, &s.deviation, value, count);
    s.has_interval = basin_mean_interval(&s.interval[0], &s.interval[1], value, count, overlap);
    return s;
}

basin_spread basin_splits_spread(const basin_splits *s, int row, const char *measure, int64_t first,
                                 int64_t count) {
    int64_t found = 0;
    for (int64_t i = first; i < first + count; i++)
        found += s->figure(&s->value[found], s->job, row, measure, i);
    return spread_of(s->value, found, s->overlap);
}
