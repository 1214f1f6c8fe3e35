/* basin graph eval: how well a model does on a set of graphs, and how much the noise of its descent
 * would change that. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "basin/metrics.h"
#include "cli/graph/options.h"

typedef struct options {
    const char *part, *cache, *backend, *products, *dtype;
    int64_t noisy, threads;
    bool quiet, json;
} options;

static const options defaults = {.part = "auto", .backend = "cpu", .products = "f32"};

static const basin_option table[] = {
    BASIN_INTEGER(options, noisy, "noisy", "N", 0, 100000,
                  "Also evaluate N times with the noise of training left on, as the paper does: "
                  "how much noise changes the score of one model."),
    BASIN_GRAPH_OPTIONS(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

/* What noisy evaluations of one model came to. */
typedef struct spread {
    int64_t count;
    double mean, deviation, lowest, highest;
} spread;

static basin_status measure_spread(spread *s, basin_graph_use *u, int64_t count,
                                   basin_error *error) {
    basin_graphs_target target = basin_graphs_get_target(u->model);
    basin_graphs_measures *measures = calloc((size_t)count + 1, sizeof *measures);
    double *value = calloc((size_t)count + 1, sizeof *value);
    basin_status status = measures && value
                              ? BASIN_OK
                              : basin_fail(error, BASIN_NO_MEMORY, "no memory for evaluations");
    if (!status) status = basin_graphs_score_noisy(measures, count, u->model, &u->data, error);
    for (int64_t i = 0; i < count && !status; i++) {
        value[i] = fabs(basin_graphs_merit(&measures[i], target));
        if (!i || value[i] < s->lowest) s->lowest = value[i];
        if (!i || value[i] > s->highest) s->highest = value[i];
    }
    if (!status) basin_mean_deviation(&s->mean, &s->deviation, value, count);
    s->count = count;
    free(measures);
    free(value);
    return status;
}

static void print_spread_json(basin_json *json, const spread *s, basin_graphs_target target) {
    basin_json_object(json, "noisy");
    basin_json_text(json, "of", "the noise of the descent in one model");
    basin_json_text(json, "score", basin_graph_score_name(target));
    basin_json_integer(json, "evaluations", s->count);
    basin_json_number(json, "mean", s->mean);
    basin_json_number(json, "deviation", s->deviation);
    basin_json_number(json, "lowest", s->lowest);
    basin_json_number(json, "highest", s->highest);
    basin_json_end(json);
}

static void print(const options *o, const char *model, const basin_graph_use *u,
                  const basin_graphs_measures *measures, const spread *s) {
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
        if (s->count) print_spread_json(&json, s, target);
        basin_json_end(&json);
        return;
    }
    basin_graph_measures_text(text, sizeof text, measures, target);
    printf("%s, %s, %lld %s: %s\n", u->set.name, part, (long long)measures->items,
           target == BASIN_NODE_CLASSES ? "nodes" : "graphs", text);
    if (s->count)
        printf("with noise, %lld evaluations of this one model: %s %.5g +- %.2g (%.5g to %.5g)\n"
               "the spread of noise in one model; it says nothing of other trainings, seeds or "
               "splits\n",
               (long long)s->count, basin_graph_score_name(target), s->mean, s->deviation,
               s->lowest, s->highest);
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_graph_use u = {0};
    basin_graphs_measures measures;
    spread s = {0};
    basin_error error;
    (void)operands;
    basin_status status =
        basin_option_backend(&u.backend, o->backend, o->threads, o->products, o->dtype, &error);
    if (!status)
        status = basin_graph_use_open(&u, operand[0], operand[1], o->part, o->cache, &error);
    if (!status) basin_note_gamma(operand[0], o->quiet);
    if (!status) status = basin_graphs_score(&measures, u.model, &u.data, &error);
    if (!status && o->noisy) status = measure_spread(&s, &u, o->noisy, &error);
    if (!status) print(o, operand[0], &u, &measures, &s);
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
        "change a score. Scores are without noise; --noisy adds how they spread with it.",
    .example = "  basin graph eval zinc.safetensors zinc12k.npz --json\n"
               "  basin graph eval zinc.safetensors zinc12k.npz --noisy 100\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
