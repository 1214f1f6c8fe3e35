/* Cross-validation of graph models: each member of each fold is trained by whichever thread is
 * free, on that thread's own backend, so that they share nothing but the set and its positions,
 * which are only read. The calling thread is one of them. Whichever ends an epoch reports it to the
 * watcher and listens for interrupts. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/info.h"
#include "base/sized.h"
#include "base/sort.h"
#include "tasks/graphs/graphs.h"

/* What the members of a fold came to. */
typedef struct fold_work {
    int64_t left;    /* members that have not ended */
    int64_t outputs; /* the same of all members */
    double *scale;   /* [outputs] of values, by the training graphs; NULL of classes */
    float *given[3]; /* [members, rows, outputs] of validation and test */
} fold_work;

/* What all folds share. The fields below the lock are under it. */
typedef struct pool {
    basin_graphs_cv_options spec;
    const basin_graphs_settings *settings;
    const basin_graphs_input *input;
    const basin_folds *folds;
    basin_graphs_cv_result *result; /* [folds] */
    basin_backend *backend;         /* those of the threads are opened beside it */
    int64_t jobs;
    atomic_bool stop; /* read by the runs of all folds */
    pthread_mutex_t lock;
    fold_work *work;       /* [folds] */
    int64_t next, last;    /* members that nobody has begun, counted over all folds */
    int64_t epochs, total; /* done, over all folds and members; at most */
    basin_error error;     /* the first; its status is BASIN_OK while there is none */
} pool;

/* A member in work. */
typedef struct worker {
    pool *pool;
    int64_t number, member; /* of the fold, and within it */
    const basin_fold *fold;
    basin_backend *backend;
} worker;

static void fail(pool *p, basin_status status, const char *text) {
    pthread_mutex_lock(&p->lock);
    if (!p->error.status) basin_fail(&p->error, status, "%s", text);
    p->stop = true;
    pthread_mutex_unlock(&p->lock);
}

/* ---- one member of a fold ---- */

/* A run reports steps; this reports whole epochs of all folds. */
static void on_step(void *context, const basin_progress_report *news) {
    pool *p = ((worker *)context)->pool;
    int64_t steps = news->total / news->epochs;
    if (!p->stop && basin_watch_stopped(p->spec.watch)) fail(p, BASIN_BAD_VALUE, "interrupted");
    if (news->done % steps != 0) return;
    pthread_mutex_lock(&p->lock);
    basin_progress_report all = {
        .what = "folds", .unit = "epochs", .speed = NAN, .seconds_left = NAN};
    all.done = ++p->epochs, all.total = p->total, all.loss = news->loss;
    basin_watch_show(p->spec.watch, &all);
    pthread_mutex_unlock(&p->lock);
}

static bool is_stopping(void *context) { return ((worker *)context)->pool->stop; }

static int64_t rows_of(const pool *p, int64_t fold, int part) {
    const basin_graphset *set = &p->input->set;
    const basin_fold *f = &p->folds->fold[fold];
    return basin_graphs_count_rows(set, set->task, f->item[part], f->count[part]);
}

static basin_status score_part(worker *w, basin_graphs_model *model, int part, basin_error *error) {
    const basin_graphs_input *input = w->pool->input;
    const int64_t *graph = w->fold->item[part];
    int64_t count = w->fold->count[part], rows = rows_of(w->pool, w->number, part);
    BASIN_AT_EXIT(basin_graphs_plans_free) basin_graphs_plans plans = {0};
    BASIN_FREE_AT_EXIT float *output = NULL;
    if (!count) return BASIN_OK;
    basin_graphs_plans_begin(&plans, model, &input->set, graph, count, NULL);
    BASIN_TRY(basin_graphs_outputs(&output, &plans, input, graph, count, error));
    basin_graphs_likelihoods(w->pool->work[w->number].given[part] +
                                 w->member * rows * model->outputs,
                             output, rows, model);
    return BASIN_OK;
}

static basin_status train_member(basin_training_result *outcome, worker *w,
                                 basin_graphs_model *model, basin_error *error) {
    basin_watch watch = {.show = on_step, .context = w, .stop = is_stopping};
    basin_training_options training = {.backend = w->backend, .watch = &watch};
    basin_run *run;
    BASIN_TRY(basin_run_open(&run, &training, "graph", error));
    basin_status status = basin_graphs_run(outcome, model, run, w->pool->input, w->fold, error);
    basin_run_close(run);
    if (status) return status;
    if (!outcome->stopped) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "interrupted in fold %lld", (long long)w->number + 1);
}

/* What a member leaves: times, of the first its epochs, and the scale of values, which outputs need
 * until the member has been scored. */
static void keep(worker *w, basin_graphs_model *model, const basin_training_result *outcome) {
    fold_work *work = &w->pool->work[w->number];
    basin_graphs_cv_result *result = &w->pool->result[w->number];
    pthread_mutex_lock(&w->pool->lock);
    if (!work->scale) work->scale = model->target_scale, model->target_scale = NULL;
    if (!w->member) {
        result->epochs = outcome->epochs;
        result->best_epoch = outcome->best_epoch ? outcome->best_epoch : outcome->epochs;
    }
    result->seconds += outcome->seconds;
    result->epoch_seconds = outcome->epoch_seconds;
    result->memory = (int64_t)outcome->memory;
    pthread_mutex_unlock(&w->pool->lock);
}

static basin_status run_member(worker *w, basin_error *error) {
    const pool *p = w->pool;
    basin_graphs_settings settings = *p->settings;
    basin_graphs_model *model;
    settings.seed += w->number * p->spec.members + w->member;
    settings.near = false; /* the fold has one memory, beside the mean of its members */
    settings.shards = basin_shards_choose(settings.shards, 0, settings.batch, NULL);
    BASIN_TRY(basin_graphs_model_new(&model, &settings, &p->input->set, w->fold->item[0],
                                     w->fold->count[0], w->backend, error));
    basin_training_result outcome;
    basin_status status = train_member(&outcome, w, model, error);
    for (int part = 1; part < 3 && !status; part++) status = score_part(w, model, part, error);
    if (!status) keep(w, model, &outcome);
    basin_graphs_close(model);
    return status;
}

/* ---- one fold ---- */

/* The mean of members, [cells] each, into the first. */
static void average(float *given, int64_t cells, int64_t members) {
    for (int64_t i = 0; i < cells; i++) {
        for (int64_t m = 1; m < members; m++) given[i] += given[m * cells + i];
        given[i] = (float)((double)given[i] / (double)members);
    }
}

/* Measures the members' mean, calibrated by the validation graphs, and mixed with a memory for
 * molecules. Measures need logits, so it takes the logarithm of probabilities. */
static basin_status measure_fold(basin_graphs_model *m, const pool *p, int64_t number,
                                 basin_error *error) {
    const basin_graphset *set = &p->input->set;
    const basin_fold *f = &p->folds->fold[number];
    fold_work *work = &p->work[number];
    basin_graphs_cv_result *result = &p->result[number];
    bool values = set->task == BASIN_GRAPHS_VALUES,
         near = basin_graphs_near_serves(p->settings, set);
    BASIN_SCRATCH(float, held, f->count[1] * m->outputs, "outputs", error);
    BASIN_SCRATCH(float, nearest, f->count[1] + f->count[2], "outputs", error);
    BASIN_SCRATCH(float, memory, f->count[2] * m->outputs, "outputs", error);
    if (near) BASIN_TRY(basin_graphs_near_fit(m, set, f, 1, held, nearest, error));
    if (set->task == BASIN_GRAPHS_NODE_CLASSES)
        average(work->given[1], rows_of(p, number, 1) * m->outputs, p->spec.members);
    else
        BASIN_TRY(basin_graphs_calibration_fit(m, set, f->item[1], f->count[1], work->given[1],
                                               p->spec.members, near ? held : NULL,
                                               near ? nearest : NULL, error));
    for (int part = 1; part < 3; part++) {
        int64_t rows = rows_of(p, number, part), cells = rows * m->outputs;
        float *given = work->given[part];
        if (part == 2) basin_graphs_temper(given, p->spec.members * rows, m, false);
        if (part == 2) average(given, cells, p->spec.members);
        for (int64_t i = 0; i < cells && !values; i++)
            given[i] = (float)log(fmax((double)given[i], 1e-30));
        if (part == 2 && near)
            BASIN_TRY(basin_graphs_measure(&result->network_only, given, set, f->item[2],
                                           f->count[2], m->outputs, work->scale, error));
        if (part == 2)
            BASIN_TRY(basin_graphs_near_add(given, memory, nearest + f->count[1], NULL, m, set,
                                            f->item[2], f->count[2], error));
        BASIN_TRY(basin_graphs_measure(part == 1 ? &result->validation : &result->test, given, set,
                                       f->item[part], f->count[part], m->outputs, work->scale,
                                       error));
        for (int64_t i = 0; i < rows && !values; i++)
            basin_graphs_softmax(given + i * m->classes, given + i * m->outputs, m->classes);
    }
    BASIN_TRY(basin_graphs_calibration_measure(&result->test, work->given[2],
                                               near ? nearest + f->count[1] : NULL, set, f->item[2],
                                               f->count[2], m, 0, error));
    result->memory_share = m->near.share;
    if (!near) {
        result->network_only.merit = result->memory_only.merit = NAN;
        return BASIN_OK;
    }
    return basin_graphs_measure(&result->memory_only, memory, set, f->item[2], f->count[2],
                                m->outputs, work->scale, error);
}

static basin_status measure_means(const pool *p, int64_t number, basin_error *error) {
    const basin_graphset *set = &p->input->set;
    basin_graphs_model m = {.target = set->task, .binary = set->binary, .classes = set->classes};
    m.target_scale = p->work[number].scale, m.outputs = p->work[number].outputs;
    basin_status status = measure_fold(&m, p, number, error);
    basin_graphs_near_free(&m.near);
    basin_graphs_calibration_free(&m.calibration);
    return status;
}

static void fold_work_free(fold_work *work) {
    BASIN_FREE(work->given[1], work->given[2], work->scale);
    *work = (fold_work){0};
}

/* One of its members has ended; where it was the last, so has the fold. */
static basin_status end_member(pool *p, int64_t number, basin_error *error) {
    basin_graphs_cv_result *result = &p->result[number];
    pthread_mutex_lock(&p->lock);
    bool last = --p->work[number].left == 0;
    pthread_mutex_unlock(&p->lock);
    if (!last) return BASIN_OK;
    BASIN_TRY(measure_means(p, number, error));
    fold_work_free(&p->work[number]);
    result->done = true;
    return BASIN_OK;
}

/* ---- many folds ---- */

/* The next member; -1: there is none, or all are to stop. */
static int64_t take_member(pool *p) {
    pthread_mutex_lock(&p->lock);
    int64_t member = p->stop || p->next >= p->last ? -1 : p->next++;
    pthread_mutex_unlock(&p->lock);
    return member;
}

static basin_status work_on(pool *p, basin_backend *backend, int64_t number, int64_t member) {
    basin_error error;
    char text[BASIN_ERROR_TEXT + 40];
    worker w = {p, number, member, &p->folds->fold[number], backend};
    basin_status status = run_member(&w, &error);
    if (!status) status = end_member(p, number, &error);
    if (status) {
        snprintf(text, sizeof text, "fold %lld: %s", (long long)number + 1, error.text);
        fail(p, status, text);
    }
    return status;
}

static void *work(void *context) {
    pool *p = context;
    basin_error error;
    basin_backend *backend;
    basin_status status = basin_backend_open_like(&backend, p->backend, &error);
    if (status) fail(p, status, error.text);
    for (int64_t i; !status && (i = take_member(p)) >= 0;)
        status = work_on(p, backend, i / p->spec.members, i % p->spec.members);
    basin_backend_close(backend);
    return NULL;
}

static basin_status run_all(pool *p, basin_error *error) {
    int64_t begun = 1;
    BASIN_SCRATCH(pthread_t, thread, p->jobs, "folds", error);
    pthread_mutex_init(&p->lock, NULL);
    while (begun < p->jobs && !pthread_create(&thread[begun], NULL, work, p)) begun++;
    if (begun < p->jobs) fail(p, BASIN_NO_MEMORY, "no threads for the folds");
    work(p);
    while (--begun > 0) pthread_join(thread[begun], NULL);
    pthread_mutex_destroy(&p->lock);
    if (error && p->error.status) *error = p->error;
    return p->error.status;
}

/* On a device threads mostly wait: the steps of one model leave nearly all of it idle. */
enum { JOBS_ON_DEVICE = 32, JOBS_PER_CORE = 2 };

int64_t basin_graphs_cv_jobs(int64_t asked, int64_t models, int64_t cores, const char *backend) {
    int64_t jobs = asked > 0 ? asked : cores > 0 ? cores : 1;
    if (asked <= 0 && !strcmp(backend, "cuda")) {
        jobs *= JOBS_PER_CORE;
        if (jobs > JOBS_ON_DEVICE) jobs = JOBS_ON_DEVICE;
    }
    return jobs < models ? jobs : models;
}

static basin_status begin(pool *p, const basin_graphs_cv_options *spec, basin_error *error) {
    int64_t folds = p->folds->folds;
    p->spec = *spec;
    if (!p->spec.members) p->spec.members = 1;
    if (!p->spec.backend) p->spec.backend = "cpu";
    if (p->spec.fold < 0 || p->spec.fold > folds)
        return basin_fail(error, BASIN_BAD_VALUE, "fold %lld of %lld", (long long)p->spec.fold,
                          (long long)folds);
    p->next = (p->spec.fold ? p->spec.fold - 1 : 0) * p->spec.members;
    p->last = p->next + (p->spec.fold ? 1 : folds) * p->spec.members;
    int64_t cores = sysconf(_SC_NPROCESSORS_ONLN);
    p->jobs = basin_graphs_cv_jobs(p->spec.jobs, p->last - p->next, cores, p->spec.backend);
    cores /= p->jobs;
    basin_compute compute = {.backend = p->spec.backend,
                             .threads = p->spec.threads > 0 ? p->spec.threads
                                        : cores > 1         ? (int)cores
                                                            : 1,
                             .products = p->spec.products};
    BASIN_TRY(basin_backend_open(&p->backend, &compute, error));
    /* Fewer where the device has no memory for all their plans, unless the number was given. */
    if (p->spec.jobs > 0 || strcmp(p->spec.backend, "cuda") != 0) return BASIN_OK;
    int64_t max =
        (int64_t)(basin_backend_info_of(p->backend).free_bytes / BASIN_GRAPHS_DEVICE_BYTES);
    if (p->jobs > max) p->jobs = max > 1 ? max : 1;
    return BASIN_OK;
}

/* What is known of the folds before they are trained. */
static basin_status begin_folds(pool *p, basin_error *error) {
    int64_t members = p->spec.members;
    const basin_graphset *set = &p->input->set;
    bool values = set->task == BASIN_GRAPHS_VALUES;
    char what[60];
    BASIN_TRY(BASIN_NEW(&p->work, p->folds->folds, "folds", error));
    for (int64_t f = p->next / members; f < p->last / members; f++) {
        const basin_fold *fold = &p->folds->fold[f];
        snprintf(what, sizeof what, "test graphs of fold %lld", (long long)f + 1);
        BASIN_TRY(
            basin_graphs_check_known(set, set->name, fold->item[2], fold->count[2], what, error));
        p->work[f].left = members;
        p->work[f].outputs =
            values ? set->targets : basin_int_max(set->classes, p->settings->outputs);
        for (int part = 1; part < 3; part++)
            BASIN_TRY(BASIN_NEW_RAW(&p->work[f].given[part],
                                    members * rows_of(p, f, part) * p->work[f].outputs, "outputs",
                                    error));
        p->result[f] = (basin_graphs_cv_result){
            .trains = fold->count[0], .validations = fold->count[1], .tests = fold->count[2]};
        p->total += members * basin_graphs_epochs(p->settings, set, fold->item[0], fold->count[0]);
    }
    return BASIN_OK;
}

static void pool_end(pool *p) {
    for (int64_t f = 0; p->work && f < p->folds->folds; f++) fold_work_free(&p->work[f]);
    free(p->work);
    basin_backend_close(p->backend);
}

basin_status basin_graphs_cross_validate(basin_graphs_cv_result *result,
                                         const basin_settings *settings, const basin_graphset *set,
                                         const basin_folds *folds,
                                         const basin_graphs_cv_options *spec, basin_error *error) {
    BASIN_AT_EXIT(basin_graphs_input_free) basin_graphs_input input = {0};
    BASIN_AT_EXIT(pool_end)
    pool p = {.settings = settings->values, .input = &input, .folds = folds, .result = result};
    BASIN_TRY(BASIN_SIZE_CHECK(spec, "basin_graphs_cv_options", error));
    BASIN_TRY(basin_settings_of(settings, &basin_graphs_task, error));
    BASIN_TRY(basin_graphs_task.check(p.settings, error));
    BASIN_TRY(begin(&p, spec, error));
    BASIN_TRY(basin_graphs_check_labels(set, basin_graphs_path(NULL, set), error));
    basin_graphs_note_unused(settings, set, p.spec.watch);
    BASIN_SCRATCH_RAW(int64_t, copy, set->graphs, "copies of graphs", error);
    BASIN_TRY(basin_graphset_copies(copy, set, error));
    const basin_fold *f = folds->fold; /* the paper's protocol tests on what it trained on */
    BASIN_TRY(basin_graphs_note_copies(set, copy, f,
                                       f->count[0] + f->count[2] > set->graphs ? 0 : folds->folds,
                                       p.spec.watch, error));
    BASIN_TRY(basin_graphs_input_begin(&input, p.settings, set, 0, set->graphs, error));
    BASIN_TRY(basin_graphs_input_place(&input, p.settings, 0, set->graphs, error));
    BASIN_TRY(begin_folds(&p, error));
    return run_all(&p, error);
}
