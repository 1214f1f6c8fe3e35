/* basin data make: generated data of a known kind. */
#include <string.h>

#include "cli/command.h"
#include "cli/network.h"

typedef struct options {
    const char *like;
    double scale;
    int64_t seed;
    bool quiet, json;
} options;

static const options defaults = {.like = "amazon", .scale = 1};

static const basin_option table[] = {
    BASIN_CHOICE(options, like, "like", "amazon|yelp|tfinance|tsocial",
                 "The set of the paper to imitate."),
    BASIN_REAL(options, scale, "scale", "X", 1e-6, 100,
               "Scale the numbers of nodes and edges by this."),
    BASIN_OPTION_SEED(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

static int make_fraud(const options *o, const char *out) {
    basin_error error;
    basin_network *network = NULL;
    basin_fraud_spec spec;
    basin_status status = basin_fraud_like(&spec, o->like, o->scale, &error);
    if (!status) {
        spec.seed = (uint64_t)o->seed;
        status = basin_network_make_fraud(&network, &spec, &error);
    }
    if (!status) status = basin_network_write(out, network, &error);
    if (!status) status = basin_network_print_written(out, network, o->json, o->quiet, &error);
    basin_network_free(network);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

static int run(const void *values, int operands, char **operand) {
    (void)operands;
    if (!strcmp(operand[0], "fraud")) return make_fraud(values, operand[1]);
    return basin_report_usage(&basin_command_data_make,
                              "'%s' is nothing that can be made; wanted fraud", operand[0]);
}

const basin_command basin_command_data_make = {
    .name = "data make",
    .summary = "Generate data: a network with the statistics of a fraud set",
    .operands = "fraud OUT",
    .operands_least = 2,
    .operands_most = 2,
    .text = "fraud has the nodes, edges, features and share of anomalies of one of the paper's "
            "sets, degrees with a heavy tail, and anomalies that hide among the others. Use it "
            "to try things out and to measure time and memory; scores on it say nothing about the "
            "real set. The same seed gives the same network. A scale below 1 keeps the degrees "
            "unless too few nodes are left for them.",
    .example = "  basin data make fraud --like tfinance --scale 0.1 small.basin\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run_old = run,
};
