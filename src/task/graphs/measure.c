/* How well outputs fit: accuracy, the benchmark's class-averaged accuracy of nodes, absolute
 * error. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "task/graphs/graphs.h"

static int64_t best_of(const float *output, int64_t count) {
    int64_t best = 0;
    for (int64_t c = 1; c < count; c++)
        if (output[c] > output[best]) best = c;
    return best;
}

static double cross_entropy(const float *output, int64_t count, int64_t class_of) {
    double top = (double)output[best_of(output, count)], sum = 0;
    for (int64_t c = 0; c < count; c++) sum += exp((double)output[c] - top);
    return log(sum) + top - (double)output[class_of];
}

/* What a graph has of items: itself, or its nodes; `first` to `end` - 1. */
typedef struct items {
    int64_t first, end;
} items;

static items items_of(const basin_graphset *set, int64_t graph) {
    if (set->task != BASIN_NODE_CLASSES) return (items){graph, graph + 1};
    return (items){set->node_start[graph], set->node_start[graph + 1]};
}

/* One item; unknown classes are left out and counted. */
static void add_item(basin_graphs_measures *measures, const float *output, int64_t outputs,
                     int32_t own) {
    measures->missing += own < 0;
    if (own < 0) return;
    measures->items++;
    measures->accuracy += best_of(output, outputs) == own;
    measures->loss += cross_entropy(output, outputs, own);
}

/* Right and all items of the classes from `first` on. */
typedef struct tally {
    int64_t first;
    double right[256], all[256];
} tally;

static void count_classes(tally *t, const float *output, const basin_graphset *set,
                          const int64_t *graph, int64_t count, int64_t outputs) {
    for (int64_t i = 0; i < count; i++) {
        items of = items_of(set, graph[i]);
        for (int64_t n = of.first; n < of.end; n++, output += outputs) {
            int64_t own = set->class_of[n], at = own - t->first;
            if (own < 0 || at < 0 || at >= 256) continue;
            t->right[at] += best_of(output, outputs) == own;
            t->all[at]++;
        }
    }
}

/* Percent of the items of each class that are right, the mean over classes; of all nodes, not
 * graph by graph. There may be many classes: they are counted in parts. */
static double class_average(const float *output, const basin_graphset *set, const int64_t *graph,
                            int64_t count, int64_t outputs) {
    double sum = 0, present = 0;
    for (int64_t first = 0; first < set->classes; first += 256) {
        tally t = {.first = first};
        count_classes(&t, output, set, graph, count, outputs);
        for (int c = 0; c < 256; c++)
            if (t.all[c] > 0) sum += t.right[c] / t.all[c], present++;
    }
    return present > 0 ? 100 * sum / present : 0;
}

/* Values that are not known are left out and counted. */
static void measure_values(basin_graphs_measures *measures, const float *output,
                           const basin_graphset *set, const int64_t *graph, int64_t count,
                           const double *scale) {
    int64_t C = set->targets;
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < C; c++) measures->missing += isnan(set->target[graph[i] * C + c]);
    double squares = 0, n = (double)(count * C - measures->missing);
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < C; c++) {
            double miss = (double)output[i * C + c] - (double)set->target[graph[i] * C + c];
            if (isnan(set->target[graph[i] * C + c])) continue;
            if (scale && C > 1) miss /= scale[c];
            measures->loss += fabs(miss) / n;
            squares += miss * miss / n;
        }
    measures->items = count;
    measures->deviation = sqrt(squares);
}

void basin_graphs_measure_values(basin_graphs_value *value, const float *output,
                                 const basin_graphset *set, const int64_t *graph, int64_t count) {
    int64_t C = set->targets;
    for (int64_t c = 0; c < C; c++) {
        basin_graphs_value *v = &value[c];
        double sum = 0, squares = 0, misses = 0;
        *v = (basin_graphs_value){0};
        for (int64_t i = 0; i < count; i++) {
            double y = (double)set->target[graph[i] * C + c];
            double miss = (double)output[i * C + c] - y;
            if (isnan(y)) continue;
            v->known++;
            sum += y, squares += y * y;
            v->error += fabs(miss), misses += miss * miss;
        }
        double n = (double)v->known, spread = squares - sum * sum / n;
        v->mean = sum / n;
        v->spread = sqrt(fmax(spread, 0) / n);
        v->error /= n;
        v->deviation = sqrt(misses / n);
        v->explained = spread > 0 ? 1 - misses / spread : NAN;
    }
}

void basin_graphs_measure(basin_graphs_measures *measures, const float *output,
                          const basin_graphset *set, const int64_t *graph, int64_t count,
                          int64_t outputs, const double *scale) {
    *measures = (basin_graphs_measures){0};
    if (set->task == BASIN_GRAPHS_VALUES) {
        measure_values(measures, output, set, graph, count, scale);
        measures->merit = -measures->loss;
        return;
    }
    measures->balanced = class_average(output, set, graph, count, outputs);
    for (int64_t i = 0; i < count; i++) {
        items of = items_of(set, graph[i]);
        for (int64_t n = of.first; n < of.end; n++, output += outputs)
            add_item(measures, output, outputs, set->class_of[n]);
    }
    if (measures->items) {
        measures->accuracy *= 100 / (double)measures->items;
        measures->loss /= (double)measures->items;
    }
    measures->merit = set->task == BASIN_NODE_CLASSES ? measures->balanced : measures->accuracy;
}

static bool has_known(const basin_graphset *set, int64_t graph) {
    items of = items_of(set, graph);
    bool known = false;
    for (int64_t i = of.first; i < of.end && !known && set->task != BASIN_GRAPHS_VALUES; i++)
        known = set->class_of[i] >= 0;
    for (int64_t c = 0; c < set->targets && !known && set->task == BASIN_GRAPHS_VALUES; c++)
        known = !isnan(set->target[graph * set->targets + c]);
    return known;
}

basin_status basin_graphs_check_known(const basin_graphset *set, const char *path,
                                      const int64_t *graph, int64_t count, const char *what,
                                      basin_error *error) {
    for (int64_t i = 0; i < count; i++)
        if (has_known(set, graph[i])) return BASIN_OK;
    return basin_fail(
        error, BASIN_BAD_VALUE, "%s: none of the %lld %s has a %s; wanted one at least", path,
        (long long)count, what,
        set->task == BASIN_GRAPHS_VALUES ? "value that is known" : "class that the model knows");
}

int64_t basin_graphs_count_rows(const basin_graphset *set, basin_graphs_target target,
                                const int64_t *graph, int64_t count) {
    int64_t rows = 0;
    if (target != BASIN_NODE_CLASSES) return count;
    for (int64_t i = 0; i < count; i++) rows += basin_graphset_tokens(set, graph[i]) - 1;
    return rows;
}

basin_status basin_graphs_outputs(float **output, basin_graphs_plans *plans,
                                  const basin_graphs_input *input, const int64_t *graph,
                                  int64_t count, basin_error *error) {
    const basin_graphs_model *m = plans->model;
    int64_t rows = basin_graphs_count_rows(&input->set, m->target, graph, count);
    *output = basin_array_new((size_t)rows, (size_t)m->outputs * sizeof **output);
    if (!*output) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for outputs");
    basin_status status = basin_graphs_plans_score(plans, *output, input, graph, count, error);
    if (!status) return BASIN_OK;
    free(*output);
    *output = NULL;
    return status;
}
