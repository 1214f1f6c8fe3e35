/* The tables of `basin node eval`; see eval.h. */
#include <stdio.h>

#include "basin/metrics.h"
#include "cli/node/eval.h"
#include "cli/table.h"
#include "io/json_writer.h"

enum { MEASURES = 3 };
static const char *const measures[MEASURES] = {"accuracy", "macro_f1", "auroc"};

static const char *model_name(const basin_node_eval *b, int model) {
    if (model) return b->rivals.preset[model - 1];
    return b->o->model ? b->o->model : b->o->start.preset;
}

static void summarise(const basin_node_eval *b, int model, int which, double *mean,
                      double *deviation) {
    double value[BASIN_SPLITS_RUNS];
    for (int64_t i = 0; i < b->splits.runs; i++)
        value[i] =
            100 * basin_score_get(&b->figures[model * b->splits.runs + i].test, measures[which]);
    basin_mean_deviation(mean, deviation, value, b->splits.runs);
}

static void add_row(basin_table *rows, const basin_node_eval *b, int model) {
    double seconds = 0, cpu = 0;
    basin_table_add(rows, "%s", model_name(b, model));
    for (int k = 0; k < MEASURES; k++) {
        double mean, deviation;
        summarise(b, model, k, &mean, &deviation);
        if (b->o->model)
            basin_table_add(rows, "%.2f", mean);
        else
            basin_table_add(rows, "%.2f +- %.2f", mean, deviation);
    }
    for (int64_t i = 0; i < b->splits.runs; i++) {
        seconds += b->figures[model * b->splits.runs + i].seconds / (double)b->splits.runs;
        cpu += b->figures[model * b->splits.runs + i].cpu / (double)b->splits.runs;
    }
    basin_table_add(rows, "%.1f", seconds);
    basin_table_add(rows, "%.1f", cpu);
}

/* Rows are what nodes are, columns what they are told to be. */
static bool print_confusion(const basin_node_eval *b) {
    enum { MOST = 40 };
    char layout[MOST + 2] = "l";
    if (b->classes > MOST) {
        printf("confusion matrix: %lld classes, too many for a table (see --json)\n",
               (long long)b->classes);
        return true;
    }
    for (int64_t c = 0; c < b->classes; c++) layout[c + 1] = 'r';
    basin_table rows = {.layout = layout};
    printf("confusion of %s (rows: the nodes' classes; columns: told):\n", model_name(b, 0));
    basin_table_add(&rows, "%s", "class");
    for (int64_t c = 0; c < b->classes; c++) basin_table_add(&rows, "%.20s", b->class_name[c]);
    for (int64_t t = 0; t < b->classes; t++) {
        basin_table_add(&rows, "%.20s", b->class_name[t]);
        for (int64_t c = 0; c < b->classes; c++)
            basin_table_add(&rows, "%lld", (long long)b->confusion[t * b->classes + c]);
    }
    return basin_table_print(&rows, stdout, 2);
}

bool basin_node_eval_print(const basin_node_eval *b) {
    static const char *const heading[] = {"model", "accuracy", "macro-F1",
                                          "AUROC", "s a run",  "CPU s"};
    basin_table rows = {.layout = "lrrrrr"};
    for (size_t i = 0; i < sizeof heading / sizeof *heading; i++)
        basin_table_add(&rows, "%s", heading[i]);
    for (int m = 0; m < b->models; m++) add_row(&rows, b, m);
    if (b->o->model)
        printf("%s: %s; percent\n", b->network->path,
               b->splits.masks ? "the file's test nodes" : "all labelled nodes");
    else
        printf("%s: %lld runs, %s; percent on test, mean +- population deviation\n",
               b->network->path, (long long)b->splits.runs,
               b->splits.masks ? "the file's splits" : "stratified splits");
    return basin_table_print(&rows, stdout, 2) && print_confusion(b);
}

/* ---- JSON ---- */

static void put_model(basin_json *json, const basin_node_eval *b, int model) {
    basin_json_object(json, NULL);
    basin_json_text(json, "model", model_name(b, model));
    for (int k = 0; k < MEASURES; k++) {
        double pair[2];
        summarise(b, model, k, &pair[0], &pair[1]);
        basin_json_numbers(json, measures[k], pair, 2);
    }
    basin_json_array(json, "runs");
    for (int64_t i = 0; i < b->splits.runs; i++) {
        const basin_node_figures *f = &b->figures[model * b->splits.runs + i];
        basin_json_object(json, NULL);
        basin_json_integer(json, "split", b->o->first + i);
        if (f->validation.measures) basin_put_percent(json, "validation", &f->validation);
        basin_put_percent(json, "test", &f->test);
        basin_json_integer(json, "best_epoch", f->epoch);
        basin_json_number(json, "seconds", f->seconds);
        basin_json_number(json, "cpu_seconds", f->cpu);
        basin_json_end(json);
    }
    basin_json_end(json);
    basin_json_end(json);
}

static void put_confusion(basin_json *json, const basin_node_eval *b) {
    basin_json_array(json, "classes");
    for (int64_t c = 0; c < b->classes; c++) basin_json_text(json, NULL, b->class_name[c]);
    basin_json_end(json);
    basin_json_array(json, "confusion");
    for (int64_t t = 0; t < b->classes; t++) {
        basin_json_array(json, NULL);
        for (int64_t c = 0; c < b->classes; c++)
            basin_json_integer(json, NULL, b->confusion[t * b->classes + c]);
        basin_json_end(json);
    }
    basin_json_end(json);
}

void basin_node_eval_print_json(const basin_node_eval *b) {
    basin_json json = basin_json_begin(stdout);
    basin_json_text(&json, "data", b->network->path);
    basin_json_text(&json, "split", b->splits.masks ? "masks" : b->o->model ? "all" : "ratio");
    basin_json_integer(&json, "parameters", b->parameters);
    basin_json_array(&json, "models");
    for (int m = 0; m < b->models; m++) put_model(&json, b, m);
    basin_json_end(&json);
    put_confusion(&json, b);
    basin_json_end(&json);
}
