/* basin node eval: accuracy over the splits of a file, with graph networks beside it; or that of a
 * saved model. */
#include "cli/node/eval.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"

static const basin_node_eval_options defaults = {.start = {.preset = "default"},
                                                 .split = "auto",
                                                 .data = BASIN_NETWORK_CLASSES,
                                                 .ratio = 0.6,
                                                 .runs = 10,
                                                 .backend = "cpu",
                                                 .products = "f32"};

static const basin_option table[] = {
    BASIN_OPTIONS_START(basin_node_eval_options),
    BASIN_TEXT(basin_node_eval_options, model, 0, "model", "FILE",
               "Train nothing: measure this model, on the test nodes of the file's first split, or "
               "on all labelled nodes."),
    BASIN_OPTIONS_SPLITS(basin_node_eval_options, "split!=masks model=", "model="),
    BASIN_TEXT(basin_node_eval_options, rivals, 0, "rivals", "LIST",
               "Others on the same splits, joined by commas, each by its preset: mlp (no "
               "graph), paper (the paper's block alone); or all.",
               .needs = "model="),
    BASIN_OPTIONS_NETWORK(basin_node_eval_options, data),
    BASIN_OPTION_JSON(basin_node_eval_options),
    BASIN_WORK_OPTIONS(basin_node_eval_options),
    BASIN_OPTIONS_END,
};

/* ---- figures ---- */

static basin_status new_confusion(basin_node_eval *b, const basin_node_model *model,
                                  basin_error *error) {
    int64_t C = b->classes = basin_node_classes(model);
    b->confusion = calloc((size_t)(C * C), sizeof *b->confusion);
    b->class_name = calloc((size_t)C, sizeof *b->class_name);
    bool good = b->confusion && b->class_name;
    for (int64_t c = 0; c < C && good; c++)
        good = (b->class_name[c] = basin_string_copy(basin_node_class(model, c))) != NULL;
    return good ? BASIN_OK : basin_fail(error, BASIN_NO_MEMORY, "out of memory for a table");
}

/* A split may lack a class in training: then the tables do not fit, and its nodes are left out. */
static basin_status add_confusion(basin_node_eval *b, const basin_node_model *model,
                                  const double *probability, basin_error *error) {
    basin_status status = b->confusion ? BASIN_OK : new_confusion(b, model, error);
    int64_t C = b->classes;
    if (status || basin_node_classes(model) != C) return status;
    int64_t *own = calloc((size_t)(C * C), sizeof *own);
    if (!own) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a table");
    status =
        basin_node_confusion(own, probability, model, b->network, b->part, BASIN_PART_TEST, error);
    for (int64_t i = 0; i < C * C && !status; i++) b->confusion[i] += own[i];
    free(own);
    return status;
}

/* Of a model that was trained just now. */
static basin_status take(basin_node_eval *b, basin_node_figures *f, int number,
                         const basin_node_model *model, basin_error *error) {
    const basin_score *validation = basin_node_reached(model, BASIN_PART_VAL);
    const basin_score *test = basin_node_reached(model, BASIN_PART_TEST);
    if (!validation || !test)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no nodes for %s", b->network->path,
                          validation ? "test" : "validation");
    f->validation = *validation;
    f->test = *test;
    if (number) return BASIN_OK;
    b->parameters = basin_node_parameters(model);
    return add_confusion(b, model, basin_node_probabilities(model), error);
}

/* ---- splits ---- */

static basin_status train(basin_node_model **model, basin_outcome *outcome, basin_node_eval *b,
                          int number, int64_t seed, basin_error *error) {
    char text[32];
    basin_node_data data = {.size = sizeof data, .network = b->network, .part = b->part};
    basin_training training = {.size = sizeof training,
                               .backend = b->backend,
                               .watch = &b->watch.watch,
                               .memory = b->memory};
    if (number)
        return basin_cli_rival_train(model, outcome, "node", b->rivals.preset[number - 1], seed,
                                     &data, &training, error);
    snprintf(text, sizeof text, "%lld", (long long)seed);
    basin_status status = basin_settings_set(b->o->settings, "seed", text, error);
    if (status) return status;
    return basin_node_train(model, outcome, b->o->settings, &data, &training, error);
}

static basin_status run_model(basin_node_eval *b, int number, int64_t i, basin_error *error) {
    basin_node_figures *f = &b->figures[number * b->splits.runs + i];
    basin_node_model *model = NULL;
    basin_outcome outcome = {0};
    double began = basin_clock();
    clock_t busy = clock();
    basin_status status = train(&model, &outcome, b, number, b->seed + b->o->first + i, error);
    b->stopped = outcome.stopped;
    f->epoch = outcome.best_epoch;
    if (!status && !b->stopped) status = take(b, f, number, model, error);
    f->seconds = basin_clock() - began;
    f->cpu = (double)(clock() - busy) / CLOCKS_PER_SEC;
    basin_node_close(model);
    return status;
}

static void note_split(const basin_node_eval *b, const basin_node_figures *f, int64_t run) {
    char line[200];
    snprintf(line, sizeof line,
             "split %lld: test accuracy %.2f (validation %.2f), epoch %lld, %.0f s", (long long)run,
             100 * basin_score_get(&f->test, "accuracy"),
             100 * basin_score_get(&f->validation, "accuracy"), (long long)f->epoch, f->seconds);
    b->watch.watch.note(b->watch.watch.context, line);
}

static basin_status run_split(basin_node_eval *b, int64_t i, basin_error *error) {
    basin_status status = basin_splits_take(b->part, &b->splits, i, b->seed, error);
    for (int m = 0; m < b->models && !status && !b->stopped; m++)
        status = run_model(b, m, i, error);
    if (!status && !b->stopped) note_split(b, &b->figures[i], b->o->first + i);
    return status;
}

/* ---- running ---- */

static basin_status prepare(basin_node_eval *b, basin_error *error) {
    const basin_node_eval_options *o = b->o;
    b->memory = (size_t)(o->memory * (double)(1 << 30));
    bool ratio = basin_option_given(o->parsed, &basin_command_node_eval, "ratio");
    basin_status status =
        basin_splits_plan(&b->splits, b->network, o->split, o->ratio, ratio ? "ratio" : NULL,
                          o->first, o->model ? 1 : o->runs, &b->watch.watch, error);
    if (!status) status = basin_cli_rivals_parse(&b->rivals, "node", o->rivals, error);
    if (status) return status;
    b->models = 1 + b->rivals.count;
    b->part = calloc((size_t)b->network->nodes, 1);
    b->figures = calloc((size_t)(b->models * b->splits.runs), sizeof *b->figures);
    if (!b->part || !b->figures)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for an evaluation");
    char seed[32];
    status = basin_settings_get(seed, sizeof seed, o->settings, "seed", error);
    b->seed = status ? 0 : strtoll(seed, NULL, 10);
    return status;
}

/* ---- a saved model ---- */

/* The file's test nodes, where it has some, else all that have a label. */
static basin_status part_of(basin_node_eval *b, basin_error *error) {
    basin_status status =
        b->splits.masks ? basin_splits_take(b->part, &b->splits, 0, b->seed, error) : BASIN_OK;
    int64_t N = b->network->nodes;
    if (status || basin_split_nodes(NULL, b->part, N, BASIN_PART_TEST)) return status;
    for (int64_t i = 0; i < N; i++)
        b->part[i] = b->network->label[i] >= 0 ? BASIN_PART_TEST : BASIN_PART_NONE;
    return BASIN_OK;
}

/* A class that the model has no name for is never told: without a word that would look like a bad
 * model. */
static basin_status check_classes(const basin_node_eval *b, basin_error *error) {
    int64_t labelled = basin_split_nodes(NULL, b->part, b->network->nodes, BASIN_PART_TEST);
    int64_t known = 0;
    for (int64_t i = 0; i < b->classes * b->classes; i++) known += b->confusion[i];
    if (!known)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: none of %lld labelled nodes has a class of %s; wanted its names: "
                          "%s, .. (npz files have numbers alone)",
                          b->network->path, (long long)labelled, b->o->model, b->class_name[0]);
    if (known < labelled && !b->o->quiet)
        basin_say("%s: %lld of %lld labelled nodes have a class that %s does not know; they count "
                  "as wrong",
                  b->network->path, (long long)(labelled - known), (long long)labelled,
                  b->o->model);
    return BASIN_OK;
}

static basin_status measure(basin_node_eval *b, const basin_node_model *model, basin_error *error) {
    basin_node_work work = {.size = sizeof work, .watch = &b->watch.watch, .memory = b->memory};
    size_t row = (size_t)basin_node_classes(model) * sizeof(double);
    double *probability = calloc((size_t)b->network->nodes, row);
    if (!probability) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for probabilities");
    double began = basin_clock();
    clock_t busy = clock();
    basin_status status = basin_node_predict(probability, model, b->network, &work, error);
    if (!status) status = part_of(b, error);
    if (!status)
        status = basin_node_measure(&b->figures->test, probability, model, b->network, b->part,
                                    BASIN_PART_TEST, error);
    if (!status) status = add_confusion(b, model, probability, error);
    if (!status) status = check_classes(b, error);
    b->figures->seconds = basin_clock() - began;
    b->figures->cpu = (double)(clock() - busy) / CLOCKS_PER_SEC;
    free(probability);
    return status;
}

static basin_status eval_model(basin_node_eval *b, int operands, char **operand,
                               basin_error *error) {
    const basin_node_eval_options *o = b->o;
    basin_node_model *model = NULL;
    basin_status status = basin_node_open(&model, o->model, b->backend, error);
    if (!status)
        status = basin_network_flags_open(&b->network, &o->data, basin_node_get_schema(model),
                                          o->memory, operands, operand, o->quiet, error);
    if (!status) status = prepare(b, error);
    if (!status) b->parameters = basin_node_parameters(model);
    if (!status) status = measure(b, model, error);
    basin_node_close(model);
    return status;
}

static basin_status eval_trained(basin_node_eval *b, int operands, char **operand,
                                 basin_error *error) {
    basin_status status = basin_network_flags_open(&b->network, &b->o->data, NULL, b->o->memory,
                                                   operands, operand, b->o->quiet, error);
    if (!status) status = prepare(b, error);
    for (int64_t i = 0; i < b->splits.runs && !status && !b->stopped; i++)
        status = run_split(b, i, error);
    return status;
}

static int finish(basin_node_eval *b, basin_status status, const basin_error *error) {
    int code = BASIN_EXIT_OK;
    basin_cli_watch_end(&b->watch);
    if (status) {
        code = basin_report(error);
    } else if (b->stopped) {
        code = BASIN_EXIT_FAILURE;
    } else if (b->o->json) {
        basin_node_eval_print_json(b);
    } else if (!basin_node_eval_print(b)) {
        code = BASIN_EXIT_FAILURE;
    }
    for (int64_t c = 0; c < b->classes && b->class_name; c++) free(b->class_name[c]);
    free(b->class_name);
    free(b->confusion);
    basin_network_free(b->network);
    basin_backend_close(b->backend);
    free(b->part);
    free(b->figures);
    return code;
}

static int run(const void *values, int operands, char **operand) {
    basin_node_eval b = {.o = values};
    const basin_node_eval_options *o = b.o;
    basin_error error;
    if (o->start.print_config) return basin_print_config(o->settings, NULL);
    if (o->model && basin_training_settings_given(o->settings, &o->start, NULL))
        return basin_report_usage(&basin_command_node_eval,
                                  "a setting of training has no effect with --model, which trains "
                                  "nothing");
    basin_cli_watch_begin(&b.watch, o->quiet);
    basin_status status =
        basin_option_backend(&b.backend, o->backend, o->threads, o->products, o->dtype, &error);
    if (!status)
        status = o->model ? eval_model(&b, operands, operand, &error)
                          : eval_trained(&b, operands, operand, &error);
    return finish(&b, status, &error);
}

const basin_command basin_command_node_eval = {
    .name = "node eval",
    .summary = "Measure a model of classes: accuracy over splits, graph networks beside it",
    .operands = "FILE...",
    .operands_least = 1,
    .operands_most = 16,
    .text = "Trains on each split of the file's masks (a file with one split: with different "
            "seeds), or on stratified splits drawn anew; validation chooses the epoch, test is "
            "looked at once. Prints accuracy, macro-F1 and AUROC (the mean over classes of each "
            "against the others) in percent, mean and population deviation over runs, and the "
            "confusion matrix of all runs. With --model nothing is trained: the model is measured.",
    .example = "  basin node eval cora.npz --runs 5 --rivals mlp,paper\n"
               "  basin node eval --model model.safetensors papers.csv citations.csv\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .task = "node",
    .settings_at = offsetof(basin_node_eval_options, settings),
    .start_at = offsetof(basin_node_eval_options, start),
    .parsed_at = offsetof(basin_node_eval_options, parsed),
    .run_old = run,
};
