/* What inputs move the network's logit by, around a node; energies and attention; see explain.h. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/try.h"
#include "data/network/network.h"
#include "task/nodes/explain.h"

/* Neighbours at most, of one node and where there are many; nodes and edges that a batch may have
 * before it is closed. */
enum { FIRSTS = 128, FIRSTS_OF_MANY = 32, MANY = 16, NODES = 20000, EDGES = 400000 };

static basin_status no_memory(basin_error *error) {
    return basin_fail_memory(error, "the surroundings of a node");
}

/* ---- one node ---- */

typedef struct chooser {
    const basin_explainer *x;
    basin_surroundings *to;
    int64_t *mark, stamp; /* [N] nodes that are in it already */
} chooser;

static void take(chooser *c, int64_t node) {
    if (c->mark[node] == c->stamp) return;
    c->mark[node] = c->stamp;
    c->to->node[c->to->count++] = node;
}

/* Some neighbours of neighbours, as many of each. */
static basin_status take_seconds(chooser *c, int64_t each, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int64_t i = 1; i <= c->to->firsts && !status; i++) {
        int64_t *next, count;
        status = basin_vicinity_list(&next, &count, &c->x->near, c->to->node[i], error);
        int64_t taken = count < each ? count : each;
        for (int64_t k = 0; k < taken && !status; k++) take(c, next[k * count / taken]);
        free(next);
    }
    return status;
}

static basin_status choose(chooser *c, const basin_told *told, basin_error *error) {
    bool graph = basin_nodes_on_graph(&c->x->model->settings);
    int64_t most = c->x->count < MANY ? FIRSTS : FIRSTS_OF_MANY;
    int64_t firsts = told->neighbours < most ? told->neighbours : most;
    if (!graph) firsts = 0;
    int64_t each = firsts ? (most / 2 + firsts - 1) / firsts : 0; /* half as many of theirs */
    *c->to = (basin_surroundings){.firsts = firsts};
    c->to->node = basin_array_new((size_t)(1 + firsts * (1 + each)), sizeof *c->to->node);
    if (!c->to->node) return no_memory(error);
    c->stamp = told->node + 1;
    take(c, told->node);
    for (int64_t i = 0; i < firsts; i++) take(c, told->neighbour[i * told->neighbours / firsts]);
    return take_seconds(c, each, error);
}

/* ---- side by side ---- */

/* What edges carry, in their order. */
static basin_status join_facts(basin_relation *to, const basin_around *a,
                               basin_network *const *part, int r, basin_error *error) {
    int64_t width = a->network->facts.count, at = 0;
    if (!part[0]->relation[r].fact) return BASIN_OK;
    basin_status status = basin_relation_alloc_facts(to, &a->network->facts, error);
    for (int64_t i = 0; i < a->count && !status; i++) {
        const basin_relation *from = &part[i]->relation[r];
        if (from->edges)
            memcpy(to->fact + at, from->fact, (size_t)(from->edges * width) * sizeof *to->fact);
        at += from->edges * width;
    }
    return status;
}

/* Relation `r` of all parts, one behind the other. */
static basin_status join_relation(basin_around *a, basin_network *const *part, int r,
                                  basin_error *error) {
    basin_relation *to;
    BASIN_TRY(basin_network_new_relation(&to, a->network, part[0]->relation[r].name, error));
    for (int64_t i = 0; i < a->count; i++) to->edges += part[i]->relation[r].edges;
    to->row = calloc((size_t)a->network->nodes + 1, sizeof *to->row);
    to->col = basin_array_new((size_t)to->edges, sizeof *to->col);
    if (!to->row || !to->col) return no_memory(error);
    int64_t at = 0;
    for (int64_t i = 0; i < a->count; i++) {
        const basin_relation *from = &part[i]->relation[r];
        for (int64_t n = 0; n < part[i]->nodes; n++) to->row[a->start[i] + n] = at + from->row[n];
        for (int64_t e = 0; e < from->edges; e++)
            to->col[at++] = (int32_t)(from->col[e] + a->start[i]);
    }
    to->row[a->network->nodes] = at;
    return join_facts(to, a, part, r, error);
}

static basin_status join(basin_around *a, basin_network *const *part, const basin_network *whole,
                         basin_error *error) {
    int64_t nodes = a->start[a->count];
    BASIN_TRY(basin_network_new(&a->network, whole->path, nodes, error));
    a->network->directed = whole->directed;
    basin_status status = basin_facts_copy(&a->network->facts, &whole->facts, error);
    if (status) return status;
    a->network->origin = basin_array_new((size_t)nodes, sizeof *a->network->origin);
    if (!a->network->origin) return no_memory(error);
    for (int64_t i = 0; i < a->count; i++)
        memcpy(a->network->origin + a->start[i], a->of[i].node,
               (size_t)a->of[i].count * sizeof *a->of[i].node);
    for (int r = 0; r < whole->relations && !status; r++) status = join_relation(a, part, r, error);
    return status;
}

static int64_t edges_of(const basin_network *network) {
    int64_t edges = 0;
    for (int r = 0; r < network->relations; r++) edges += network->relation[r].edges;
    return edges;
}

/* Parts until the batch is full. */
static basin_status take_parts(basin_around *a, basin_network **part, chooser *c, int64_t first,
                               basin_error *error) {
    const basin_explainer *x = c->x;
    basin_status status = BASIN_OK;
    for (int64_t edges = 0; first + a->count < x->count && !status;) {
        int64_t i = a->count;
        bool full = i && (a->start[i] > NODES || edges > EDGES);
        if (full) break;
        c->to = &a->of[i];
        a->count++;
        status = choose(c, &x->told[first + i], error);
        if (!status)
            status = basin_network_induce(&part[i], x->network, c->to->node, c->to->count, error);
        if (status) break;
        a->start[i + 1] = a->start[i] + c->to->count;
        edges += edges_of(part[i]);
    }
    return status;
}

basin_status basin_around_open(basin_around *around, const basin_explainer *x, int64_t first,
                               basin_error *error) {
    size_t left = (size_t)(x->count - first);
    basin_network **part = calloc(left + 1, sizeof *part);
    chooser c = {.x = x, .mark = calloc((size_t)x->network->nodes + 1, sizeof *c.mark)};
    *around = (basin_around){0};
    around->of = calloc(left + 1, sizeof *around->of);
    around->start = calloc(left + 1, sizeof *around->start);
    basin_status status =
        part && c.mark && around->of && around->start ? BASIN_OK : no_memory(error);
    if (!status) status = take_parts(around, part, &c, first, error);
    if (!status) status = join(around, part, x->network, error);
    for (size_t i = 0; i < left && part; i++) basin_network_free(part[i]);
    free(part);
    free(c.mark);
    return status;
}

void basin_around_close(basin_around *around) {
    for (int64_t i = 0; i < around->count; i++) free(around->of[i].node);
    free(around->of);
    free(around->start);
    basin_network_free(around->network);
    *around = (basin_around){0};
}

/* ---- Facts of edges along the line of an integral, and what they are told as. */

static basin_status line_new(basin_pair_line *l, basin_expr input, const basin_pairs *pairs,
                             basin_error *error) {
    size_t cells = (size_t)basin_shape_count(basin_expr_shape(input));
    *l = (basin_pair_line){.pairs = pairs, .input = input, .cells = (int64_t)cells};
    l->own = calloc(cells + 1, sizeof *l->own);
    l->apart = calloc(cells + 1, sizeof *l->apart);
    l->row = basin_array_new(cells, sizeof *l->row);
    l->sum = basin_array_new(cells, sizeof *l->sum);
    l->value = basin_array_new(cells, sizeof *l->value);
    if (l->own && l->apart && l->row && l->sum && l->value) return BASIN_OK;
    return basin_fail_memory(error, "what edges explain");
}

/* A node's pair with itself, where it is added, is no edge and has no facts. */
static void set_apart(basin_pair_line *l, const basin_explainer *x, int64_t facts) {
    for (int64_t q = 0; q < l->pairs->queries; q++)
        for (int64_t p = l->pairs->row[q]; p < l->pairs->row[q + 1]; p++) {
            if (x->inputs.reader.add_self && l->pairs->key[p] == q) continue;
            for (int64_t c = 0; c < facts; c++)
                l->apart[p * facts + c] = l->own[p * facts + c] - x->edge_typical[c];
        }
}

basin_status basin_pair_lines_open(basin_pair_lines *lines, const basin_explainer *x,
                                   const basin_nodes_net *net, const basin_nodes_batch *batch,
                                   basin_error *error) {
    basin_status status = BASIN_OK;
    *lines = (basin_pair_lines){.facts = batch->shape.facts};
    for (int r = 0; r < batch->shape.relations && net->facts[r] && !status; r++) {
        basin_pair_line *l = &lines->of[lines->count++];
        const basin_pairs *pairs = &batch->pairs[r];
        float *own = NULL;
        status = line_new(l, net->facts[r], pairs, error);
        if (!status)
            status = basin_edge_facts(&own, batch->reader, batch->network, r, pairs, error);
        if (!status) {
            memcpy(l->own, own, (size_t)(pairs->pairs * lines->facts) * sizeof *own);
            set_apart(l, x, lines->facts);
        }
        free(own);
    }
    return status;
}

void basin_pair_lines_close(basin_pair_lines *lines) {
    for (int r = 0; r < lines->count; r++) {
        basin_pair_line *l = &lines->of[r];
        free(l->own), free(l->apart), free(l->row), free(l->sum), free(l->value);
    }
    *lines = (basin_pair_lines){0};
}

basin_status basin_pair_lines_write(basin_pair_lines *lines, basin_plan *plan, double t,
                                    basin_error *error) {
    basin_status status = BASIN_OK;
    for (int r = 0; r < lines->count && !status; r++) {
        basin_pair_line *l = &lines->of[r];
        for (int64_t i = 0; i < l->cells; i++) l->row[i] = l->own[i] - (float)(1 - t) * l->apart[i];
        basin_tensor tensor = basin_tensor_borrow(l->row, BASIN_F32, basin_expr_shape(l->input));
        status = basin_plan_write(plan, l->input, &tensor, error);
    }
    return status;
}

void basin_pair_lines_clear(basin_pair_lines *lines) {
    for (int r = 0; r < lines->count; r++)
        memset(lines->of[r].sum, 0, (size_t)lines->of[r].cells * sizeof *lines->of[r].sum);
}

basin_status basin_pair_lines_add(basin_pair_lines *lines, basin_plan *plan, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int r = 0; r < lines->count && !status; r++) {
        basin_pair_line *l = &lines->of[r];
        basin_tensor tensor = basin_tensor_borrow(l->value, BASIN_F64, basin_expr_shape(l->input));
        status = basin_plan_read(plan, l->slope, &tensor, error);
        for (int64_t i = 0; i < l->cells && !status; i++) l->sum[i] += l->value[i];
    }
    return status;
}

double basin_pair_lines_moved(const basin_pair_lines *lines, int64_t start, int64_t rows) {
    double sum = 0;
    for (int r = 0; r < lines->count; r++) {
        const basin_pair_line *l = &lines->of[r];
        int64_t end = l->pairs->row[start + rows] * lines->facts;
        for (int64_t i = l->pairs->row[start] * lines->facts; i < end; i++)
            sum += l->sum[i] * (double)l->apart[i];
    }
    return sum;
}

/* ---- telling ---- */

/* 0: the node itself, 1: a neighbour, 2: one of theirs. */
static int64_t hops_to(const basin_surroundings *around, int64_t at) {
    return at == 0 ? 0 : at <= around->firsts ? 1 : 2;
}

/* What an edge adds comes through the neighbour at its end; between two of them in halves. */
static basin_status push_pair(basin_told *told, const basin_explainer *x,
                              const basin_surroundings *around, int64_t a, int64_t b, double all,
                              basin_error *error) {
    int64_t far_a = hops_to(around, a), far_b = hops_to(around, b);
    if (far_a == 2 && far_b == 2)
        return basin_told_push_between(told, x, around->node[a], all, error);
    if (!far_a || !far_b) {
        basin_told_push(told, a + b ? around->node[a + b] : -1, all);
        return BASIN_OK;
    }
    double part = far_a == far_b ? all / 2 : all;
    if (far_a == 1) basin_told_push(told, around->node[a], part);
    if (far_b == 1) basin_told_push(told, around->node[b], part);
    return BASIN_OK;
}

basin_status basin_pair_lines_tell(const basin_pair_lines *lines, const basin_explainer *x,
                                   basin_told *told, const basin_surroundings *around,
                                   int64_t start, double scale, basin_error *error) {
    for (int r = 0; r < lines->count; r++) {
        const basin_pair_line *l = &lines->of[r];
        for (int64_t a = 0; a < around->count; a++)
            for (int64_t p = l->pairs->row[start + a]; p < l->pairs->row[start + a + 1]; p++) {
                int64_t b = l->pairs->key[p] - start, far = hops_to(around, a);
                bool goes = hops_to(around, b) < far; /* seen from its nearer end */
                int64_t slot = x->edge_slot[r] + (goes && x->network->directed ? lines->facts : 0);
                double all = 0;
                for (int64_t c = 0; c < lines->facts; c++) {
                    int64_t i = p * lines->facts + c;
                    double one = scale * l->sum[i] * (double)l->apart[i];
                    basin_told_add(told, x, slot + c, goes ? hops_to(around, b) : far, one);
                    all += one;
                }
                BASIN_TRY(push_pair(told, x, around, a, b, all, error));
            }
    }
    return BASIN_OK;
}

/* ---- What the network's inputs move a node's logit by: integrated gradients over the node, its
 * surroundings and their edges, along the straight line from typical inputs to their own, with the
 * engine's exact derivatives. They add up to the difference of the logits at both ends, up to the
 * steps of the integral, which are made finer until the gap is small. A mean over neighbours is
 * linear in them, so its part is handed on to them exactly. */

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
    basin_vjp(output, basin_sum_all(basin_mul(g->pick, g->net.logits)), NULL, to, count);
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
    if (!pick) return basin_fail_memory(error, "an explanation");
    for (int64_t i = 0; i < g->around.count; i++) pick[g->around.start[i]] = 1;
    basin_tensor tensor = basin_tensor_borrow(pick, BASIN_F32, BASIN_SHAPE(g->rows));
    if (!status) status = basin_plan_write(g->plan, g->pick, &tensor, error);
    free(pick);
    return status;
}

static basin_status integral_open(integral *g, basin_explainer *x, int64_t first,
                                  basin_error *error) {
    *g = (integral){.x = x, .first = first};
    BASIN_TRY(basin_around_open(&g->around, x, first, error));
    basin_nodes_source source = {.inputs = &x->inputs};
    basin_status status = basin_nodes_batch_take(&g->batch, &source, g->around.network, error);
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
        return basin_fail_memory(error, "an explanation");
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
    BASIN_TRY(basin_plan_write(g->plan, g->net.features, &tensor, error));
    BASIN_TRY(basin_pair_lines_write(&g->edges, g->plan, t, error));
    return basin_plan_run(g->plan, error);
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

/* ---- Energies of all nodes at the end of the descent, and the attention that explained nodes give
 * and get; on the whole graph, without gradients. See explain.h. */

/* The plan with everything that is asked of it. */
typedef struct lens {
    basin_explainer *x;
    basin_store *store;
    basin_nodes_net net;
    basin_plan *plan;
    basin_pairs pairs[BASIN_ANOMALY_RELATIONS];
    basin_expr part[2];                        /* [N] each: attention, memories; or NULL */
    basin_expr share[BASIN_ANOMALY_RELATIONS]; /* [pairs] mean over heads and blocks */
    double *energy[2];                         /* [N] each, means over members */
    double *value;                             /* [N or most pairs] */
} lens;

/* ---- expressions ---- */

/* Both parts of each node's energy at the tokens x. */
static void node_energies(lens *l, const basin_block *b, basin_expr x, int relation) {
    basin_block_bound bound = {
        .block = b, .pattern = &l->net.pattern[relation], .facts = l->net.facts[relation]};
    basin_expr weight = l->net.node_weight[relation];
    basin_block_view view = basin_block_look(&bound, basin_block_norm(b, x));
    basin_expr *part = view.energy;
    if (part[0] && weight) part[0] = basin_mul(part[0], weight);
    for (int i = 0; i < 2; i++)
        if (part[i]) l->part[i] = l->part[i] ? basin_add(l->part[i], part[i]) : part[i];
}

/* The model's descent once more, with an eye on each block. */
static void watch_descent(lens *l, int relation) {
    const basin_anomaly *m = &l->net.energy;
    basin_anomaly_bound bound = {.pattern = &l->net.pattern[relation],
                                 .weight = l->net.node_weight[relation],
                                 .facts = l->net.facts[relation]};
    basin_expr x = basin_anomaly_embed(m, l->net.seen, l->net.eigenvectors), sum = NULL;
    for (int b = 0; b < m->config.blocks; b++) {
        bound.block = basin_anomaly_block(m, b);
        basin_block_bound plain = {
            .block = bound.block, .pattern = bound.pattern, .facts = bound.facts};
        basin_expr one = basin_block_look(&plain, basin_block_norm(bound.block, x)).share;
        if (one) sum = sum ? basin_add(sum, one) : one;
        basin_energy energy = basin_anomaly_energy(&bound);
        x = basin_descend(&energy, x, &m->config.descent, NULL);
    }
    l->share[relation] = sum ? basin_scale(sum, 1.0 / m->config.blocks) : NULL;
    node_energies(l, bound.block, x, relation);
}

static basin_status lens_plan(lens *l, basin_error *error) {
    basin_expr output[2 + BASIN_ANOMALY_RELATIONS];
    int outputs = 0, relations = l->x->inputs.shape.relations;
    for (int r = 0; r < relations; r++) watch_descent(l, r);
    for (int i = 0; i < 2; i++)
        if (l->part[i]) output[outputs++] = l->part[i];
    for (int r = 0; r < relations; r++)
        if (l->share[r]) output[outputs++] = l->share[r];
    const basin_error *found = basin_graph_error(l->net.graph);
    if (found) return basin_fail(error, found->status, "%s", found->text);
    basin_plan_spec spec = {.output = output, .outputs = outputs};
    return basin_plan_new(&l->plan, l->store, &spec, error);
}

static basin_status lens_open(lens *l, basin_explainer *x, basin_error *error) {
    const basin_node_inputs *inputs = &x->inputs;
    int64_t most = inputs->shape.nodes;
    *l = (lens){.x = x};
    basin_status status = basin_store_new(&l->store, x->work.backend, error);
    if (!status)
        status = basin_nodes_net_new(&l->net, inputs->settings, &inputs->shape, false, error);
    if (!status) status = lens_plan(l, error);
    if (!status) status = basin_node_inputs_pairs(l->pairs, inputs, inputs->network, error);
    if (status) return status;
    basin_nodes_net_data data = basin_node_inputs_data(inputs, l->pairs);
    status = basin_nodes_net_write(&l->net, l->plan, &data, error);
    for (int r = 0; r < inputs->shape.relations; r++)
        if (inputs->shape.pairs[r] > most) most = inputs->shape.pairs[r];
    for (int i = 0; i < 2; i++)
        l->energy[i] = calloc((size_t)inputs->shape.nodes, sizeof *l->energy[i]);
    l->value = basin_array_new((size_t)most, sizeof *l->value);
    if (!status && (!l->energy[0] || !l->energy[1] || !l->value))
        status = basin_fail_memory(error, "an explanation");
    return status;
}

static void lens_close(lens *l) {
    basin_plan_free(l->plan);
    basin_nodes_net_free(&l->net);
    basin_store_free(l->store);
    for (int r = 0; r < BASIN_ANOMALY_RELATIONS; r++) basin_pairs_free(&l->pairs[r]);
    free(l->energy[0]), free(l->energy[1]), free(l->value);
}

/* ---- reading ---- */

static basin_status read_energies(lens *l, double factor, basin_error *error) {
    int64_t N = l->x->inputs.shape.nodes;
    basin_tensor tensor = basin_tensor_borrow(l->value, BASIN_F64, BASIN_SHAPE(N));
    basin_status status = BASIN_OK;
    for (int k = 0; k < 2 && !status; k++) {
        if (!l->part[k]) continue;
        status = basin_plan_read(l->plan, l->part[k], &tensor, error);
        for (int64_t i = 0; i < N && !status; i++) l->energy[k][i] += factor * l->value[i];
    }
    return status;
}

/* What an explained node gives its neighbours and what they give it. */
static void add_shares(basin_told *told, const basin_pairs *p, const double *share, double factor) {
    for (int64_t i = 0; i < told->neighbours; i++) {
        int32_t node = (int32_t)told->node, other = (int32_t)told->neighbour[i];
        int64_t given = basin_pairs_find(p, node, other), got = basin_pairs_find(p, other, node);
        if (given >= 0) told->share[i] += factor * share[given];
        if (got >= 0) told->returned[i] += factor * share[got];
    }
}

static basin_status read_shares(lens *l, double factor, basin_error *error) {
    basin_explainer *x = l->x;
    int relations = x->inputs.shape.relations;
    basin_status status = BASIN_OK;
    for (int r = 0; r < relations && !status; r++) {
        if (!l->share[r]) continue;
        basin_tensor tensor =
            basin_tensor_borrow(l->value, BASIN_F64, basin_expr_shape(l->share[r]));
        status = basin_plan_read(l->plan, l->share[r], &tensor, error);
        for (int64_t i = 0; i < x->count && !status; i++)
            add_shares(&x->told[i], &l->pairs[r], l->value, factor / relations);
    }
    return status;
}

static basin_status run_members(lens *l, basin_error *error) {
    const basin_nodes_model *model = l->x->model;
    double factor = 1.0 / (double)model->members;
    basin_status status = BASIN_OK;
    for (int64_t m = 0; m < model->members && !status; m++) {
        status = basin_params_read(&l->net.params, l->store, model->member[m], error);
        if (!status)
            status = basin_nodes_mask_write(l->plan, l->net.mask, l->x->inputs.settings, m, error);
        if (!status) status = basin_plan_run(l->plan, error);
        if (!status) status = read_energies(l, factor, error);
        if (!status) status = read_shares(l, factor, error);
    }
    return status;
}

/* Those of the explained nodes, and all of them in order. */
static basin_status keep_energies(lens *l, basin_error *error) {
    basin_explainer *x = l->x;
    int64_t N = x->network->nodes;
    double *all = x->energy = basin_array_new((size_t)N, sizeof *all);
    if (!all) return basin_fail_memory(error, "an explanation");
    for (int64_t i = 0; i < N; i++) all[i] = l->energy[0][i] + l->energy[1][i];
    basin_mean_deviation(&x->energy_mean, &x->energy_deviation, all, N);
    qsort(all, (size_t)N, sizeof *all, basin_compare_double);
    for (int64_t i = 0; i < x->count; i++) {
        basin_told *told = &x->told[i];
        told->has_energy = true;
        for (int k = 0; k < 2; k++) told->energy[k] = l->energy[k][told->node];
    }
    return BASIN_OK;
}

static basin_status make_room(lens *l, basin_error *error) {
    bool any = false;
    for (int r = 0; r < l->x->inputs.shape.relations; r++) any = any || l->share[r];
    for (int64_t i = 0; i < l->x->count && any; i++) {
        basin_told *told = &l->x->told[i];
        told->share = calloc((size_t)told->neighbours + 1, sizeof *told->share);
        told->returned = calloc((size_t)told->neighbours + 1, sizeof *told->returned);
        if (!told->share || !told->returned) return basin_fail_memory(error, "an explanation");
    }
    return BASIN_OK;
}

basin_status basin_explain_look(basin_explainer *x, basin_error *error) {
    lens l;
    basin_status status = lens_open(&l, x, error);
    if (!status) status = make_room(&l, error);
    if (!status) status = run_members(&l, error);
    if (!status) status = keep_energies(&l, error);
    lens_close(&l);
    return status;
}
