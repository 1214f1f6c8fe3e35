/* basin anomaly score: the probability of every node, as CSV. */
#include <stdlib.h>
#include <string.h>

#include "cli/anomaly/drift.h"
#include "cli/anomaly/options.h"
#include "cli/csv.h"
#include "cli/reasons/reasons.h"
#include "io/file.h"
#include "io/json_writer.h"

typedef struct options {
    const char *output, *base, *threshold_for, *backend, *products, *dtype;
    basin_network_flags data;
    double memory;
    int64_t top, reasons, seed, threads, parts;
    basin_ranks *ranks;
    bool sort, only_new, explain, unsupervised, json, quiet;
} options;

static const options defaults = {
    .data = BASIN_NETWORK_UNITED, .reasons = 3, .backend = "cpu", .products = "f32"};

static const basin_option table[] = {
    BASIN_TEXT(options, output, 'o', "output", "FILE", "Write there instead of standard output.",
               .writes = true),
    BASIN_FLAG(options, sort, 0, "sort", "The most anomalous first; else in the data's order."),
    BASIN_INTEGER(options, top, "top", "N", 0, 9e15, "Only the N most anomalous; 0: all."),
    BASIN_FLAG(options, unsupervised, 0, "unsupervised",
               "Without a model and without labels: learn from the files themselves to complete "
               "hidden nodes from their neighbours, and print the energy that each keeps, how odd "
               "it is."),
    BASIN_INTEGER(options, seed, "seed", "N", 0, 9007199254740992.0,
                  "With --unsupervised: the seed of all random numbers.",
                  .needs = "unsupervised=on"),
    BASIN_FLAG(options, explain, 0, "explain",
               "With --top or --new: why each of the nodes that are printed scores as it does.",
               .needs = "unsupervised=off top!=0,new=on"),
    BASIN_INTEGER(options, reasons, "reasons", "N", 1, 100,
                  "With --explain: features to name for each node; neighbours, too, with --json.",
                  .needs = "explain=on"),
    BASIN_TEXT(options, threshold_for, 0, "threshold-for", "GOAL", BASIN_THRESHOLD_FOR_HELP,
               .needs = "unsupervised=off"),
    BASIN_TEXT(options, base, 0, "base", "FILE",
               "A graph that is there already, as one file: the tables add nodes and edges to it.",
               .needs = "unsupervised=off"),
    BASIN_OPTION_PARTS(options, "unsupervised=off"),
    BASIN_FLAG(options, only_new, 0, "new", "With --base: only the nodes that the tables add.",
               .needs = "base!="),
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
    if (!o->sort && !o->top) qsort(list, (size_t)nodes, sizeof *list, by_node);
    return count;
}

/* What is scored: the graph, and where --base says so what was there before. */
typedef struct job {
    const options *o;
    basin_backend *backend;
    basin_anomaly_model *model;
    basin_network *base, *opened;
    basin_parts *parts;           /* or NULL */
    const basin_network *network; /* what was opened, or the parts' face */
    int64_t first, nodes;         /* node to print; how many there are from there on */
    double *probability;          /* [N] */
    place *list;                  /* [nodes] */
    int64_t count;                /* of the list, to print */
    double threshold;
    basin_anomaly_drift drift;       /* without columns: not known */
    basin_anomaly_explanation **why; /* [count] or NULL */
} job;

/* ---- printing ---- */

static void put_reasons(FILE *file, const job *j, const basin_anomaly_explanation *why) {
    const basin_schema *schema = basin_anomaly_get_schema(j->model);
    char text[BASIN_REASON_TEXT];
    for (int k = 0; k < (int)j->o->reasons; k++) {
        fputc(',', file);
        basin_csv_put(file, basin_anomaly_reason_print(text, why, j->network, schema, k));
    }
}

static void put_csv(FILE *file, const job *j) {
    char id[BASIN_NODE_TEXT], number[BASIN_NUMBER_TEXT];
    fputs(j->model ? "node,probability,rank,anomalous" : "node,energy,rank", file);
    for (int64_t k = 1; k <= j->o->reasons && j->why; k++) fprintf(file, ",reason_%d", (int)k);
    fputc('\n', file);
    for (int64_t i = 0; i < j->count; i++) {
        const place *p = &j->list[i];
        basin_csv_put(file, basin_network_id(j->network, p->node, id));
        fprintf(file, ",%s,%lld", basin_number_print(number, (float)p->probability),
                (long long)p->rank);
        if (j->model) fprintf(file, ",%d", p->probability > j->threshold);
        if (j->why) put_reasons(file, j, j->why[i]);
        fputc('\n', file);
    }
}

static void put_json(FILE *file, const job *j) {
    char id[BASIN_NODE_TEXT];
    basin_json json = basin_json_begin(file);
    if (j->model) basin_json_number(&json, "threshold", j->threshold);
    if (j->drift.columns) basin_put_drift(&json, &j->drift);
    basin_json_array(&json, "nodes");
    for (int64_t i = 0; i < j->count; i++) {
        const place *p = &j->list[i];
        basin_json_object(&json, NULL);
        basin_json_text(&json, "node", basin_network_id(j->network, p->node, id));
        basin_json_number(&json, j->model ? "probability" : "energy", p->probability);
        basin_json_integer(&json, "rank", p->rank);
        if (j->model) basin_json_boolean(&json, "anomalous", p->probability > j->threshold);
        if (j->why) {
            basin_story story = {.e = j->why[i],
                                 .network = j->network,
                                 .schema = basin_anomaly_get_schema(j->model),
                                 .neighbours = j->o->reasons,
                                 .features = j->o->reasons};
            basin_story_put(&json, &story);
        }
        basin_json_end(&json);
    }
    basin_json_end(&json);
    basin_json_end(&json);
}

static basin_status put(const job *j, basin_error *error) {
    const options *o = j->o;
    basin_writer writer;
    if (o->output) {
        basin_status status = basin_writer_create(&writer, o->output, error);
        if (status) return status;
    }
    FILE *file = o->output ? writer.file : stdout;
    if (o->json)
        put_json(file, j);
    else
        put_csv(file, j);
    return o->output ? basin_writer_commit(&writer, error) : BASIN_OK;
}

/* ---- running ---- */

static basin_status open_graphs(job *j, char **operand, int operands, basin_error *error) {
    static const basin_network_flags plain = BASIN_NETWORK_UNITED;
    const options *o = j->o;
    basin_network_flags flags = o->data;
    basin_status status = BASIN_OK;
    if (o->base) {
        char *path = (char *)(uintptr_t)o->base;
        status = basin_open_as_trained(&j->base, j->model, operand[0], &plain, o->memory, 1, &path,
                                       true, error);
    }
    flags.base = j->base;
    if (!status)
        status = basin_open_as_trained(&j->opened, j->model, operand[0], &flags, o->memory,
                                       operands - 1, operand + 1, o->quiet, error);
    if (status) return status;
    j->network = j->opened;
    if (o->only_new) j->first = j->base->nodes;
    if (j->first < j->network->nodes) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "%s: no node that %s lacks", operand[1], o->base);
}

/* Parts of the graph: those of a folder, or of what was opened. */
static basin_status open_parts(job *j, const char *folder, basin_error *error) {
    char facts[32] = "";
    basin_settings_get(facts, sizeof facts, basin_anomaly_get_settings(j->model), "facts", NULL);
    basin_status status = basin_cli_parts_open(&j->parts, &j->opened, folder, &j->o->data,
                                               j->o->parts, facts, j->o->ranks, error);
    if (j->parts) j->network = basin_parts_face(j->parts);
    return status;
}

/* What the model is asked about. */
static basin_status open_trained(job *j, char **operand, int operands, basin_error *error) {
    const options *o = j->o;
    bool folder = operands == 2 && basin_cut_is(operand[1]);
    if (folder && (o->base || o->parts))
        return basin_fail(error, BASIN_BAD_VALUE, "%s: is in parts; wanted no %s", operand[1],
                          o->base ? "--base" : "--parts");
    if (o->explain && (folder || o->parts || o->ranks))
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "--explain with a graph in parts: wanted the graph whole, on one rank");
    basin_status status = basin_anomaly_open(&j->model, operand[0], j->backend, error);
    if (!status && !folder) status = open_graphs(j, operand, operands, error);
    status = basin_ranks_agree(o->ranks, status, error);
    return status ? status : open_parts(j, folder ? operand[1] : NULL, error);
}

static basin_status open_all(job *j, char **operand, int operands, basin_error *error) {
    const options *o = j->o;
    basin_status status =
        basin_option_backend(&j->backend, o->backend, o->threads, o->products, o->dtype, error);
    if (!status && o->unsupervised) {
        status = basin_network_flags_open(&j->opened, &o->data, NULL, o->memory, operands, operand,
                                          o->quiet, error);
        j->network = j->opened;
    } else if (!status) {
        status = open_trained(j, operand, operands, error);
    }
    if (status) return status;
    j->nodes = j->network->nodes - j->first;
    j->probability = calloc((size_t)j->network->nodes, sizeof *j->probability);
    j->list = calloc((size_t)j->nodes, sizeof *j->list);
    if (j->probability && j->list) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for scores");
}

/* Older models do not know of any. */
static basin_status find_drift(job *j, basin_error *error) {
    basin_status status =
        basin_anomaly_drift_measure(&j->drift, j->model, j->network, j->first, error);
    if (!status && !j->o->quiet) basin_cli_drift_say(&j->drift);
    return status == BASIN_UNSUPPORTED ? BASIN_OK : status;
}

/* Of the nodes that are printed, in one pass. */
static basin_status explain(job *j, const basin_anomaly_work *work, basin_error *error) {
    if (!j->o->explain) return BASIN_OK;
    int64_t *node = calloc((size_t)j->count + 1, sizeof *node);
    j->why = calloc((size_t)j->count + 1, sizeof *j->why);
    basin_status status =
        node && j->why ? BASIN_OK
                       : basin_fail(error, BASIN_NO_MEMORY, "out of memory for explanations");
    for (int64_t i = 0; i < j->count && !status; i++) node[i] = j->list[i].node;
    if (!status)
        status = basin_anomaly_explain_nodes(j->why, j->model, j->network, node, j->count,
                                             j->probability, true, work, error);
    free(node);
    return status;
}

static basin_status find_odd(job *j, const basin_anomaly_work *work, basin_error *error) {
    bool stopped;
    basin_status status = basin_anomaly_unsupervised(j->probability, &stopped, j->network,
                                                     (uint64_t)j->o->seed, j->backend, work, error);
    if (status || !stopped) return status;
    return basin_fail(error, BASIN_BAD_VALUE, "stopped; nothing is kept");
}

static basin_status score(job *j, char **operand, int operands, basin_cli_watch *watch,
                          basin_error *error) {
    const options *o = j->o;
    basin_anomaly_work work = {.size = sizeof work,
                               .watch = &watch->watch,
                               .memory = (size_t)(o->memory * (double)(1 << 30))};
    basin_status status = open_all(j, operand, operands, error);
    work.parts = j->parts;
    if (!status && j->model) basin_note_gamma(operand[0], o->quiet);
    if (!status)
        status = j->model ? basin_anomaly_score(j->probability, j->model, j->network, &work, error)
                          : find_odd(j, &work, error);
    if (status) return status;
    j->threshold = j->model ? basin_anomaly_threshold(j->model) : 0;
    if (o->threshold_for)
        status = basin_anomaly_threshold_for(&j->threshold, j->model, o->threshold_for,
                                             j->probability + j->first, j->nodes, error);
    if (status) return status;
    if (basin_ranks_rank(o->ranks)) return BASIN_OK; /* the first prints */
    j->count = rank(j->list, j->probability, j->first, j->network->nodes, o);
    status = explain(j, &work, error);
    basin_cli_watch_end(watch);
    if (!status && j->model && !j->parts) status = find_drift(j, error);
    return status ? status : put(j, error);
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    job j = {.o = o};
    basin_cli_watch watch;
    basin_error error;
    if (o->unsupervised && o->ranks)
        return basin_report_usage(&basin_command_anomaly_score,
                                  "--unsupervised runs alone; wanted without mpirun or srun");
    if (!o->unsupervised && operands < 2)
        return basin_report_usage(&basin_command_anomaly_score, "wants MODEL FILE...");
    basin_cli_watch_begin(&watch, o->quiet);
    basin_status status = basin_goal_check(o->threshold_for, &error);
    if (!status) status = score(&j, operand, operands, &watch, &error);
    basin_cli_watch_end(&watch);
    for (int64_t i = 0; i < j.count && j.why; i++) basin_anomaly_explanation_free(j.why[i]);
    free(j.why);
    basin_anomaly_drift_free(&j.drift);
    basin_anomaly_close(j.model);
    basin_parts_close(j.parts);
    basin_network_free(j.opened);
    basin_network_free(j.base);
    basin_backend_close(j.backend);
    free(j.probability);
    free(j.list);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

const basin_command basin_command_anomaly_score = {
    .name = "anomaly score",
    .summary = "Score every node of a graph with a trained detector",
    .operands = "MODEL FILE...",
    .operands_least = 1, /* with --unsupervised there is no model */
    .operands_most = 17,
    .text = "Writes node, probability, rank (1: the most anomalous) and whether the probability is "
            "above the threshold that validation chose, or one for the goal of --threshold-for. "
            "The graph may be another than the one "
            "trained on: tables are read as those of training were, columns matched by name "
            "(docs/tables.md). Every node is scored with all its neighbours; a "
            "graph that does not fit into the memory allowed is streamed. A line on standard error "
            "says how far the columns have moved since training (population stability index); "
            "--json has all of them.",
    .example = "  basin anomaly score model.safetensors accounts.csv transfers.csv --top 100\n"
               "  basin anomaly score model.safetensors network.basin -o scores.csv\n"
               "  basin anomaly score model.safetensors network.basin --top 100 --explain\n"
               "  basin anomaly score --unsupervised accounts.csv transfers.csv --top 100\n"
               "  basin anomaly score model.safetensors --base network.basin --new account.csv "
               "transfers.csv\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .ranks_at = offsetof(options, ranks),
    .run_old = run,
};
