/* basin data convert: any network to the file that is mapped, or to npz. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/network.h"

typedef struct options {
    basin_network_flags network;
    bool homo, quiet, json;
} options;

static const options defaults = {.network = BASIN_NETWORK_FLAGS};

static const basin_option table[] = {
    BASIN_OPTIONS_NETWORK(options, network),
    BASIN_OPTIONS_NETWORK_EDGES(options, network),
    BASIN_FLAG(options, network.keep_gaps, 0, "keep-gaps",
               "Leave gaps in features as they are, for the model that reads the file to fill.",
               .needs = "missing="),
    BASIN_FLAG(options, homo, 0, "homo", "Add a relation homo: the union of all relations."),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

static bool ends_in(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

/* Whether a name can only be that of a file to read: who forgets OUT would lose the last table. */
static bool is_source(const char *path) {
    static const char *const end[] = {".csv", ".tsv", ".gz", ".zst", ".mat", ".txt", NULL};
    for (int i = 0; end[i]; i++)
        if (ends_in(path, end[i])) return true;
    return false;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_network *network = NULL;
    basin_error error;
    const char *out = operand[operands - 1];
    if (is_source(out))
        return basin_report_usage(&basin_command_data_convert,
                                  "'%s' comes last, where the file to write is wanted: "
                                  "NAME.basin or NAME.npz",
                                  out);
    basin_status status = basin_network_flags_open(&network, &o->network, NULL, 0, operands - 1,
                                                   operand, o->quiet, &error);
    if (!status && o->homo) status = basin_network_add_union(network, &error);
    if (!status) status = basin_network_write(out, network, &error);
    if (!status) status = basin_network_print_written(out, network, o->json, o->quiet, &error);
    basin_network_free(network);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

const basin_command basin_command_data_convert = {
    .name = "data convert",
    .summary = "Turn a graph of nodes into one file that opens at once",
    .operands = "IN... OUT",
    .operands_least = 2,
    .operands_most = INT_MAX,
    .text = "Reads npz, MATLAB files of the fraud sets, DGL graph files, and CSV or TSV (also .gz, "
            ".zst) "
            "of edges and of nodes, whatever the files are called. Writes safetensors, which open "
            "at once because they are mapped, or npz if OUT ends so. docs/formats.md describes "
            "the formats.\n"
            "\n"
            "CSV needs a header. A file with columns for both ends of an edge (src and dst, source "
            "and target, ...) lists edges. Others list nodes: an id, a label if a column is called "
            "label, and features.",
    .example = "  basin data convert Amazon.mat amazon.basin --unlabelled-first 3305\n"
               "  basin data convert payments.csv.gz accounts.csv fraud.basin --label is_fraud\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run_old = run,
};
