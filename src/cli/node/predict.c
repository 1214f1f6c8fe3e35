/* basin node predict: the class of every node and its probabilities, as CSV. */
#include <stdlib.h>

#include "basin/tasks/node.h"
#include "cli/command.h"
#include "cli/csv.h"
#include "cli/network.h"
#include "cli/watch.h"
#include "io/file.h"
#include "io/json_writer.h"

typedef struct options {
    const char *output, *backend, *products, *dtype;
    basin_network_flags data;
    double memory;
    int64_t threads, parts;
    basin_ranks *ranks;
    bool unlabelled, json, quiet;
} options;

static const options defaults = {
    .data = BASIN_NETWORK_CLASSES, .backend = "cpu", .products = "f32"};

static const basin_option table[] = {
    BASIN_TEXT(options, output, 'o', "output", "FILE", "Write there instead of standard output.",
               .writes = true),
    BASIN_FLAG(options, unlabelled, 0, "unlabelled", "Only the nodes without a label."),
    BASIN_OPTION_PARTS(options, NULL),
    BASIN_OPTIONS_NETWORK(options, data),
    BASIN_OPTION_JSON(options),
    BASIN_WORK_OPTIONS(options),
    BASIN_OPTIONS_END,
};

typedef struct job {
    const options *o;
    basin_backend *backend;
    basin_node_model *model;
    basin_network *opened;
    basin_parts *parts;           /* or NULL */
    const basin_network *network; /* what was opened, or the parts' face */
    double *probability;          /* [N, C] */
    int64_t classes;
} job;

static int64_t best(const job *j, int64_t node) {
    const double *p = j->probability + node * j->classes;
    int64_t most = 0;
    for (int64_t c = 1; c < j->classes; c++)
        if (p[c] > p[most]) most = c;
    return most;
}

static bool is_asked(const job *j, int64_t node) {
    return !j->o->unlabelled || !j->network->label || j->network->label[node] < 0;
}

static void put_csv(FILE *file, const job *j) {
    char id[BASIN_NODE_TEXT], number[BASIN_NUMBER_TEXT], name[300];
    fputs("node,class", file);
    for (int64_t c = 0; c < j->classes; c++) {
        snprintf(name, sizeof name, "p_%.290s", basin_node_class(j->model, c));
        fputc(',', file);
        basin_csv_put(file, name);
    }
    fputc('\n', file);
    for (int64_t i = 0; i < j->network->nodes; i++) {
        if (!is_asked(j, i)) continue;
        basin_csv_put(file, basin_network_id(j->network, i, id));
        fputc(',', file);
        basin_csv_put(file, basin_node_class(j->model, best(j, i)));
        for (int64_t c = 0; c < j->classes; c++)
            fprintf(file, ",%s",
                    basin_number_print(number, (float)j->probability[i * j->classes + c]));
        fputc('\n', file);
    }
}

static void put_json(FILE *file, const job *j) {
    char id[BASIN_NODE_TEXT];
    basin_json json = basin_json_begin(file);
    basin_json_array(&json, "nodes");
    for (int64_t i = 0; i < j->network->nodes; i++) {
        if (!is_asked(j, i)) continue;
        basin_json_object(&json, NULL);
        basin_json_text(&json, "node", basin_network_id(j->network, i, id));
        basin_json_text(&json, "class", basin_node_class(j->model, best(j, i)));
        basin_json_object(&json, "probability");
        for (int64_t c = 0; c < j->classes; c++)
            basin_json_number(&json, basin_node_class(j->model, c),
                              j->probability[i * j->classes + c]);
        basin_json_end(&json);
        basin_json_end(&json);
    }
    basin_json_end(&json);
    basin_json_end(&json);
}

static basin_status put(const job *j, basin_error *error) {
    basin_writer writer = {0};
    const char *output = j->o->output;
    basin_status status = output ? basin_writer_create(&writer, output, error) : BASIN_OK;
    if (status) return status;
    if (j->o->json)
        put_json(output ? writer.file : stdout, j);
    else
        put_csv(output ? writer.file : stdout, j);
    return output ? basin_writer_commit(&writer, error) : BASIN_OK;
}

/* The graph, whole or in parts: those of a folder, or of what was opened. */
static basin_status open_graph(job *j, char **operand, int operands, basin_error *error) {
    const options *o = j->o;
    char facts[32] = "";
    const char *folder = operands == 2 && basin_cut_is(operand[1]) ? operand[1] : NULL;
    basin_status status = BASIN_OK;
    if (folder && o->parts)
        status = basin_fail(error, BASIN_BAD_VALUE, "%s: is in parts; wanted no --parts", folder);
    if (!status) status = basin_node_open(&j->model, operand[0], j->backend, error);
    if (!status && !folder)
        status = basin_network_flags_open(&j->opened, &o->data, basin_node_get_schema(j->model),
                                          o->memory, operands - 1, operand + 1, o->quiet, error);
    status = basin_ranks_agree(o->ranks, status, error);
    if (status) return status;
    basin_settings_get(facts, sizeof facts, basin_node_get_settings(j->model), "facts", NULL);
    status = basin_cli_parts_open(&j->parts, &j->opened, folder, &o->data, o->parts, facts,
                                  o->ranks, error);
    j->network = j->parts ? basin_parts_face(j->parts) : j->opened;
    return status;
}

static basin_status predict(job *j, char **operand, int operands, basin_cli_watch *watch,
                            basin_error *error) {
    const options *o = j->o;
    basin_node_work work = {.size = sizeof work,
                            .watch = &watch->watch,
                            .memory = (size_t)(o->memory * (double)(1 << 30))};
    basin_status status =
        basin_option_backend(&j->backend, o->backend, o->threads, o->products, o->dtype, error);
    if (!status) status = open_graph(j, operand, operands, error);
    if (status) return status;
    work.parts = j->parts;
    j->classes = basin_node_classes(j->model);
    j->probability = calloc((size_t)j->network->nodes, (size_t)j->classes * sizeof *j->probability);
    if (!j->probability)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for probabilities");
    basin_note_gamma(operand[0], o->quiet);
    status = basin_node_predict(j->probability, j->model, j->network, &work, error);
    basin_cli_watch_end(watch);
    if (status || basin_ranks_rank(o->ranks)) return status; /* the first prints */
    return put(j, error);
}

static int run(const void *values, int operands, char **operand) {
    job j = {.o = values};
    basin_cli_watch watch;
    basin_error error;
    basin_cli_watch_begin(&watch, j.o->quiet);
    basin_status status = predict(&j, operand, operands, &watch, &error);
    basin_cli_watch_end(&watch);
    basin_node_close(j.model);
    basin_parts_close(j.parts);
    basin_network_free(j.opened);
    basin_backend_close(j.backend);
    free(j.probability);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

const basin_command basin_command_node_predict = {
    .name = "node predict",
    .summary = "Tell the class of every node of a graph with a trained model",
    .operands = "MODEL FILE...",
    .operands_least = 2,
    .operands_most = 17,
    .text = "Writes node, class and the probability of each class, p_NAME. The graph may be "
            "another than the one trained on: tables are read as those of training were, columns "
            "matched by name (docs/tables.md). Every node is seen with all its neighbours; a graph "
            "that does not fit into the memory allowed is streamed.",
    .example = "  basin node predict model.safetensors papers.csv citations.csv --unlabelled\n"
               "  basin node predict cora.safetensors cora.npz -o classes.csv\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .ranks_at = offsetof(options, ranks),
    .run_old = run,
};
