/* The tables of `basin anomaly eval`; see eval.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "basin/metrics.h"
#include "cli/anomaly/eval.h"
#include "cli/table.h"
#include "io/json_writer.h"

enum { MEASURES = 5 };
static const char *const measures[MEASURES] = {"macro_f1", "auroc", "auprc", "recall_at_k", "ece"};

static const char *model_name(const basin_eval *b, int model) {
    if (model >= BASIN_EVAL_RIVALS) return b->rivals.preset[model - BASIN_EVAL_RIVALS];
    if (model >= BASIN_EVAL_PLAIN) return basin_anomaly_baseline_name(model - BASIN_EVAL_PLAIN);
    if (model == BASIN_EVAL_DETECTOR) return b->title;
    return model == BASIN_EVAL_TREES ? "- its trees alone" : "- its network alone";
}

bool basin_eval_shown(const basin_eval *b, int model) {
    if (model >= BASIN_EVAL_RIVALS) return true;
    if (model >= BASIN_EVAL_PLAIN) return !b->o->no_baselines;
    if (model == BASIN_EVAL_DETECTOR) return !b->o->only_baselines;
    return b->figures[model * b->splits.runs].test.measures > 0;
}

static double measure(const basin_eval_figures *f, int which) {
    return 100 * basin_score_get(&f->test, measures[which]);
}

static void collect(double value[BASIN_SPLITS_RUNS], const basin_eval *b, int model, int which) {
    for (int64_t i = 0; i < b->splits.runs; i++)
        value[i] = measure(&b->figures[model * b->splits.runs + i], which);
}

static void summarise(const basin_eval *b, int model, int which, double *mean, double *deviation) {
    double value[BASIN_SPLITS_RUNS];
    collect(value, b, model, which);
    basin_mean_deviation(mean, deviation, value, b->splits.runs);
}

static bool interval(const basin_eval *b, int model, int which, double ends[2]) {
    double value[BASIN_SPLITS_RUNS];
    collect(value, b, model, which);
    return basin_mean_interval(&ends[0], &ends[1], value, b->splits.runs, b->overlap);
}

/* ---- the best run ---- */

/* By the measure that chose the epochs, of validation or of test. */
static int64_t best_run(const basin_eval *b, int model, const char *by, bool test) {
    int64_t best = 0;
    const basin_eval_figures *f = &b->figures[model * b->splits.runs];
    for (int64_t i = 1; i < b->splits.runs; i++) {
        const basin_score *own = test ? &f[i].test : &f[i].validation;
        const basin_score *top = test ? &f[best].test : &f[best].validation;
        if (basin_score_get(own, by) > basin_score_get(top, by)) best = i;
    }
    return best;
}

static const char *selected_by(const basin_eval *b, char text[64]) {
    basin_error error;
    return basin_settings_get(text, 64, b->o->settings, "select", &error) ? "auprc" : text;
}

static void print_best(const basin_eval *b, int model) {
    char text[64];
    const char *by = selected_by(b, text);
    for (int test = 0; test < 2; test++) {
        int64_t run = best_run(b, model, by, test);
        const basin_eval_figures *f = &b->figures[model * b->splits.runs + run];
        printf(
            "%s, best of %lld runs by %s %s (split %lld): macro-F1 %.2f, AUROC %.2f, AUPRC %.2f, "
            "recall@k %.2f%s\n",
            model_name(b, model), (long long)b->splits.runs, test ? "TEST" : "validation", by,
            (long long)(b->o->first + run), measure(f, 0), measure(f, 1), measure(f, 2),
            measure(f, 3),
            test ? "; chosen on test, as some papers report: better than what to expect" : "");
    }
}

static void print_best_json(basin_json *json, const basin_eval *b, int model) {
    char text[64];
    const char *by = selected_by(b, text);
    for (int test = 0; test < 2; test++) {
        int64_t run = best_run(b, model, by, test);
        basin_json_object(json, test ? "best_run_by_test" : "best_run_by_validation");
        basin_json_text(json, "chosen_by", by);
        basin_json_boolean(json, "chosen_on_test", test);
        basin_json_integer(json, "split", b->o->first + run);
        basin_put_percent(json, "test", &b->figures[model * b->splits.runs + run].test);
        basin_json_end(json);
    }
}

/* ---- tables ---- */

static double mean_of(const basin_eval *b, int model, size_t field) {
    double sum = 0;
    for (int64_t i = 0; i < b->splits.runs; i++)
        sum += *(const double *)((const char *)&b->figures[model * b->splits.runs + i] + field);
    return sum / (double)b->splits.runs;
}

static void add_row(basin_table *rows, const basin_eval *b, int model) {
    basin_table_add(rows, "%s", model_name(b, model));
    for (int k = 0; k < MEASURES; k++) {
        double mean, deviation;
        summarise(b, model, k, &mean, &deviation);
        basin_table_add(rows, "%.2f +- %.2f", mean, deviation);
    }
    if (model == BASIN_EVAL_TREES || model == BASIN_EVAL_NETWORK) {
        basin_table_add(rows, "%s", "");
        basin_table_add(rows, "%s", "");
        return;
    }
    basin_table_add(rows, "%.1f", mean_of(b, model, offsetof(basin_eval_figures, seconds)));
    basin_table_add(rows, "%.1f", mean_of(b, model, offsetof(basin_eval_figures, cpu)));
}

/* The bins of all runs together. */
static basin_reliability pool(const basin_eval *b) {
    basin_reliability all = {0};
    for (int k = 0; k < BASIN_RELIABILITY_BINS; k++) {
        double predicted = 0, observed = 0;
        for (int64_t i = 0; i < b->splits.runs; i++) {
            const basin_reliability *r = &b->figures[i].reliability;
            all.bin[k].count += r->bin[k].count;
            if (!r->bin[k].count) continue;
            predicted += r->bin[k].predicted * (double)r->bin[k].count;
            observed += r->bin[k].observed * (double)r->bin[k].count;
        }
        all.bin[k].predicted = predicted / (double)all.bin[k].count;
        all.bin[k].observed = observed / (double)all.bin[k].count;
    }
    for (int64_t i = 0; i < b->splits.runs; i++)
        all.ece += b->figures[i].reliability.ece / (double)b->splits.runs;
    return all;
}

static bool print_reliability(const basin_eval *b) {
    basin_reliability all = pool(b);
    printf("%s: probabilities beside frequencies, test nodes of %lld runs\n", model_name(b, 0),
           (long long)b->splits.runs);
    return basin_cli_reliability_print(&all);
}

bool basin_eval_print(const basin_eval *b) {
    static const char *const heading[] = {"model",    "macro-F1", "AUROC",   "AUPRC",
                                          "recall@k", "ECE",      "s a run", "CPU s"};
    basin_table rows = {.layout = "lrrrrrrr"};
    for (size_t i = 0; i < sizeof heading / sizeof *heading; i++)
        basin_table_add(&rows, "%s", heading[i]);
    for (int m = 0; m < b->models; m++)
        if (basin_eval_shown(b, m)) add_row(&rows, b, m);
    printf("%s: %lld runs, %s; percent on test, mean +- population deviation\n", b->network->path,
           (long long)b->splits.runs, b->splits.masks ? "the file's splits" : "stratified splits");
    if (!basin_table_print(&rows, stdout, 2)) return false;
    for (int m = 0; m < b->models && b->o->best_run; m++)
        if (basin_eval_shown(b, m)) print_best(b, m);
    return !b->o->reliability || b->o->only_baselines || print_reliability(b);
}

static void print_intervals(basin_json *json, const basin_eval *b, int model) {
    double ends[2];
    basin_json_object(json, "interval_95");
    for (int k = 0; k < MEASURES; k++)
        if (interval(b, model, k, ends)) basin_json_numbers(json, measures[k], ends, 2);
    basin_json_end(json);
}

static void print_model(basin_json *json, const basin_eval *b, int model) {
    basin_json_object(json, NULL);
    basin_json_text(json, "model", model_name(b, model));
    for (int k = 0; k < MEASURES; k++) {
        double pair[2];
        summarise(b, model, k, &pair[0], &pair[1]);
        basin_json_numbers(json, measures[k], pair, 2);
    }
    print_intervals(json, b, model);
    if (b->o->best_run) print_best_json(json, b, model);
    basin_json_array(json, "runs");
    for (int64_t i = 0; i < b->splits.runs; i++) {
        const basin_eval_figures *f = &b->figures[model * b->splits.runs + i];
        basin_json_object(json, NULL);
        basin_json_integer(json, "split", b->o->first + i);
        basin_put_percent(json, "validation", &f->validation);
        basin_put_percent(json, "test", &f->test);
        basin_json_number(json, "threshold", f->threshold);
        basin_json_integer(json, "best_epoch", f->epoch);
        basin_json_number(json, "seconds", f->seconds);
        basin_json_number(json, "cpu_seconds", f->cpu);
        if (model == BASIN_EVAL_DETECTOR) basin_put_reliability(json, &f->reliability);
        basin_json_end(json);
    }
    basin_json_end(json);
    basin_json_end(json);
}

void basin_eval_print_json(const basin_eval *b) {
    basin_json json = basin_json_begin(stdout);
    basin_json_text(&json, "data", b->network->path);
    basin_json_text(&json, "split", b->splits.masks ? "masks" : "ratio");
    if (!b->splits.masks) basin_json_number(&json, "ratio", b->o->ratio);
    basin_json_text(&json, "trained_on", b->trained_on);
    basin_json_integer(&json, "parameters", b->parameters);
    basin_json_array(&json, "models");
    for (int m = 0; m < b->models; m++)
        if (basin_eval_shown(b, m)) print_model(&json, b, m);
    basin_json_end(&json);
    basin_json_end(&json);
}
