/* basin anomaly eval: the protocol over several splits, with plain baselines beside it. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/anomaly/backtest.h"
#include "cli/anomaly/eval.h"
#include "cli/csv.h"

static const basin_eval_options defaults = {.start = {.preset = "default"},
                                            .split = "auto",
                                            .part = "auto",
                                            .data = BASIN_NETWORK_UNITED,
                                            .ratio = 0.4,
                                            .runs = 5,
                                            .split_seed = -1,
                                            .backend = "cpu",
                                            .products = "f32"};

static const basin_option table[] = {
    BASIN_TEXT(basin_eval_options, model, 0, "model", "MODEL",
               "A back-test: judge this trained model by the labels of the files, and train "
               "nothing.",
               .needs = "unsupervised=off"),
    BASIN_FLAG(basin_eval_options, unsupervised, 0, "unsupervised",
               "How well energies find the labelled anomalies that score --unsupervised gives; "
               "labels are looked at afterwards alone."),
    BASIN_CHOICE(basin_eval_options, part, "part", "auto|train|val|test|all",
                 "With --model or --unsupervised: the nodes to judge by, those of split --first of "
                 "the file's masks, "
                 "or all labelled ones; auto: test where the file has such a part, else all.",
                 .needs = "model!=,unsupervised=on"),
    BASIN_FLAG(basin_eval_options, unseen, 0, "unseen",
               "With --model: leave out nodes that took part in training, validation included.",
               .needs = "model!="),
    BASIN_TEXT(basin_eval_options, threshold_for, 0, "threshold-for", "GOAL",
               "With --model. " BASIN_THRESHOLD_FOR_HELP, .needs = "model!="),
    BASIN_OPTIONS_START(basin_eval_options),
    BASIN_OPTIONS_SPLITS(basin_eval_options, "split!=masks,split-time!= model= unsupervised=off",
                         "model= unsupervised=off"),
    BASIN_OPTION_SPLIT_TIME(basin_eval_options, data, "split!=ratio model= unsupervised=off"),
    BASIN_INTEGER(basin_eval_options, split_seed, "split-seed", "N", -1, 9007199254740992.0,
                  "The seed of drawn splits; -1: that of training, --seed.",
                  .needs = "split!=masks split-time= model= unsupervised=off"),
    BASIN_TEXT(basin_eval_options, scores, 0, "scores", "FILE",
               "Where to write what the detector gave each node of each split: a CSV of split, "
               "node, part, label, probability.",
               .writes = true, .needs = "only-baselines=off"),
    BASIN_FLAG(basin_eval_options, best_run, 0, "best-run",
               "Also print the best of the runs: that of the best validation, and that of the best "
               "test score, as some papers report. The latter is chosen on test, and says so.",
               .needs = "model= unsupervised=off"),
    BASIN_FLAG(basin_eval_options, reliability, 0, "reliability",
               "Also print the detector's probabilities beside frequencies, over the test nodes of "
               "all runs.",
               .needs = "only-baselines=off unsupervised=off"),
    BASIN_TEXT(basin_eval_options, rivals, 0, "rivals", "LIST",
               "Others on the same splits: xgboost, boosted trees on features and their means over "
               "two hops; or all.",
               .needs = "model= unsupervised=off"),
    BASIN_FLAG(basin_eval_options, no_baselines, 0, "no-baselines", "Leave the plain models out.",
               .needs = "only-baselines=off model= unsupervised=off"),
    BASIN_FLAG(basin_eval_options, only_baselines, 0, "only-baselines", "The plain models alone.",
               .needs = "model= unsupervised=off"),
    BASIN_OPTIONS_NETWORK(basin_eval_options, data),
    BASIN_OPTION_JSON(basin_eval_options),
    BASIN_WORK_OPTIONS(basin_eval_options),
    BASIN_OPTIONS_END,
};

static basin_status split(basin_eval *b, int64_t i, basin_error *error) {
    int64_t seed = b->o->split_seed < 0 ? b->seed : b->o->split_seed;
    basin_status status = basin_splits_take(b->part, &b->splits, i, seed, error);
    int64_t nodes = b->network->nodes, count[BASIN_PART_TEST + 1];
    for (int part = 0; part <= BASIN_PART_TEST && !status; part++)
        count[part] = basin_split_nodes(NULL, b->part, nodes, part);
    if (!status)
        b->overlap = (double)count[BASIN_PART_TEST] /
                     (double)(count[BASIN_PART_TRAIN] + count[BASIN_PART_VAL] + 1);
    return status;
}

static void put_scores(FILE *file, const basin_network *network, const uint8_t *part,
                       const double *probability, int64_t run) {
    static const char *const name[] = {
        [BASIN_PART_TRAIN] = "train", [BASIN_PART_VAL] = "val", [BASIN_PART_TEST] = "test"};
    char id[BASIN_NODE_TEXT], number[BASIN_NUMBER_TEXT];
    for (int64_t i = 0; i < network->nodes; i++) {
        if (part[i] == BASIN_PART_NONE) continue;
        fprintf(file, "%lld,", (long long)run);
        basin_csv_put(file, basin_network_id(network, i, id));
        fprintf(file, ",%s,%d,%s\n", name[part[i]], network->label[i],
                basin_number_print(number, (float)probability[i]));
    }
}

static basin_status open_scores(basin_writer *scores, const char *path, basin_error *error) {
    basin_status status = basin_writer_create(scores, path, error);
    if (!status) fputs("split,node,part,label,probability\n", scores->file);
    return status;
}

basin_status basin_cli_scores_write(const char *path, const basin_network *network,
                                    const uint8_t *part, const double *probability,
                                    basin_error *error) {
    basin_writer scores;
    basin_status status = open_scores(&scores, path, error);
    if (status) return status;
    put_scores(scores.file, network, part, probability, 0);
    return basin_writer_commit(&scores, error);
}

static basin_status take(basin_eval *b, basin_eval_figures *f, const basin_anomaly_model *model,
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
static void keep(basin_eval *b, basin_eval_figures *f, const basin_anomaly_model *model,
                 int64_t run) {
    b->parameters = basin_anomaly_parameters(model);
    snprintf(b->trained_on, sizeof b->trained_on, "%s", basin_anomaly_trained_on(model));
    for (int which = 0; which < 2; which++) {
        const basin_score *own = basin_anomaly_reached_alone(model, which, BASIN_PART_TEST);
        const basin_score *seen = basin_anomaly_reached_alone(model, which, BASIN_PART_VAL);
        if (own && seen) f[(BASIN_EVAL_TREES + which) * b->splits.runs].test = *own;
        if (own && seen) f[(BASIN_EVAL_TREES + which) * b->splits.runs].validation = *seen;
    }
    f->reliability = *basin_anomaly_reliability(model, BASIN_PART_TEST);
    if (b->scores.file)
        put_scores(b->scores.file, b->network, b->part, basin_anomaly_scores(model), run);
}

static basin_training training_of(basin_eval *b) {
    return (basin_training){.size = sizeof(basin_training),
                            .backend = b->backend,
                            .watch = &b->watch.watch,
                            .memory = b->memory};
}

static basin_status train(basin_anomaly_model **model, basin_outcome *outcome, basin_eval *b,
                          int number, int64_t seed, basin_error *error) {
    char text[32];
    basin_anomaly_data data = {.size = sizeof data, .network = b->network, .part = b->part};
    basin_training training = training_of(b);
    if (number >= BASIN_EVAL_RIVALS)
        return basin_cli_rival_train(model, outcome, "anomaly",
                                     b->rivals.preset[number - BASIN_EVAL_RIVALS], seed, &data,
                                     &training, error);
    if (number >= BASIN_EVAL_PLAIN)
        return basin_anomaly_baseline(model, outcome, number - BASIN_EVAL_PLAIN, seed, b->network,
                                      b->part, &training, error);
    snprintf(text, sizeof text, "%lld", (long long)seed);
    basin_status status = basin_settings_set(b->o->settings, "seed", text, error);
    if (status) return status;
    return basin_anomaly_train(model, outcome, b->o->settings, &data, &training, error);
}

/* XGBoost is no model of ours: its probabilities are judged as theirs are. */
static basin_status run_xgboost(basin_eval *b, basin_eval_figures *f, int64_t seed,
                                basin_error *error) {
    basin_training training = training_of(b);
    double *probability = calloc((size_t)b->network->nodes, sizeof *probability);
    if (!probability) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for scores");
    basin_status status =
        basin_anomaly_xgboost(probability, &f->epoch, seed, b->network, b->part, &training, error);
    if (!status)
        status = basin_anomaly_choose_threshold(&f->threshold, probability, b->network, b->part,
                                                "smooth", error);
    if (!status)
        status = basin_anomaly_measure(&f->validation, probability, b->network, b->part,
                                       BASIN_PART_VAL, f->threshold, error);
    if (!status)
        status = basin_anomaly_measure(&f->test, probability, b->network, b->part, BASIN_PART_TEST,
                                       f->threshold, error);
    free(probability);
    return status;
}

static basin_status run_trained(basin_eval *b, basin_eval_figures *f, int number, int64_t run,
                                basin_error *error) {
    basin_anomaly_model *model = NULL;
    basin_outcome outcome = {0};
    basin_status status = train(&model, &outcome, b, number, b->seed + run, error);
    b->stopped = outcome.stopped;
    f->epoch = outcome.best_epoch;
    if (!status && !b->stopped) status = take(b, f, model, error);
    if (!status && !b->stopped && !number) keep(b, f, model, run);
    basin_anomaly_close(model);
    return status;
}

static basin_status run_model(basin_eval *b, int number, int64_t i, basin_error *error) {
    basin_eval_figures *f = &b->figures[number * b->splits.runs + i];
    int64_t run = b->o->first + i;
    double began = basin_clock();
    clock_t busy = clock();
    bool theirs = number >= BASIN_EVAL_RIVALS &&
                  basin_cli_rival_is_xgboost(b->rivals.preset[number - BASIN_EVAL_RIVALS]);
    basin_status status =
        theirs ? run_xgboost(b, f, b->seed + run, error) : run_trained(b, f, number, run, error);
    f->seconds = basin_clock() - began;
    f->cpu = (double)(clock() - busy) / CLOCKS_PER_SEC;
    return status;
}

static void note_split(const basin_eval *b, const basin_eval_figures *f, int64_t run) {
    char line[300];
    double value[6];
    for (int i = 0; i < 3; i++) {
        static const char *const measure[] = {"macro_f1", "auroc", "auprc"};
        value[i] = 100 * basin_score_get(&f->test, measure[i]);
        value[3 + i] = 100 * basin_score_get(&f->validation, measure[i]);
    }
    snprintf(line, sizeof line,
             "split %lld: test macro-F1 %.2f AUROC %.2f AUPRC %.2f (validation %.2f %.2f %.2f), "
             "epoch %lld, %.0f s",
             (long long)run, value[0], value[1], value[2], value[3], value[4], value[5],
             (long long)f->epoch, f->seconds);
    b->watch.watch.note(b->watch.watch.context, line);
}

static basin_status run_split(basin_eval *b, int64_t i, basin_error *error) {
    basin_status status = split(b, i, error);
    for (int m = 0; m < b->models && !status && !b->stopped; m++) {
        bool same = m == BASIN_EVAL_TREES || m == BASIN_EVAL_NETWORK; /* the detector's run */
        if (!same && basin_eval_shown(b, m)) status = run_model(b, m, i, error);
    }
    if (!status && !b->stopped && basin_eval_shown(b, 0))
        note_split(b, &b->figures[i], b->o->first + i);
    return status;
}

/* ---- running ---- */

/* The paper's rows of 1 % are presets; how much is for training is not theirs to say. */
static void note_ratio(const basin_eval *b) {
    const char *preset = b->o->start.preset, *end = strrchr(preset, '-');
    if (b->splits.masks || !end || strcmp(end, "-1") != 0 || b->o->ratio < 0.05) return;
    char line[200];
    snprintf(line, sizeof line,
             "%s is the paper's row of 1 %% for training; here it is %g %%: "
             "--ratio 0.01 would be the paper's",
             preset, 100 * b->o->ratio);
    b->watch.watch.note(b->watch.watch.context, line);
}

/* The preset, and a form that is not the preset's own. */
static basin_status name_detector(basin_eval *b, basin_error *error) {
    const char *preset = b->o->start.preset;
    char form[32];
    basin_status status = basin_settings_get(form, sizeof form, b->o->settings, "form", error);
    if (status) return status;
    bool usual = !strcmp(form, "energy") || strstr(preset, form);
    snprintf(b->title, sizeof b->title, "%s%s%s", preset, usual ? "" : ", form ",
             usual ? "" : form);
    return BASIN_OK;
}

/* An option of drawn splits that was given; a split by time goes by the ratio, too. */
static const char *drawn_option(const basin_eval_options *o) {
    const basin_command *command = &basin_command_anomaly_eval;
    if (o->data.split_time) return NULL;
    if (basin_option_given(o->parsed, command, "ratio")) return "ratio";
    return basin_option_given(o->parsed, command, "split-seed") ? "split-seed" : NULL;
}

static basin_status prepare(basin_eval *b, basin_error *error) {
    const basin_eval_options *o = b->o;
    char facts[32];
    basin_status asked = basin_settings_get(facts, sizeof facts, o->settings, "facts", error);
    if (asked) return asked;
    /* The rivals do without them, too. */
    if (!strcmp(facts, "none")) basin_network_forget_facts(b->network);
    basin_status named =
        basin_splits_plan(&b->splits, b->network, o->split, o->ratio, drawn_option(o), o->first,
                          o->runs, &b->watch.watch, error);
    if (named) return named;
    note_ratio(b);
    named = basin_cli_rivals_parse(&b->rivals, "anomaly", o->rivals, error);
    if (!named) named = name_detector(b, error);
    if (named) return named;
    b->models = BASIN_EVAL_RIVALS + b->rivals.count;
    b->part = calloc((size_t)b->network->nodes, 1);
    b->figures = calloc((size_t)(b->models * b->splits.runs), sizeof *b->figures);
    if (!b->part || !b->figures)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for an evaluation");
    basin_status opened = o->scores ? basin_eval_scores_begin(b, error) : BASIN_OK;
    if (opened) return opened;
    char seed[32];
    basin_status status = basin_settings_get(seed, sizeof seed, o->settings, "seed", error);
    if (status) return status;
    b->seed = strtoll(seed, NULL, 10);
    b->memory = (size_t)(o->memory * (double)(1 << 30));
    return basin_option_backend(&b->backend, o->backend, o->threads, o->products, o->dtype, error);
}

static int finish(basin_eval *b, basin_status status, const basin_error *error) {
    int code = BASIN_EXIT_OK;
    basin_cli_watch_end(&b->watch);
    if (status) {
        code = basin_report(error);
    } else if (b->stopped) {
        code = BASIN_EXIT_FAILURE;
    } else if (b->o->json) {
        basin_eval_print_json(b);
    } else if (!basin_eval_print(b)) {
        code = BASIN_EXIT_FAILURE;
    }
    basin_network_free(b->network);
    basin_backend_close(b->backend);
    free(b->part);
    free(b->figures);
    return code;
}

/* A rank that is interrupted fails: the others need its runs. */
static basin_status run_splits(basin_eval *b, basin_error *error) {
    int64_t first, last;
    basin_status status = BASIN_OK;
    basin_eval_deal(b, &first, &last);
    for (int64_t i = first; i < last && !status && !b->stopped; i++)
        status = run_split(b, i, error);
    if (!status && b->stopped && b->o->ranks)
        status = basin_fail(error, BASIN_BAD_VALUE, "interrupted");
    return status || b->stopped ? status : basin_eval_share(b, error);
}

static int run(const void *values, int operands, char **operand) {
    basin_eval b = {.o = values};
    basin_error error;
    if (b.o->start.print_config) return basin_print_config(b.o->settings, NULL);
    if (b.o->model || b.o->unsupervised) return basin_cli_backtest(b.o, operands, operand);
    static const char *const heard[] = {"seed", "facts", NULL};
    if (b.o->only_baselines && basin_training_settings_given(b.o->settings, &b.o->start, heard))
        return basin_report_usage(&basin_command_anomaly_eval,
                                  "a setting of the detector has no effect with --only-baselines");
    basin_cli_watch_begin(&b.watch, b.o->quiet);
    basin_network_flags data = b.o->data;
    data.split_train = b.o->ratio;
    data.split_val = (1 - b.o->ratio) / 3;
    basin_status status = basin_network_flags_open(&b.network, &data, NULL, b.o->memory, operands,
                                                   operand, b.o->quiet, &error);
    if (!status) status = prepare(&b, &error);
    if (!status) status = run_splits(&b, &error);
    status = basin_eval_scores_end(&b, status, &error);
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
            "chooses epoch and threshold, test is looked at once. Prints macro-F1, AUROC, AUPRC, "
            "recall at k (k: the number of anomalies) and the calibration error in percent, mean "
            "and population deviation over runs; the same of the detector's trees and network "
            "alone; and what a logistic regression and an MLP reach on the same "
            "splits, without the graph and with means over one and two hops. XGBoost "
            "stands beside it with --rivals xgboost. With --model nothing is "
            "trained: a saved model is judged by new labels (a back-test), with precision and "
            "recall at several numbers of alerts and its probabilities beside frequencies; a line "
            "says how many of the nodes it was trained on.",
    .example = "  basin anomaly eval amazon.npz --ratio 0.4 --runs 5\n"
               "  basin anomaly eval tolokers.npz --preset paper-amazon --runs 10 --json\n"
               "  basin anomaly eval tolokers.npz --rivals xgboost --no-baselines --runs 10\n"
               "  basin anomaly eval --model model.safetensors june.csv transfers-june.csv\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .task = "anomaly",
    .settings_at = offsetof(basin_eval_options, settings),
    .start_at = offsetof(basin_eval_options, start),
    .ranks_at = offsetof(basin_eval_options, ranks),
    .parsed_at = offsetof(basin_eval_options, parsed),
    .run_old = run,
};
