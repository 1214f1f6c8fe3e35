/* Cross-validation of graph models, folds in processes of their own.
 *
 * A process that has run OpenMP teams cannot fork children that do, so whatever is parallel before
 * the fork (positions and walks) runs in a thread that ends: its team ends with it. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "task/graphs/graphs.h"

/* ---- one fold ---- */

typedef struct message {
    int64_t fold;
    int kind; /* EPOCH, RESULT, FAILURE */
    basin_graphs_cv_fold result;
    double loss;
    basin_error error;
} message;
enum { EPOCH, RESULT, FAILURE };

typedef struct worker {
    const basin_graphs_cv_spec *spec;
    const basin_positions *positions;
    int64_t fold;
    int pipe;        /* where to tell of epochs; -1: straight to the watcher */
    int64_t *epochs; /* done so far, over all folds, where there is no pipe */
    int64_t total;
} worker;

static void show(const basin_graphs_cv_spec *spec, int64_t done, int64_t total, double loss) {
    basin_news news = {.what = "folds",
                       .done = done,
                       .total = total,
                       .loss = loss,
                       .speed = NAN,
                       .unit = "epochs",
                       .seconds_left = NAN};
    basin_watch_show(spec->watch, &news);
}

static void on_epoch(void *context, int64_t epoch, double loss,
                     const basin_graphs_score *validation) {
    worker *w = context;
    (void)epoch, (void)validation;
    if (w->pipe < 0) {
        show(w->spec, ++*w->epochs, w->total, loss);
        return;
    }
    message m = {.fold = w->fold, .kind = EPOCH, .loss = loss};
    if (write(w->pipe, &m, sizeof m) < 0) return; /* whoever listened is gone */
}

/* Adds probabilities of classes, or values, to what members before gave. */
static void add_outputs(float *sum, const float *output, int64_t rows, int64_t outputs,
                        bool classes) {
    for (int64_t i = 0; i < rows; i++) {
        const float *from = output + i * outputs;
        double top = (double)from[0], all = 0;
        for (int64_t c = 1; c < outputs; c++) top = fmax(top, (double)from[c]);
        for (int64_t c = 0; c < outputs; c++) all += exp((double)from[c] - top);
        for (int64_t c = 0; c < outputs; c++)
            sum[i * outputs + c] += classes ? (float)(exp((double)from[c] - top) / all) : from[c];
    }
}

/* Scores of the members' mean; of probabilities it takes the logarithm, as scores want logits. */
static void measure_mean(basin_graphs_score *score, float *sum, const worker *w,
                         const basin_fold *fold, int part, int64_t outputs) {
    const basin_graphset *set = w->spec->set;
    int64_t rows = basin_graphs_rows(set, fold->item[part], fold->count[part]);
    for (int64_t i = 0; i < rows * outputs; i++) {
        double mean = (double)sum[i] / (double)w->spec->members;
        sum[i] = (float)(set->task == BASIN_GRAPHS_VALUES ? mean : log(fmax(mean, 1e-30)));
    }
    basin_graphs_measure(score, sum, set, fold->item[part], fold->count[part], outputs);
}

static basin_status score_part(float *sum, basin_graphs_session *session, const worker *w,
                               const int64_t *graph, int64_t count, basin_error *error) {
    const basin_graphset *set = w->spec->set;
    int64_t rows = basin_graphs_rows(set, graph, count);
    basin_graphs_plans plans;
    float *output = basin_array_new((size_t)rows, (size_t)session->outputs * sizeof *output);
    if (!output) return basin_fail(error, BASIN_NO_MEMORY, "no memory for outputs");
    basin_graphs_plans_begin(&plans, session, set, graph, count, NULL);
    basin_status status =
        basin_graphs_plans_score(&plans, output, set, w->positions, graph, count, error);
    if (!status) add_outputs(sum, output, rows, session->outputs, set->task != BASIN_GRAPHS_VALUES);
    basin_graphs_plans_free(&plans);
    free(output);
    return status;
}

static basin_status train_member(basin_graphs_cv_fold *result, basin_graphs_session *session,
                                 worker *w, basin_error *error) {
    const basin_fold *fold = &w->spec->folds->fold[w->fold];
    basin_watch silent = {.stop = w->spec->watch ? w->spec->watch->stop : NULL};
    basin_graphs_run run = {.set = w->spec->set,
                            .positions = w->positions,
                            .train = fold->item[0],
                            .trains = fold->count[0],
                            .validation = fold->item[1],
                            .validations = fold->count[1],
                            .watch = &silent,
                            .epoch = on_epoch,
                            .context = w};
    basin_graphs_outcome outcome;
    basin_status status = basin_graphs_train(&outcome, session, &run, error);
    if (!status && outcome.stopped)
        status =
            basin_fail(error, BASIN_BAD_VALUE, "interrupted in fold %lld", (long long)w->fold + 1);
    if (!result->epochs) result->epochs = outcome.epochs, result->best_epoch = outcome.best_epoch;
    result->seconds += outcome.seconds;
    result->epoch_seconds = outcome.epoch_seconds;
    result->bytes = (int64_t)outcome.bytes;
    return status;
}

static basin_status run_member(basin_graphs_cv_fold *result, float *sum[3], int64_t *outputs,
                               worker *w, int64_t member, basin_backend *backend,
                               basin_error *error) {
    const basin_graphs_cv_spec *spec = w->spec;
    const basin_fold *fold = &spec->folds->fold[w->fold];
    basin_graphs_settings settings = *spec->settings;
    basin_graphs_session session;
    settings.seed += w->fold * spec->members + member;
    basin_status status = basin_graphs_session_new(&session, &settings, spec->set, fold->item[0],
                                                   fold->count[0], backend, error);
    if (status) return status;
    *outputs = session.outputs;
    for (int part = 1; part < 3 && !status && !member; part++) {
        int64_t rows = basin_graphs_rows(spec->set, fold->item[part], fold->count[part]);
        sum[part] = calloc((size_t)(rows * session.outputs) + 1, sizeof *sum[part]);
        if (!sum[part]) status = basin_fail(error, BASIN_NO_MEMORY, "no memory for outputs");
    }
    if (!status) status = train_member(result, &session, w, error);
    for (int part = 1; part < 3 && !status; part++)
        if (fold->count[part])
            status = score_part(sum[part], &session, w, fold->item[part], fold->count[part], error);
    basin_graphs_session_close(&session);
    return status;
}

static basin_status run_fold(basin_graphs_cv_fold *result, worker *w, basin_error *error) {
    const basin_graphs_cv_spec *spec = w->spec;
    const basin_fold *fold = &spec->folds->fold[w->fold];
    basin_backend *backend = NULL;
    float *sum[3] = {NULL};
    int64_t outputs = 0;
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN), jobs = (int)spec->jobs;
    int threads = spec->threads > 0 ? spec->threads : cores / jobs > 1 ? cores / jobs : 1;
    *result = (basin_graphs_cv_fold){
        .trains = fold->count[0], .validations = fold->count[1], .tests = fold->count[2]};
    basin_status status = basin_backend_open(&backend, spec->backend, threads, error);
    if (!status) basin_backend_set_products(backend, spec->products);
    for (int64_t m = 0; m < spec->members && !status; m++)
        status = run_member(result, sum, &outputs, w, m, backend, error);
    if (!status) {
        measure_mean(&result->validation, sum[1], w, fold, 1, outputs);
        measure_mean(&result->test, sum[2], w, fold, 2, outputs);
        result->done = true;
    }
    free(sum[1]);
    free(sum[2]);
    if (backend) basin_backend_close(backend);
    return status;
}

/* ---- many folds ---- */

typedef struct crew {
    const basin_graphs_cv_spec *spec;
    const basin_positions *positions;
    basin_graphs_cv_fold *result;
    pid_t *pid; /* [folds] 0: none */
    int pipe[2];
    int64_t next, last, running, epochs, total;
} crew;

static basin_status hire(crew *c, basin_error *error) {
    worker w = {c->spec, c->positions, c->next, c->pipe[1], NULL, c->total};
    pid_t pid = fork();
    if (pid < 0) return basin_fail(error, BASIN_IO, "fork: %s", strerror(errno));
    if (!pid) {
        message m = {.fold = w.fold, .kind = RESULT};
        close(c->pipe[0]);
        if (run_fold(&m.result, &w, &m.error)) m.kind = FAILURE;
        ssize_t n = write(c->pipe[1], &m, sizeof m);
        _exit(n == (ssize_t)sizeof m ? 0 : 1);
    }
    c->pid[c->next++] = pid;
    c->running++;
    return BASIN_OK;
}

static void dismiss(crew *c) {
    for (int64_t f = 0; f < c->spec->folds->folds; f++)
        if (c->pid[f]) kill(c->pid[f], SIGKILL), waitpid(c->pid[f], NULL, 0), c->pid[f] = 0;
}

/* A child that died without a word would be waited for for ever. */
static basin_status check_alive(crew *c, basin_error *error) {
    for (int64_t f = 0; f < c->spec->folds->folds; f++) {
        int code;
        if (!c->pid[f] || waitpid(c->pid[f], &code, WNOHANG) != c->pid[f]) continue;
        struct pollfd ready = {.fd = c->pipe[0], .events = POLLIN};
        c->pid[f] = 0;
        if (poll(&ready, 1, 0) > 0) return BASIN_OK; /* its last words may be there */
        if (!c->result[f].done)
            return basin_fail(error, BASIN_IO, "the process of fold %lld ended (%s %d)",
                              (long long)f + 1, WIFSIGNALED(code) ? "signal" : "exit",
                              WIFSIGNALED(code) ? WTERMSIG(code) : WEXITSTATUS(code));
    }
    return BASIN_OK;
}

static basin_status listen_once(crew *c, basin_error *error) {
    struct pollfd ready = {.fd = c->pipe[0], .events = POLLIN};
    message m;
    if (poll(&ready, 1, 500) <= 0) return check_alive(c, error);
    if (read(c->pipe[0], &m, sizeof m) != (ssize_t)sizeof m)
        return basin_fail(error, BASIN_IO, "the pipe of the folds: %s", strerror(errno));
    if (m.kind == EPOCH) {
        show(c->spec, ++c->epochs, c->total, m.loss);
        return BASIN_OK;
    }
    if (c->pid[m.fold]) waitpid(c->pid[m.fold], NULL, 0);
    c->pid[m.fold] = 0;
    c->running--;
    if (m.kind == FAILURE)
        return basin_fail(error, m.error.status, "fold %lld: %.450s", (long long)m.fold + 1,
                          m.error.text);
    c->result[m.fold] = m.result;
    return BASIN_OK;
}

static basin_status run_apart(crew *c, basin_error *error) {
    basin_status status = BASIN_OK;
    c->pid = calloc((size_t)c->spec->folds->folds, sizeof *c->pid);
    if (!c->pid) return basin_fail(error, BASIN_NO_MEMORY, "no memory for folds");
    if (pipe(c->pipe)) {
        free(c->pid);
        return basin_fail(error, BASIN_IO, "pipe: %s", strerror(errno));
    }
    while (!status && (c->next < c->last || c->running)) {
        if (c->next < c->last && c->running < c->spec->jobs)
            status = hire(c, error);
        else
            status = listen_once(c, error);
        if (!status && basin_watch_stopped(c->spec->watch))
            status = basin_fail(error, BASIN_BAD_VALUE, "interrupted");
    }
    dismiss(c);
    close(c->pipe[0]);
    close(c->pipe[1]);
    free(c->pid);
    return status;
}

static basin_status run_here(crew *c, basin_error *error) {
    basin_status status = BASIN_OK;
    for (; c->next < c->last && !status; c->next++) {
        worker w = {c->spec, c->positions, c->next, -1, &c->epochs, c->total};
        status = run_fold(&c->result[c->next], &w, error);
    }
    return status;
}

/* ---- positions ---- */

typedef struct errand {
    const basin_graphs_cv_spec *spec;
    basin_positions *positions;
    basin_status status;
    basin_error *error;
} errand;

static void *compute_positions(void *context) {
    errand *e = context;
    e->status =
        basin_graphset_add_edge_walks(e->spec->set, e->spec->settings->edge_walks, e->error);
    if (e->status) return NULL;
    e->status = basin_graphs_session_positions(e->positions, e->spec->settings, e->spec->set,
                                               e->spec->cache, e->error);
    return NULL;
}

static basin_status positions_apart(basin_positions *positions, const basin_graphs_cv_spec *spec,
                                    basin_error *error) {
    errand e = {spec, positions, BASIN_OK, error};
    pthread_t thread;
    if (pthread_create(&thread, NULL, compute_positions, &e))
        return basin_fail(error, BASIN_NO_MEMORY, "no thread for the positions");
    pthread_join(thread, NULL);
    return e.status;
}

enum { JOBS_ON_DEVICE = 10 };

int64_t basin_graphs_cv_jobs(int64_t asked, int64_t folds, int64_t cores, const char *backend) {
    int64_t jobs = asked > 0 ? asked : cores > 0 ? cores : 1;
    if (asked <= 0 && !strcmp(backend, "cuda") && jobs > JOBS_ON_DEVICE) jobs = JOBS_ON_DEVICE;
    return jobs < folds ? jobs : folds;
}

basin_status basin_graphs_cv(basin_graphs_cv_fold *result, const basin_graphs_cv_spec *spec,
                             basin_error *error) {
    basin_positions positions = {0};
    basin_status status = positions_apart(&positions, spec, error);
    if (status) return status;
    int64_t folds = spec->folds->folds;
    crew c = {.spec = spec, .positions = &positions, .result = result};
    c.next = spec->only >= 0 ? spec->only : 0;
    c.last = spec->only >= 0 ? spec->only + 1 : folds;
    for (int64_t f = c.next; f < c.last; f++)
        c.total += spec->members * basin_graphs_epochs(spec->settings, spec->set,
                                                       spec->folds->fold[f].item[0],
                                                       spec->folds->fold[f].count[0]);
    status = spec->jobs > 1 ? run_apart(&c, error) : run_here(&c, error);
    basin_positions_free(&positions);
    return status;
}
