/* basin graph train: a model from a set of graphs. */
#include <stdio.h>

#include "cli/graph/options.h"
#include "cli/training.h"

typedef struct options {
    basin_settings *settings;
    basin_start start;
    basin_training_flags training;
    const char *cache, *backend, *products, *dtype;
    double validation;
    int64_t limit, threads;
    bool quiet, json;
} options;

static const options defaults = {.start = {.preset = "default"},
                                 .training = BASIN_TRAINING_DEFAULT,
                                 .backend = "cpu",
                                 .products = "f32",
                                 .validation = 0.1};

static const basin_option table[] = {
    BASIN_TRAINING_OPTIONS(options),
    BASIN_REAL(options, validation, "validation", "X", 0, 0.5,
               "A set without splits: this part of it, stratified, chooses the epoch; 0: the last "
               "epoch is kept."),
    BASIN_INTEGER(options, limit, "limit", "N", 0, 1e15,
                  "Train on at most so many graphs, drawn by the seed; 0: all. Graphs for "
                  "validation and test stay as they are."),
    BASIN_OPTIONS_START(options),
    BASIN_GRAPH_OPTION_CACHE(options),
    BASIN_OPTIONS_COMPUTE(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

static basin_graphs_measures validation_of(const basin_outcome *r) {
    const basin_score *s = &r->best;
    return (basin_graphs_measures){.accuracy = basin_score_get(s, "validation_accuracy"),
                                   .balanced = basin_score_get(s, "validation_balanced"),
                                   .loss = basin_score_get(s, "validation_loss"),
                                   .deviation = basin_score_get(s, "validation_deviation")};
}

static void print_json(const options *o, const char *data, const basin_outcome *r,
                       const basin_graphs_model *model) {
    basin_graphs_target target = basin_graphs_get_target(model);
    basin_json json = basin_json_begin(stdout);
    basin_training_fields(&json, r, &o->training, r->items, "graphs");
    basin_json_text(&json, "data", data);
    basin_json_text(&json, "task", basin_graphs_target_name(target));
    if (r->best.measures) {
        basin_graphs_measures measures = validation_of(r);
        basin_json_object(&json, "validation");
        basin_graph_measures_json(&json, &measures, target);
        basin_json_end(&json);
    }
    basin_json_end(&json);
}

static void print_text(const options *o, const basin_outcome *r, const basin_graphs_model *model) {
    char text[200];
    basin_training_line(r, &o->training, "", r->items, "graphs", "graphs");
    printf("\n");
    if (!r->best.measures) return;
    basin_graphs_measures measures = validation_of(r);
    basin_graph_measures_text(text, sizeof text, &measures, model);
    printf("validation, which chose epoch %lld: %s\n", (long long)r->best_epoch, text);
}

/* Trains, or with --print-config tries what training would take. */
static basin_status train(basin_graphs_model **model, basin_outcome *outcome, const options *o,
                          const basin_training *training, const char *path, basin_error *error) {
    char text[4096];
    basin_graphs_data data = {.size = sizeof data,
                              .path = path,
                              .hold_out = o->validation,
                              .limit = o->limit,
                              .cache = basin_graph_cache(o->cache, text, sizeof text)};
    return basin_graphs_train(model, outcome, o->settings, &data, training, error);
}

static int print(const options *o, const char *data, const basin_outcome *outcome,
                 const basin_graphs_model *model) {
    if (o->start.print_config) return basin_print_config(o->settings, outcome);
    bool told = basin_training_is_told(outcome, o->json);
    if (told && o->json) print_json(o, data, outcome, model);
    if (told && !o->json) print_text(o, outcome, model);
    basin_note_gamma(o->training.output, o->quiet);
    return basin_training_end(outcome, &o->training);
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_error error;
    basin_training_work work;
    basin_graphs_model *model = NULL;
    basin_outcome outcome;
    if (!operands && o->start.print_config) return basin_print_config(o->settings, NULL);
    if (!operands) return basin_report_usage(&basin_command_graph_train, "wants DATA");
    if (basin_training_open(&work, &o->training, o->backend, o->threads, o->products, o->dtype,
                            o->quiet, o->start.print_config, &error))
        return basin_report(&error);
    basin_status status = train(&model, &outcome, o, &work.training, operand[0], &error);
    basin_cli_watch_end(&work.watch);
    int code = status ? basin_report(&error) : print(o, operand[0], &outcome, model);
    basin_graphs_close(model);
    basin_training_close(&work);
    return code;
}

const basin_command basin_command_graph_train = {
    .name = "graph train",
    .summary = "Train a model of graphs: classes of graphs or nodes, or values",
    .operands = "DATA",
    .operands_least = 0,
    .operands_most = 1,
    .text =
        "DATA is a TUDataset (folder or zip), a packed set (basin graph make), or ZINC as npz. A "
        "set with splits is trained on its training part, and its validation part chooses the "
        "epoch; otherwise --validation sets a part aside. A checkpoint stands beside the model "
        "while it is trained. --print-config with DATA trains for a moment and tells parameters, "
        "memory and time.",
    .example = "  basin graph train PROTEINS.zip -o proteins.safetensors\n"
               "  basin graph train zinc12k.npz --preset molecules -o zinc.safetensors\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .task = "graphs",
    .settings_at = offsetof(options, settings),
    .start_at = offsetof(options, start),
    .ranks_at = offsetof(options, training.ranks),
    .run = run,
};
