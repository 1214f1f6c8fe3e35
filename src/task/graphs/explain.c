/* Why a graph gets its output: gradients integrated from a blank graph of the same shape to the
 * graph itself, so that what nodes and edges add makes up the difference of the outputs; and for
 * Energy Transformers the attention of the CLS token and the energy of each node. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "task/graphs/graphs.h"

enum { LEAST_DEPTH = 4, MOST_DEPTH = 24, MOST_RUNS = 4000, PATHS = 3 };

/* A number an input has along the path: `rows` rows of `columns`, of which those that move go from
 * 0 to their value. */
typedef struct path {
    basin_expr input, slope; /* NULL: there is no such input */
    const float *value;      /* [rows, columns] */
    const bool *moves;       /* [rows]; NULL: all */
    int64_t rows, columns;
    float *now;    /* [rows, columns] */
    double *added; /* [rows] what a row adds */
} path;

/* One graph on a plan of its own. */
typedef struct lens {
    basin_graphs_model *model;
    basin_graphs_input input;
    basin_graphset_batch data;
    basin_graph *graph;
    basin_params params;
    basin_graphs net;
    basin_graphs_batch batch;
    basin_graphs_view view;
    basin_expr pick, hide, output, score;
    basin_plan *plan;
    bool *is_node, *is_edge; /* [tokens] [pairs] */
    path path[PATHS];        /* node features, positions, edges */
} lens;

static basin_status no_memory(basin_error *error) {
    return basin_fail_memory(error, "an explanation");
}

static void lens_close(lens *l) {
    basin_plan_free(l->plan);
    if (l->graph) basin_params_free(&l->params);
    basin_graph_free(l->graph);
    basin_graphset_batch_free(&l->data);
    basin_graphs_input_free(&l->input);
    for (int i = 0; i < PATHS; i++) free(l->path[i].now), free(l->path[i].added);
    free(l->is_node);
    free(l->is_edge);
}

/* ---- the plan ---- */

/* Of classes the logarithm of their odds: `pick` has 1 at the one that is asked about, `hide` takes
 * it, and outputs that are no class, from the sum over the others. */
static void build_score(lens *l) {
    basin_shape cells = BASIN_SHAPE(1, l->model->outputs);
    l->pick = basin_input(l->graph, "pick", cells);
    l->score = basin_sum_all(basin_mul(l->pick, l->output));
    if (l->model->target == BASIN_GRAPHS_VALUES) return;
    l->hide = basin_input(l->graph, "hide", cells);
    basin_expr others = basin_logsumexp(basin_add(l->output, l->hide), -1);
    l->score = basin_sub(l->score, basin_sum_all(others));
}

static void build(lens *l) {
    basin_graphs_config config = basin_graphs_model_config(l->model, NULL);
    const basin_graphset_batch *b = &l->data;
    if (basin_graphs_declare(&l->net, &l->params, &config)) return;
    l->batch = basin_graphs_inputs(&l->net, l->graph, 1, b->nodes, b->pairs.pairs);
    basin_graphs_look(&l->view, &l->net, &l->batch);
    l->output = basin_graphs_forward(&l->net, &l->batch);
    if (!l->output) return;
    build_score(l);
    basin_expr moved[PATHS] = {l->batch.nodes, l->batch.positions, l->batch.edge_features};
    for (int i = 0; i < PATHS; i++) {
        l->path[i].input = moved[i];
        if (moved[i]) l->path[i].slope = basin_grad(l->score, moved[i]);
    }
}

static basin_status make_plan(lens *l, basin_error *error) {
    basin_expr output[3 + PATHS + 4];
    int outputs = 0;
    l->graph = basin_graph_new();
    if (!l->graph) return no_memory(error);
    basin_params_begin(&l->params, l->graph);
    build(l);
    const basin_error *found = basin_graph_error(l->graph);
    if (found) return basin_fail(error, found->status, "%s", found->text);
    output[outputs++] = l->score;
    output[outputs++] = l->output;
    for (int i = 0; i < PATHS; i++)
        if (l->path[i].slope) output[outputs++] = l->path[i].slope;
    if (l->view.share) output[outputs++] = l->view.share;
    for (int i = 0; i < 3; i++)
        if (l->view.energy[i]) output[outputs++] = l->view.energy[i];
    basin_plan_spec spec = {.output = output, .outputs = outputs};
    return basin_plan_new(&l->plan, l->model->store, &spec, error);
}

/* ---- inputs ---- */

static basin_status put(lens *l, basin_expr input, const void *data, basin_dtype dtype,
                        basin_error *error) {
    if (!input) return BASIN_OK;
    basin_tensor tensor = basin_tensor_borrow(data, dtype, basin_expr_shape(input));
    return basin_plan_write(l->plan, input, &tensor, error);
}

static basin_status write_fixed(lens *l, basin_error *error) {
    const basin_graphset_batch *b = &l->data;
    const basin_graphs_batch *to = &l->batch;
    const struct {
        basin_expr input;
        const void *data;
        basin_dtype dtype;
    } part[] = {{to->edge_features, b->edge_feature, BASIN_F32},
                {to->share, b->share, BASIN_F32},
                {to->strength, b->strength, BASIN_F32},
                {to->source, b->source, BASIN_I32},
                {to->before, b->before, BASIN_I32},
                {to->after, b->after, BASIN_I32},
                {to->owner, b->owner, BASIN_I32},
                {to->first, b->first, BASIN_I32}};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        BASIN_TRY(put(l, part[i].input, part[i].data, part[i].dtype, error));
    return basin_pairs_write(l->plan, &to->pattern, &b->pairs, error);
}

static basin_status write_choice(lens *l, int64_t column, basin_error *error) {
    const basin_graphs_model *m = l->model;
    float *cell = calloc((size_t)(2 * m->outputs), sizeof *cell);
    if (!cell) return no_memory(error);
    float *pick = cell, *hide = cell + m->outputs;
    pick[column] = 1;
    for (int64_t c = 0; c < m->outputs; c++) hide[c] = c == column || c >= m->classes ? -1e9f : 0;
    basin_status status = put(l, l->pick, pick, BASIN_F32, error);
    if (!status) status = put(l, l->hide, hide, BASIN_F32, error);
    free(cell);
    return status;
}

/* Which tokens are nodes and which pairs edges: a node's first pair is with the CLS. */
static basin_status mark(lens *l, basin_error *error) {
    const basin_graphset_batch *b = &l->data;
    l->is_node = calloc((size_t)b->tokens, sizeof *l->is_node);
    l->is_edge = calloc((size_t)b->pairs.pairs + 1, sizeof *l->is_edge);
    if (!l->is_node || !l->is_edge) return no_memory(error);
    for (int64_t t = 1; t < b->tokens; t++) {
        l->is_node[t] = true;
        for (int32_t e = b->pairs.row[t] + 1; e < b->pairs.row[t + 1]; e++) l->is_edge[e] = true;
    }
    return BASIN_OK;
}

static basin_status open_paths(lens *l, basin_error *error) {
    const basin_graphset_batch *b = &l->data;
    BASIN_TRY(mark(l, error));
    const float *value[PATHS] = {b->feature, b->position, b->edge_feature};
    const bool *moves[PATHS] = {NULL, l->is_node, l->is_edge};
    for (int i = 0; i < PATHS; i++) {
        path *p = &l->path[i];
        if (!p->input) continue;
        basin_shape shape = basin_expr_shape(p->input);
        p->rows = shape.dim[0], p->columns = shape.dim[1];
        p->value = value[i], p->moves = moves[i];
        p->now = basin_array_new((size_t)(p->rows * p->columns), sizeof *p->now);
        p->added = calloc((size_t)p->rows + 1, sizeof *p->added);
        if (!p->now || !p->added) return no_memory(error);
    }
    return BASIN_OK;
}

static basin_status lens_open(lens *l, basin_graphs_model *model, const basin_graphs_data *data,
                              basin_error *error) {
    const basin_graphs_settings *s = &model->settings;
    int64_t graph = data->graph[0];
    *l = (lens){.model = model};
    BASIN_TRY(basin_graphs_input_begin(&l->input, s, data->set, graph, 1, error));
    BASIN_TRY(basin_graphs_input_match(&l->input, model, data->path, false, error));
    BASIN_TRY(basin_graphs_input_place(&l->input, s, graph, 1, data->cache, error));
    BASIN_TRY(basin_graphset_batch_fill(&l->data, &l->input.set, &model->encoding,
                                        &l->input.positions, &graph, 1, false, 0, 0, error));
    BASIN_TRY(make_plan(l, error));
    BASIN_TRY(open_paths(l, error));
    return write_fixed(l, error);
}

/* ---- the integral ---- */

/* The graph at the part `t` of the way. */
static basin_status run_at(lens *l, double t, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int i = 0; i < PATHS && !status; i++) {
        path *p = &l->path[i];
        for (int64_t k = 0; p->input && k < p->rows * p->columns; k++) {
            bool moves = !p->moves || p->moves[k / p->columns];
            p->now[k] = (float)((double)p->value[k] * (moves ? t : 1));
        }
        status = put(l, p->input, p->now, BASIN_F32, error);
    }
    return status ? status : basin_plan_run(l->plan, error);
}

/* The slopes where the plan has just run, each times its value, into `now`; and their sum. */
static basin_status read_slopes(double *sum, lens *l, basin_error *error) {
    basin_status status = BASIN_OK;
    *sum = 0;
    for (int i = 0; i < PATHS && !status; i++) {
        path *p = &l->path[i];
        if (!p->input) continue;
        basin_tensor slope = basin_tensor_borrow(p->now, BASIN_F32, basin_expr_shape(p->input));
        status = basin_plan_read(l->plan, p->slope, &slope, error);
        for (int64_t k = 0; k < p->rows * p->columns && !status; k++) {
            bool moves = !p->moves || p->moves[k / p->columns];
            p->now[k] *= moves ? p->value[k] : 0;
            *sum += (double)p->now[k];
        }
    }
    return status;
}

static void add_slopes(lens *l, double length) {
    for (int i = 0; i < PATHS; i++) {
        path *p = &l->path[i];
        for (int64_t k = 0; p->input && k < p->rows * p->columns; k++)
            p->added[k / p->columns] += length * (double)p->now[k];
    }
}

static double total(const lens *l) {
    double sum = 0;
    for (int i = 0; i < PATHS; i++)
        for (int64_t k = 0; l->path[i].input && k < l->path[i].rows; k++)
            sum += l->path[i].added[k];
    return sum;
}

/* A piece of the way, and the score at its ends. */
typedef struct piece {
    double from, to, first, last;
    int depth;
} piece;

/* Midpoints of pieces, which are halved until the slope there makes up the difference between the
 * ends: where tokens are nearly blank, a layer norm turns quickly. */
static basin_status integrate(lens *l, double first, double last, basin_error *error) {
    piece stack[MOST_DEPTH + 2] = {{0, 1, first, last, 0}};
    double allowed = 2e-3 * fabs(last - first) + 1e-4;
    int count = 1, runs = 0;
    basin_status status = BASIN_OK;
    while (count && !status) {
        piece p = stack[--count];
        double middle = 0.5 * (p.from + p.to), length = p.to - p.from, sum = 0;
        status = run_at(l, middle, error);
        double there = status ? 0 : basin_plan_scalar(l->plan, l->score);
        if (!status) status = read_slopes(&sum, l, error);
        bool good = fabs(sum * length - (p.last - p.first)) <= allowed * (length + 1.0 / 64);
        if ((good && p.depth >= LEAST_DEPTH) || p.depth == MOST_DEPTH || ++runs > MOST_RUNS) {
            add_slopes(l, length);
            continue;
        }
        stack[count++] = (piece){middle, p.to, there, p.last, p.depth + 1};
        stack[count++] = (piece){p.from, middle, p.first, there, p.depth + 1};
    }
    return status;
}

/* ---- the explanation ---- */

/* Adds a [tokens] output to the nodes. */
static basin_status add_tokens(double *to, lens *l, basin_expr output, basin_error *error) {
    basin_tensor all;
    if (!output) return BASIN_OK;
    BASIN_TRY(basin_tensor_new(&all, BASIN_F64, basin_expr_shape(output), error));
    basin_status status = basin_plan_read(l->plan, output, &all, error);
    for (int64_t t = 1; t < l->data.tokens && !status; t++)
        to[t - 1] += ((const double *)all.data)[t];
    basin_tensor_free(&all);
    return status;
}

/* The pairs of the CLS token are the first, with itself or not. */
static basin_status read_attention(basin_graphs_explanation *e, lens *l, basin_error *error) {
    basin_tensor all;
    if (!l->view.share) return BASIN_OK;
    BASIN_TRY(basin_tensor_new(&all, BASIN_F64, basin_expr_shape(l->view.share), error));
    basin_status status = basin_plan_read(l->plan, l->view.share, &all, error);
    for (int32_t p = 0; p < l->data.pairs.row[1] && !status; p++)
        if (l->data.pairs.key[p] > 0)
            e->attention[l->data.pairs.key[p] - 1] = ((const double *)all.data)[p];
    basin_tensor_free(&all);
    return status;
}

static basin_status look(basin_graphs_explanation *e, lens *l, basin_error *error) {
    basin_status status = read_attention(e, l, error);
    for (int i = 0; i < 3 && !status; i++)
        status = add_tokens(e->energy, l, l->view.energy[i], error);
    e->has_energy = l->view.energy[0] || l->view.energy[1];
    return status;
}

static void collect(basin_graphs_explanation *e, const lens *l, double unit) {
    const path *p = l->path;
    int64_t edge = 0;
    for (int64_t n = 0; n < e->nodes; n++) {
        e->node[n] = unit * p[0].added[n];
        if (p[1].input) e->node[n] += unit * p[1].added[n + 1];
    }
    for (int64_t k = 0; k < l->data.pairs.pairs; k++)
        if (l->is_edge[k]) e->edge[edge++] = unit * p[2].added[k];
    e->missed = e->output - e->blank - unit * total(l);
}

/* The class with the highest output, where none was asked for. */
static basin_status choose(basin_graphs_explanation *e, lens *l, int64_t column,
                           basin_error *error) {
    const basin_graphs_model *m = l->model;
    int64_t columns = basin_graphs_about(m).columns;
    basin_tensor all;
    if (column >= columns)
        return basin_fail(error, BASIN_BAD_VALUE, "column %lld; the model has %lld",
                          (long long)column, (long long)columns);
    e->column = column < 0 ? 0 : column;
    basin_status status = write_choice(l, e->column, error);
    if (!status) status = run_at(l, 1, error);
    if (status || column >= 0 || m->target == BASIN_GRAPHS_VALUES) return status;
    BASIN_TRY(basin_tensor_new(&all, BASIN_F64, BASIN_SHAPE(1, m->outputs), error));
    status = basin_plan_read(l->plan, l->output, &all, error);
    const double *z = all.data;
    for (int64_t c = 1; c < columns && !status; c++)
        if (z[c] > z[e->column]) e->column = c;
    basin_tensor_free(&all);
    if (!status) status = write_choice(l, e->column, error);
    return status ? status : run_at(l, 1, error);
}

static basin_status explain(basin_graphs_explanation *e, lens *l, int64_t column,
                            basin_error *error) {
    const basin_graphs_model *m = l->model;
    basin_status status = choose(e, l, column, error);
    bool values = m->target == BASIN_GRAPHS_VALUES;
    double unit = values ? m->target_scale[e->column] : 1,
           mean = values ? m->target_mean[e->column] : 0;
    if (!status) status = look(e, l, error);
    if (status) return status;
    double own = basin_plan_scalar(l->plan, l->score);
    status = run_at(l, 0, error);
    double blank = status ? 0 : basin_plan_scalar(l->plan, l->score);
    if (!status) status = integrate(l, blank, own, error);
    e->output = own * unit + mean, e->blank = blank * unit + mean;
    if (!status) collect(e, l, unit);
    return status;
}

static bool reserve(basin_graphs_explanation *e, const basin_graphset *set, int64_t graph) {
    e->graph = graph;
    e->nodes = set->node_start[graph + 1] - set->node_start[graph];
    e->edges = set->edge_start[graph + 1] - set->edge_start[graph];
    e->node = calloc((size_t)e->nodes + 1, sizeof *e->node);
    e->edge = calloc((size_t)e->edges + 1, sizeof *e->edge);
    e->attention = calloc((size_t)e->nodes + 1, sizeof *e->attention);
    e->energy = calloc((size_t)e->nodes + 1, sizeof *e->energy);
    return e->node && e->edge && e->attention && e->energy;
}

basin_status basin_graphs_explain(basin_graphs_explanation *explanation, basin_graphs_model *model,
                                  const basin_graphs_data *data, int64_t column,
                                  basin_error *error) {
    basin_graphs_data taken;
    lens l = {0};
    *explanation = (basin_graphs_explanation){0};
    basin_status status = BASIN_OK;
    taken = basin_graphs_data_of(data);
    if (model->target == BASIN_NODE_CLASSES)
        status = basin_fail(error, BASIN_UNSUPPORTED,
                            "a model of classes of nodes; wanted one of graphs");
    if (!status && (!taken.set || !taken.graph || taken.graphs != 1 || taken.graph[0] < 0 ||
                    taken.graph[0] >= taken.set->graphs))
        status = basin_fail(error, BASIN_BAD_VALUE, "wanted one graph of a set, 0 to %lld",
                            taken.set ? (long long)taken.set->graphs - 1 : 0);
    if (!status && !reserve(explanation, taken.set, taken.graph[0])) status = no_memory(error);
    if (!status) status = lens_open(&l, model, &taken, error);
    if (!status) status = explain(explanation, &l, column, error);
    lens_close(&l);
    if (status) basin_graphs_explanation_free(explanation);
    return status;
}

void basin_graphs_explanation_free(basin_graphs_explanation *explanation) {
    free(explanation->node);
    free(explanation->edge);
    free(explanation->attention);
    free(explanation->energy);
    *explanation = (basin_graphs_explanation){0};
}
