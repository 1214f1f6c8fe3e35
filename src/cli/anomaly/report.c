/* basin anomaly report: one page on a detector and what it scores, or the document that it shows.
 */
#include <stdlib.h>
#include <sys/stat.h>

#include "cli/anomaly/options.h"

typedef struct options {
    const char *output, *backend, *products, *dtype;
    basin_network_flags data;
    double memory;
    int64_t top, reasons, threads;
    bool json, unseen, quiet;
} options;

static const options defaults = {.output = "report.html",
                                 .data = BASIN_NETWORK_UNITED,
                                 .top = 20,
                                 .reasons = 6,
                                 .backend = "cpu",
                                 .products = "f32"};

static const basin_option table[] = {
    BASIN_TEXT(options, output, 'o', "output", "FILE",
               "The page; a name that ends in .json gets the document alone.", .writes = true),
    BASIN_OPTION_JSON_FOR(options, "output=report.html"),
    BASIN_INTEGER(options, top, "top", "N", 1, 1000,
                  "So many of the highest scores, with their reasons."),
    BASIN_INTEGER(options, reasons, "reasons", "N", 2, 100, "Features to name for each."),
    BASIN_FLAG(options, unseen, 0, "unseen",
               "Judge by labelled nodes that took no part in training alone."),
    BASIN_OPTIONS_NETWORK(options, data),
    BASIN_WORK_OPTIONS(options),
    BASIN_OPTIONS_END,
};

/* Labelled nodes that took no part in training; free them. */
static basin_status find_unseen(uint8_t **part, const basin_anomaly_model *model,
                                const basin_network *network, basin_error *error) {
    *part = calloc((size_t)network->nodes + 1, 1);
    if (!*part) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a report");
    basin_status status = basin_anomaly_seen(*part, model, network, error);
    for (int64_t i = 0; i < network->nodes && !status; i++)
        (*part)[i] = (*part)[i] ? BASIN_PART_NONE : BASIN_PART_TEST;
    return status;
}

static basin_status report(const options *o, char **operand, int operands, basin_cli_watch *watch,
                           basin_error *error) {
    basin_backend *backend = NULL;
    basin_anomaly_model *model = NULL;
    basin_network *network = NULL;
    uint8_t *part = NULL;
    basin_anomaly_work work = {.size = sizeof work,
                               .watch = &watch->watch,
                               .memory = (size_t)(o->memory * (double)(1 << 30))};
    basin_status status =
        basin_option_backend(&backend, o->backend, o->threads, o->products, o->dtype, error);
    if (!status) status = basin_anomaly_open(&model, operand[0], backend, error);
    if (!status)
        status = basin_open_as_trained(&network, model, operand[0], &o->data, o->memory,
                                       operands - 1, operand + 1, o->quiet, error);
    if (!status && o->unseen) status = find_unseen(&part, model, network, error);
    basin_anomaly_reporting reporting = {.size = sizeof reporting,
                                         .model = operand[0],
                                         .part = part,
                                         .alerts = o->top,
                                         .reasons = o->reasons,
                                         .work = &work};
    if (!status)
        status =
            basin_anomaly_report(o->json ? NULL : o->output, model, network, &reporting, error);
    basin_anomaly_close(model);
    basin_network_free(network);
    basin_backend_close(backend);
    free(part);
    return status;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_cli_watch watch;
    basin_error error;
    struct stat file;
    basin_cli_watch_begin(&watch, o->quiet);
    basin_status status = report(o, operand, operands, &watch, &error);
    basin_cli_watch_end(&watch);
    if (status) return basin_report(&error);
    if (o->json) return BASIN_EXIT_OK;
    double bytes = stat(o->output, &file) == 0 ? (double)file.st_size : 0;
    printf("%s: %.1f kB\n", o->output, bytes / 1e3);
    return BASIN_EXIT_OK;
}

const basin_command basin_command_anomaly_report = {
    .name = "anomaly report",
    .summary = "Write a page on a detector: curves, highest scores with reasons, drift",
    .operands = "MODEL FILE...",
    .operands_least = 2,
    .operands_most = 17,
    .text =
        "One HTML file that needs nothing else and no network. Where the files have labels: "
        "precision by recall, ROC, precision and recall at several numbers of alerts, "
        "probabilities beside frequencies; a note says how many of the nodes were trained on. "
        "Always: how scores are spread, the highest of them with their reasons and the neighbours "
        "that these come through, how far every column has moved since training, and what the "
        "model is.",
    .example = "  basin anomaly report model.safetensors accounts.csv transfers.csv\n"
               "  basin anomaly report model.safetensors june.csv transfers-june.csv --unseen -o "
               "june.html\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run_old = run,
};
