/* The drivers of commands that use models, and of evaluation over splits; see cli.h. */
#include "basin/metrics.h"
#include "cli/cli.h"

/* ---- one record ---- */

static basin_status print(const basin_use_task *task, const void *job, const basin_args *o,
                          basin_error *error) {
    if (!task->print) return BASIN_OK;
    if (!task->rows) return basin_record_print(o->json, task->print, job, error);
    basin_print_form form = o->json          ? BASIN_FORM_JSON
                            : o->spreadsheet ? BASIN_FORM_SPREADSHEET
                                             : BASIN_FORM_CSV;
    return basin_record_write(o->output, form, task->print, job, error);
}

static basin_status use(const basin_use_task *task, void *job, basin_args *o, basin_error *error) {
    if (task->prepare) BASIN_TRY(task->prepare(job, error));
    (task->no_stop ? basin_cli_watch_plain : basin_cli_watch_begin)(&o->watch, o->quiet);
    if (!task->no_backend) BASIN_TRY(basin_compute_open(o, error));
    BASIN_TRY(task->work(job, error));
    basin_cli_watch_end(&o->watch);
    if (basin_ranks_rank(o->ranks)) return BASIN_OK; /* the first prints */
    BASIN_TRY(print(task, job, o, error));
    return task->finish ? task->finish(job, error) : BASIN_OK;
}

basin_status basin_use_run(basin_args *args, basin_error *error) {
    const basin_use_task *task = args->command->use;
    if (args->start.print_config) return basin_config_print(args, NULL, error);
    void *job = calloc(1, task->size);
    if (!job) return basin_fail_memory(error, args->command->name);
    *(basin_args **)job = args;
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

basin_spread basin_spread_of(const double *value, int64_t count, double overlap) {
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
    return basin_spread_of(s->value, found, s->overlap);
}
