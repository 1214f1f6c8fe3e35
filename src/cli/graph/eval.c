/* basin graph eval: how well a model does on a set of graphs. */
#include <stdio.h>
#include <string.h>

#include "cli/graph/options.h"

typedef struct options {
    const char *part, *cache, *backend, *products, *dtype;
    int64_t threads;
    bool quiet, json;
} options;

static const options defaults = {.part = "auto", .backend = "cpu", .products = "f32"};

static const basin_option table[] = {
    BASIN_GRAPH_OPTIONS(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

static void print(const options *o, const char *model, const basin_graph_use *u,
                  const basin_graphs_measures *measures) {
    const char *part = strcmp(o->part, "auto") ? o->part : u->set.split[2] ? "test" : "all";
    basin_graphs_target target = basin_graphs_get_target(u->model);
    char text[200];
    if (o->json) {
        basin_json json = basin_json_begin(stdout);
        basin_json_text(&json, "model", model);
        basin_json_text(&json, "data", u->set.name);
        basin_json_text(&json, "task", basin_graphs_target_name(target));
        basin_json_text(&json, "part", part);
        basin_graph_items_json(&json, measures, target);
        basin_json_end(&json);
        return;
    }
    basin_graph_measures_text(text, sizeof text, measures, target);
    printf("%s, %s, %lld %s: %s\n", u->set.name, part, (long long)measures->items,
           target == BASIN_NODE_CLASSES ? "nodes" : "graphs", text);
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_graph_use u = {0};
    basin_graphs_measures measures;
    basin_error error;
    (void)operands;
    basin_status status =
        basin_option_backend(&u.backend, o->backend, o->threads, o->products, o->dtype, &error);
    if (!status)
        status = basin_graph_use_open(&u, operand[0], operand[1], o->part, o->cache, &error);
    if (!status) status = basin_graphs_score(&measures, u.model, &u.data, &error);
    if (!status) print(o, operand[0], &u, &measures);
    basin_graph_use_close(&u);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

const basin_command basin_command_graph_eval = {
    .name = "graph eval",
    .summary = "Score a graph model on labelled graphs",
    .operands = "MODEL DATA",
    .operands_least = 2,
    .operands_most = 2,
    .text =
        "Accuracy and class-averaged accuracy of classes, mean absolute error of values. Graphs "
        "whose class the model does not know are left out. What else is in a batch does not "
        "change a score.",
    .example = "  basin graph eval zinc.safetensors zinc12k.npz --json\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
