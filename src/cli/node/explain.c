/* basin node explain: why a node is told to be of a class, as text and JSON. */
#include <stdlib.h>
#include <string.h>

#include "basin/tasks/node.h"
#include "cli/command.h"
#include "cli/network.h"
#include "cli/reasons/reasons.h"
#include "cli/watch.h"
#include "io/json_writer.h"

typedef struct options {
    const char *of, *backend, *products, *dtype;
    basin_network_flags data;
    double memory;
    int64_t neighbours, features, threads;
    bool json, quiet;
} options;

static const options defaults = {.data = BASIN_NETWORK_CLASSES,
                                 .neighbours = 10,
                                 .features = 10,
                                 .backend = "cpu",
                                 .products = "f32"};

static const basin_option table[] = {
    BASIN_TEXT(options, of, 0, "class", "NAME",
               "The class in question; without it the one that is told."),
    BASIN_INTEGER(options, neighbours, "neighbours", "N", 0, 1000000, "Neighbours to name."),
    BASIN_INTEGER(options, features, "features", "N", 0, 1000000, "Features to name."),
    BASIN_OPTIONS_NETWORK(options, data),
    BASIN_OPTION_JSON(options),
    BASIN_WORK_OPTIONS(options),
    BASIN_OPTIONS_END,
};

typedef struct job {
    const options *o;
    basin_backend *backend;
    basin_node_model *model;
    basin_network *network;
    basin_node_explanation *e;
    int64_t number; /* of the class */
} job;

static bool print_text(const job *j, const basin_story *s) {
    char id[BASIN_NODE_TEXT], label[BASIN_NODE_TEXT];
    printf("node %s: class %s with probability %.4f, label %s\n",
           basin_network_id(j->network, j->e->node, id), basin_node_class(j->model, j->number),
           j->e->probability, basin_story_label(s, j->e->node, label));
    if (j->e->nearby)
        printf("(the graph does not fit into the memory allowed as one plan: attention is not "
               "known)\n");
    return basin_story_print(s);
}

static void print_json(const job *j, const basin_story *s) {
    char id[BASIN_NODE_TEXT];
    basin_json json = basin_json_begin(stdout);
    basin_json_text(&json, "node", basin_network_id(j->network, j->e->node, id));
    basin_json_text(&json, "class", basin_node_class(j->model, j->number));
    basin_json_number(&json, "probability", j->e->probability);
    basin_json_boolean(&json, "without_attention", j->e->nearby);
    basin_story_put(&json, s);
    basin_json_end(&json);
}

static bool tell(const job *j) {
    basin_story s = {.e = j->e,
                     .network = j->network,
                     .schema = basin_node_get_schema(j->model),
                     .neighbours = j->o->neighbours,
                     .features = j->o->features,
                     .classes = true};
    if (!j->o->json) return print_text(j, &s);
    print_json(j, &s);
    return true;
}

/* ---- running ---- */

/* The number of the class of that name. */
static basin_status find_class(job *j, basin_error *error) {
    int64_t C = basin_node_classes(j->model);
    for (j->number = 0; j->number < C; j->number++)
        if (!strcmp(basin_node_class(j->model, j->number), j->o->of)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "--class '%.60s'; wanted one of the model's %lld, the first of which is '%s'",
                      j->o->of, (long long)C, basin_node_class(j->model, 0));
}

/* The class of the highest probability. */
static basin_status told_class(job *j, int64_t node, const basin_node_work *work,
                               basin_error *error) {
    int64_t C = basin_node_classes(j->model);
    double *p = calloc((size_t)j->network->nodes, (size_t)C * sizeof *p);
    if (!p) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for probabilities");
    basin_status status = basin_node_predict(p, j->model, j->network, work, error);
    j->number = 0;
    for (int64_t c = 1; c < C && !status; c++)
        if (p[node * C + c] > p[node * C + j->number]) j->number = c;
    free(p);
    return status;
}

static basin_status explain(job *j, const char *id, const basin_node_work *work,
                            basin_error *error) {
    int64_t node;
    basin_status status = basin_find_node(&node, j->network, id, error);
    if (!status) status = j->o->of ? find_class(j, error) : told_class(j, node, work, error);
    if (status) return status;
    return basin_node_explain(&j->e, j->model, j->network, node, j->number, work, error);
}

static int run(const void *values, int operands, char **operand) {
    job j = {.o = values};
    const options *o = j.o;
    basin_cli_watch watch;
    basin_error error;
    bool printed = true;
    basin_cli_watch_begin(&watch, o->quiet);
    basin_node_work work = {.size = sizeof work,
                            .watch = &watch.watch,
                            .memory = (size_t)(o->memory * (double)(1 << 30))};
    basin_status status =
        basin_option_backend(&j.backend, o->backend, o->threads, o->products, o->dtype, &error);
    if (!status) status = basin_node_open(&j.model, operand[0], j.backend, &error);
    if (!status)
        status = basin_network_flags_open(&j.network, &o->data, basin_node_get_schema(j.model),
                                          o->memory, operands - 2, operand + 2, o->quiet, &error);
    if (!status) status = explain(&j, operand[1], &work, &error);
    basin_cli_watch_end(&watch);
    if (!status) printed = tell(&j);
    basin_node_explanation_free(j.e);
    basin_node_close(j.model);
    basin_network_free(j.network);
    basin_backend_close(j.backend);
    if (status) return basin_report(&error);
    return printed ? BASIN_EXIT_OK : BASIN_EXIT_FAILURE;
}

const basin_command basin_command_node_explain = {
    .name = "node explain",
    .summary = "Say why a node is told to be of a class",
    .operands = "MODEL NODE FILE...",
    .operands_least = 3,
    .operands_most = 18,
    .text = "What 'basin anomaly explain' says of a detector, for one class against all others: "
            "the features that move the log-odds of the class away from those of a typical node in "
            "its place, and the neighbours that this comes through.",
    .example = "  basin node explain model.safetensors P1042 papers.csv citations.csv\n"
               "  basin node explain cora.safetensors 17 cora.npz --class 3 --json\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run_old = run,
};
