/* Opening a run: new, resumed or finished already; its log and its messages. */
#include <errno.h>
#include <unistd.h>

#include <stdarg.h>

#include "base/file.h"
#include "base/info.h"
#include "tasks/common/digest.h"
#include "tasks/common/run/run.h"

static char *join(const char *path, const char *suffix) {
    size_t size = strlen(path) + strlen(suffix) + 1;
    char *text = malloc(size);
    if (text) snprintf(text, size, "%s%s", path, suffix);
    return text;
}

static bool exists(const char *path) { return access(path, F_OK) == 0; }

/* Paths are checked now rather than after the last epoch. */
static basin_status check_log(const char *path, basin_error *error) {
    FILE *file = path ? fopen(path, "a") : NULL;
    if (path && !file) return basin_fail_errno(path, "open", error);
    if (file) fclose(file);
    return BASIN_OK;
}

static basin_status set_aside(const basin_run *run, basin_error *error) {
    BASIN_FREE_AT_EXIT char *old = join(run->checkpoint, ".old");
    if (!old) return basin_fail_memory(error, "a path");
    if (rename(run->checkpoint, old)) return basin_fail_errno(old, "rename", error);
    basin_watch_note(run->training.watch, "the checkpoint of an earlier run is kept as %s", old);
    return BASIN_OK;
}

/* The checkpoint that is to be resumed, or none. */
static basin_status look(basin_run *run, const char *kind, basin_error *error) {
    const basin_training_options *t = &run->training;
    BASIN_TRY(basin_writer_sweep(run->checkpoint, error));
    bool there = exists(run->checkpoint);
    if (there && t->resume) {
        BASIN_TRY(basin_model_read(&run->saved, run->checkpoint, error));
        return basin_settings_check_model(run->saved, kind, error);
    }
    if (there && t->restart) return set_aside(run, error);
    if (there)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: the checkpoint of an unfinished run; resume that run, or restart, "
                          "which keeps the checkpoint aside",
                          run->checkpoint);
    run->finished = t->resume && t->output && exists(t->output);
    if (t->resume && !run->finished)
        basin_watch_note(t->watch, "no checkpoint to resume: the run begins");
    return BASIN_OK;
}

static basin_status open_from(basin_run *run, const char *kind, basin_error *error) {
    if (!run->training.from) return BASIN_OK; /* resumed, for members still to begin */
    BASIN_TRY(basin_model_read(&run->from, run->training.from, error));
    return basin_settings_check_model(run->from, kind, error);
}

/* Two files of a run under one name: the one written last would be all that is left. */
static basin_status check_apart(const basin_run *run, basin_error *error) {
    const char *const name[] = {"output", "checkpoint", "log"};
    const char *const path[] = {run->training.output, run->checkpoint, run->training.log};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < i; k++) {
            bool same = false;
            BASIN_TRY(path[i] && path[k] ? basin_file_same(&same, path[i], path[k], error)
                                         : BASIN_OK);
            if (same)
                return basin_fail(error, BASIN_BAD_VALUE,
                                  "%s and %s are both %s; expected two files", name[k], name[i],
                                  path[i]);
        }
    if (run->training.resume && run->training.restart)
        return basin_fail(error, BASIN_BAD_VALUE, "resume and restart exclude each other");
    return BASIN_OK;
}

/* A model takes the place of a model, or of what was left of one, and of no other file. */
static basin_status check_replaced(const char *path, basin_error *error) {
    unsigned char head[9] = {0}; /* the length of a header, below 2^32, and its brace */
    FILE *file = basin_file_special(path) ? NULL : fopen(path, "rb");
    if (!file) return BASIN_OK;
    size_t size = fread(head, 1, sizeof head, file);
    fclose(file);
    if (!size || (size == sizeof head && !memcmp(head + 4, "\0\0\0\0{", 5))) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: is not a model, and would be replaced by one; expected another name",
                      path);
}

static basin_status open_files(basin_run *run, const char *kind, basin_error *error) {
    const basin_training_options *t = &run->training;
    if (t->dry_run_seconds > 0) return open_from(run, kind, error);
    bool named = t->output && !basin_file_special(t->output); /* no checkpoint beside /dev/null */
    if (t->checkpoint)
        run->checkpoint = basin_string_copy(t->checkpoint);
    else if (named)
        run->checkpoint = join(t->output, ".checkpoint");
    if ((t->checkpoint || named) && !run->checkpoint) return basin_fail_memory(error, "a path");
    if (run->checkpoint && basin_file_special(run->checkpoint))
        return basin_fail(error, BASIN_IO, "%s: is not a regular file; a checkpoint needs one",
                          run->checkpoint);
    BASIN_TRY(check_apart(run, error));
    if (t->output) BASIN_TRY(basin_writer_sweep(t->output, error));
    if (t->log) BASIN_TRY(basin_writer_sweep(t->log, error));
    if (run->checkpoint) BASIN_TRY(look(run, kind, error));
    if (run->finished) return BASIN_OK;
    if (t->output) BASIN_TRY(check_replaced(t->output, error));
    if (t->output) BASIN_TRY(basin_writer_try(t->output, error));
    if (run->checkpoint) BASIN_TRY(basin_writer_try(run->checkpoint, error));
    BASIN_TRY(check_log(t->log, error));
    return open_from(run, kind, error);
}

/* ---- files that rank 0 reads for all ---- */

/* The bytes of the file that rank 0's bundle was read from; *data is to be freed. */
static basin_status share_bytes(void **data, uint64_t *size, basin_ranks *ranks, const char *path,
                                basin_error *error) {
    BASIN_AT_EXIT(basin_map_close) basin_map map = {0};
    basin_status status = path ? basin_map_open(&map, path, error) : BASIN_OK;
    *size = map.size;
    *data = NULL;
    BASIN_TRY(basin_ranks_agree(ranks, status, error));
    BASIN_TRY(basin_ranks_broadcast(ranks, size, sizeof *size, 0, error));
    if (*size && !(*data = malloc(*size))) status = basin_fail_memory(error, "a checkpoint");
    if (!status && map.size) memcpy(*data, map.data, map.size);
    BASIN_TRY(basin_ranks_agree(ranks, status, error));
    return *size ? basin_ranks_broadcast(ranks, *data, *size, 0, error) : BASIN_OK;
}

static basin_status share_bundle(basin_bundle **bundle, void **data, basin_run *run,
                                 const char *path, basin_error *error) {
    uint64_t size;
    basin_ranks *ranks = run->training.ranks;
    basin_status status =
        share_bytes(data, &size, ranks, *bundle ? basin_bundle_path(*bundle) : NULL, error);
    if (!status && *data) {
        /* On rank 0 as well: a rank of a run that was killed may have replaced the file since it
         * looked.
         */
        basin_bundle_free(*bundle);
        *bundle = NULL;
        status = basin_bundle_parse(bundle, *data, size, path, error);
    }
    return basin_ranks_agree(ranks, status, error);
}

/* Rank 0 looked at the files of the run and `status` came of it: the others get the checkpoint, or
 * the model to begin with, so that only its host need have them. */
static basin_status share_files(basin_run *run, basin_status status, basin_error *error) {
    basin_ranks *ranks = run->training.ranks;
    const char *saved = run->checkpoint ? run->checkpoint : "the checkpoint";
    if (basin_ranks_count(ranks) == 1) return status;
    BASIN_TRY(basin_ranks_agree(ranks, status, error));
    BASIN_TRY(basin_ranks_broadcast(ranks, &run->finished, sizeof run->finished, 0, error));
    BASIN_TRY(share_bundle(&run->saved, &run->shared[0], run, saved, error));
    return share_bundle(&run->from, &run->shared[1], run, run->training.from, error);
}

basin_status basin_run_open(basin_run **run, const basin_training_options *training,
                            const char *kind, basin_error *error) {
    basin_run *r;
    *run = NULL;
    BASIN_TRY(BASIN_NEW(&r, 1, "a training run", error));
    r->training = *training;
    if (!(r->training.save_every > 0)) r->training.save_every = 60;
    basin_ranks *ranks = r->training.ranks;
    basin_status status = basin_ranks_rank(ranks) == 0 ? open_files(r, kind, error) : BASIN_OK;
    status = share_files(r, status, error);
    if (status)
        basin_run_close(r);
    else
        *run = r;
    return status;
}

basin_status basin_run_begin(basin_run **run, basin_training_result *outcome,
                             const basin_settings *settings, const basin_task_settings *kind,
                             const basin_training_options *training, basin_error *error) {
    *outcome = (basin_training_result){.loss = NAN};
    BASIN_TRY(BASIN_SIZE_CHECK(training, "basin_training_options", error));
    BASIN_TRY(BASIN_SIZE_CHECK(training->watch, "basin_watch", error));
    BASIN_TRY(basin_settings_of(settings, kind, error));
    BASIN_TRY(basin_settings_check(settings, error));
    if (!training->backend)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "training->backend is NULL; expected an open backend");
    BASIN_TRY(basin_run_open(run, training, kind->model ? kind->model : kind->task, error));
    outcome->finished_before = (*run)->finished;
    return basin_run_compare(*run, settings->values, kind->table, error);
}

basin_status basin_run_match(const basin_run *run, const void *saved, const void *asked,
                             const basin_setting_entry *table, basin_error *error) {
    size_t epochs = basin_setting_find(table, "epochs")->offset;
    long long before = *(const int64_t *)((const char *)saved + epochs);
    long long now = *(const int64_t *)((const char *)asked + epochs);
    BASIN_TRY(basin_settings_match(saved, asked, table, basin_bundle_path(run->saved), error));
    if (before != now)
        basin_watch_note(run->training.watch,
                         "the run had %lld epochs and now has %lld: learning rates follow the "
                         "schedule of %lld epochs from here on",
                         before, now, now);
    return BASIN_OK;
}

void basin_run_close(basin_run *run) {
    if (!run) return;
    if (run->log) fclose(run->log);
    basin_bundle_free(run->saved);
    basin_bundle_free(run->from);
    for (int i = 0; i < 2; i++) free(run->shared[i]);
    BASIN_FREE(run->checkpoint, run->epoch_seconds, run);
}

size_t basin_run_memory(const basin_run *run) {
    return run->training.memory ? run->training.memory : basin_memory_share();
}

size_t basin_plan_bytes(const basin_plan *plan) {
    basin_plan_stats stats = basin_plan_stats_of(plan);
    return stats.arena_bytes + stats.input_bytes + stats.state_bytes;
}

basin_status basin_run_hold(const basin_run *run, size_t bytes, const char *advice,
                            basin_error *error) {
    size_t allowed = basin_run_memory(run);
    bool device = !strcmp(basin_backend_info_of(run->training.backend).name, "cuda");
    if (bytes <= allowed || (device && !run->training.memory)) return BASIN_OK;
    const double gib = 1 << 30;
    return basin_fail(error, BASIN_NO_MEMORY,
                      "training takes %.3g GiB of memory, the limit is %.3g; use %s",
                      (double)bytes / gib, (double)allowed / gib, advice);
}

/* ---- whether ranks have the same ---- */

basin_status basin_run_compare(basin_run *run, const void *settings,
                               const basin_setting_entry *table, basin_error *error) {
    basin_ranks *ranks = run->training.ranks;
    if (basin_ranks_count(ranks) == 1) return BASIN_OK;
    BASIN_FREE_AT_EXIT char *text = basin_settings_print(settings, table, true);
    basin_status status = text ? BASIN_OK : basin_fail_memory(error, "settings");
    BASIN_TRY(basin_ranks_agree(ranks, status, error));
    return basin_ranks_alike(ranks, text, "the settings", error);
}

basin_status basin_run_share_sizes(basin_run *run, basin_error *error) {
    const basin_run_task *t = run->task;
    char text[300];
    snprintf(text, sizeof text,
             "%lld members\n%lld epochs\n%lld %s\n%lld steps per epoch\n%lld parameters\n"
             "digest %016llx of the %s\n",
             (long long)t->members, (long long)t->epochs, (long long)t->items, t->unit,
             (long long)t->steps, (long long)basin_params_total(t->params),
             (unsigned long long)t->data, t->unit);
    return basin_ranks_alike(run->training.ranks, text, "data and sizes", error);
}

/* ---- the log ---- */

static double number(const cJSON *object, const char *name, double absent) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(item) ? item->valuedouble : absent;
}

/* Whether a line reports what was done by then. One cut short by a kill is not JSON and is
 * dropped. */
static bool stays(const char *line, const basin_run_place *done) {
    BASIN_JSON_AT_EXIT cJSON *object = cJSON_Parse(line);
    if (!object) return false;
    double member = number(object, "member", (double)done->member);
    double epoch = number(object, "epoch", -1), step = number(object, "step", 0);
    if (member != (double)done->member) return member < (double)done->member;
    return epoch >= 0 ? epoch <= (double)done->epoch : step <= (double)done->step;
}

static basin_status keep_lines(const char *path, const basin_run_place *done, basin_error *error) {
    FILE *old = fopen(path, "r");
    if (!old) return BASIN_OK;
    basin_writer writer;
    basin_status status = basin_writer_create(&writer, path, error);
    char *line = NULL;
    size_t capacity = 0;
    while (!status && getline(&line, &capacity, old) > 0) {
        if (!stays(line, done)) continue;
        status = basin_writer_put(&writer, line, strlen(line), error);
        if (status) basin_writer_discard(&writer);
    }
    if (!status) status = basin_writer_commit(&writer, error);
    free(line);
    fclose(old);
    return status;
}

basin_status basin_log_open(FILE **log, const char *path, const basin_run_place *resumed,
                            basin_error *error) {
    *log = NULL;
    if (!path) return BASIN_OK;
    BASIN_TRY(resumed ? keep_lines(path, resumed, error) : BASIN_OK);
    *log = fopen(path, resumed ? "a" : "w");
    return *log ? BASIN_OK : basin_fail_errno(path, "open for writing", error);
}

/* ---- reports to a watcher ---- */

void basin_watch_show(const basin_watch *watch, const basin_progress_report *report) {
    if (watch && watch->show) watch->show(watch->context, report);
}

void basin_watch_progress(const basin_watch *watch, const char *what, int64_t done, int64_t total,
                          double speed, const char *unit) {
    basin_progress_report report = {what, done, total, NAN, speed, unit, .seconds_left = NAN};
    basin_watch_show(watch, &report);
}

void basin_watch_note(const basin_watch *watch, const char *format, ...) {
    char line[1024];
    if (!watch || !watch->note) return;
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    watch->note(watch->context, line);
}

bool basin_watch_stopped(const basin_watch *watch) {
    return watch && watch->stop && watch->stop(watch->context);
}

/* ---- scores ---- */

double basin_score_get(const basin_score *score, const char *name) {
    for (int i = 0; i < score->measures; i++)
        if (!strcmp(score->measure[i].name, name)) return score->measure[i].value;
    return NAN;
}

void basin_score_add(basin_score *score, const char *name, double value) {
    if (score->measures >= BASIN_MAX_MEASURES) return;
    int i = score->measures++;
    snprintf(score->measure[i].name, sizeof score->measure[i].name, "%s", name);
    score->measure[i].value = value;
}

/* ---- fixed points ---- */

bool basin_convergence_describe(char *text, size_t size, const basin_convergence *r) {
    size_t at = 0;
    if (size) *text = 0;
    if (r->not_converged)
        at = (size_t)snprintf(text, size,
                              "%lld of %lld descents did not converge in %lld steps, forces of "
                              "up to %.2g of a token were left; more rest_steps or another alpha "
                              "may help",
                              (long long)r->not_converged, (long long)r->points,
                              (long long)r->max_steps, r->change);
    if (r->unsolved && at < size)
        snprintf(text + at, size - at,
                 "%s%lld of %lld gradients at fixed points are inexact, their linear systems by up "
                 "to %.2g; more rest_products may help",
                 at ? "; " : "", (long long)r->unsolved, (long long)r->solutions, r->residual);
    return r->not_converged || r->unsolved;
}

void basin_convergence_note(const basin_watch *watch, const char *when, basin_store *store) {
    char text[400];
    basin_convergence found = basin_convergence_of(store);
    if (basin_convergence_describe(text, sizeof text, &found))
        basin_watch_note(watch, "%s: %s", when, text);
}
