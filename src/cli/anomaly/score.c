/* basin anomaly score: the probability of every node, as CSV. */
#include <stdlib.h>

#include "cli/anomaly/options.h"
#include "cli/csv.h"
#include "io/file.h"
#include "io/json_writer.h"

typedef struct options {
    const char *output, *base, *threshold_for, *backend, *products, *dtype;
    basin_network_flags data;
    double memory;
    int64_t top, threads;
    bool sort, only_new, json, quiet;
} options;

static const options defaults = {.data = BASIN_NETWORK_UNITED, .backend = "cpu", .products = "f32"};

static const basin_option table[] = {
    BASIN_TEXT(options, output, 'o', "output", "FILE", "Write there instead of standard output."),
    BASIN_FLAG(options, sort, 0, "sort", "The most anomalous first; else in the data's order."),
    BASIN_INTEGER(options, top, "top", "N", 0, 9e15, "Only the N most anomalous; 0: all."),
    BASIN_TEXT(options, threshold_for, 0, "threshold-for", "GOAL", BASIN_THRESHOLD_FOR_HELP),
    BASIN_TEXT(options, base, 0, "base", "FILE",
               "A graph that is there already, as one file: the tables add nodes and edges to it."),
    BASIN_FLAG(options, only_new, 0, "new", "With --base: only the nodes that the tables add."),
    BASIN_OPTIONS_NETWORK(options, data),
    BASIN_OPTION_JSON(options),
    BASIN_WORK_OPTIONS(options),
    BASIN_OPTIONS_END,
};

typedef struct place {
    double probability;
    int64_t node, rank;
} place;

static int higher_first(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->probability != y->probability) return x->probability < y->probability ? 1 : -1;
    return (x->node > y->node) - (x->node < y->node);
}

static int by_node(const void *a, const void *b) {
    const place *x = a, *y = b;
    return (x->node > y->node) - (x->node < y->node);
}

/* Ranks from 1 of the nodes from `first` on; equal probabilities share the better one. Returns how
 * many are to be printed. */
static int64_t rank(place *list, const double *probability, int64_t first, int64_t nodes,
                    const options *o) {
    nodes -= first;
    for (int64_t i = 0; i < nodes; i++) list[i] = (place){probability[first + i], first + i, 0};
    qsort(list, (size_t)nodes, sizeof *list, higher_first);
    for (int64_t i = 0; i < nodes; i++) {
        bool tie = i && list[i].probability == list[i - 1].probability;
        list[i].rank = tie ? list[i - 1].rank : i + 1;
    }
    int64_t count = o->top > 0 && o->top < nodes ? o->top : nodes;
    if (!o->sort && count == nodes) qsort(list, (size_t)nodes, sizeof *list, by_node);
    return count;
}

static void put_csv(FILE *file, const place *list, int64_t count, const basin_network *network,
                    double threshold) {
    char id[BASIN_NODE_TEXT], number[BASIN_NUMBER_TEXT];
    fputs("node,probability,rank,anomalous\n", file);
    for (int64_t i = 0; i < count; i++) {
        basin_csv_put(file, basin_network_id(network, list[i].node, id));
        fprintf(file, ",%s,%lld,%d\n", basin_number_print(number, (float)list[i].probability),
                (long long)list[i].rank, list[i].probability > threshold);
    }
}

static void put_json(FILE *file, const place *list, int64_t count, const basin_network *network,
                     double threshold) {
    char id[BASIN_NODE_TEXT];
    basin_json json = basin_json_begin(file);
    basin_json_number(&json, "threshold", threshold);
    basin_json_array(&json, "nodes");
    for (int64_t i = 0; i < count; i++) {
        basin_json_object(&json, NULL);
        basin_json_text(&json, "node", basin_network_id(network, list[i].node, id));
        basin_json_number(&json, "probability", list[i].probability);
        basin_json_integer(&json, "rank", list[i].rank);
        basin_json_boolean(&json, "anomalous", list[i].probability > threshold);
        basin_json_end(&json);
    }
    basin_json_end(&json);
    basin_json_end(&json);
}

static basin_status put(const options *o, const place *list, int64_t count,
                        const basin_network *network, double threshold, basin_error *error) {
    basin_writer writer;
    if (o->output) {
        basin_status status = basin_writer_create(&writer, o->output, error);
        if (status) return status;
    }
    FILE *file = o->output ? writer.file : stdout;
    if (o->json)
        put_json(file, list, count, network, threshold);
    else
        put_csv(file, list, count, network, threshold);
    return o->output ? basin_writer_commit(&writer, error) : BASIN_OK;
}

/* What is scored: the graph, and where --base says so what was there before. */
typedef struct graphs {
    basin_network *base, *network;
    int64_t first; /* node to print */
} graphs;

static basin_status open_graphs(graphs *g, const basin_anomaly_model *model, const options *o,
                                char **operand, int operands, basin_error *error) {
    static const basin_network_flags plain = BASIN_NETWORK_UNITED;
    basin_network_flags flags = o->data;
    basin_status status = BASIN_OK;
    if (o->base) {
        char *path = (char *)(uintptr_t)o->base;
        status = basin_open_as_trained(&g->base, model, operand[0], &plain, o->memory, 1, &path,
                                       true, error);
    }
    flags.base = g->base;
    if (!status)
        status = basin_open_as_trained(&g->network, model, operand[0], &flags, o->memory,
                                       operands - 1, operand + 1, o->quiet, error);
    if (!status && o->only_new) g->first = g->base->nodes;
    if (!status && g->first == g->network->nodes)
        status =
            basin_fail(error, BASIN_BAD_VALUE, "%s: no node that %s lacks", operand[1], o->base);
    return status;
}

static basin_status score(const options *o, char **operand, int operands, basin_cli_watch *watch,
                          basin_error *error) {
    basin_anomaly_work work = {.size = sizeof work,
                               .watch = &watch->watch,
                               .memory = (size_t)(o->memory * (double)(1 << 30))};
    basin_backend *backend = NULL;
    basin_anomaly_model *model = NULL;
    graphs g = {0};
    double *probability = NULL;
    place *list = NULL;
    basin_status status =
        basin_option_backend(&backend, o->backend, o->threads, o->products, o->dtype, error);
    if (!status) status = basin_anomaly_open(&model, operand[0], backend, error);
    if (!status) status = open_graphs(&g, model, o, operand, operands, error);
    if (!status) {
        probability = calloc((size_t)g.network->nodes, sizeof *probability);
        list = calloc((size_t)g.network->nodes, sizeof *list);
        if (!probability || !list)
            status = basin_fail(error, BASIN_NO_MEMORY, "no memory for scores");
    }
    if (!status) basin_note_gamma(operand[0], o->quiet);
    if (!status) status = basin_anomaly_score(probability, model, g.network, &work, error);
    basin_cli_watch_end(watch);
    double threshold = status ? 0 : basin_anomaly_threshold(model);
    if (!status && o->threshold_for)
        status = basin_anomaly_threshold_for(&threshold, model, o->threshold_for, probability,
                                             g.network->nodes, error);
    if (!status) {
        int64_t count = rank(list, probability, g.first, g.network->nodes, o);
        status = put(o, list, count, g.network, threshold, error);
    }
    basin_anomaly_close(model);
    basin_network_free(g.network);
    basin_network_free(g.base);
    basin_backend_close(backend);
    free(probability);
    free(list);
    return status;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_cli_watch watch;
    basin_error error;
    if (o->only_new && !o->base)
        return basin_report_usage(&basin_command_anomaly_score, "--new wants --base FILE");
    basin_cli_watch_begin(&watch, o->quiet);
    return score(o, operand, operands, &watch, &error) ? basin_report(&error) : BASIN_EXIT_OK;
}

const basin_command basin_command_anomaly_score = {
    .name = "anomaly score",
    .summary = "Score every node of a graph with a trained detector",
    .operands = "MODEL FILE...",
    .operands_least = 2,
    .operands_most = 17,
    .text = "Writes node, probability, rank (1: the most anomalous) and whether the probability is "
            "above the threshold that validation chose, or one for the goal of --threshold-for. "
            "The graph may be another than the one "
            "trained on: tables are read as those of training were, columns matched by name "
            "(docs/tables.md). Every node is scored with all its neighbours; a "
            "graph that does not fit into the memory allowed is streamed.",
    .example = "  basin anomaly score model.safetensors accounts.csv transfers.csv --top 100\n"
               "  basin anomaly score model.safetensors network.basin -o scores.csv\n"
               "  basin anomaly score model.safetensors --base network.basin --new account.csv "
               "transfers.csv\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
