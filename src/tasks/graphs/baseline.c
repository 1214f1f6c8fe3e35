/* What a model of graphs has to beat, on the same fold: the commonest class or the mean value, and
 * a logistic or linear regression on the sums of each graph's node features, which looks at no
 * edge. */
#include "base/sort.h"
#include "base/states.h"
#include "base/training.h"
#include "tasks/graphs/graphs.h"

enum { STEPS = 300 };

/* A fold as tables. Parts are training (0) and test (2). */
typedef struct problem {
    const basin_graphset *set;
    const basin_fold *fold;
    basin_graphset_encoding encoding;
    int64_t columns;      /* features and a count of nodes */
    int64_t outputs;      /* C */
    int64_t rows[3];      /* graphs, or nodes where these have classes */
    float *x[3];          /* [rows, columns] */
    float *target;        /* [rows of training, C] one-hot, or values over deviations */
    float *weight;        /* [rows of training, C] sums to 1 */
    double *mean, *scale; /* [C] of values */
} problem;

static bool of_nodes(const problem *p) { return p->set->task == BASIN_GRAPHS_NODE_CLASSES; }

/* Features of nodes and a count, added up per graph, or one row per node. */
static basin_status fill_part(problem *p, int part, basin_error *error) {
    const basin_graphset *s = p->set;
    const int64_t *graph = p->fold->item[part], F = p->encoding.features;
    int64_t count = p->fold->count[part], max = 0;
    for (int64_t i = 0; i < count; i++) max = basin_int_max(max, basin_graphset_nodes(s, graph[i]));
    BASIN_SCRATCH_RAW(float, feature, max *F, "a baseline", error);
    p->rows[part] = basin_graphs_count_rows(s, s->task, graph, count);
    BASIN_TRY(BASIN_NEW(&p->x[part], p->rows[part] * p->columns, "a baseline", error));
    float *row = p->x[part];
    for (int64_t i = 0; i < count; i++, row += of_nodes(p) ? 0 : p->columns) {
        basin_graphset_features(feature, s, &p->encoding, graph[i]);
        for (int64_t k = 0; k < basin_graphset_nodes(s, graph[i]); k++) {
            for (int64_t c = 0; c < F; c++) row[c] += feature[k * F + c];
            row[F]++;
            if (of_nodes(p)) row += p->columns;
        }
    }
    return BASIN_OK;
}

/* Columns to mean 0 and deviation 1 over the training rows. */
static void standardise(problem *p) {
    for (int64_t c = 0; c < p->columns; c++) {
        double sum = 0, squares = 0, n = (double)p->rows[0];
        for (int64_t i = 0; i < p->rows[0]; i++) {
            double v = (double)p->x[0][i * p->columns + c];
            sum += v, squares += v * v;
        }
        double mean = sum / n, variance = squares / n - mean * mean;
        double scale = variance > 1e-12 * squares / n ? 1 / sqrt(variance) : 0;
        for (int part = 0; part < 3; part += 2)
            for (int64_t i = 0; i < p->rows[part]; i++) {
                float *v = p->x[part] + i * p->columns + c;
                *v = (float)(((double)*v - mean) * scale);
            }
    }
}

static void put_classes(problem *p) {
    const basin_graphset *set = p->set;
    int64_t row = 0, known = 0, C = p->outputs;
    for (int64_t i = 0; i < p->fold->count[0]; i++) {
        int64_t graph = p->fold->item[0][i];
        int64_t first = of_nodes(p) ? set->node_start[graph] : graph;
        int64_t end = of_nodes(p) ? set->node_start[graph + 1] : graph + 1;
        for (int64_t k = first; k < end; k++, row++) {
            int32_t own = set->class_of[k];
            if (own < 0) continue;
            p->target[row * C + own] = 1;
            p->mean[own]++;
            for (int64_t c = 0; c < C; c++) p->weight[row * C + c] = 1;
            known++;
        }
    }
    for (int64_t i = 0; i < p->rows[0] * C; i++) p->weight[i] /= (float)(known ? known : 1);
}

static void put_values(problem *p) {
    int64_t C = p->outputs, known = 0;
    basin_graphs_value_scale(p->mean, p->scale, p->set, p->fold->item[0], p->rows[0]);
    for (int64_t i = 0; i < p->rows[0] * C; i++) {
        double y = (double)p->set->target[p->fold->item[0][i / C] * C + i % C];
        if (isnan(y)) continue;
        p->target[i] = (float)((y - p->mean[i % C]) / p->scale[i % C]);
        p->weight[i] = 1, known++;
    }
    for (int64_t i = 0; i < p->rows[0] * C; i++) p->weight[i] /= (float)(known ? known : 1);
}

static basin_status prepare(problem *p, basin_error *error) {
    const basin_graphset *set = p->set;
    basin_encoding_spec spec = {.standardise = true, .degrees = -1};
    BASIN_TRY(basin_graphset_encoding_new(&p->encoding, set, p->fold->item[0], p->fold->count[0],
                                          &spec, error));
    p->columns = p->encoding.features + 1;
    p->outputs = set->task == BASIN_GRAPHS_VALUES ? set->targets : set->classes;
    for (int part = 0; part < 3; part += 2) BASIN_TRY(fill_part(p, part, error));
    BASIN_TRY(BASIN_NEW(&p->target, p->rows[0] * p->outputs, "a baseline", error));
    BASIN_TRY(BASIN_NEW(&p->weight, p->rows[0] * p->outputs, "a baseline", error));
    BASIN_TRY(BASIN_NEW(&p->mean, p->outputs, "a baseline", error));
    BASIN_TRY(BASIN_NEW(&p->scale, p->outputs, "a baseline", error));
    standardise(p);
    (set->task == BASIN_GRAPHS_VALUES ? put_values : put_classes)(p);
    return BASIN_OK;
}

static void problem_free(problem *p) {
    for (int part = 0; part < 3; part++) free(p->x[part]);
    BASIN_FREE(p->target, p->weight, p->mean, p->scale);
    basin_graphset_encoding_free(&p->encoding);
}

static basin_status measure(basin_graphs_measures *measures, const problem *p, const float *output,
                            basin_error *error) {
    return basin_graphs_measure(measures, output, p->set, p->fold->item[2], p->fold->count[2],
                                p->outputs, p->scale, error);
}

/* A regression on a separate graph. */
typedef struct regression {
    basin_graph *graph;
    basin_params params;
    basin_store *store;
    basin_trainer *trainer;
    basin_plan *use;
    basin_expr x, target, weight, unseen, output;
} regression;

static basin_expr loss_of(const problem *p, const regression *r, basin_expr output) {
    if (p->set->task == BASIN_GRAPHS_VALUES)
        return basin_sum_all(basin_mul(r->weight, basin_abs(basin_sub(output, r->target))));
    basin_expr own = basin_sum(basin_mul(r->target, output), -1, 1);
    basin_expr row = basin_reshape(basin_slice(r->weight, 1, 0, 1), BASIN_SHAPE(p->rows[0]));
    return basin_sum_all(basin_mul(row, basin_sub(basin_logsumexp(output, -1), own)));
}

static basin_status build(regression *r, const problem *p, basin_backend *backend,
                          basin_error *error) {
    basin_shape cells = BASIN_SHAPE(p->rows[0], p->outputs);
    basin_init zero = {BASIN_INIT_CONSTANT, 0};
    r->graph = basin_graph_new();
    if (!r->graph) return basin_fail_memory(error, "a baseline");
    basin_params_begin(&r->params, r->graph);
    basin_expr w = basin_param_add(&r->params, "", "w", BASIN_SHAPE(p->columns, p->outputs), zero);
    basin_expr b = basin_param_add(&r->params, "", "b", BASIN_SHAPE(p->outputs), zero);
    r->x = basin_input(r->graph, "x", BASIN_SHAPE(p->rows[0], p->columns));
    r->unseen = basin_input(r->graph, "unseen", BASIN_SHAPE(p->rows[2], p->columns));
    r->target = basin_input(r->graph, "target", cells);
    r->weight = basin_input(r->graph, "weight", cells);
    basin_expr loss = loss_of(p, r, basin_add(basin_matmul(r->x, w), b));
    r->output = basin_add(basin_matmul(r->unseen, w), b);
    basin_trainer_spec spec = {
        .optimizer = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 1e-2},
        .schedule = {0, STEPS, 0.05, 0.05, 0}};
    basin_plan_spec use = {.output = &r->output, .outputs = 1};
    BASIN_TRY(basin_store_new(&r->store, backend, error));
    BASIN_TRY(basin_trainer_new(&r->trainer, r->store, &r->params, loss, &spec, error));
    BASIN_TRY(basin_params_init(&r->params, r->store, 0, error));
    return basin_plan_new(&r->use, r->store, &use, error);
}

static basin_status fit(float *output, regression *r, problem *p, basin_error *error) {
    basin_plan *plan = basin_trainer_plan(r->trainer);
    BASIN_TRY(basin_values_write(plan, r->x, p->x[0], BASIN_F32, error));
    BASIN_TRY(basin_values_write(plan, r->target, p->target, BASIN_F32, error));
    BASIN_TRY(basin_values_write(plan, r->weight, p->weight, BASIN_F32, error));
    for (int i = 0; i < STEPS; i++) BASIN_TRY(basin_trainer_step(NULL, r->trainer, error));
    BASIN_TRY(basin_values_write(r->use, r->unseen, p->x[2], BASIN_F32, error));
    BASIN_TRY(basin_plan_run(r->use, error));
    BASIN_TRY(basin_values_read(r->use, r->output, output, BASIN_F32, error));
    for (int64_t i = 0; i < p->rows[2] * p->outputs && p->set->task == BASIN_GRAPHS_VALUES; i++)
        output[i] = (float)((double)output[i] * p->scale[i % p->outputs] + p->mean[i % p->outputs]);
    return BASIN_OK;
}

static void regression_free(regression *r) {
    basin_plan_free(r->use);
    basin_trainer_free_at(&r->trainer);
    basin_store_free(r->store);
    basin_params_free(&r->params);
    basin_graph_free(r->graph);
}

static const char *name_of(basin_graphs_target target, bool fitted) {
    if (target == BASIN_GRAPHS_VALUES)
        return fitted ? "linear regression on sums of node features" : "the mean value";
    if (!fitted) return "the commonest class";
    return target == BASIN_GRAPHS_NODE_CLASSES ? "logistic regression on a node's own features"
                                               : "logistic regression on sums of node features";
}

basin_status basin_graphs_baseline(basin_graphs_baseline_result *result, const basin_graphset *set,
                                   const basin_fold *fold, basin_backend *backend,
                                   basin_error *error) {
    BASIN_AT_EXIT(problem_free) problem p = {.set = set, .fold = fold};
    BASIN_AT_EXIT(regression_free) regression r = {0};
    *result = (basin_graphs_baseline_result){
        .name = {name_of(set->task, false), name_of(set->task, true)}};
    BASIN_TRY(basin_graphs_check_labels(set, set->name, error));
    BASIN_TRY(prepare(&p, error));
    BASIN_SCRATCH(float, output, p.rows[2] * p.outputs, "a baseline", error);
    for (int64_t i = 0; i < p.rows[2] * p.outputs; i++) { /* of classes logarithms of shares */
        double own = p.mean[i % p.outputs];
        output[i] = (float)(set->task == BASIN_GRAPHS_VALUES ? own : log(own + 1e-9));
    }
    BASIN_TRY(measure(&result->constant, &p, output, error));
    BASIN_TRY(build(&r, &p, backend, error));
    BASIN_TRY(fit(output, &r, &p, error));
    return measure(&result->regression, &p, output, error);
}
