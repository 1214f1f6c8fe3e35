/* basin anomaly eval: the protocol over several splits, with plain baselines beside it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/anomaly/options.h"
#include "cli/csv.h"
#include "cli/table.h"
#include "cli/training.h"
#include "io/file.h"
#include "io/json_writer.h"

typedef struct options {
    const char *split, *scores;
    basin_settings *settings;
    basin_start start;
    basin_data_options data;
    double ratio, memory;
    int64_t runs, first, split_seed, threads;
    bool no_baselines, only_baselines, json, quiet;
    const char *backend;
} options;

static const options defaults = {.start = {.preset = "default"},
                                 .split = "auto",
                                 .data = {.missing = "error"},
                                 .ratio = 0.4,
                                 .runs = 5,
                                 .split_seed = -1,
                                 .backend = "cpu"};

static const basin_option table[] = {
    BASIN_OPTIONS_START(options),
    BASIN_CHOICE(options, split, "split", "auto|ratio|masks",
                 "ratio: stratified, drawn anew each run; masks: the file's; auto: masks where "
                 "there are."),
    BASIN_REAL(options, ratio, "ratio", "X", 0.0001, 0.95,
               "The part of the labelled nodes for training; the rest is split 1:2 into "
               "validation and test."),
    BASIN_INTEGER(options, runs, "runs", "N", 1, 1000, "Runs, each with a split of its own."),
    BASIN_INTEGER(options, first, "first", "N", 0, 1000, "The number of the first split."),
    BASIN_INTEGER(options, split_seed, "split-seed", "N", -1, 9007199254740992.0,
                  "The seed of drawn splits; -1: that of training, --seed."),
    BASIN_TEXT(options, scores, 0, "scores", "FILE",
               "Where to write what the detector gave each node of each split: a CSV of split, "
               "node, part, label, probability."),
    BASIN_FLAG(options, no_baselines, 0, "no-baselines", "Leave the plain models out."),
    BASIN_FLAG(options, only_baselines, 0, "only-baselines", "The plain models alone."),
    BASIN_DATA_OPTIONS(options),
    BASIN_OPTION_JSON(options),
    BASIN_WORK_OPTIONS(options),
    BASIN_OPTIONS_END,
};

enum { MODELS = 1 + BASIN_BASELINES, MEASURES = 4 };

typedef struct bench {
    const options *o;
    basin_network *network;
    basin_anomaly_work work;
    basin_cli_watch watch;
    uint8_t *part;
    double *probability;
    basin_anomaly_figures *figures; /* [MODELS, runs] */
    basin_writer scores;            /* open where the options ask for it */
    int64_t runs;
    bool masks, stopped;
    char how[200];
    int64_t parameters;
} bench;

static basin_status split(bench *b, int64_t run, basin_error *error) {
    if (b->masks) return basin_split_from_masks(b->part, b->network, run, error);
    int64_t seed = b->o->split_seed < 0
                       ? ((const basin_anomaly_settings *)b->o->settings->values)->seed
                       : b->o->split_seed;
    return basin_split_stratified(b->part, b->network, b->o->ratio, (uint64_t)seed, (uint64_t)run,
                                  error);
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

static basin_status run_detector(bench *b, basin_anomaly_figures *f, int64_t run,
                                 basin_error *error) {
    basin_anomaly_settings settings = *(const basin_anomaly_settings *)b->o->settings->values;
    basin_anomaly_detector *detector;
    settings.seed += run;
    basin_status status =
        basin_anomaly_fit(&detector, b->network, b->part, &settings, &b->work, error);
    if (status) return status;
    b->stopped = detector->stopped;
    memcpy(b->how, detector->how, sizeof b->how);
    b->parameters = detector->parameters;
    if (!b->stopped && !detector->score)
        status = basin_fail(error, BASIN_BAD_VALUE, "%s: no validation nodes", b->network->path);
    else if (!b->stopped)
        status = basin_anomaly_measure(f, detector->score, b->network, b->part, settings.threshold,
                                       error);
    if (!b->stopped && !status && b->scores.file) put_scores(b, detector->score, run);
    f->epoch = detector->member[0].epoch;
    f->seconds = detector->seconds;
    basin_anomaly_free(detector);
    return status;
}

static basin_status run_baseline(bench *b, basin_anomaly_figures *f, int which, int64_t run,
                                 basin_error *error) {
    double began = basin_clock();
    int64_t epoch = 0;
    basin_status status = basin_baseline_fit(
        b->probability, &epoch, which, b->network, b->part,
        ((const basin_anomaly_settings *)b->o->settings->values)->seed + run, &b->work, error);
    if (!status)
        status = basin_anomaly_measure(f, b->probability, b->network, b->part, "all", error);
    f->epoch = epoch;
    f->seconds = basin_clock() - began;
    return status;
}

static basin_status run_split(bench *b, int64_t i, basin_error *error) {
    int64_t run = b->o->first + i;
    basin_status status = split(b, run, error);
    if (!status && !b->o->only_baselines) status = run_detector(b, &b->figures[i], run, error);
    for (int m = 1; m < MODELS && !status && !b->o->no_baselines && !b->stopped; m++)
        status = run_baseline(b, &b->figures[m * b->runs + i], m - 1, run, error);
    const basin_anomaly_figures *f = &b->figures[i];
    if (!status && !b->stopped && !b->o->only_baselines)
        basin_watch_note(&b->watch.watch,
                         "split %lld: test macro-F1 %.2f AUROC %.2f AUPRC %.2f (validation %.2f "
                         "%.2f %.2f), epoch %lld, %.0f s",
                         (long long)run, 100 * f->macro_f1, 100 * f->auroc, 100 * f->auprc,
                         100 * f->val_macro_f1, 100 * f->val_auroc, 100 * f->val_auprc,
                         (long long)f->epoch, f->seconds);
    return status;
}

/* ---- printing ---- */

static bool shown(const bench *b, int model) {
    return model ? !b->o->no_baselines : !b->o->only_baselines;
}

static const char *model_name(const bench *b, int model) {
    return model ? basin_baseline_name[model - 1] : b->o->start.preset;
}

static double measure(const basin_anomaly_figures *f, int which) {
    const double value[] = {f->macro_f1, f->auroc, f->auprc, f->recall_k};
    return 100 * value[which];
}

static void summarise(const bench *b, int model, int which, double *mean, double *deviation) {
    double value[1000];
    for (int64_t i = 0; i < b->runs; i++)
        value[i] = measure(&b->figures[model * b->runs + i], which);
    basin_mean_deviation(mean, deviation, value, b->runs);
}

static bool print_table(const bench *b) {
    static const char *const heading[] = {"model", "macro-F1", "AUROC",
                                          "AUPRC", "recall@k", "s a run"};
    basin_table rows = {.layout = "lrrrrr"};
    for (int i = 0; i < 6; i++) basin_table_add(&rows, "%s", heading[i]);
    for (int m = 0; m < MODELS; m++) {
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
    return basin_table_print(&rows, stdout, 2);
}

static void print_model(basin_json *json, const bench *b, int model) {
    static const char *const key[] = {"macro_f1", "auroc", "auprc", "recall_at_k"};
    basin_json_object(json, NULL);
    basin_json_text(json, "model", model_name(b, model));
    for (int k = 0; k < MEASURES; k++) {
        double pair[2];
        summarise(b, model, k, &pair[0], &pair[1]);
        basin_json_numbers(json, key[k], pair, 2);
    }
    basin_json_array(json, "runs");
    for (int64_t i = 0; i < b->runs; i++) {
        const basin_anomaly_figures *f = &b->figures[model * b->runs + i];
        basin_json_object(json, NULL);
        basin_json_integer(json, "split", b->o->first + i);
        for (int k = 0; k < MEASURES; k++) basin_json_number(json, key[k], measure(f, k));
        basin_json_number(json, "val_macro_f1", 100 * f->val_macro_f1);
        basin_json_number(json, "val_auroc", 100 * f->val_auroc);
        basin_json_number(json, "val_auprc", 100 * f->val_auprc);
        basin_json_number(json, "threshold", f->threshold);
        basin_json_integer(json, "epoch", f->epoch);
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
    basin_json_text(&json, "training", b->how);
    basin_json_integer(&json, "parameters", b->parameters);
    basin_json_array(&json, "models");
    for (int m = 0; m < MODELS; m++)
        if (shown(b, m)) print_model(&json, b, m);
    basin_json_end(&json);
    basin_json_end(&json);
}

/* ---- running ---- */

static basin_status prepare(bench *b, basin_error *error) {
    const options *o = b->o;
    int64_t splits = b->network->splits;
    b->masks = !strcmp(o->split, "masks") || (!strcmp(o->split, "auto") && splits > 0);
    b->runs = o->runs;
    if (b->masks && o->first >= splits)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %lld splits; there is no number %lld",
                          b->network->path, (long long)splits, (long long)o->first);
    if (b->masks && splits == 1)
        b->masks = true; /* one split, several seeds */
    else if (b->masks && b->runs > splits - o->first)
        b->runs = splits - o->first;
    if (!b->network->label)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no labels to compare with",
                          b->network->path);
    b->part = basin_array_new((size_t)b->network->nodes, 1);
    b->probability = basin_array_new((size_t)b->network->nodes, sizeof *b->probability);
    b->figures = calloc((size_t)(MODELS * b->runs), sizeof *b->figures);
    if (!b->part || !b->probability || !b->figures)
        return basin_fail(error, BASIN_NO_MEMORY, "no memory for an evaluation");
    if (o->scores) {
        basin_status status = basin_writer_create(&b->scores, o->scores, error);
        if (status) return status;
        fputs("split,node,part,label,probability\n", b->scores.file);
    }
    b->work.watch = &b->watch.watch;
    b->work.memory = (size_t)(o->memory * (double)(1 << 30));
    return basin_backend_open(&b->work.backend, o->backend, (int)o->threads, error);
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
    basin_backend_close(b->work.backend);
    basin_network_free(b->network);
    free(b->part);
    free(b->probability);
    free(b->figures);
    return code;
}

static int run(const void *values, int operands, char **operand) {
    bench b = {.o = values};
    basin_error error;
    if (b.o->start.print_config) return basin_print_config(b.o->settings, NULL);
    basin_cli_watch_begin(&b.watch, b.o->quiet);
    basin_status status = basin_anomaly_open(&b.network, operand, operands, &b.o->data, &error);
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
            "splits, without the graph and with means over one and two hops.",
    .example = "  basin anomaly eval amazon.npz --ratio 0.4 --runs 5\n"
               "  basin anomaly eval tolokers.npz --preset paper --runs 10 --json\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .task = "anomaly",
    .settings_at = offsetof(options, settings),
    .start_at = offsetof(options, start),
    .run = run,
};
