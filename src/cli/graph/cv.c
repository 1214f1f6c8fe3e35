/* basin graph cv: how well a model does on graphs it has not seen, by cross-validation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "basin/metrics.h"
#include "cli/graph/options.h"
#include "cli/table.h"
#include "cli/training.h"
#include "cli/watch.h"

typedef struct options {
    basin_settings *settings;
    basin_start start;
    const char *index, *cache, *backend, *products;
    double inner;
    int64_t folds, fold, members, jobs, threads;
    bool paper_protocol, quiet, json;
} options;

static const options defaults = {.start = {.preset = "default"},
                                 .backend = "cpu",
                                 .products = "f32",
                                 .folds = 10,
                                 .inner = 0.1,
                                 .members = 3};

static const basin_option table[] = {
    BASIN_INTEGER(options, folds, "folds", "N", 2, 1 << 20, "Stratified folds."),
    BASIN_TEXT(options, index, 0, "index", "PATH",
               "Folds that others published: NAME of NAME_train.index, NAME_val.index, "
               "NAME_test.index, or a folder with train_idx-1.txt, test_idx-1.txt, ..."),
    BASIN_INTEGER(options, fold, "fold", "N", 0, 1 << 20, "Run this fold alone; 0: all."),
    BASIN_REAL(options, inner, "inner", "X", 0.01, 0.5,
               "The part of the other folds, stratified, that chooses the epoch."),
    BASIN_INTEGER(options, members, "members", "N", 1, 1000,
                  "Models of different seeds a fold, whose probabilities are averaged."),
    BASIN_INTEGER(
        options, jobs, "jobs", "N", 0, 1024,
        "Folds at once, each in a thread of its own; 0: one a core, with --backend cuda, where "
        "all share a device and its memory, 10 at most."),
    BASIN_FLAG(
        options, paper_protocol, 0, "paper-protocol",
        "What the published notebooks do instead: one model trained on all graphs and scored "
        "on the same graphs. A training accuracy; every output says so."),
    BASIN_OPTIONS_START(options),
    BASIN_GRAPH_OPTION_CACHE(options),
    BASIN_OPTION_BACKEND(options),
    BASIN_OPTION_PRODUCTS(options),
    BASIN_OPTION_THREADS(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

typedef struct job {
    const options *o;
    int64_t seed;
    basin_graphset set;
    basin_folds folds;
    basin_graphs_fold *result; /* [folds] */
    double *value;             /* [folds] room for those that were run */
} job;

static basin_status make_folds(job *j, basin_error *error) {
    const options *o = j->o;
    const int32_t *classes = j->set.task == BASIN_GRAPHS_CLASSES ? j->set.class_of : NULL;
    uint64_t seed = (uint64_t)j->seed;
    basin_status status;
    if (o->paper_protocol)
        status = basin_graphs_fold_all(&j->folds, j->set.graphs, error);
    else if (o->index)
        status =
            basin_folds_read(&j->folds, o->index, classes, j->set.graphs, o->inner, seed, error);
    else
        status =
            basin_folds_new(&j->folds, classes, j->set.graphs, o->folds, o->inner, seed, error);
    if (status) return status;
    j->result = calloc((size_t)j->folds.folds, sizeof *j->result);
    j->value = calloc((size_t)j->folds.folds, sizeof *j->value);
    if (j->result && j->value) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "no memory for folds");
}

static basin_status run_folds(job *j, basin_error *error) {
    const options *o = j->o;
    char text[4096];
    basin_cli_watch watch;
    basin_cli_watch_begin(&watch, o->quiet);
    basin_graphs_cv spec = {.size = sizeof spec,
                            .fold = o->fold,
                            .members = o->members,
                            .jobs = o->jobs,
                            .threads = (int)o->threads,
                            .backend = o->backend,
                            .products = basin_option_products(o->products),
                            .cache = basin_graph_cache(o->cache, text, sizeof text),
                            .watch = &watch.watch};
    basin_status status =
        basin_graphs_cross_validate(j->result, o->settings, &j->set, &j->folds, &spec, error);
    basin_cli_watch_end(&watch);
    return status;
}

/* ---- printing ---- */

static double number_of(const basin_graphs_measures *measures, basin_graphs_target task) {
    return fabs(basin_graphs_merit(measures, task));
}

static void statistics(double *mean, double *deviation, const job *j, bool validation) {
    int64_t n = 0;
    for (int64_t f = 0; f < j->folds.folds; f++) {
        const basin_graphs_fold *r = &j->result[f];
        if (r->done) j->value[n++] = number_of(validation ? &r->validation : &r->test, j->set.task);
    }
    basin_mean_deviation(mean, deviation, j->value, n);
}

static const char *unit_of(basin_graphs_target task) {
    if (task == BASIN_GRAPHS_VALUES) return "mean absolute error";
    return task == BASIN_NODE_CLASSES ? "class-averaged accuracy, percent" : "accuracy, percent";
}

static const char *protocol_of(const options *o) {
    if (o->paper_protocol) return "paper (training graphs)";
    return o->index ? "held-out, given folds" : "held-out, stratified folds";
}

static int print_table(const job *j) {
    const options *o = j->o;
    basin_graphs_target task = j->set.task;
    double mean, deviation;
    basin_table t = {.layout = "rrrrrrr"};
    const char *head[] = {"fold",
                          "train",
                          "validation",
                          "test",
                          "epoch",
                          "validation score",
                          o->paper_protocol ? "training score" : "test score"};
    for (int i = 0; i < 7; i++) basin_table_add(&t, "%s", head[i]);
    for (int64_t f = 0; f < j->folds.folds; f++) {
        const basin_graphs_fold *r = &j->result[f];
        if (!r->done) continue;
        basin_table_add(&t, "%lld", (long long)f + 1);
        basin_table_add(&t, "%lld", (long long)r->trains);
        basin_table_add(&t, "%lld", (long long)r->validations);
        basin_table_add(&t, "%lld", (long long)r->tests);
        basin_table_add(&t, "%lld", (long long)r->best_epoch);
        if (r->validations)
            basin_table_add(&t, "%.4g", number_of(&r->validation, task));
        else
            basin_table_add(&t, "-");
        basin_table_add(&t, "%.4g", number_of(&r->test, task));
    }
    printf("%s: %s, %s\n", j->set.name, basin_graphs_target_name(task), unit_of(task));
    printf("protocol: %s\n", protocol_of(o));
    if (!basin_table_print(&t, stdout, 2)) return BASIN_EXIT_FAILURE;
    statistics(&mean, &deviation, j, false);
    if (o->paper_protocol)
        printf("TRAINING score %.4g: the graphs it was trained on, as in the published notebooks; "
               "it says nothing of unseen graphs\n",
               mean);
    else
        printf("test %.4g +- %.4g, the population deviation over folds\n", mean, deviation);
    return BASIN_EXIT_OK;
}

static void print_fold_json(basin_json *json, const basin_graphs_fold *r, int64_t fold,
                            basin_graphs_target task, bool paper) {
    basin_json_object(json, NULL);
    basin_json_integer(json, "fold", fold + 1);
    basin_json_integer(json, "train_graphs", r->trains);
    basin_json_integer(json, "epochs", r->epochs);
    basin_json_integer(json, "best_epoch", r->best_epoch);
    basin_json_number(json, "seconds", r->seconds);
    basin_json_number(json, "epoch_seconds", r->epoch_seconds);
    basin_json_integer(json, "memory_bytes", r->memory);
    if (r->validations) {
        basin_json_object(json, "validation");
        basin_graph_items_json(json, &r->validation, task);
        basin_json_end(json);
    }
    basin_json_object(json, paper ? "training" : "test");
    basin_graph_items_json(json, &r->test, task);
    basin_json_end(json);
    basin_json_end(json);
}

static void print_json(const job *j) {
    const options *o = j->o;
    double mean, deviation;
    basin_json json = basin_json_begin(stdout);
    basin_json_text(&json, "data", j->set.name);
    basin_json_text(&json, "task", basin_graphs_target_name(j->set.task));
    basin_json_text(&json, "protocol", protocol_of(o));
    basin_json_boolean(&json, "held_out", !o->paper_protocol);
    basin_json_text(&json, "preset", o->start.preset);
    basin_json_integer(&json, "members", o->members);
    basin_json_integer(&json, "seed", j->seed);
    basin_json_text(&json, "score", unit_of(j->set.task));
    statistics(&mean, &deviation, j, false);
    basin_json_number(&json, o->paper_protocol ? "training_mean" : "test_mean", mean);
    if (!o->paper_protocol) {
        basin_json_number(&json, "test_deviation", deviation);
        statistics(&mean, &deviation, j, true);
        basin_json_number(&json, "validation_mean", mean);
        basin_json_number(&json, "validation_deviation", deviation);
    }
    basin_json_array(&json, "folds");
    for (int64_t f = 0; f < j->folds.folds; f++)
        if (j->result[f].done)
            print_fold_json(&json, &j->result[f], f, j->set.task, o->paper_protocol);
    basin_json_end(&json);
    basin_json_end(&json);
}

static basin_status cross_validate(job *j, const char *path, basin_error *error) {
    char text[64];
    basin_status status = basin_settings_check(j->o->settings, error);
    if (!status) status = basin_settings_get(text, sizeof text, j->o->settings, "seed", error);
    if (!status) j->seed = strtoll(text, NULL, 10);
    if (!status) status = basin_graphset_read(&j->set, path, error);
    if (!status) status = basin_graphs_check_labels(&j->set, path, error);
    if (!status) status = make_folds(j, error);
    return status ? status : run_folds(j, error);
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    (void)operands;
    if (o->start.print_config) return basin_print_config(o->settings, NULL);
    basin_error error;
    int code = BASIN_EXIT_OK;
    job j = {.o = o};
    if (cross_validate(&j, operand[0], &error))
        code = basin_report(&error);
    else if (o->json)
        print_json(&j);
    else
        code = print_table(&j);
    free(j.result);
    free(j.value);
    basin_folds_free(&j.folds);
    basin_graphset_free(&j.set);
    return code;
}

const basin_command basin_command_graph_cv = {
    .name = "graph cv",
    .summary = "Cross-validate a graph model",
    .operands = "DATA",
    .operands_least = 1,
    .operands_most = 1,
    .text =
        "Trains a new model for every fold on the other folds, of which a part, set aside, alone "
        "chooses the epoch; tests each model once on its fold; prints the scores with their mean "
        "and population deviation.\n\n"
        "DATA is a TUDataset (folder or zip), a packed set, or ZINC. With --paper-protocol the "
        "score is that of the training graphs, as in the paper's tables.",
    .example = "  basin graph cv MUTAG.zip\n"
               "  basin graph cv ENZYMES.zip --index splits/ENZYMES --jobs 2 --json\n"
               "  basin graph cv NCI1.zip --preset tu --paper-protocol\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .task = "graphs",
    .settings_at = offsetof(options, settings),
    .start_at = offsetof(options, start),
    .run = run,
};
