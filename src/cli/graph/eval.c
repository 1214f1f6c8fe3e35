/* basin graph eval: how well a model does on a set of graphs, whether it has seen them, and how
 * much the noise of its descent would change that. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "basin/metrics.h"
#include "cli/graph/options.h"
#include "cli/table.h"

typedef struct options {
    const char *part, *cache, *backend, *products, *dtype;
    int64_t noisy, threads;
    bool unseen, quiet, json;
} options;

static const options defaults = {.part = "auto", .backend = "cpu", .products = "f32"};

static const basin_option table[] = {
    BASIN_FLAG(options, unseen, 0, "unseen",
               "Score only the graphs that had no part in training, validation included."),
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

typedef struct job {
    const options *o;
    basin_graph_use use;
    basin_graphs_measures measures;
    basin_graphs_value *value; /* [columns] of a model of values */
    spread spread;
    bool told;       /* whether the model's file says what it has seen */
    int64_t count;   /* graphs before the unseen were chosen */
    int64_t seen[3]; /* of these, by basin_graphs_memory */
} job;

/* ---- what it has seen ---- */

static void keep_new(basin_graph_use *u, const basin_graphs_memory *memory) {
    int64_t kept = 0;
    for (int64_t i = 0; i < u->count; i++)
        if (memory[i] == BASIN_GRAPHS_NEW) u->list[kept++] = u->list[i];
    u->count = u->data.graphs = kept;
}

static basin_status look_back(job *j, basin_error *error) {
    basin_graph_use *u = &j->use;
    basin_graphs_memory *memory = calloc((size_t)u->count + 1, sizeof *memory);
    if (!memory) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a list of graphs");
    basin_status status = basin_graphs_seen(memory, u->model, &u->set, u->list, u->count, error);
    j->count = u->count;
    j->told = !status;
    for (int64_t i = 0; i < u->count && j->told; i++) j->seen[memory[i]]++;
    if (j->o->unseen && j->told) keep_new(u, memory);
    free(memory);
    if (status && (j->o->unseen || status != BASIN_UNSUPPORTED)) return status;
    if (j->o->unseen && !u->count)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: the model has seen all %lld graphs",
                          u->set.name, (long long)j->count);
    return BASIN_OK;
}

/* Of classes; those of values come with their table. */
static void print_missing(const job *j) {
    if (!j->measures.missing || j->value) return;
    bool nodes = basin_graphs_get_target(j->use.model) == BASIN_NODE_CLASSES;
    printf("%lld of %lld %s have a class that the model does not know; they were left out\n",
           (long long)j->measures.missing, (long long)(j->measures.missing + j->measures.items),
           nodes ? "nodes" : "graphs");
}

static void print_seen(const job *j) {
    if (!j->told)
        printf("the model's file does not say which graphs it was trained on: they may be among "
               "these\n");
    else if (j->seen[BASIN_GRAPHS_TRAINED_ON] + j->seen[BASIN_GRAPHS_VALIDATED_ON])
        printf("%lld of these %lld graphs were trained on, %lld more chose the epoch%s\n",
               (long long)j->seen[BASIN_GRAPHS_TRAINED_ON], (long long)j->count,
               (long long)j->seen[BASIN_GRAPHS_VALIDATED_ON],
               j->o->unseen ? "; they were left out"
                            : ": this is no score of unseen graphs (--unseen)");
}

/* ---- noise ---- */

static basin_status measure_spread(spread *s, basin_graph_use *u, int64_t count,
                                   basin_error *error) {
    basin_graphs_target target = basin_graphs_get_target(u->model);
    basin_graphs_measures *measures = calloc((size_t)count + 1, sizeof *measures);
    double *value = calloc((size_t)count + 1, sizeof *value);
    basin_status status = measures && value
                              ? BASIN_OK
                              : basin_fail(error, BASIN_NO_MEMORY, "out of memory for evaluations");
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

/* ---- printing ---- */

static int print_values(const job *j) {
    const basin_graphs_measures *m = &j->measures;
    int64_t columns = basin_graphs_columns(j->use.model);
    basin_table t = {.layout = "rrrrrrr"};
    static const char *const head[] = {
        "value", "known", "mean", "deviation", "mean absolute error", "root mean square error",
        "R2"};
    if (m->missing)
        printf("%lld of %lld values are not known; they were left out\n", (long long)m->missing,
               (long long)(m->items * columns));
    for (int i = 0; i < 7; i++) basin_table_add(&t, "%s", head[i]);
    for (int64_t c = 0; c < columns; c++) {
        const basin_graphs_value *v = &j->value[c];
        const double number[] = {v->mean, v->spread, v->error, v->deviation, v->explained};
        basin_table_add(&t, "%lld", (long long)c + 1);
        basin_table_add(&t, "%lld", (long long)v->known);
        for (int i = 0; i < 5; i++)
            if (isnan(number[i]))
                basin_table_add(&t, "-");
            else
                basin_table_add(&t, "%.4g", number[i]);
    }
    return basin_table_print(&t, stdout, 2) ? BASIN_EXIT_OK : BASIN_EXIT_FAILURE;
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

static void print_spread(const spread *s, basin_graphs_target target) {
    printf(
        "with noise, %lld evaluations of this one model: %s %.5g +- %.2g (%.5g to %.5g)\n"
        "the spread of noise in one model; it says nothing of other trainings, seeds or splits\n",
        (long long)s->count, basin_graph_score_name(target), s->mean, s->deviation, s->lowest,
        s->highest);
}

static const char *part_of(const job *j) {
    if (strcmp(j->o->part, "auto") != 0) return j->o->part;
    return j->use.set.split[2] ? "test" : "all";
}

static int print_text(const job *j) {
    basin_graphs_target target = basin_graphs_get_target(j->use.model);
    char text[200];
    basin_graph_measures_text(text, sizeof text, &j->measures, j->use.model);
    printf("%s, %s, %lld %s: %s\n", j->use.set.name, part_of(j), (long long)j->measures.items,
           target == BASIN_NODE_CLASSES ? "nodes" : "graphs", text);
    print_missing(j);
    print_seen(j);
    if (j->spread.count) print_spread(&j->spread, target);
    return j->value ? print_values(j) : BASIN_EXIT_OK;
}

static void print_json(const job *j, const char *model) {
    basin_graphs_target target = basin_graphs_get_target(j->use.model);
    basin_json json = basin_json_begin(stdout);
    basin_json_text(&json, "model", model);
    basin_json_text(&json, "data", j->use.set.name);
    basin_json_text(&json, "task", basin_graphs_target_name(target));
    basin_json_text(&json, "part", part_of(j));
    basin_graph_items_json(&json, &j->measures, target);
    if (j->told) {
        basin_json_integer(&json, "trained_on", j->seen[BASIN_GRAPHS_TRAINED_ON]);
        basin_json_integer(&json, "validated_on", j->seen[BASIN_GRAPHS_VALIDATED_ON]);
    }
    if (j->spread.count) print_spread_json(&json, &j->spread, target);
    if (j->value || j->measures.missing) basin_json_integer(&json, "missing", j->measures.missing);
    if (j->value) {
        basin_json_array(&json, "values");
        for (int64_t c = 0; c < basin_graphs_columns(j->use.model); c++) {
            basin_json_object(&json, NULL);
            basin_json_integer(&json, "known", j->value[c].known);
            basin_json_number(&json, "mae", j->value[c].error);
            basin_json_number(&json, "rmse", j->value[c].deviation);
            basin_json_number(&json, "r2", j->value[c].explained);
            basin_json_end(&json);
        }
        basin_json_end(&json);
    }
    basin_json_end(&json);
}

/* ---- the command ---- */

static basin_status score(job *j, basin_error *error) {
    basin_graph_use *u = &j->use;
    basin_status status = basin_graphs_score(&j->measures, u->model, &u->data, error);
    if (!status) basin_graph_use_tell(u, j->o->quiet);
    if (status || basin_graphs_get_target(u->model) != BASIN_GRAPHS_VALUES) return status;
    j->value = calloc((size_t)basin_graphs_columns(u->model), sizeof *j->value);
    if (!j->value) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for values");
    return basin_graphs_score_values(j->value, u->model, &u->data, error);
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    job j = {.o = o};
    basin_error error;
    int code = BASIN_EXIT_OK;
    (void)operands;
    basin_status status =
        basin_option_backend(&j.use.backend, o->backend, o->threads, o->products, o->dtype, &error);
    if (!status)
        status =
            basin_graph_use_open(&j.use, operand[0], operand[1], o->part, o->cache, true, &error);
    if (!status) basin_note_gamma(operand[0], o->quiet);
    if (!status) status = look_back(&j, &error);
    if (!status) status = score(&j, &error);
    if (!status && o->noisy) status = measure_spread(&j.spread, &j.use, o->noisy, &error);
    if (!status && o->json)
        print_json(&j, operand[0]);
    else if (!status)
        code = print_text(&j);
    free(j.value);
    basin_graph_use_close(&j.use);
    return status ? basin_report(&error) : code;
}

const basin_command basin_command_graph_eval = {
    .name = "graph eval",
    .summary = "Score a graph model on labelled graphs",
    .operands = "MODEL DATA",
    .operands_least = 2,
    .operands_most = 2,
    .text =
        "Accuracy and class-averaged accuracy of classes; of values the mean absolute error, the "
        "root mean square error and R2, each value in its own units, missing ones left out. Graphs "
        "whose class the model does not know are left out. What else is in a batch does not "
        "change a score. A line says how many of the graphs the model was trained on. Scores are "
        "without noise; --noisy adds how they spread with it.",
    .example = "  basin graph eval zinc.safetensors zinc12k.npz --json\n"
               "  basin graph eval mutag.safetensors MUTAG.zip --unseen\n"
               "  basin graph eval zinc.safetensors zinc12k.npz --noisy 100\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
