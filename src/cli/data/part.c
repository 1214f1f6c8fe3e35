/* basin data part: cuts a network into parts for several processes. */
#include <limits.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/network.h"
#include "data/network/parts/parts.h"
#include "io/json_writer.h"

typedef struct options {
    const char *output, *method;
    int64_t parts;
    double memory;
    basin_network_flags network;
    bool quiet, json;
} options;

static const options defaults = {
    .output = "parts", .method = "auto", .parts = 8, .network = BASIN_NETWORK_UNITED};

static const basin_option table[] = {
    BASIN_ENTRY_OF(options, parts, BASIN_OPTION_INTEGER, "parts", 'n', "N", 1, BASIN_CUT_PARTS,
                   "So many parts; at least as many as there will be processes."),
    BASIN_TEXT(options, output, 'o', "output", "FOLDER", "The folder for them; made if absent."),
    BASIN_CHOICE(options, method, "method", "auto|metis|stream|range",
                 "metis: METIS; stream: greedy, node by node, in little memory; range: by number; "
                 "auto: METIS where it is installed and the graph fits, else stream."),
    BASIN_REAL(options, memory, "memory", "GIB", 0, 1e6,
               "What METIS, or edges of tables while they are sorted, may take; 0: three quarters "
               "of what is free."),
    BASIN_OPTIONS_NETWORK(options, network),
    BASIN_OPTIONS_NETWORK_EDGES(options, network),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

static void print_json(const char *folder, const basin_cut_report *r) {
    basin_json json = basin_json_begin(stdout);
    basin_json_text(&json, "folder", folder);
    basin_json_integer(&json, "parts", r->parts);
    basin_json_text(&json, "method", r->method);
    basin_json_integer(&json, "edges", r->edges);
    basin_json_integer(&json, "cut", r->cut);
    basin_json_integer(&json, "halo", r->halo);
    basin_json_integer(&json, "most_nodes", r->most_nodes);
    basin_json_integer(&json, "most_edges", r->most_edges);
    basin_json_integer(&json, "most_halo", r->most_halo);
    basin_json_number(&json, "node_balance", r->node_balance);
    basin_json_number(&json, "edge_balance", r->edge_balance);
    basin_json_end(&json);
}

static void print(const options *o, const basin_cut_report *r, int64_t nodes) {
    if (o->json)
        print_json(o->output, r);
    else if (!o->quiet)
        basin_say(
            "%s: %lld parts by %s; %lld of %lld edges (%.1f %%) lead to another part, halos "
            "have %.2f nodes for one of their part's own; the largest part has %.3f times the "
            "mean of nodes, %.3f of edges",
            o->output, (long long)r->parts, r->method, (long long)r->cut, (long long)r->edges,
            r->edges ? 100 * (double)r->cut / (double)r->edges : 0, (double)r->halo / (double)nodes,
            r->node_balance, r->edge_balance);
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_network *network = NULL;
    basin_cut_report report;
    basin_error error;
    basin_cut_spec spec = {
        .parts = o->parts, .method = o->method, .memory = (size_t)(o->memory * (double)(1 << 30))};
    basin_network_flags flags = o->network;
    flags.scratch = o->output;
    basin_status status = basin_network_flags_open(&network, &flags, NULL, o->memory, operands,
                                                   operand, o->quiet, &error);
    if (!status) status = basin_network_cut(&report, o->output, network, &spec, &error);
    if (!status) print(o, &report, network->nodes);
    basin_network_free(network);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

const basin_command basin_command_data_part = {
    .name = "data part",
    .summary = "Cut a graph of nodes into parts that several processes train on",
    .operands = "FILE...",
    .operands_least = 1,
    .operands_most = INT_MAX,
    .text =
        "Writes FOLDER/part-0.basin, part-1.basin, ..: each has some of the nodes, with all "
        "that they see and who in other parts that is. mpirun -n 4 basin anomaly train FOLDER "
        "then trains on all of them together (docs/scale.md). What is learnt depends on the "
        "number of parts, not on that of processes, so cut once and run with any number up to "
        "it. A graph that basin data convert wrote is mapped, not loaded; edges of tables (CSV) "
        "are kept in files of FOLDER meanwhile.",
    .example = "  basin data part network.basin -n 8 -o parts\n"
               "  basin data part network.basin -n 64 --method stream -o parts\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run_old = run,
};
