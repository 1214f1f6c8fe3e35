/* basin anomaly train: a detector from a labelled network, into one file. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/anomaly/options.h"
#include "cli/training.h"
#include "io/file.h"
#include "io/json_writer.h"

typedef struct options {
    const char *output, *checkpoint, *log, *backend;
    basin_settings *settings;
    basin_start start;
    basin_data_options data;
    double ratio, validation, memory, save_every;
    int64_t split, threads;
    bool resume, json, quiet;
} options;

static const options defaults = {.start = {.preset = "default"},
                                 .data = {.missing = "error"},
                                 .validation = 0.2,
                                 .split = -1,
                                 .save_every = 60,
                                 .backend = "cpu"};

static const basin_option table[] = {
    BASIN_TEXT(options, output, 'o', "output", "FILE", "The model file to write."),
    BASIN_OPTIONS_START(options),
    BASIN_REAL(options, validation, "validation", "X", 0, 0.3,
               "The part of the labelled nodes that chooses epoch and threshold; all others are "
               "trained on."),
    BASIN_REAL(options, ratio, "ratio", "X", 0, 0.95,
               "Instead, as in the paper: this part for training, the rest one to two for "
               "validation and test; prints the figures on test. 0: as --validation says."),
    BASIN_INTEGER(options, split, "split", "N", 0, 1e9, "Instead, split N of the file's masks."),
    BASIN_TEXT(options, checkpoint, 0, "checkpoint", "FILE",
               "Where the run is saved until it ends [OUTPUT.checkpoint]."),
    BASIN_REAL(options, save_every, "save-every", "SECONDS", 0, 1e9,
               "How often a checkpoint is written."),
    BASIN_FLAG(options, resume, 0, "resume",
               "Go on from the checkpoint that an interrupted or killed run left. Ends with the "
               "same bits as a run that was never cut."),
    BASIN_TEXT(options, log, 0, "log", "FILE", "A line of JSON for every epoch."),
    BASIN_DATA_OPTIONS(options),
    BASIN_OPTION_JSON(options),
    BASIN_WORK_OPTIONS(options),
    BASIN_OPTIONS_END,
};

/* Train, validation and, with --ratio or masks, test. */
static basin_status split(uint8_t *part, const basin_network *network, const options *o,
                          basin_error *error) {
    if (!network->label)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no labels to learn from", network->path);
    if (o->split >= 0) return basin_split_from_masks(part, network, o->split, error);
    double ratio = o->ratio > 0 ? o->ratio : 1 - 3 * o->validation;
    if (o->ratio <= 0 && o->validation <= 0) {
        for (int64_t i = 0; i < network->nodes; i++)
            part[i] = network->label[i] >= 0 ? BASIN_PART_TRAIN : BASIN_PART_NONE;
        return BASIN_OK;
    }
    basin_status status = basin_split_stratified(
        part, network, ratio, (uint64_t)((const basin_anomaly_settings *)o->settings->values)->seed,
        0, error);
    /* Of a split without test nodes: they are trained on. */
    for (int64_t i = 0; i < network->nodes && !status && o->ratio <= 0; i++)
        if (part[i] == BASIN_PART_TEST) part[i] = BASIN_PART_TRAIN;
    return status;
}

typedef struct training {
    const options *o;
    basin_cli_watch watch;
    basin_anomaly_work work;
    basin_network *network;
    basin_anomaly_detector *detector;
    uint8_t *part;
    basin_anomaly_figures figures;
    bool measured, tested;
    char checkpoint[4096];
} training;

static basin_status measure(training *t, basin_error *error) {
    const basin_anomaly_detector *d = t->detector;
    const char *threshold = d->settings.threshold;
    t->tested = basin_split_nodes(NULL, t->part, t->network->nodes, BASIN_PART_TEST) > 0;
    t->measured = d->score != NULL;
    if (!t->measured) return BASIN_OK;
    if (t->tested)
        return basin_anomaly_measure(&t->figures, d->score, t->network, t->part, threshold, error);
    return basin_anomaly_measure_val(&t->figures, d->score, t->network, t->part, threshold, error);
}

static void print_text(const training *t) {
    const basin_anomaly_detector *d = t->detector;
    const basin_anomaly_figures *f = &t->figures;
    printf("%s: %lld parameters, %lld member%s, trained on %s, %.0f s\n", t->o->output,
           (long long)d->parameters, (long long)d->members, d->members == 1 ? "" : "s", d->how,
           d->seconds);
    if (t->measured)
        printf("  validation  macro-F1 %.2f  AUROC %.2f  AUPRC %.2f  (epoch %lld, threshold "
               "%.4f)\n",
               100 * f->val_macro_f1, 100 * f->val_auroc, 100 * f->val_auprc,
               (long long)d->member[0].epoch, d->threshold);
    if (t->measured && t->tested)
        printf("  test        macro-F1 %.2f  AUROC %.2f  AUPRC %.2f  recall@k %.2f\n",
               100 * f->macro_f1, 100 * f->auroc, 100 * f->auprc, 100 * f->recall_k);
}

static void print_json(const training *t) {
    const basin_anomaly_detector *d = t->detector;
    const basin_anomaly_figures *f = &t->figures;
    basin_json json = basin_json_begin(stdout);
    basin_json_text(&json, "model", t->o->output);
    basin_json_integer(&json, "parameters", d->parameters);
    basin_json_integer(&json, "members", d->members);
    basin_json_text(&json, "training", d->how);
    basin_json_integer(&json, "epochs", d->epochs);
    basin_json_number(&json, "seconds", d->seconds);
    basin_json_number(&json, "threshold", d->threshold);
    if (t->measured) {
        basin_json_integer(&json, "epoch", d->member[0].epoch);
        basin_json_number(&json, "val_macro_f1", 100 * f->val_macro_f1);
        basin_json_number(&json, "val_auroc", 100 * f->val_auroc);
        basin_json_number(&json, "val_auprc", 100 * f->val_auprc);
    }
    if (t->measured && t->tested) {
        basin_json_number(&json, "macro_f1", 100 * f->macro_f1);
        basin_json_number(&json, "auroc", 100 * f->auroc);
        basin_json_number(&json, "auprc", 100 * f->auprc);
        basin_json_number(&json, "recall_at_k", 100 * f->recall_k);
    }
    basin_json_end(&json);
}

static basin_status train(training *t, char **file, int files, basin_error *error) {
    const options *o = t->o;
    t->work = (basin_anomaly_work){.watch = &t->watch.watch,
                                   .memory = (size_t)(o->memory * (double)(1 << 30)),
                                   .checkpoint = t->checkpoint,
                                   .save_every = o->save_every,
                                   .resume = o->resume,
                                   .log = o->log};
    basin_status status = basin_anomaly_open(&t->network, file, files, &o->data, error);
    if (!status) t->part = calloc((size_t)t->network->nodes + 1, 1);
    if (!status && !t->part) status = basin_fail(error, BASIN_NO_MEMORY, "no memory for a split");
    if (!status) status = split(t->part, t->network, o, error);
    if (!status) status = basin_backend_open(&t->work.backend, o->backend, (int)o->threads, error);
    if (!status)
        status =
            basin_anomaly_fit(&t->detector, t->network, t->part,
                              (const basin_anomaly_settings *)o->settings->values, &t->work, error);
    if (status || t->detector->stopped) return status;
    status = basin_anomaly_write(o->output, t->detector, error);
    if (!status) remove(t->checkpoint);
    return status ? status : measure(t, error);
}

static int finish(training *t, basin_status status, const basin_error *error) {
    int code = BASIN_EXIT_OK;
    basin_cli_watch_end(&t->watch);
    if (status) {
        code = basin_report(error);
    } else if (t->detector->stopped) {
        fprintf(stderr, "basin: interrupted; go on with the same command and --resume (%s)\n",
                t->checkpoint);
        code = BASIN_EXIT_FAILURE;
    } else if (t->o->json) {
        print_json(t);
    } else {
        print_text(t);
    }
    basin_anomaly_free(t->detector);
    basin_backend_close(t->work.backend);
    basin_network_free(t->network);
    free(t->part);
    return code;
}

static void name_checkpoint(training *t) {
    const options *o = t->o;
    if (o->checkpoint)
        snprintf(t->checkpoint, sizeof t->checkpoint, "%s", o->checkpoint);
    else
        snprintf(t->checkpoint, sizeof t->checkpoint, "%s.checkpoint", o->output);
}

static int run(const void *values, int operands, char **operand) {
    training t = {.o = values};
    basin_error error;
    if (t.o->start.print_config) return basin_print_config(t.o->settings, NULL);
    if (!t.o->output)
        return basin_report_usage(&basin_command_anomaly_train, "wants --output FILE");
    name_checkpoint(&t);
    if (t.o->resume) basin_writer_sweep(t.checkpoint, &error);
    if (t.o->resume && access(t.checkpoint, F_OK) && !access(t.o->output, F_OK)) {
        printf("%s is finished; there is no checkpoint to go on from\n", t.o->output);
        return BASIN_EXIT_OK;
    }
    basin_cli_watch_begin(&t.watch, t.o->quiet);
    basin_status status = train(&t, operand, operands, &error);
    return finish(&t, status, &error);
}

const basin_command basin_command_anomaly_train = {
    .name = "anomaly train",
    .summary = "Train a detector of anomalous nodes on a labelled graph",
    .operands = "FILE...",
    .operands_least = 1,
    .operands_most = 16,
    .text =
        "Reads npz, .mat, DGL graphs, CSV of edges and of nodes, or a converted file (see "
        "'basin data'). Labels are 0 (normal) and 1 (anomalous); nodes without one take part in "
        "the graph but not in the loss. A part of the labelled nodes is held out to choose "
        "epoch and threshold. The model file carries everything that scoring needs. The full "
        "graph is trained on where it fits into the memory allowed, which is known and said "
        "beforehand; else neighbours are sampled.",
    .example =
        "  basin anomaly train accounts.csv transfers.csv -o model.safetensors\n"
        "  basin anomaly train amazon.npz --preset amazon --ratio 0.4 -o amazon.safetensors\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .task = "anomaly",
    .settings_at = offsetof(options, settings),
    .start_at = offsetof(options, start),
    .run = run,
};
