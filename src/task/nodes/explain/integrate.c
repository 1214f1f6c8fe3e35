/* What the network's inputs move a node's logit by: integrated gradients over the node, its
 * surroundings and their edges, along the straight line from typical inputs to their own, with the
 * engine's exact derivatives. They add up to the difference of the logits at both ends, up to the
 * steps of the integral, which are made finer until the gap is small. A mean over neighbours is
 * linear in them, so its part is handed on to them exactly. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/nodes/explain/pairs.h"

enum { STEPS_LEAST = 8, STEPS_MOST = 72 }; /* 8, 24, 72: the middles of thirds are kept */

typedef struct integral {
    basin_explainer *x;
    basin_around around;
    int64_t first; /* number of the first of these nodes among the explainer's */
    basin_nodes_batch batch;
    basin_store *store;
    basin_nodes_net net;
    basin_plan *plan;
    basin_expr pick, slope; /* [n]; [n, columns] */
    int64_t rows, columns;
    float *row;          /* [n, columns] to write */
    double *sum, *value; /* [n, columns] of slopes; the last one */
    double *logit;       /* [n] */
    double *low, *high;  /* [around.count] logits at the ends of the line */
    basin_pair_lines edges;
} integral;

/* ---- plans ---- */

static basin_status make_plan(integral *g, basin_error *error) {
    enum { MOST = BASIN_ANOMALY_RELATIONS + 1 };
    basin_expr to[MOST], output[MOST + 1];
    int count = 0;
    basin_status status = basin_store_new(&g->store, g->x->work.backend, error);
    if (!status)
        status = basin_nodes_net_new(&g->net, g->x->inputs.settings, &g->batch.shape, false, error);
    if (!status) status = basin_pair_lines_open(&g->edges, g->x, &g->net, &g->batch, error);
    if (status) return status;
    to[count++] = g->net.features;
    for (int r = 0; r < g->edges.count; r++) to[count++] = g->edges.of[r].input;
    g->pick = basin_input(g->net.graph, "pick", BASIN_SHAPE(g->rows));
    basin_grad_many(output, basin_sum_all(basin_mul(g->pick, g->net.logits)), to, count);
    g->slope = output[0];
    for (int r = 0; r < g->edges.count; r++) g->edges.of[r].slope = output[1 + r];
    output[count++] = g->net.logits;
    const basin_error *found = basin_graph_error(g->net.graph);
    if (found) return basin_fail(error, found->status, "%s", found->text);
    basin_plan_spec spec = {.output = output, .outputs = count};
    return basin_plan_new(&g->plan, g->store, &spec, error);
}

static basin_status write_inputs(integral *g, basin_error *error) {
    basin_nodes_net_data data = basin_nodes_batch_data(&g->batch);
    basin_status status = basin_nodes_net_write(&g->net, g->plan, &data, error);
    float *pick = calloc((size_t)g->rows, sizeof *pick);
    if (!pick) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for an explanation");
    for (int64_t i = 0; i < g->around.count; i++) pick[g->around.start[i]] = 1;
    basin_tensor tensor = basin_tensor_borrow(pick, BASIN_F32, BASIN_SHAPE(g->rows));
    if (!status) status = basin_plan_write(g->plan, g->pick, &tensor, error);
    free(pick);
    return status;
}

static basin_status integral_open(integral *g, basin_explainer *x, int64_t first,
                                  basin_error *error) {
    *g = (integral){.x = x, .first = first};
    basin_status status = basin_around_open(&g->around, x, first, error);
    if (status) return status;
    basin_nodes_source source = {.inputs = &x->inputs};
    status = basin_nodes_batch_take(&g->batch, &source, g->around.network, error);
    g->around.network = NULL; /* the batch's now */
    if (status) return status;
    g->rows = g->batch.network->nodes;
    g->columns = x->inputs.shape.columns;
    size_t cells = (size_t)(g->rows * g->columns), count = (size_t)g->around.count;
    g->row = basin_array_new(cells, sizeof *g->row);
    g->sum = basin_array_new(cells, sizeof *g->sum);
    g->value = basin_array_new(cells, sizeof *g->value);
    g->logit = basin_array_new((size_t)g->rows, sizeof *g->logit);
    g->low = basin_array_new(count, sizeof *g->low);
    g->high = basin_array_new(count, sizeof *g->high);
    if (!g->row || !g->sum || !g->value || !g->logit || !g->low || !g->high)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for an explanation");
    status = make_plan(g, error);
    return status ? status : write_inputs(g, error);
}

static void integral_close(integral *g) {
    basin_plan_free(g->plan);
    basin_nodes_net_free(&g->net);
    basin_store_free(g->store);
    basin_pair_lines_close(&g->edges);
    basin_nodes_batch_free(&g->batch);
    basin_around_close(&g->around);
    free(g->row), free(g->sum), free(g->value), free(g->logit), free(g->low), free(g->high);
}

/* ---- along the line ---- */

static double distance(const integral *g, int64_t cell) {
    return (double)g->batch.table[cell] - (double)g->x->input_typical[cell % g->columns];
}

static basin_status run_at(integral *g, double t, basin_error *error) {
    for (int64_t i = 0; i < g->rows * g->columns; i++)
        g->row[i] = (float)((double)g->x->input_typical[i % g->columns] + t * distance(g, i));
    basin_tensor tensor = basin_tensor_borrow(g->row, BASIN_F32, BASIN_SHAPE(g->rows, g->columns));
    basin_status status = basin_plan_write(g->plan, g->net.features, &tensor, error);
    if (!status) status = basin_pair_lines_write(&g->edges, g->plan, t, error);
    return status ? status : basin_plan_run(g->plan, error);
}

static basin_status read_end(double *end, integral *g, double t, basin_error *error) {
    basin_tensor tensor = basin_tensor_borrow(g->logit, BASIN_F64, BASIN_SHAPE(g->rows));
    basin_status status = run_at(g, t, error);
    if (!status) status = basin_plan_read(g->plan, g->net.logits, &tensor, error);
    for (int64_t i = 0; i < g->around.count && !status; i++) end[i] = g->logit[g->around.start[i]];
    return status;
}

static basin_status add_slope(integral *g, double t, basin_error *error) {
    basin_tensor tensor =
        basin_tensor_borrow(g->value, BASIN_F64, BASIN_SHAPE(g->rows, g->columns));
    basin_status status = run_at(g, t, error);
    if (!status) status = basin_plan_read(g->plan, g->slope, &tensor, error);
    for (int64_t i = 0; i < g->rows * g->columns && !status; i++) g->sum[i] += g->value[i];
    return status ? status : basin_pair_lines_add(&g->edges, g->plan, error);
}

/* How much is missing, of the node where it is most; a part of its distance. */
static double largest_gap(const integral *g, int steps) {
    double most = 0;
    for (int64_t i = 0; i < g->around.count; i++) {
        int64_t start = g->around.start[i], rows = g->around.start[i + 1] - start;
        double sum = basin_pair_lines_moved(&g->edges, start, rows) / steps;
        double wanted = g->high[i] - g->low[i];
        for (int64_t c = start * g->columns; c < (start + rows) * g->columns; c++)
            sum += g->sum[c] * distance(g, c) / steps;
        most = fmax(most, fabs(sum - wanted) / fmax(fabs(wanted), 0.5));
    }
    return most;
}

/* Sums of slopes at the middles of `steps` equal steps. */
static basin_status integrate(integral *g, int *steps, basin_error *error) {
    static const double enough = 0.02;
    memset(g->sum, 0, (size_t)(g->rows * g->columns) * sizeof *g->sum);
    basin_pair_lines_clear(&g->edges);
    basin_status status = read_end(g->low, g, 0, error);
    if (!status) status = read_end(g->high, g, 1, error);
    *steps = STEPS_LEAST;
    for (int s = 0; s < *steps && !status; s++) status = add_slope(g, (s + 0.5) / *steps, error);
    while (!status && *steps < STEPS_MOST && largest_gap(g, *steps) > enough) {
        *steps *= 3;
        for (int s = 0; s < *steps && !status; s++)
            if (s % 3 != 1) status = add_slope(g, (s + 0.5) / *steps, error);
    }
    return status;
}

/* ---- telling ---- */

/* Inputs of one row: `scale` times the slope's sum gives the mean slope with its weight. */
typedef struct place {
    const basin_explainer *x;
    basin_told *told;
    const double *sum;  /* [columns] */
    const float *table; /* [columns] its inputs */
    double scale;
} place;

static int64_t planes_of(const basin_explainer *x) {
    return x->inputs.shape.columns / (x->inputs.features * (1 + x->inputs.settings->hops));
}

static double moves(const place *p, int64_t column, double input) {
    return p->scale * p->sum[column] * (input - (double)p->x->input_typical[column]);
}

/* All features of a row that lies `far` hops away; their sum. */
static double tell_row(const place *p, int64_t far) {
    int64_t F = p->x->inputs.features, planes = planes_of(p->x);
    double all = 0;
    for (int64_t c = 0; c < p->x->inputs.shape.columns; c++) {
        double one = moves(p, c, (double)p->table[c]);
        basin_told_add(p->told, p->x, c % F, c / (F * planes) + far, one);
        all += one;
    }
    return all;
}

/* The node's own row: means over neighbours come through them. */
static void tell_own(const place *p) {
    const basin_node_inputs *inputs = &p->x->inputs;
    const basin_relation *r = basin_node_inputs_hops(inputs);
    int64_t C = inputs->shape.columns, width = inputs->features * planes_of(p->x), count = 0;
    int64_t node = p->told->node;
    tell_row(p, 0);
    for (int64_t c = 0; c < width; c++)
        basin_told_push(p->told, -1, moves(p, c, (double)p->table[c]));
    for (int64_t e = r->row[node]; e < r->row[node + 1]; e++) count += r->col[e] != node;
    for (int64_t e = r->row[node]; e < r->row[node + 1]; e++) {
        const float *from = inputs->table + r->col[e] * C;
        double all = 0;
        if (r->col[e] == node) continue;
        for (int64_t c = width; c < C; c++) all += moves(p, c, (double)from[c - width]);
        basin_told_push(p->told, r->col[e], all / (double)count);
    }
    for (int64_t c = width; c < C && !count; c++)
        basin_told_push(p->told, -1, moves(p, c, (double)p->table[c]));
}

static basin_status tell(integral *g, int64_t i, double scale, basin_error *error) {
    const basin_surroundings *s = &g->around.of[i];
    basin_status status = BASIN_OK;
    for (int64_t n = 0; n < s->count && !status; n++) {
        int64_t at = (g->around.start[i] + n) * g->columns;
        place p = {g->x, &g->x->told[g->first + i], g->sum + at, g->batch.table + at, scale};
        if (n == 0)
            tell_own(&p);
        else if (n <= s->firsts)
            basin_told_push(p.told, s->node[n], tell_row(&p, 1));
        else
            status = basin_told_push_between(p.told, g->x, s->node[n], tell_row(&p, 2), error);
    }
    if (status) return status;
    return basin_pair_lines_tell(&g->edges, g->x, &g->x->told[g->first + i], s, g->around.start[i],
                                 scale, error);
}

/* One member, of which the mean over all has its part. */
static basin_status tell_member(integral *g, int64_t member, basin_error *error) {
    const basin_nodes_model *model = g->x->model;
    double weight = g->x->weight[BASIN_NODES_NETWORK] / (double)model->members;
    int steps = 0;
    basin_status status = basin_params_read(&g->net.params, g->store, model->member[member], error);
    if (!status)
        status = basin_nodes_mask_write(g->plan, g->net.mask, g->x->inputs.settings, member, error);
    if (!status) status = integrate(g, &steps, error);
    for (int64_t i = 0; i < g->around.count && !status; i++) {
        basin_told *told = &g->x->told[g->first + i];
        told->typical += weight * g->low[i];
        told->reached += weight * g->high[i];
        status = tell(g, i, weight / steps, error);
    }
    return status;
}

basin_status basin_explain_network(basin_explainer *x, basin_error *error) {
    basin_status status = BASIN_OK;
    if (!(x->weight[BASIN_NODES_NETWORK] > 0)) return BASIN_OK;
    for (int64_t first = 0; first < x->count && !status;) {
        integral g;
        status = integral_open(&g, x, first, error);
        for (int64_t m = 0; m < x->model->members && !status; m++)
            status = tell_member(&g, m, error);
        first += g.around.count;
        integral_close(&g);
    }
    return status;
}
