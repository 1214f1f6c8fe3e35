/* What a model of graphs has to beat, on the same fold: the commonest class or the mean value; and
 * where nodes have labels the memory by itself (near.c), which trains no network. */
#include "tasks/graphs/graphs.h"

static const char what[] = "a baseline";

/* Shares of the classes, or means of the values, of the training graphs [C]. */
static basin_status find_usual(double *usual, basin_graphs_model *m, const basin_graphset *set,
                               const basin_fold *fold, basin_error *error) {
    bool nodes = set->task == BASIN_GRAPHS_NODE_CLASSES;
    BASIN_TRY(BASIN_NEW(&m->target_scale, m->outputs, what, error));
    if (set->task == BASIN_GRAPHS_VALUES) {
        basin_graphs_value_scale(usual, m->target_scale, set, fold->item[0], fold->count[0]);
        return BASIN_OK;
    }
    for (int64_t i = 0; i < fold->count[0]; i++) {
        int64_t graph = fold->item[0][i], first = nodes ? set->node_start[graph] : graph;
        int64_t end = nodes ? set->node_start[graph + 1] : graph + 1;
        for (int64_t k = first; k < end; k++)
            if (set->class_of[k] >= 0) usual[set->class_of[k]]++;
    }
    return BASIN_OK;
}

static basin_status measure(basin_graphs_measures *measures, const basin_graphs_model *m,
                            const float *output, const basin_graphset *set, const basin_fold *fold,
                            basin_error *error) {
    return basin_graphs_measure(measures, output, set, fold->item[2], fold->count[2], m->outputs,
                                m->target_scale, error);
}

static basin_status run(basin_graphs_baseline_result *result, basin_graphs_model *m,
                        const basin_graphset *set, const basin_fold *fold, basin_error *error) {
    bool values = set->task == BASIN_GRAPHS_VALUES;
    int64_t rows = basin_graphs_count_rows(set, set->task, fold->item[2], fold->count[2]);
    BASIN_SCRATCH(double, usual, m->outputs, what, error);
    BASIN_SCRATCH(float, output, rows * m->outputs, what, error);
    BASIN_TRY(find_usual(usual, m, set, fold, error));
    for (int64_t i = 0; i < rows * m->outputs; i++) { /* of classes logarithms of shares */
        double own = usual[i % m->outputs];
        output[i] = (float)(values ? own : log(own + 1e-9));
    }
    result->name[0] = values ? "the mean value" : "the commonest class";
    BASIN_TRY(measure(&result->constant, m, output, set, fold, error));
    if (!set->node_labels || set->task == BASIN_GRAPHS_NODE_CLASSES) return BASIN_OK;
    result->name[1] = "kernel ridge regression on counted neighbourhoods";
    BASIN_TRY(basin_graphs_near_fit(m, set, fold, 0, NULL, NULL, error));
    m->near.share = 1;
    BASIN_TRY(
        basin_graphs_near_add(output, NULL, NULL, m, set, fold->item[2], fold->count[2], error));
    return measure(&result->memory, m, output, set, fold, error);
}

basin_status basin_graphs_baseline(basin_graphs_baseline_result *result, const basin_graphset *set,
                                   const basin_fold *fold, basin_error *error) {
    basin_graphs_model m = {.target = set->task, .binary = set->binary, .classes = set->classes};
    *result = (basin_graphs_baseline_result){.name = {NULL}};
    BASIN_TRY(basin_graphs_check_labels(set, set->name, error));
    m.outputs = set->task == BASIN_GRAPHS_VALUES ? set->targets : set->classes;
    basin_status status = run(result, &m, set, fold, error);
    free(m.target_scale);
    basin_graphs_near_free(&m.near);
    return status;
}
