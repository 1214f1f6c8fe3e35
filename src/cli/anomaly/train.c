/* basin anomaly train: a detector from a labelled network, into one file. */
#include "cli/anomaly/options.h"
#include "cli/training.h"
#include "io/json_writer.h"

typedef struct options {
    basin_training_flags training;
    basin_settings *settings;
    basin_start start;
    basin_network_flags data;
    double ratio, validation;
    int64_t split, threads;
    const char *threshold_for, *backend, *products, *dtype;
    bool reliability, json, quiet;
} options;

static const options defaults = {.training = BASIN_TRAINING_DEFAULT,
                                 .start = {.preset = "default"},
                                 .data = BASIN_NETWORK_UNITED,
                                 .validation = -1,
                                 .split = -1,
                                 .backend = "cpu",
                                 .products = "f32"};

static const basin_option table[] = {
    BASIN_OPTIONS_START(options),
    BASIN_REAL(options, validation, "validation", "X", 0, 0.3,
               "The part of the labelled nodes that chooses epoch and threshold; all others are "
               "trained on. Without it: the split that the file brings, else 0.2."),
    BASIN_REAL(options, ratio, "ratio", "X", 0, 0.95,
               "Instead, as in the paper: this part for training, the rest one to two for "
               "validation and test; prints the figures on test. 0: as --validation says."),
    BASIN_INTEGER(options, split, "split", "N", 0, 1e9, "Instead, split N of the file's masks."),
    BASIN_OPTION_SPLIT_TIME(options, data, NULL),
    BASIN_TEXT(options, threshold_for, 0, "threshold-for", "GOAL", BASIN_THRESHOLD_FOR_HELP,
               .needs = "validation!=0"),
    BASIN_FLAG(options, reliability, 0, "reliability",
               "Also print probabilities beside frequencies, on test nodes or else validation.",
               .needs = "validation!=0"),
    BASIN_TRAINING_OPTIONS(options),
    BASIN_OPTIONS_NETWORK(options, data),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_COMPUTE(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

typedef struct result {
    const options *o;
    basin_anomaly_model *model;
    basin_outcome outcome;
    bool chose;    /* a threshold for a goal */
    double chosen; /* what validation chose before */
} result;

/* What trees and network have to do with it. */
static void print_ensemble(const result *r) {
    static const char *const name[] = {"trees", "network"};
    double share = basin_anomaly_share(r->model);
    const double part[] = {1 - share, share};
    for (int i = 0; i < 2; i++) {
        const basin_score *alone = basin_anomaly_reached_alone(r->model, i, BASIN_PART_VAL);
        if (!alone) return;
        printf("  %-10s  share %.2f  alone on validation: AUROC %.2f  AUPRC %.2f\n", name[i],
               part[i], 100 * basin_score_get(alone, "auroc"),
               100 * basin_score_get(alone, "auprc"));
    }
}

static void print_reliability(const result *r) {
    const basin_reliability *test = basin_anomaly_reliability(r->model, BASIN_PART_TEST);
    const basin_reliability *use =
        test ? test : basin_anomaly_reliability(r->model, BASIN_PART_VAL);
    if (!use || !r->o->reliability) return;
    printf("probabilities (calibration %s) beside frequencies, %s nodes:\n",
           basin_anomaly_calibration(r->model), test ? "test" : "validation");
    basin_cli_reliability_print(use);
}

static void print_text(const result *r) {
    const basin_outcome *o = &r->outcome;
    const basin_score *validation = basin_anomaly_reached(r->model, BASIN_PART_VAL);
    const basin_score *test = basin_anomaly_reached(r->model, BASIN_PART_TEST);
    int64_t members = basin_anomaly_members(r->model);
    char more[40];
    snprintf(more, sizeof more, "%lld member%s, ", (long long)members, members == 1 ? "" : "s");
    basin_training_line(o, &r->o->training, more, basin_anomaly_nodes(r->model), "nodes", "nodes");
    printf("\n");
    if (validation)
        printf("  validation  macro-F1 %.2f  AUROC %.2f  AUPRC %.2f  (epoch %lld, threshold "
               "%.4f)\n",
               100 * basin_score_get(validation, "macro_f1"),
               100 * basin_score_get(validation, "auroc"),
               100 * basin_score_get(validation, "auprc"), (long long)o->best_epoch,
               r->chose ? r->chosen : basin_anomaly_threshold(r->model));
    if (test)
        printf("  test        macro-F1 %.2f  AUROC %.2f  AUPRC %.2f  recall@k %.2f  ECE %.2f\n",
               100 * basin_score_get(test, "macro_f1"), 100 * basin_score_get(test, "auroc"),
               100 * basin_score_get(test, "auprc"), 100 * basin_score_get(test, "recall_at_k"),
               100 * basin_score_get(test, "ece"));
    print_ensemble(r);
    if (r->chose)
        printf("  threshold   %.4f for %s, in place of %.4f\n", basin_anomaly_threshold(r->model),
               r->o->threshold_for, r->chosen);
    print_reliability(r);
}

static void print_json(const result *r) {
    const basin_outcome *o = &r->outcome;
    basin_json json = basin_json_begin(stdout);
    basin_training_fields(&json, o, &r->o->training, basin_anomaly_nodes(r->model), "nodes");
    basin_json_integer(&json, "members", basin_anomaly_members(r->model));
    basin_json_text(&json, "trained_on", basin_anomaly_trained_on(r->model));
    basin_json_number(&json, "threshold", basin_anomaly_threshold(r->model));
    basin_put_percent(&json, "validation", basin_anomaly_reached(r->model, BASIN_PART_VAL));
    basin_put_percent(&json, "test", basin_anomaly_reached(r->model, BASIN_PART_TEST));
    basin_json_number(&json, "network_share", basin_anomaly_share(r->model));
    basin_put_percent(&json, "validation_trees",
                      basin_anomaly_reached_alone(r->model, BASIN_ANOMALY_TREES, BASIN_PART_VAL));
    basin_put_percent(&json, "validation_network",
                      basin_anomaly_reached_alone(r->model, BASIN_ANOMALY_NETWORK, BASIN_PART_VAL));
    basin_json_text(&json, "calibration", basin_anomaly_calibration(r->model));
    const basin_reliability *test = basin_anomaly_reliability(r->model, BASIN_PART_TEST);
    if (!test) test = basin_anomaly_reliability(r->model, BASIN_PART_VAL);
    if (test) basin_put_reliability(&json, test);
    basin_json_end(&json);
}

/* Writes the model once more, with the threshold for the goal. */
static basin_status choose_threshold(result *r, basin_error *error) {
    const char *goal = r->o->threshold_for;
    const double *probability = r->model ? basin_anomaly_scores(r->model) : NULL;
    if (!goal || r->o->start.print_config || r->outcome.stopped || r->outcome.finished_before)
        return BASIN_OK;
    if (!probability)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "--threshold-for %s wants validation nodes to go by", goal);
    double threshold;
    basin_status status = basin_anomaly_threshold_for(&threshold, r->model, goal, probability,
                                                      basin_anomaly_nodes(r->model), error);
    if (status) return status;
    r->chose = true;
    r->chosen = basin_anomaly_threshold(r->model);
    basin_anomaly_set_threshold(r->model, threshold);
    return r->o->training.output ? basin_anomaly_write(r->o->training.output, r->model, error)
                                 : BASIN_OK;
}

static basin_status train(result *r, const basin_training *training, char **file, int files,
                          basin_error *error) {
    const options *o = r->o;
    basin_network_options how = basin_network_flags_options(&o->data, o->training.memory);
    double held = o->validation < 0 ? 0.2 : o->validation;
    how.split_train = o->ratio > 0 ? o->ratio : 1 - held;
    how.split_val = o->ratio > 0 ? (1 - o->ratio) / 3 : held;
    basin_anomaly_data data = {.size = sizeof data,
                               .path = (const char *const *)file,
                               .paths = files,
                               .options = &how,
                               .masks = o->split >= 0 || how.split_time,
                               .split = o->split >= 0 ? o->split : 0,
                               .ratio = o->ratio,
                               .validation = basin_validation_of(o->validation)};
    basin_status status =
        basin_anomaly_train(&r->model, &r->outcome, o->settings, &data, training, error);
    return status ? status : choose_threshold(r, error);
}

static int print_result(const result *r) {
    if (r->o->start.print_config) return basin_print_config(r->o->settings, &r->outcome);
    if (r->model && basin_training_is_told(&r->outcome, r->o->json))
        (r->o->json ? print_json : print_text)(r);
    basin_note_gamma(r->o->training.output, r->o->quiet);
    return basin_training_end(&r->outcome, &r->o->training);
}

static int run(const void *values, int operands, char **operand) {
    result r = {.o = values};
    basin_training_work work;
    basin_error error;
    const options *o = r.o;
    if (o->start.print_config && !operands) return basin_print_config(o->settings, NULL);
    if (!operands) return basin_report_usage(&basin_command_anomaly_train, "wants FILE...");
    const char *clash = basin_split_clash(o->ratio, o->validation, o->split, o->data.split_time);
    if (clash)
        return basin_report_usage(&basin_command_anomaly_train, "%s; wanted one of them", clash);
    if (basin_goal_check(o->threshold_for, &error)) return basin_report(&error);
    if (basin_training_open(&work, &o->training, o->backend, o->threads, o->products, o->dtype,
                            o->quiet, o->start.print_config, &error))
        return basin_report(&error);
    basin_status status = train(&r, &work.training, operand, operands, &error);
    basin_cli_watch_end(&work.watch);
    int code = status ? basin_report(&error) : print_result(&r);
    basin_anomaly_close(r.model);
    basin_training_close(&work);
    return code;
}

const basin_command basin_command_anomaly_train = {
    .name = "anomaly train",
    .summary = "Train a detector of anomalous nodes on a labelled graph",
    .operands = "FILE...",
    .operands_least = 0, /* none: --print-config alone */
    .operands_most = 16,
    .text =
        "Reads npz, .mat, DGL graphs, CSV of edges and of nodes, or a converted file (see "
        "'basin data'). Labels are 0 (normal) and 1 (anomalous); nodes without one take part in "
        "the graph but not in the loss. A part of the labelled nodes is held out to choose "
        "epoch and threshold. The model file carries everything that scoring needs. The full "
        "graph is trained on where it fits into the memory allowed, which is known and said "
        "beforehand; else neighbours are sampled.",
    .example = "  basin anomaly train accounts.csv transfers.csv -o model.safetensors\n"
               "  basin anomaly train amazon.npz --preset paper-amazon --ratio 0.4 -o "
               "amazon.safetensors\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .task = "anomaly",
    .settings_at = offsetof(options, settings),
    .start_at = offsetof(options, start),
    .ranks_at = offsetof(options, training.ranks),
    .run_old = run,
};
