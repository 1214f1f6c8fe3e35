/* basin anomaly eval: the protocol over several splits, with plain baselines beside it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "basin/metrics.h"
#include "cli/anomaly/options.h"
#include "cli/anomaly/rivals.h"
#include "cli/csv.h"
#include "cli/table.h"
#include "cli/training.h"
#include "io/file.h"
#include "io/json_writer.h"

typedef struct options {
    const char *split, *scores, *rivals;
    basin_settings *settings;
    basin_start start;
    basin_network_flags data;
    double ratio, memory;
    int64_t runs, first, split_seed, threads;
    bool best_run, no_baselines, only_baselines, json, quiet;
    const char *backend, *products, *dtype;
} options;

static const options defaults = {.start = {.preset = "default"},
                                 .split = "auto",
                                 .data = BASIN_NETWORK_UNITED,
                                 .ratio = 0.4,
                                 .runs = 5,
                                 .split_seed = -1,
                                 .backend = "cpu",
                                 .products = "f32"};

enum { RUNS = 1000 }; /* at most */

static const basin_option table[] = {
    BASIN_OPTIONS_START(options),
    BASIN_CHOICE(options, split, "split", "auto|ratio|masks",
                 "ratio: stratified, drawn anew each run; masks: the file's; auto: masks where "
                 "there are."),
    BASIN_REAL(options, ratio, "ratio", "X", 0.0001, 0.95,
               "The part of the labelled nodes for training; the rest is split 1:2 into "
               "validation and test."),
    BASIN_INTEGER(options, runs, "runs", "N", 1, RUNS, "Runs, each with a split of its own."),
    BASIN_INTEGER(options, first, "first", "N", 0, 1000, "The number of the first split."),
    BASIN_INTEGER(options, split_seed, "split-seed", "N", -1, 9007199254740992.0,
                  "The seed of drawn splits; -1: that of training, --seed."),
    BASIN_TEXT(options, scores, 0, "scores", "FILE",
               "Where to write what the detector gave each node of each split: a CSV of split, "
               "node, part, label, probability."),
    BASIN_FLAG(options, best_run, 0, "best-run",
               "Also print the best of the runs: that of the best validation, and that of the best "
               "test score, as some papers report. The latter is chosen on test, and says so."),
    BASIN_TEXT(options, rivals, 0, "rivals", "LIST",
               "Graph networks on the same splits, each by its preset rival-NAME (raw features): "
               "some of bwgnn, bwgnn-hetero, gt, gcn, gat, sage, joined by commas; all: those "
               "that can run."),
    BASIN_FLAG(options, no_baselines, 0, "no-baselines", "Leave the plain models out."),
    BASIN_FLAG(options, only_baselines, 0, "only-baselines", "The plain models alone."),
    BASIN_OPTIONS_NETWORK(options, data),
    BASIN_OPTION_JSON(options),
    BASIN_WORK_OPTIONS(options),
    BASIN_OPTIONS_END,
};

enum { PLAIN = 1 + BASIN_ANOMALY_BASELINES, MEASURES = 4 };
static const char *const measures[MEASURES] = {"macro_f1", "auroc", "auprc", "recall_at_k"};

/* What one model reached on one split. */
typedef struct figures {
    basin_score validation, test;
    double threshold, seconds;
    int64_t epoch;
} figures;

typedef struct bench {
    const options *o;
    basin_backend *backend;
    basin_network *network;
    basin_cli_watch watch;
    size_t memory;
    uint8_t *part;
    basin_cli_rivals rivals;
    int models;          /* the detector, PLAIN - 1 baselines, the rivals */
    figures *figures;    /* [models, runs] */
    basin_writer scores; /* open where the options ask for it */
    int64_t runs, seed;
    bool masks, stopped;
    double overlap;                   /* test nodes over the others, for intervals */
    char title[100], trained_on[200]; /* of the detector */
    int64_t parameters;
} bench;

static basin_status make_split(bench *b, int64_t run, basin_error *error) {
    int64_t seed = b->o->split_seed < 0 ? b->seed : b->o->split_seed;
    if (b->masks) /* of a file with one split, each run has another seed */
        return basin_split_from_masks(b->part, b->network, b->network->splits > 1 ? run : 0, error);
    return basin_split_stratified(b->part, b->network, b->o->ratio, (uint64_t)seed, (uint64_t)run,
                                  error);
}

static basin_status split(bench *b, int64_t run, basin_error *error) {
    basin_status status = make_split(b, run, error);
    int64_t nodes = b->network->nodes, count[BASIN_PART_TEST + 1];
    for (int part = 0; part <= BASIN_PART_TEST && !status; part++)
        count[part] = basin_split_nodes(NULL, b->part, nodes, part);
    if (!status)
        b->overlap = (double)count[BASIN_PART_TEST] /
                     (double)(count[BASIN_PART_TRAIN] + count[BASIN_PART_VAL] + 1);
    return status;
}

static void put_scores(const bench *b, const double *probability, int64_t run) {
    static const char *const name[] = {
        [BASIN_PART_TRAIN] = "train", [BASIN_PART_VAL] = "val", [BASIN_PART_TEST] = "test"};
    char id[BASIN_NODE_TEXT], number[BASIN_NUMBER_TEXT];
    for (int64_t i = 0; i < b->network->nodes; i++) {
        if (b->part[i] == BASIN_PART_NONE) continue;
        fprintf(b->scores.file, "%lld,", (long long)run);
        basin_csv_put(b->scores.file, basin_network_id(b->network, i, id));
        fprintf(b->scores.file, ",%s,%d,%s\n", name[b->part[i]], b->network->label[i],
                basin_number_print(number, (float)probability[i]));
    }
}

static basin_status take(bench *b, figures *f, const basin_anomaly_model *model,
                         basin_error *error) {
    const basin_score *validation = basin_anomaly_reached(model, BASIN_PART_VAL);
    const basin_score *test = basin_anomaly_reached(model, BASIN_PART_TEST);
    if (!validation || !test)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no nodes for %s", b->network->path,
                          validation ? "test" : "validation");
    f->validation = *validation;
    f->test = *test;
    f->threshold = basin_anomaly_threshold(model);
    return BASIN_OK;
}

/* Of the detector alone. */
static void keep(bench *b, const basin_anomaly_model *model, int64_t run) {
    b->parameters = basin_anomaly_parameters(model);
    snprintf(b->trained_on, sizeof b->trained_on, "%s", basin_anomaly_trained_on(model));
    if (b->scores.file) put_scores(b, basin_anomaly_scores(model), run);
}

static basin_status train(basin_anomaly_model **model, basin_outcome *outcome, bench *b, int number,
                          int64_t seed, basin_error *error) {
    char text[32];
    basin_anomaly_data data = {.size = sizeof data, .network = b->network, .part = b->part};
    basin_training training = {.size = sizeof training,
                               .backend = b->backend,
                               .watch = &b->watch.watch,
                               .memory = b->memory};
    if (number >= PLAIN)
        return basin_cli_rival_train(model, outcome, b->rivals.preset[number - PLAIN], seed, &data,
                                     &training, error);
    if (number)
        return basin_anomaly_baseline(model, outcome, number - 1, seed, b->network, b->part,
                                      &training, error);
    snprintf(text, sizeof text, "%lld", (long long)seed);
    basin_status status = basin_settings_set(b->o->settings, "seed", text, error);
    if (status) return status;
    return basin_anomaly_train(model, outcome, b->o->settings, &data, &training, error);
}

/* The detector is number 0, then come the plain models and the rivals. */
static basin_status run_model(bench *b, figures *f, int number, int64_t run, basin_error *error) {
    basin_anomaly_model *model = NULL;
    basin_outcome outcome = {0};
    double began = basin_clock();
    basin_status status = train(&model, &outcome, b, number, b->seed + run, error);
    b->stopped = outcome.stopped;
    f->epoch = outcome.best_epoch;
    f->seconds = basin_clock() - began;
    if (!status && !b->stopped) status = take(b, f, model, error);
    if (!status && !b->stopped && !number) keep(b, model, run);
    basin_anomaly_close(model);
    return status;
}

static void note_split(const bench *b, const figures *f, int64_t run) {
    char line[300];
    double value[6];
    for (int i = 0; i < 3; i++) {
        value[i] = 100 * basin_score_get(&f->test, measures[i]);
        value[3 + i] = 100 * basin_score_get(&f->validation, measures[i]);
    }
    snprintf(line, sizeof line,
             "split %lld: test macro-F1 %.2f AUROC %.2f AUPRC %.2f (validation %.2f %.2f %.2f), "
             "epoch %lld, %.0f s",
             (long long)run, value[0], value[1], value[2], value[3], value[4], value[5],
             (long long)f->epoch, f->seconds);
    b->watch.watch.note(b->watch.watch.context, line);
}

static bool shown(const bench *b, int model) {
    if (model >= PLAIN) return true;
    return model ? !b->o->no_baselines : !b->o->only_baselines;
}

static basin_status run_split(bench *b, int64_t i, basin_error *error) {
    int64_t run = b->o->first + i;
    basin_status status = split(b, run, error);
    for (int m = 0; m < b->models && !status && !b->stopped; m++)
        if (shown(b, m)) status = run_model(b, &b->figures[m * b->runs + i], m, run, error);
    if (!status && !b->stopped && shown(b, 0)) note_split(b, &b->figures[i], run);
    return status;
}

/* ---- printing ---- */

static const char *model_name(const bench *b, int model) {
    if (model >= PLAIN) return b->rivals.preset[model - PLAIN];
    return model ? basin_anomaly_baseline_name(model - 1) : b->title;
}

static double measure(const figures *f, int which) {
    return 100 * basin_score_get(&f->test, measures[which]);
}

static void collect(double value[RUNS], const bench *b, int model, int which) {
    for (int64_t i = 0; i < b->runs; i++)
        value[i] = measure(&b->figures[model * b->runs + i], which);
}

static void summarise(const bench *b, int model, int which, double *mean, double *deviation) {
    double value[RUNS];
    collect(value, b, model, which);
    basin_mean_deviation(mean, deviation, value, b->runs);
}

static bool interval(const bench *b, int model, int which, double ends[2]) {
    double value[RUNS];
    collect(value, b, model, which);
    return basin_mean_interval(&ends[0], &ends[1], value, b->runs, b->overlap);
}

/* ---- the best run ---- */

/* By the measure that chose the epochs, of validation or of test. */
static int64_t best_run(const bench *b, int model, const char *by, bool test) {
    int64_t best = 0;
    const figures *f = &b->figures[model * b->runs];
    for (int64_t i = 1; i < b->runs; i++) {
        const basin_score *own = test ? &f[i].test : &f[i].validation;
        const basin_score *top = test ? &f[best].test : &f[best].validation;
        if (basin_score_get(own, by) > basin_score_get(top, by)) best = i;
    }
    return best;
}

static const char *selected_by(const bench *b, char text[64]) {
    basin_error error;
    return basin_settings_get(text, 64, b->o->settings, "select", &error) ? "auprc" : text;
}

static void print_best(const bench *b, int model) {
    char text[64];
    const char *by = selected_by(b, text);
    for (int test = 0; test < 2; test++) {
        int64_t run = best_run(b, model, by, test);
        const figures *f = &b->figures[model * b->runs + run];
        printf(
            "%s, best of %lld runs by %s %s (split %lld): macro-F1 %.2f, AUROC %.2f, AUPRC %.2f, "
            "recall@k %.2f%s\n",
            model_name(b, model), (long long)b->runs, test ? "TEST" : "validation", by,
            (long long)(b->o->first + run), measure(f, 0), measure(f, 1), measure(f, 2),
            measure(f, 3),
            test ? "; chosen on test, as some papers report: better than what to expect" : "");
    }
}

static void print_best_json(basin_json *json, const bench *b, int model) {
    char text[64];
    const char *by = selected_by(b, text);
    for (int test = 0; test < 2; test++) {
        int64_t run = best_run(b, model, by, test);
        basin_json_object(json, test ? "best_run_by_test" : "best_run_by_validation");
        basin_json_text(json, "chosen_by", by);
        basin_json_boolean(json, "chosen_on_test", test);
        basin_json_integer(json, "split", b->o->first + run);
        basin_put_percent(json, "test", &b->figures[model * b->runs + run].test);
        basin_json_end(json);
    }
}

/* ---- tables ---- */

static bool print_table(const bench *b) {
    static const char *const heading[] = {"model", "macro-F1", "AUROC",
                                          "AUPRC", "recall@k", "s a run"};
    basin_table rows = {.layout = "lrrrrr"};
    for (int i = 0; i < 6; i++) basin_table_add(&rows, "%s", heading[i]);
    for (int m = 0; m < b->models; m++) {
        if (!shown(b, m)) continue;
        double seconds = 0;
        basin_table_add(&rows, "%s", model_name(b, m));
        for (int k = 0; k < MEASURES; k++) {
            double mean, deviation;
            summarise(b, m, k, &mean, &deviation);
            basin_table_add(&rows, "%.2f +- %.2f", mean, deviation);
        }
        for (int64_t i = 0; i < b->runs; i++) seconds += b->figures[m * b->runs + i].seconds;
        basin_table_add(&rows, "%.1f", seconds / (double)b->runs);
    }
    printf("%s: %lld runs, %s; percent on test, mean +- population deviation\n", b->network->path,
           (long long)b->runs, b->masks ? "the file's splits" : "stratified splits");
    if (!basin_table_print(&rows, stdout, 2)) return false;
    for (int m = 0; m < b->models && b->o->best_run; m++)
        if (shown(b, m)) print_best(b, m);
    return true;
}

static void print_intervals(basin_json *json, const bench *b, int model) {
    double ends[2];
    basin_json_object(json, "interval_95");
    for (int k = 0; k < MEASURES; k++)
        if (interval(b, model, k, ends)) basin_json_numbers(json, measures[k], ends, 2);
    basin_json_end(json);
}

static void print_model(basin_json *json, const bench *b, int model) {
    basin_json_object(json, NULL);
    basin_json_text(json, "model", model_name(b, model));
    for (int k = 0; k < MEASURES; k++) {
        double pair[2];
        summarise(b, model, k, &pair[0], &pair[1]);
        basin_json_numbers(json, measures[k], pair, 2);
    }
    print_intervals(json, b, model);
    if (b->o->best_run) print_best_json(json, b, model);
    basin_json_array(json, "runs");
    for (int64_t i = 0; i < b->runs; i++) {
        const figures *f = &b->figures[model * b->runs + i];
        basin_json_object(json, NULL);
        basin_json_integer(json, "split", b->o->first + i);
        basin_put_percent(json, "validation", &f->validation);
        basin_put_percent(json, "test", &f->test);
        basin_json_number(json, "threshold", f->threshold);
        basin_json_integer(json, "best_epoch", f->epoch);
        basin_json_number(json, "seconds", f->seconds);
        basin_json_end(json);
    }
    basin_json_end(json);
    basin_json_end(json);
}

static void print_json(const bench *b) {
    basin_json json = basin_json_begin(stdout);
    basin_json_text(&json, "data", b->network->path);
    basin_json_text(&json, "split", b->masks ? "masks" : "ratio");
    if (!b->masks) basin_json_number(&json, "ratio", b->o->ratio);
    basin_json_text(&json, "trained_on", b->trained_on);
    basin_json_integer(&json, "parameters", b->parameters);
    basin_json_array(&json, "models");
    for (int m = 0; m < b->models; m++)
        if (shown(b, m)) print_model(&json, b, m);
    basin_json_end(&json);
    basin_json_end(&json);
}

/* ---- running ---- */

/* The paper's rows of 1 % are presets; how much is for training is not theirs to say. */
static void note_ratio(const bench *b) {
    const char *preset = b->o->start.preset, *end = strrchr(preset, '-');
    if (b->masks || !end || strcmp(end, "-1") != 0 || b->o->ratio < 0.05) return;
    char line[200];
    snprintf(line, sizeof line,
             "%s is the paper's row of 1 %% for training; here it is %g %%: "
             "--ratio 0.01 would be the paper's",
             preset, 100 * b->o->ratio);
    b->watch.watch.note(b->watch.watch.context, line);
}

/* A file with fewer splits than runs: each of them once, or the only one with other seeds. */
static void note_splits(const bench *b) {
    char line[200];
    long long splits = b->network->splits;
    if (!b->masks || (b->runs == b->o->runs && (splits > 1 || b->runs == 1))) return;
    if (splits == 1)
        snprintf(line, sizeof line, "the file has 1 split: %lld runs on it with different seeds",
                 (long long)b->runs);
    else
        snprintf(line, sizeof line, "the file has %lld splits: %lld runs instead of %lld", splits,
                 (long long)b->runs, (long long)b->o->runs);
    b->watch.watch.note(b->watch.watch.context, line);
}

/* The preset, and an arch that is not the preset's own. */
static basin_status name_detector(bench *b, basin_error *error) {
    const char *preset = b->o->start.preset;
    char arch[32];
    basin_status status = basin_settings_get(arch, sizeof arch, b->o->settings, "arch", error);
    bool told = !strcmp(arch, "et") || strstr(preset, arch);
    snprintf(b->title, sizeof b->title, "%s%s%s", preset, told ? "" : ", arch ", told ? "" : arch);
    return status;
}

static basin_status prepare(bench *b, basin_error *error) {
    const options *o = b->o;
    int64_t splits = b->network->splits;
    b->masks = !strcmp(o->split, "masks") || (!strcmp(o->split, "auto") && splits > 0);
    b->runs = o->runs;
    note_ratio(b);
    if (b->masks && o->first >= splits)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %lld splits; there is no number %lld",
                          b->network->path, (long long)splits, (long long)o->first);
    if (b->masks && splits > 1 && b->runs > splits - o->first) b->runs = splits - o->first;
    note_splits(b);
    if (!b->network->label)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no labels to compare with",
                          b->network->path);
    basin_status named = basin_cli_rivals_parse(&b->rivals, o->rivals, b->network, error);
    if (!named) named = name_detector(b, error);
    if (named) return named;
    b->models = PLAIN + b->rivals.count;
    b->part = calloc((size_t)b->network->nodes, 1);
    b->figures = calloc((size_t)(b->models * b->runs), sizeof *b->figures);
    if (!b->part || !b->figures)
        return basin_fail(error, BASIN_NO_MEMORY, "no memory for an evaluation");
    if (o->scores) {
        basin_status status = basin_writer_create(&b->scores, o->scores, error);
        if (status) return status;
        fputs("split,node,part,label,probability\n", b->scores.file);
    }
    char seed[32];
    basin_status status = basin_settings_get(seed, sizeof seed, o->settings, "seed", error);
    if (status) return status;
    b->seed = strtoll(seed, NULL, 10);
    b->memory = (size_t)(o->memory * (double)(1 << 30));
    return basin_option_backend(&b->backend, o->backend, o->threads, o->products, o->dtype, error);
}

static int finish(bench *b, basin_status status, const basin_error *error) {
    int code = BASIN_EXIT_OK;
    basin_cli_watch_end(&b->watch);
    if (status) {
        code = basin_report(error);
    } else if (b->stopped) {
        code = BASIN_EXIT_FAILURE;
    } else if (b->o->json) {
        print_json(b);
    } else if (!print_table(b)) {
        code = BASIN_EXIT_FAILURE;
    }
    basin_network_free(b->network);
    basin_backend_close(b->backend);
    free(b->part);
    free(b->figures);
    return code;
}

static int run(const void *values, int operands, char **operand) {
    bench b = {.o = values};
    basin_error error;
    if (b.o->start.print_config) return basin_print_config(b.o->settings, NULL);
    basin_cli_watch_begin(&b.watch, b.o->quiet);
    basin_status status = basin_network_flags_open(&b.network, &b.o->data, NULL, b.o->memory,
                                                   operands, operand, b.o->quiet, &error);
    if (!status) status = prepare(&b, &error);
    for (int64_t i = 0; i < b.runs && !status && !b.stopped; i++) status = run_split(&b, i, &error);
    if (b.scores.file && !status && !b.stopped)
        status = basin_writer_commit(&b.scores, &error);
    else if (b.scores.file)
        basin_writer_discard(&b.scores);
    return finish(&b, status, &error);
}

const basin_command basin_command_anomaly_eval = {
    .name = "anomaly eval",
    .summary = "Measure a detector on labelled data: splits, figures, plain baselines beside it",
    .operands = "FILE...",
    .operands_least = 1,
    .operands_most = 16,
    .text = "Runs the protocol of the paper: a stratified part of the labelled nodes for training, "
            "the rest one to two for validation and test (or the file's own masks); validation "
            "chooses epoch and threshold, test is looked at once. Prints macro-F1, AUROC, AUPRC "
            "and recall at k (k: the number of anomalies) in percent, mean and population "
            "deviation over runs, and what a logistic regression and an MLP reach on the same "
            "splits, without the graph and with means over one and two hops. Graph networks of "
            "other papers stand beside it with --rivals.",
    .example = "  basin anomaly eval amazon.npz --ratio 0.4 --runs 5\n"
               "  basin anomaly eval tolokers.npz --preset paper-amazon --runs 10 --json\n"
               "  basin anomaly eval tolokers.npz --rivals bwgnn,gt --no-baselines --runs 10\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .task = "anomaly",
    .settings_at = offsetof(options, settings),
    .start_at = offsetof(options, start),
    .run = run,
};
