/* basin graph cv: how well a model does on graphs it has not seen, by cross-validation, once or
 * repeated with other folds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "basin/metrics.h"
#include "cli/graph.h"

static const basin_option table[] = {
    BASIN_CHOICE(protocol, "protocol", "held-out|paper",
                 "held-out: a new model for each fold, which it has not seen. paper: as the "
                 "published notebooks do, one model trained on all graphs and scored on the same "
                 "graphs. A training accuracy; every output says so.",
                 .text = "held-out"),
    BASIN_INTEGER(repeats, "repeats", "K", 1, 1000,
                  "All of it K times, each time with other seeds: other folds, other first "
                  "weights.",
                  .initial = 1),
    BASIN_INTEGER(folds, "folds", "N", 2, 1 << 20, "Stratified folds.",
                  .needs = "protocol=held-out index=", .initial = 10),
    BASIN_TEXT(index, 0, "index", "PATH",
               "Folds that others published: NAME of NAME_train.index, NAME_val.index, "
               "NAME_test.index, or a folder with train_idx-1.txt, test_idx-1.txt, ...",
               .needs = "protocol=held-out", .more = true),
    BASIN_INTEGER(fold, "fold", "N", 0, 1 << 20, "Run this fold alone; 0: all.",
                  .needs = "protocol=held-out", .more = true),
    BASIN_REAL(inner, "inner", "X", 0.01, 0.5,
               "The part of the other folds, stratified, that chooses the epoch.",
               .needs = "protocol=held-out", .more = true, .initial = 0.1),
    BASIN_INTEGER(members, "members", "N", 1, 1000,
                  "Models of different seeds per fold, whose probabilities are averaged.",
                  .initial = 3),
    BASIN_INTEGER(
        jobs, "jobs", "N", 0, 1024,
        "Models (members of folds) that train at once, each in a thread of its own; 0: one per "
        "core; with --backend cuda, where all share a device, two per core, 32 at most, and no "
        "more than "
        "its memory has 4 GiB for each.",
        .more = true),
    BASIN_FLAG(no_baselines, "no-baselines",
               "Leave out what a model has to beat: the commonest class or the mean value, and a "
               "regression on sums of node features, on the same folds."),
    BASIN_OPTIONS_START("default"),
    BASIN_GRAPH_OPTION_CACHE,
    BASIN_OPTION_BACKEND,
    BASIN_OPTION_PRODUCTS,
    BASIN_OPTION_THREADS,
    BASIN_OPTION_QUIET,
    BASIN_OPTION_JSON,
    BASIN_OPTIONS_END,
};

typedef struct job {
    basin_args *o;
    bool paper; /* the protocol */
    int64_t seed;
    basin_graphset set;
    int64_t folds;                    /* of a repeat */
    basin_graphs_fold *result;        /* [repeats, folds] */
    basin_graphs_baselines *baseline; /* [repeats, folds]; NULL: not wanted */
    double *value; /* [repeats, folds] space for numbers of those that were run */
} job;

/* Seeds of one repeat's models are consecutive, so the next repeat's begin behind them. */
static int64_t seed_of(const job *j, int64_t repeat) {
    return j->seed + repeat * j->folds * j->o->members;
}

static basin_status make_folds(basin_folds *folds, const job *j, int64_t repeat,
                               basin_error *error) {
    basin_args *o = j->o;
    const int32_t *classes = j->set.task == BASIN_GRAPHS_CLASSES ? j->set.class_of : NULL;
    uint64_t seed = (uint64_t)seed_of(j, repeat);
    if (j->paper) return basin_folds_new(folds, NULL, j->set.graphs, 1, 0, seed, error);
    if (o->index)
        return basin_folds_read(folds, o->index, classes, j->set.graphs, o->inner, seed, error);
    return basin_folds_new(folds, classes, j->set.graphs, o->folds, o->inner, seed, error);
}

static basin_status reserve(job *j, int64_t folds, basin_error *error) {
    int64_t count = j->o->repeats * folds;
    if (j->result) return BASIN_OK;
    j->folds = folds;
    if (!j->o->no_baselines) BASIN_TRY(BASIN_NEW(&j->baseline, count, "baselines", error));
    BASIN_TRY(BASIN_NEW(&j->value, count, "folds", error));
    return BASIN_NEW(&j->result, count, "folds", error);
}

/* By default the streams of a process share eight queues of a GPU, and in a queue one waits for the
 * other. The driver reads this when the device is opened. */
static void widen_device(basin_args *o) {
    if (!strcmp(o->backend, "cuda")) setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
}

static basin_status run_folds(job *j, int64_t repeat, const basin_folds *folds,
                              basin_error *error) {
    basin_args *o = j->o;
    char text[4096];
    BASIN_TRY(basin_settings_set_number(o->settings, "seed", (double)seed_of(j, repeat), error));
    basin_cli_watch_begin(&o->watch, o->quiet);
    widen_device(o);
    basin_graphs_cv spec = {.fold = o->fold,
                            .members = o->members,
                            .jobs = o->jobs,
                            .threads = (int)o->threads,
                            .backend = o->backend,
                            .products = basin_option_products(o->products),
                            .cache = basin_graph_cache(o, text, sizeof text),
                            .watch = &o->watch.watch,
                            .ranks = o->ranks};
    BASIN_TRY(basin_graphs_cross_validate(j->result + repeat * j->folds, o->settings, &j->set,
                                          folds, &spec, error));
    basin_cli_watch_end(&o->watch);
    return BASIN_OK;
}

/* Of the folds that were run. */
static basin_status run_baselines(job *j, int64_t repeat, const basin_folds *folds,
                                  basin_error *error) {
    int64_t first = repeat * j->folds;
    basin_args *o = j->o;
    if (!j->baseline) return BASIN_OK;
    if (!o->compute)
        BASIN_TRY(
            basin_backend_open(&o->compute, &(basin_compute){.threads = (int)o->threads}, error));
    for (int64_t f = 0; f < j->folds; f++)
        if (j->result[first + f].done)
            BASIN_TRY(basin_graphs_baseline(&j->baseline[first + f], &j->set, &folds->fold[f],
                                            o->compute, error));
    return BASIN_OK;
}

static basin_status run_repeat(job *j, int64_t repeat, basin_error *error) {
    BASIN_AT_EXIT(basin_folds_free) basin_folds folds = {0};
    BASIN_TRY(make_folds(&folds, j, repeat, error));
    BASIN_TRY(reserve(j, folds.folds, error));
    BASIN_TRY(run_folds(j, repeat, &folds, error));
    return run_baselines(j, repeat, &folds, error);
}

/* ---- numbers ---- */

static double number_of(const basin_graphs_measures *measures) { return fabs(measures->merit); }

/* The numbers of folds first .. last - 1 of all repeats' that were run, in `value`. */
static int64_t collect(const job *j, int64_t first, int64_t last, bool validation) {
    int64_t n = 0;
    for (int64_t f = first; f < last; f++) {
        const basin_graphs_fold *r = &j->result[f];
        if (r->done && (!validation || r->validations))
            j->value[n++] = number_of(validation ? &r->validation : &r->test);
    }
    return n;
}

typedef struct statistics {
    int64_t folds;
    double mean, deviation; /* over folds */
    double repeats;         /* the deviation of the repeats' means */
    double low, high;       /* the 95 % interval */
    bool interval;
} statistics;

static void of_repeat(double *mean, double *deviation, const job *j, int64_t repeat,
                      bool validation) {
    int64_t n = collect(j, repeat * j->folds, (repeat + 1) * j->folds, validation);
    basin_mean_deviation(mean, deviation, j->value, n);
}

static statistics of_all(const job *j, bool validation) {
    statistics s = {0};
    double mean, deviation, tests = 0, trains = 0;
    int64_t all = j->o->repeats * j->folds;
    for (int64_t f = 0; f < all; f++) {
        tests += (double)j->result[f].tests;
        trains += (double)(j->result[f].trains + j->result[f].validations);
    }
    s.folds = collect(j, 0, all, validation);
    basin_mean_deviation(&s.mean, &s.deviation, j->value, s.folds);
    s.interval = !j->paper && basin_mean_interval(&s.low, &s.high, j->value, s.folds,
                                                  trains > 0 ? tests / trains : 0);
    for (int64_t r = 0; r < j->o->repeats; r++) {
        of_repeat(&mean, &deviation, j, r, validation);
        s.repeats += (mean - s.mean) * (mean - s.mean) / (double)j->o->repeats;
    }
    s.repeats = sqrt(s.repeats);
    return s;
}

static void of_baseline(double *mean, double *deviation, const job *j, bool fitted) {
    int64_t n = 0;
    for (int64_t f = 0; f < j->o->repeats * j->folds; f++) {
        const basin_graphs_baselines *b = &j->baseline[f];
        if (j->result[f].done) j->value[n++] = number_of(fitted ? &b->regression : &b->constant);
    }
    basin_mean_deviation(mean, deviation, j->value, n);
    if (*deviation < 1e-9 * fabs(*mean)) *deviation = 0; /* all alike but for rounding */
}

/* ---- printing ---- */

/* "accuracy, percent" or "mean absolute error", with its units where values are pooled. */
static const char *score_of(const job *j) {
    if (j->set.task != BASIN_GRAPHS_VALUES || j->set.targets < 2)
        return basin_graph_score_name(j->set.task);
    return "mean absolute error, each value in units of its deviation in training";
}

static const char *protocol_of(const job *j) {
    if (j->paper) return "paper (training graphs)";
    return j->o->index ? "held-out, given folds" : "held-out, stratified folds";
}

static void put_baselines(basin_record *r, const job *j) {
    double mean, deviation;
    if (!j->baseline) return;
    basin_record_table(r, "baselines",
                       j->paper ? "baselines, on training graphs, too:" : "baselines:");
    for (int i = 0; i < 2; i++) {
        of_baseline(&mean, &deviation, j, i);
        basin_record_row(r);
        basin_record_text(r, "name", j->baseline->name[i]);
        basin_record_number(r, j->paper ? "training_mean|mean" : "test_mean|mean", "%.4g", mean);
        basin_record_number(r,
                            j->paper ? "training_deviation|deviation" : "test_deviation|deviation",
                            "%.4g", deviation);
    }
    basin_record_end(r);
}

static void put_measures(basin_record *r, const char *key, const basin_graphs_measures *measures,
                         basin_graphs_target task) {
    basin_record_object(r, key);
    basin_record_measures(r, measures, task, true);
    basin_record_end(r);
}

static void put_fold(basin_record *r, const job *j, int64_t number) {
    const basin_graphs_fold *f = &j->result[number];
    bool text = basin_record_is_text(r);
    basin_record_row(r);
    if (j->o->repeats > 1) basin_record_integer(r, "repeat", number / j->folds + 1);
    basin_record_integer(r, "fold", number % j->folds + 1);
    basin_record_integer(r, "train_graphs|train", f->trains);
    if (text) basin_record_integer(r, "validation", f->validations);
    if (text) basin_record_integer(r, "test", f->tests);
    basin_record_integer(r, ".epochs", f->epochs);
    basin_record_integer(r, "best_epoch|epoch", f->best_epoch);
    basin_record_number(r, ".seconds", "%g", f->seconds);
    basin_record_number(r, ".epoch_seconds", "%g", f->epoch_seconds);
    basin_record_integer(r, ".memory_bytes", f->memory);
    if (text) {
        double validation = f->validations ? number_of(&f->validation) : NAN;
        basin_record_number(r, "validation score", "%.4g", validation);
        basin_record_number(r, j->paper ? "training score" : "test score", "%.4g",
                            number_of(&f->test));
    } else {
        if (f->validations) put_measures(r, "validation", &f->validation, j->set.task);
        put_measures(r, j->paper ? "training" : "test", &f->test, j->set.task);
    }
}

static void put_repeats(basin_record *r, const job *j) {
    double mean, deviation;
    basin_record_table(r, "repeats", NULL);
    for (int64_t i = 0; i < j->o->repeats; i++) {
        of_repeat(&mean, &deviation, j, i, false);
        basin_record_row(r);
        basin_record_integer(r, "repeat", i + 1);
        basin_record_integer(r, "seed", seed_of(j, i));
        basin_record_number(r, j->paper ? "training score" : "test score", "%.4g", mean);
        basin_record_number(r, "deviation over folds", "%.4g", deviation);
    }
    basin_record_end(r);
}

static void put_folds(basin_record *r, const job *j) {
    if (j->o->repeats > 1 && basin_record_is_text(r)) {
        put_repeats(r, j);
        return;
    }
    basin_record_table(r, "folds", NULL);
    for (int64_t f = 0; f < j->o->repeats * j->folds; f++)
        if (j->result[f].done) put_fold(r, j, f);
    basin_record_end(r);
}

/* The summary in words. */
static void note_summary(basin_record *r, const job *j, const statistics *s) {
    char over[120] = "";
    if (j->o->repeats > 1)
        snprintf(over, sizeof over, " +- %.4g over %lld %s", s->repeats, (long long)j->o->repeats,
                 j->paper ? "models of other seeds" : "repeats (deviation of their means)");
    if (j->paper) {
        basin_record_note(
            r,
            "TRAINING score %.4g%s: the graphs it was trained on, as in the published "
            "notebooks; it says nothing of unseen graphs",
            s->mean, over);
        return;
    }
    basin_record_note(r, "test %.4g%s%s +- %.4g, the population deviation over %lld folds", s->mean,
                      over, *over ? ";" : "", s->deviation, (long long)s->folds);
    if (s->interval)
        basin_record_note(r,
                          "95 %% interval of the mean %.4g to %.4g (Student's t; folds share "
                          "training graphs, which is allowed for)",
                          s->low, s->high);
}

static void put_statistics(basin_record *r, const job *j, const statistics *s) {
    basin_record_number(r, j->paper ? ".training_mean" : ".test_mean", "%g", s->mean);
    if (!j->paper) basin_record_number(r, ".test_deviation", "%g", s->deviation);
    if (s->interval) basin_record_numbers(r, "test_interval_95", (double[]){s->low, s->high}, 2);
    if (j->o->repeats > 1) basin_record_number(r, ".deviation_of_repeats", "%g", s->repeats);
    if (j->paper) return;
    statistics v = of_all(j, true);
    if (!v.folds) return; /* too few graphs to set any aside */
    basin_record_number(r, ".validation_mean", "%g", v.mean);
    basin_record_number(r, ".validation_deviation", "%g", v.deviation);
}

static void put_result(basin_record *r, const void *context) {
    const job *j = context;
    basin_args *o = j->o;
    statistics s = of_all(j, false);
    basin_record_text(r, "data", j->set.name);
    basin_record_text(r, "task", basin_graphs_target_name(j->set.task));
    basin_record_text(r, "protocol", protocol_of(j));
    basin_record_flag(r, ".held_out", !j->paper);
    basin_record_text(r, "preset", o->start.preset);
    basin_record_integer(r, "members", o->members);
    basin_record_integer(r, ".repeats", o->repeats);
    basin_record_integer(r, ".seed", j->seed);
    basin_record_text(r, "score", score_of(j));
    put_statistics(r, j, &s);
    bool text = basin_record_is_text(r);
    if (!text) put_baselines(r, j);
    put_folds(r, j);
    note_summary(r, j, &s);
    if (text) put_baselines(r, j);
}

static void job_free(job *j) {
    free(j->result);
    free(j->baseline);
    free(j->value);
    basin_graphset_free(&j->set);
}

static basin_status run(basin_args *o, basin_error *error) {
    BASIN_AT_EXIT(job_free) job j = {.o = o, .paper = !strcmp(o->protocol, "paper")};
    double seed;
    if (o->start.print_config) return basin_config_print(o, NULL, error);
    BASIN_TRY(basin_settings_check(o->settings, error));
    BASIN_TRY(basin_option_products_check(o, error));
    BASIN_TRY(basin_settings_get_number(&seed, o->settings, "seed", error));
    j.seed = (int64_t)seed;
    BASIN_TRY(basin_graphset_read(&j.set, o->operand[0], error));
    for (int64_t r = 0; r < o->repeats; r++) BASIN_TRY(run_repeat(&j, r, error));
    return basin_record_print(o->json, put_result, &j, error);
}

const basin_command basin_command_graph_cv = {"graph cv", table, .run = run, .task = "graphs",
                                              .ranks = true};
