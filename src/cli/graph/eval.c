/* basin graph eval: how well a model does on a set of graphs. */
#include <stdlib.h>
#include <string.h>

#include "cli/graph/options.h"

typedef struct options {
    const char *part, *cache, *backend, *products;
    int64_t threads;
    bool quiet, json;
} options;

static const options defaults = {.part = "auto", .backend = "cpu", .products = "f32"};

static const basin_option table[] = {
    BASIN_CHOICE(options, part, "part", "auto|train|validation|test|all",
                 "Which graphs; auto: the test part of a set that has one, else all."),
    BASIN_GRAPH_OPTION_CACHE(options),
    BASIN_OPTION_BACKEND(options),
    BASIN_OPTION_PRODUCTS(options),
    BASIN_OPTION_THREADS(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

static void print(const options *o, const char *model, const basin_graphs_use *u,
                  const basin_graphs_score *score) {
    const char *part = strcmp(o->part, "auto") ? o->part : u->set.split[2] ? "test" : "all";
    char text[200];
    if (o->json) {
        basin_json json = basin_json_begin(stdout);
        basin_json_text(&json, "model", model);
        basin_json_text(&json, "data", u->set.name);
        basin_json_text(&json, "task", basin_graphs_target_name(u->set.task));
        basin_json_text(&json, "part", part);
        basin_graphs_score_json(&json, score, u->set.task);
        basin_json_end(&json);
        return;
    }
    basin_graphs_score_text(text, sizeof text, score, u->set.task);
    printf("%s, %s, %lld %s: %s\n", u->set.name, part, (long long)score->items,
           u->set.task == BASIN_NODE_CLASSES ? "nodes" : "graphs", text);
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_graphs_use u;
    basin_graphs_score score;
    basin_error error;
    (void)operands;
    basin_status status = basin_graphs_use_open(&u, operand[0], operand[1], o->part, o->cache,
                                                o->backend, o->products, o->threads, true, &error);
    if (!status) {
        basin_graphs_measure(&score, u.output, &u.set, u.list, u.count, u.session.outputs);
        print(o, operand[0], &u, &score);
    }
    basin_graphs_use_free(&u);
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
