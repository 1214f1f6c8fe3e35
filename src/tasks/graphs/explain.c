/* Why a graph gets its output: gradients integrated from a blank graph of the same shape to the
 * graph itself, so that what nodes and edges add makes up the difference of the outputs; and for
 * Energy Transformers the attention of the CLS token and the energy of each node. */
#include "base/info.h"
#include "base/states.h"
#include "tasks/common/integrate.h"
#include "tasks/graphs/graphs.h"

/* Fixed points take long, and where one follows another no halving helps. */
enum { MAX_HALVED = 4000, MAX_IMPLICIT = 60, PATHS = 3 };

/* One graph with its plan. */
typedef struct lens {
    basin_graphs_model *model;
    basin_graphs_input input;
    basin_graphset_batch data;
    basin_graph *graph;
    basin_params params;
    basin_graph_net net;
    basin_graph_net_batch batch;
    basin_graph_net_view view;
    basin_expr pick, hide, output, score;
    basin_plan *plan;
    basin_graphs_scratch scratch;
    basin_line line[PATHS]; /* node features, positions, edges; NULL inputs: there is none */
} lens;

static void lens_close(lens *l) {
    basin_plan_free(l->plan);
    if (l->graph) basin_params_free(&l->params);
    basin_graph_free(l->graph);
    basin_graphset_batch_free(&l->data);
    basin_graphs_input_free(&l->input);
    basin_line_free(l->line, PATHS);
    free(l->scratch.data);
}

/* ---- the plan ---- */

/* For classes, the log odds: `pick` is 1 at the class in question, `hide` removes it, and outputs
 * that are not classes, from the sum over the others. */
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
    basin_graph_net_config config = basin_graphs_model_config(l->model, NULL);
    const basin_graphset_batch *b = &l->data;
    if (basin_graph_net_declare(&l->net, &l->params, &config)) return;
    basin_graph_net_inputs(&l->batch, &l->net, l->graph, 1, b->nodes, b->pairs.pairs);
    basin_graph_net_inspect(&l->view, &l->net, &l->batch);
    l->output = basin_graph_net_forward(&l->net, &l->batch);
    if (l->output) build_score(l);
}

/* An edge is a pair that is not of the CLS: neither among its own, nor the first of a node. */
static bool is_edge(const basin_graphset_batch *b, int64_t query, int64_t pair) {
    return query > 0 && pair > b->pairs.row[query];
}

/* From a blank graph: features of nodes, positions of all tokens but the CLS, and features of pairs
 * that are edges. */
static basin_status open_lines(lens *l, basin_error *error) {
    const basin_graphset_batch *b = &l->data;
    const basin_expr input[PATHS] = {l->batch.nodes, l->batch.positions, l->batch.edge_features};
    const float *own[PATHS] = {b->feature, b->position, b->edge_feature};
    for (int i = 0; i < PATHS; i++) {
        basin_line *line = &l->line[i];
        if (!input[i]) continue;
        BASIN_TRY(basin_line_open(line, input[i], 1, error));
        line->slope = basin_grad(l->score, input[i]);
        memcpy(line->own, own[i], (size_t)line->cells * sizeof *line->own);
        int64_t columns = basin_expr_shape(input[i]).dim[1];
        if (i == 1) memcpy(line->base, line->own, (size_t)columns * sizeof *line->base);
        for (int64_t t = 0; t < b->tokens && i == 2; t++)
            for (int64_t p = b->pairs.row[t]; p < b->pairs.row[t + 1]; p++)
                if (!is_edge(b, t, p))
                    memcpy(line->base + p * columns, line->own + p * columns,
                           (size_t)columns * sizeof *line->base);
    }
    return BASIN_OK;
}

static basin_status make_plan(lens *l, basin_error *error) {
    basin_expr output[3 + PATHS + 4];
    int outputs = 0;
    l->graph = basin_graph_new();
    if (!l->graph) return basin_fail_memory(error, "an explanation");
    basin_params_begin(&l->params, l->graph);
    build(l);
    if (!basin_graph_error(l->graph)) BASIN_TRY(open_lines(l, error));
    BASIN_TRY(basin_graph_check(l->graph, error));
    output[outputs++] = l->score;
    output[outputs++] = l->output;
    for (int i = 0; i < PATHS; i++)
        if (l->line[i].input) output[outputs++] = l->line[i].slope;
    if (l->view.share) output[outputs++] = l->view.share;
    for (int i = 0; i < 3; i++)
        if (l->view.energy[i]) output[outputs++] = l->view.energy[i];
    basin_plan_spec spec = {.output = output, .outputs = outputs};
    return basin_plan_new(&l->plan, l->model->store, &spec, error);
}

static basin_status write_choice(lens *l, int64_t column, basin_error *error) {
    const basin_graphs_model *m = l->model;
    BASIN_SCRATCH(float, pick, 2 * m->outputs, "an explanation", error);
    float *hide = pick + m->outputs;
    pick[column] = 1;
    for (int64_t c = 0; c < m->outputs; c++) hide[c] = c == column || c >= m->classes ? -1e9f : 0;
    BASIN_TRY(basin_values_write(l->plan, l->pick, pick, BASIN_F32, error));
    return basin_values_write(l->plan, l->hide, hide, BASIN_F32, error);
}

static basin_status lens_open(lens *l, basin_graphs_model *model, const basin_graphset *set,
                              int64_t graph, basin_error *error) {
    const basin_graphs_settings *s = &model->settings;
    *l = (lens){.model = model};
    BASIN_TRY(basin_graphs_input_begin(&l->input, s, set, graph, 1, error));
    if (basin_graphset_resized(&l->input.set, graph))
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "graph %lld is cut or padded by max_nodes or sinks of the model; needs "
                          "one that is not",
                          (long long)graph);
    BASIN_TRY(
        basin_graphs_input_match(&l->input, model, basin_graphs_path(NULL, set), false, error));
    BASIN_TRY(basin_graphs_input_place(&l->input, s, graph, 1, error));
    BASIN_TRY(basin_graphset_batch_fill(&l->data, &l->input.set, &model->encoding,
                                        &l->input.positions, &graph, 1, false, 0, 0, error));
    BASIN_TRY(make_plan(l, error));
    return basin_graphs_batch_write(l->plan, &l->batch, &l->data, &l->scratch, error);
}

static basin_status read_score(double *score, void *context, basin_error *error) {
    lens *l = context;
    (void)error;
    *score = basin_plan_scalar(l->plan, l->score);
    return BASIN_OK;
}

static double allowed(double way) { return 2e-3 * fabs(way) + 1e-4; }

/* ---- the explanation ---- */

static basin_status read_output(basin_tensor *all, lens *l, basin_expr output, basin_error *error) {
    BASIN_TRY(basin_tensor_new(all, BASIN_F64, basin_expr_shape(output), error));
    return basin_plan_read(all, l->plan, output, error);
}

/* Adds a [tokens] output to the nodes. */
static basin_status add_tokens(double *to, lens *l, basin_expr output, basin_error *error) {
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor all = {0};
    if (!output) return BASIN_OK;
    BASIN_TRY(read_output(&all, l, output, error));
    for (int64_t t = 1; t < l->data.tokens; t++) to[t - 1] += ((const double *)all.data)[t];
    return BASIN_OK;
}

/* The pairs of the CLS token are the first, with itself or not. */
static basin_status read_attention(basin_graphs_explanation *e, lens *l, basin_error *error) {
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor all = {0};
    const basin_pairs *pairs = &l->data.pairs;
    if (!l->view.share) return BASIN_OK;
    BASIN_TRY(read_output(&all, l, l->view.share, error));
    for (int32_t p = 0; p < pairs->row[1]; p++)
        if (pairs->key[p] > 0) e->attention[pairs->key[p] - 1] = ((const double *)all.data)[p];
    return BASIN_OK;
}

/* What row `row` of an input adds. */
static double added(const lens *l, int which, int64_t row) {
    const basin_line *line = &l->line[which];
    if (!line->input) return 0;
    int64_t columns = basin_expr_shape(line->input).dim[1];
    return basin_line_moves(line, line->sum, row * columns, (row + 1) * columns);
}

static void collect(basin_graphs_explanation *e, const lens *l, double unit) {
    const basin_graphset_batch *b = &l->data;
    const basin_graphset *set = &l->input.set;
    int64_t edge = 0, at = set->edge_start[e->graph];
    e->missed = e->output - e->blank;
    for (int64_t n = 0; n < e->nodes; n++) {
        e->node[n] = unit * (added(l, 0, n) + added(l, 1, n + 1));
        e->missed -= e->node[n];
    }
    for (int64_t t = 0; t < b->tokens; t++)
        for (int64_t p = b->pairs.row[t]; p < b->pairs.row[t + 1]; p++)
            if (is_edge(b, t, p)) { /* a pair that is not an edge counts for its node */
                double *to = basin_graphset_is_edge(set, at++) ? &e->edge[edge++] : &e->node[t - 1];
                double own = unit * added(l, 2, p);
                *to += own, e->missed -= own;
            }
}

static basin_status explain(basin_graphs_explanation *e, lens *l, int64_t column,
                            basin_error *error) {
    const basin_graphs_model *m = l->model;
    bool values = m->target == BASIN_GRAPHS_VALUES;
    int64_t columns = basin_graphs_columns(m);
    double ends[2], all = 1;
    basin_quadrature how = {.allowed = allowed,
                            .max_pieces = m->settings.implicit ? MAX_IMPLICIT : MAX_HALVED};
    basin_lines lines = {l->line, PATHS, l->plan, 1, read_score, l};
    if (column >= columns)
        return basin_fail(error, BASIN_BAD_VALUE, "column %lld; the model has %lld",
                          (long long)column, (long long)columns);
    e->column = column < 0 ? 0 : column; /* of values the first */
    BASIN_TRY(write_choice(l, e->column, error));
    BASIN_TRY(basin_lines_run(&lines, &all, ends, error)); /* of the graph itself: */
    double unit = values ? m->target_scale[e->column] : 1,
           mean = values ? m->target_mean[e->column] : 0;
    BASIN_TRY(read_attention(e, l, error));
    for (int i = 0; i < 3; i++) BASIN_TRY(add_tokens(e->energy, l, l->view.energy[i], error));
    e->has_energy = l->view.energy[0] || l->view.energy[1];
    BASIN_TRY(basin_lines_integrate(ends, &lines, &how, error));
    e->blank = ends[0] * unit + mean, e->output = ends[1] * unit + mean;
    collect(e, l, unit);
    return BASIN_OK;
}

/* One block holds all numbers. */
static basin_status reserve(basin_graphs_explanation *e, const basin_graphset *set, int64_t graph,
                            basin_error *error) {
    e->graph = graph;
    e->nodes = set->node_start[graph + 1] - set->node_start[graph];
    e->edges = set->edge_start[graph + 1] - set->edge_start[graph];
    BASIN_TRY(BASIN_NEW(&e->node, 4 * e->nodes + e->edges, "an explanation", error));
    e->edge = e->node + e->nodes, e->attention = e->edge + e->edges;
    e->energy = e->attention + e->nodes, e->memory = e->energy + e->nodes;
    return BASIN_OK;
}

/* Adds a member's explanation, weighted by its share. */
static basin_status add_member(basin_graphs_explanation *e, basin_graphs_model *model,
                               const basin_graphset *set, int64_t member, int64_t column,
                               basin_error *error) {
    double share = 1 / (double)model->members;
    BASIN_AT_EXIT(lens_close) lens l = {0};
    BASIN_AT_EXIT(basin_graphs_explanation_free) basin_graphs_explanation own = {0};
    BASIN_TRY(reserve(&own, set, e->graph, error));
    BASIN_TRY(basin_graphs_take_member(model, member, error));
    BASIN_TRY(lens_open(&l, model, set, e->graph, error));
    BASIN_TRY(explain(&own, &l, column, error));
    e->column = own.column, e->has_energy = own.has_energy;
    e->output += share * own.output, e->blank += share * own.blank, e->missed += share * own.missed;
    for (int64_t i = 0; i < 4 * e->nodes + e->edges; i++) e->node[i] += share * own.node[i];
    return BASIN_OK;
}

/* Sets e->predicted and, where it is open, the column: the class that the members' mean predicts.
 */
static basin_status predict(basin_graphs_explanation *e, int64_t *column, basin_graphs_model *model,
                            const basin_graphset *set, basin_error *error) {
    int64_t value = 0, columns = basin_graphs_columns(model);
    BASIN_SCRATCH(float, output, columns, "an explanation", error);
    basin_graphs_data data = {.set = set, .graph = &e->graph, .graphs = 1};
    basin_graphs_predict_result result = {.output = output, .class_value = &value};
    BASIN_TRY(basin_graphs_predict(&result, model, &data, NULL, error));
    if (*column < 0 && model->target == BASIN_GRAPHS_CLASSES)
        *column = basin_graphs_class_number(model, value);
    if (*column < columns) e->predicted = (double)output[*column < 0 ? 0 : *column];
    return BASIN_OK;
}

static basin_status explain_graph(basin_graphs_explanation *e, basin_graphs_model *model,
                                  const basin_graphset *set, int64_t graph, int64_t column,
                                  basin_error *error) {
    if (model->target == BASIN_GRAPHS_NODE_CLASSES)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "the model predicts classes of nodes; expected a model of graphs");
    if (graph < 0 || graph >= set->graphs)
        return basin_fail(error, BASIN_BAD_VALUE, "graph %lld; expected 0 to %lld",
                          (long long)graph, (long long)set->graphs - 1);
    BASIN_TRY(reserve(e, set, graph, error));
    BASIN_TRY(predict(e, &column, model, set, error));
    if (set->line && set->node_labels == 4 && set->edge_labels == 1 && !set->node_attributes)
        return column < basin_graphs_columns(model)
                   ? basin_graphs_substitute(e, model, set, column < 0 ? 0 : column, error)
                   : basin_fail(error, BASIN_BAD_VALUE, "column %lld; the model has %lld",
                                (long long)column, (long long)basin_graphs_columns(model));
    for (int64_t k = 0; k < model->members; k++)
        BASIN_TRY(add_member(e, model, set, k, column, error));
    BASIN_TRY(basin_graphs_near_explain(e, model, set, error));
    return basin_graphs_take_member(model, 0, error);
}

basin_status basin_graphs_explain(basin_graphs_explanation *explanation, basin_graphs_model *model,
                                  const basin_graphset *set, int64_t graph, int64_t column,
                                  basin_error *error) {
    *explanation = (basin_graphs_explanation){0};
    BASIN_TRY_OR(explain_graph(explanation, model, set, graph, column, error),
                 basin_graphs_explanation_free(explanation));
    return BASIN_OK;
}

void basin_graphs_explanation_free(basin_graphs_explanation *explanation) {
    free(explanation->node);
    *explanation = (basin_graphs_explanation){0};
}
