/* basin node train: a model of the classes of nodes, into one file. */
#include "basin/tasks/node.h"
#include "cli/network.h"
#include "cli/training.h"

typedef struct options {
    basin_training_flags training;
    basin_settings *settings;
    basin_start start;
    basin_network_flags data;
    double ratio, validation;
    int64_t split, threads;
    const char *backend, *products, *dtype;
    bool json, quiet;
} options;

static const options defaults = {.training = BASIN_TRAINING_DEFAULT,
                                 .start = {.preset = "default"},
                                 .data = BASIN_NETWORK_CLASSES,
                                 .validation = -1,
                                 .split = -1,
                                 .backend = "cpu",
                                 .products = "f32"};

static const basin_option table[] = {
    BASIN_OPTIONS_START(options),
    BASIN_REAL(options, validation, "validation", "X", 0, 0.3,
               "The part of the labelled nodes that chooses the epoch; all others are trained on. "
               "Without it: the split that the file brings, else 0.2."),
    BASIN_REAL(options, ratio, "ratio", "X", 0, 0.95,
               "Instead: this part for training, the rest one to two for validation and test; "
               "prints the figures on test. 0: as --validation says."),
    BASIN_INTEGER(options, split, "split", "N", 0, 1e9, "Instead, split N of the file's masks."),
    BASIN_TRAINING_OPTIONS(options),
    BASIN_OPTIONS_NETWORK(options, data),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_COMPUTE(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

typedef struct result {
    const options *o;
    basin_node_model *model;
    basin_outcome outcome;
} result;

static void print_reached(const result *r, const char *name, int part) {
    const basin_score *reached = basin_node_reached(r->model, part);
    if (!reached) return;
    printf("  %-10s  accuracy %.2f  macro-F1 %.2f  AUROC %.2f", name,
           100 * basin_score_get(reached, "accuracy"), 100 * basin_score_get(reached, "macro_f1"),
           100 * basin_score_get(reached, "auroc"));
    if (part == BASIN_PART_VAL) printf("  (epoch %lld)", (long long)r->outcome.best_epoch);
    printf("\n");
}

static void print_text(const result *r) {
    int64_t members = basin_node_members(r->model);
    char more[80];
    snprintf(more, sizeof more, "%lld member%s, %lld classes, ", (long long)members,
             members == 1 ? "" : "s", (long long)basin_node_classes(r->model));
    basin_training_line(&r->outcome, &r->o->training, more, basin_node_nodes(r->model), "nodes",
                        "nodes");
    printf("\n");
    print_reached(r, "validation", BASIN_PART_VAL);
    print_reached(r, "test", BASIN_PART_TEST);
}

static void print_json(const result *r) {
    basin_json json = basin_json_begin(stdout);
    basin_training_fields(&json, &r->outcome, &r->o->training, basin_node_nodes(r->model), "nodes");
    basin_json_integer(&json, "members", basin_node_members(r->model));
    basin_json_array(&json, "classes");
    for (int64_t c = 0; c < basin_node_classes(r->model); c++)
        basin_json_text(&json, NULL, basin_node_class(r->model, c));
    basin_json_end(&json);
    basin_json_text(&json, "trained_on", basin_node_trained_on(r->model));
    basin_put_percent(&json, "validation", basin_node_reached(r->model, BASIN_PART_VAL));
    basin_put_percent(&json, "test", basin_node_reached(r->model, BASIN_PART_TEST));
    basin_json_end(&json);
}

static basin_status train(result *r, const basin_training *training, char **file, int files,
                          basin_error *error) {
    const options *o = r->o;
    basin_network_options how = basin_network_flags_options(&o->data, o->training.memory);
    basin_node_data data = {.size = sizeof data,
                            .path = (const char *const *)file,
                            .paths = files,
                            .options = &how,
                            .masks = o->split >= 0,
                            .split = o->split,
                            .ratio = o->ratio,
                            .validation = basin_validation_of(o->validation)};
    return basin_node_train(&r->model, &r->outcome, o->settings, &data, training, error);
}

static int print_result(const result *r) {
    if (r->o->start.print_config) return basin_print_config(r->o->settings, &r->outcome);
    if (r->model && basin_training_is_told(&r->outcome, r->o->json))
        (r->o->json ? print_json : print_text)(r);
    basin_note_gamma(r->o->training.output, r->o->quiet);
    return basin_training_end(&r->outcome, &r->o->training);
}

static int run(const void *values, int operands, char **operand) {
    result r = {.o = values};
    basin_training_work work;
    basin_error error;
    const options *o = r.o;
    if (o->start.print_config && !operands) return basin_print_config(o->settings, NULL);
    if (!operands) return basin_report_usage(&basin_command_node_train, "wants FILE...");
    const char *clash = basin_split_clash(o->ratio, o->validation, o->split, NULL);
    if (clash)
        return basin_report_usage(&basin_command_node_train, "%s; wanted one of them", clash);
    if (basin_training_open(&work, &o->training, o->backend, o->threads, o->products, o->dtype,
                            o->quiet, o->start.print_config, &error))
        return basin_report(&error);
    basin_status status = train(&r, &work.training, operand, operands, &error);
    basin_cli_watch_end(&work.watch);
    int code = status ? basin_report(&error) : print_result(&r);
    basin_node_close(r.model);
    basin_training_close(&work);
    return code;
}

const basin_command basin_command_node_train = {
    .name = "node train",
    .summary = "Train a model of the classes of nodes on a labelled graph",
    .operands = "FILE...",
    .operands_least = 0, /* none: --print-config alone */
    .operands_most = 16,
    .text =
        "Reads what 'basin anomaly train' reads. Labels are of any number of classes: whole "
        "numbers, or in a CSV any text; nodes without one take part in the graph but not in the "
        "loss. A part of the labelled nodes is held out to choose the epoch, or the file's masks "
        "say which. The model file carries everything that prediction needs, the names of the "
        "classes included.",
    .example = "  basin node train papers.csv citations.csv --label topic -o model.safetensors\n"
               "  basin node train cora.npz -o cora.safetensors\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .task = "node",
    .ranks_at = offsetof(options, training.ranks),
    .settings_at = offsetof(options, settings),
    .start_at = offsetof(options, start),
    .run_old = run,
};
