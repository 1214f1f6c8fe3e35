/* What inputs move the network's logit by, around a node; energies and attention; see net.h. */
#include "base/info.h"
#include "base/pairs.h"
#include "base/sort.h"
#include "base/states.h"
#include "tasks/nodes/integrate.h"
#include "tasks/nodes/net.h"

/* ---- The surroundings of some nodes side by side in one network, for gradients ---- */

/* Most neighbours, of one node and of many; most nodes and edges of a batch. */
enum { FIRSTS = 128, FIRSTS_OF_MANY = 32, MANY = 16, NODES = 20000, EDGES = 400000 };

/* Around one node: itself, neighbours, and some of theirs. */
typedef struct surroundings {
    int64_t *node; /* [count] of the whole network */
    int64_t count;
    int64_t firsts; /* node[1] .. node[firsts] are neighbours; theirs follow */
    basin_network *part;
} surroundings;

enum { MAX_LINES = 1 + BASIN_MAX_RELATIONS };

/* Some of the explained nodes, and the lines of their inputs. */
typedef struct integral {
    basin_explainer *x;
    int64_t first, count;  /* which of the explainer's */
    surroundings *of;      /* [count] */
    int64_t *start;        /* [count + 1] rows of the batch that are each one's */
    int64_t *mark;         /* [N] who is in the surroundings of this number */
    basin_network *joined; /* becomes the batch's */
    basin_nodes_batch batch;
    basin_store *store;
    basin_nodes_net net;
    basin_plan *plan;
    basin_expr pick; /* [n] */
    int64_t columns;
    int lines;                  /* of the features, and of each relation's facts */
    basin_line line[MAX_LINES]; /* [n, columns]; [pairs, facts] */
    double *logit;              /* [n] */
    double *ends;               /* [2, count] logits of typical inputs, and of the node's */
} integral;

static void take(integral *g, surroundings *to, int64_t node) {
    int64_t number = 1 + to - g->of;
    if (g->mark[node] == number) return;
    g->mark[node] = number;
    to->node[to->count++] = node;
}

static basin_status surround(surroundings *to, integral *g, const basin_nodes_explanation *e,
                             basin_error *error) {
    int64_t max = g->x->count < MANY ? FIRSTS : FIRSTS_OF_MANY;
    bool graph = basin_nodes_on_graph(&g->x->model->settings);
    int64_t firsts = to->firsts = graph ? basin_int_min(e->neighbours, max) : 0;
    int64_t each = firsts ? (max / 2 + firsts - 1) / firsts : 0; /* half as many of theirs */
    BASIN_TRY(BASIN_NEW_RAW(&to->node, 1 + firsts * (1 + each), "surroundings", error));
    take(g, to, e->node);
    for (int64_t i = 0; i < firsts; i++) take(g, to, e->neighbour[i * e->neighbours / firsts].node);
    for (int64_t i = 1; i <= firsts; i++) {
        BASIN_FREE_AT_EXIT int64_t *next = NULL;
        int64_t count;
        BASIN_TRY(basin_explainer_list(&next, &count, g->x, to->node[i], error));
        int64_t taken = basin_int_min(count, each);
        for (int64_t k = 0; k < taken; k++) take(g, to, next[k * count / taken]);
    }
    return basin_network_induce(&to->part, g->x->network, to->node, to->count, error);
}

static basin_status take_parts(integral *g, basin_error *error) {
    int64_t left = g->x->count - g->first;
    BASIN_TRY(BASIN_NEW(&g->of, left, "surroundings", error));
    BASIN_TRY(BASIN_NEW(&g->start, left + 1, "surroundings", error));
    BASIN_TRY(BASIN_NEW(&g->mark, g->x->network->nodes, "surroundings", error));
    for (int64_t edges = 0; g->count < left && g->start[g->count] <= NODES && edges <= EDGES;) {
        surroundings *to = &g->of[g->count++];
        BASIN_TRY(surround(to, g, g->x->of[g->first + g->count - 1], error));
        g->start[g->count] = g->start[g->count - 1] + to->count;
        for (int r = 0; r < to->part->relations; r++) edges += to->part->relation[r].edges;
    }
    return BASIN_OK;
}

/* Relation `r` of all parts, one after the other. */
static basin_status join_relation(integral *g, int r, basin_error *error) {
    const basin_relation *model = &g->of[0].part->relation[r];
    basin_relation *to;
    int64_t width = g->joined->facts.count, at = 0;
    BASIN_TRY(basin_network_new_relation(&to, g->joined, model->name, error));
    for (int64_t i = 0; i < g->count; i++) to->edges += g->of[i].part->relation[r].edges;
    BASIN_TRY(BASIN_NEW(&to->row, g->joined->nodes + 1, "surroundings", error));
    BASIN_TRY(BASIN_NEW_RAW(&to->col, to->edges, "surroundings", error));
    if (model->fact) BASIN_TRY(basin_relation_alloc_facts(to, &g->joined->facts, error));
    for (int64_t i = 0; i < g->count; i++) {
        const basin_relation *from = &g->of[i].part->relation[r];
        for (int64_t n = 0; n < g->of[i].count; n++) to->row[g->start[i] + n] = at + from->row[n];
        if (to->fact && from->edges)
            memcpy(to->fact + at * width, from->fact,
                   (size_t)(from->edges * width) * sizeof *to->fact);
        for (int64_t e = 0; e < from->edges; e++)
            to->col[at++] = (int32_t)(from->col[e] + g->start[i]);
    }
    to->row[g->joined->nodes] = at;
    return BASIN_OK;
}

static basin_status join(integral *g, basin_error *error) {
    const basin_network *whole = g->x->network;
    int64_t nodes = g->start[g->count];
    BASIN_TRY(basin_network_new(&g->joined, whole->path, nodes, error));
    g->joined->directed = whole->directed;
    BASIN_TRY(basin_facts_copy(&g->joined->facts, &whole->facts, error));
    BASIN_TRY(BASIN_NEW_RAW(&g->joined->origin, nodes, "surroundings", error));
    for (int64_t i = 0; i < g->count; i++)
        memcpy(g->joined->origin + g->start[i], g->of[i].node,
               (size_t)g->of[i].count * sizeof *g->of[i].node);
    for (int r = 0; r < whole->relations; r++) BASIN_TRY(join_relation(g, r, error));
    return BASIN_OK;
}

/* ---- Integrated gradients over the node, its surroundings and their edges, from typical inputs to
 * their own. They sum to the difference of the logits up to the steps of the integral, which are
 * refined until the gap is small. A mean's part goes to the neighbours: it is linear. ---- */

/* Facts of edges from a typical edge's to their own; a node's pair with itself has none. */
static basin_status open_edges(integral *g, int r, basin_error *error) {
    basin_line *l = &g->line[g->lines++];
    const basin_pairs *pairs = &g->batch.pairs[r];
    int64_t facts = g->batch.shape.facts;
    bool added = basin_choice_is(g->x->model->settings.self_loops, "add");
    BASIN_FREE_AT_EXIT float *own = NULL;
    BASIN_TRY(basin_line_open(l, g->net.facts[r], g->count, error));
    for (int64_t i = 0; i < g->count; i++) l->start[i] = pairs->row[g->start[i]] * facts;
    BASIN_TRY(basin_edge_facts(&own, &g->x->inputs, g->batch.network, r, pairs, error));
    memcpy(l->own, own, (size_t)(pairs->pairs * facts) * sizeof *own);
    for (int64_t q = 0; q < pairs->queries; q++)
        for (int64_t p = pairs->row[q]; p < pairs->row[q + 1]; p++) {
            memcpy(l->base + p * facts,
                   added && pairs->key[p] == q ? l->own + p * facts : g->x->edge_typical,
                   (size_t)facts * sizeof *l->base);
        }
    return BASIN_OK;
}

static basin_status open_lines(integral *g, basin_error *error) {
    basin_line *l = &g->line[g->lines++];
    BASIN_TRY(basin_line_open(l, g->net.features, g->count, error));
    for (int64_t i = 0; i < g->count; i++) l->start[i] = g->start[i] * g->columns;
    memcpy(l->own, g->batch.table, (size_t)l->cells * sizeof *l->own);
    for (int64_t i = 0; i < l->cells; i++) l->base[i] = g->x->input_typical[i % g->columns];
    for (int r = 0; r < g->batch.shape.relations && g->net.facts[r]; r++)
        BASIN_TRY(open_edges(g, r, error));
    return BASIN_OK;
}

static basin_status make_plan(integral *g, basin_error *error) {
    basin_expr to[MAX_LINES], output[MAX_LINES + 1];
    BASIN_TRY(basin_store_new(&g->store, g->x->work.backend, error));
    BASIN_TRY(basin_nodes_net_new(&g->net, g->x->inputs.settings, &g->batch.shape, false, error));
    BASIN_TRY(open_lines(g, error));
    for (int i = 0; i < g->lines; i++) to[i] = g->line[i].input;
    g->pick = basin_input(g->net.graph, "pick", BASIN_SHAPE(g->start[g->count]));
    basin_vjp(output, basin_sum_all(basin_mul(g->pick, g->net.logits)), NULL, to, g->lines);
    for (int i = 0; i < g->lines; i++) g->line[i].slope = output[i];
    output[g->lines] = g->net.logits;
    BASIN_TRY(basin_graph_check(g->net.graph, error));
    basin_plan_spec spec = {.output = output, .outputs = g->lines + 1};
    return basin_plan_new(&g->plan, g->store, &spec, error);
}

static basin_status write_inputs(integral *g, basin_error *error) {
    basin_nodes_net_data data = basin_nodes_batch_data(&g->batch);
    BASIN_SCRATCH(float, pick, g->start[g->count], "an explanation", error);
    BASIN_TRY(basin_nodes_net_write(&g->net, g->plan, &data, error));
    for (int64_t i = 0; i < g->count; i++) pick[g->start[i]] = 1;
    return basin_values_write(g->plan, g->pick, pick, BASIN_F32, error);
}

static basin_status integral_open(integral *g, basin_error *error) {
    basin_nodes_source source = {.inputs = &g->x->inputs};
    BASIN_TRY(take_parts(g, error));
    BASIN_TRY(join(g, error));
    basin_network *joined = g->joined;
    g->joined = NULL;
    BASIN_TRY(basin_nodes_batch_take(&g->batch, &source, joined, error));
    g->columns = g->x->inputs.shape.columns;
    BASIN_TRY(BASIN_NEW_RAW(&g->logit, g->start[g->count], "an explanation", error));
    BASIN_TRY(BASIN_NEW_RAW(&g->ends, 2 * g->count, "an explanation", error));
    BASIN_TRY(make_plan(g, error));
    return write_inputs(g, error);
}

static void integral_close(integral *g) {
    basin_plan_free(g->plan);
    basin_nodes_net_free(&g->net);
    basin_store_free(g->store);
    basin_line_free(g->line, g->lines);
    basin_nodes_batch_free(&g->batch);
    basin_network_close(g->joined);
    for (int64_t i = 0; i < g->count; i++) free(g->of[i].node), basin_network_close(g->of[i].part);
    BASIN_FREE(g->of, g->start, g->mark, g->logit, g->ends);
}

static basin_status read_logits(double *logit, void *context, basin_error *error) {
    integral *g = context;
    BASIN_TRY(basin_values_read(g->plan, g->net.logits, g->logit, BASIN_F64, error));
    for (int64_t i = 0; i < g->count; i++) logit[i] = g->logit[g->start[i]];
    return BASIN_OK;
}

/* A fiftieth of the distance. */
static double allowed(double way) { return 0.02 * fmax(fabs(way), 0.5); }

static basin_status integrate(integral *g, basin_error *error) {
    basin_lines l = {g->line, g->lines, g->plan, g->count, read_logits, g, allowed};
    return basin_lines_integrate(g->ends, &l, error);
}

/* ---- shares of features and neighbours ---- */

/* Inputs of one row: `scale` times the slope's sum gives the mean slope with its weight. */
typedef struct row_moves {
    const basin_explainer *x;
    basin_nodes_explanation *e;
    const double *sum;  /* [columns] */
    const float *input; /* [columns] */
    double scale;
} row_moves;

static double moves(const row_moves *p, int64_t column, double input) {
    return p->scale * p->sum[column] * (input - (double)p->x->input_typical[column]);
}

/* All features of a row that lies `far` hops away; their sum. */
static double add_row(const row_moves *p, int64_t far) {
    const basin_node_inputs *inputs = &p->x->inputs;
    int64_t F = inputs->node.own;
    double all = 0;
    for (int64_t c = 0; c < inputs->shape.columns; c++) {
        double one = moves(p, c, (double)p->input[c]);
        int64_t slot =
            basin_explainer_slot(p->x, c % F, inputs->node.relation, inputs->node.degrees);
        basin_explainer_add(p->e, p->x, slot, c / F + far, one);
        all += one;
    }
    return all;
}

/* The node's own row: means over neighbours come through them. */
static void add_own(const row_moves *p) {
    const basin_node_inputs *inputs = &p->x->inputs;
    const basin_relation *r = &inputs->network->relation[inputs->node.chain];
    int64_t C = inputs->shape.columns, width = inputs->node.own, count = 0;
    int64_t node = p->e->node, end = r->row[node + 1];
    add_row(p, 0);
    for (int64_t e = r->row[node]; e < end; e++) count += r->col[e] != node;
    for (int64_t c = 0; c < (count ? width : C); c++)
        basin_explainer_push(p->e, -1, moves(p, c, (double)p->input[c]));
    for (int64_t e = r->row[node]; e < end; e++) {
        const float *from = inputs->node.row + r->col[e] * C;
        double all = 0;
        if (r->col[e] == node) continue;
        for (int64_t c = width; c < C; c++) all += moves(p, c, (double)from[c - width]);
        basin_explainer_push(p->e, r->col[e], all / (double)count);
    }
}

/* 0: the node itself, 1: a neighbour, 2: one of theirs. */
static int64_t hops_to(const surroundings *s, int64_t at) {
    return at == 0 ? 0 : at <= s->firsts ? 1 : 2;
}

/* What an edge adds comes through the neighbour at its end; between two of them in halves. */
static basin_status push_pair(basin_nodes_explanation *e, const basin_explainer *x,
                              const surroundings *s, int64_t a, int64_t b, double all,
                              basin_error *error) {
    int64_t far_a = hops_to(s, a), far_b = hops_to(s, b);
    if (far_a == 2 && far_b == 2) return basin_explainer_push_between(e, x, s->node[a], all, error);
    if (!far_a || !far_b) {
        basin_explainer_push(e, a + b ? s->node[a + b] : -1, all);
        return BASIN_OK;
    }
    double part = far_a == far_b ? all / 2 : all;
    if (far_a == 1) basin_explainer_push(e, s->node[a], part);
    if (far_b == 1) basin_explainer_push(e, s->node[b], part);
    return BASIN_OK;
}

/* Facts of the edges of relation `r` around explained node `i`. */
static basin_status add_edges(integral *g, int64_t i, int r, double scale, basin_error *error) {
    const basin_line *l = &g->line[1 + r];
    const basin_pairs *pairs = &g->batch.pairs[r];
    const surroundings *s = &g->of[i];
    basin_nodes_explanation *e = g->x->of[g->first + i];
    int64_t start = g->start[i], facts = g->batch.shape.facts;
    bool both = g->x->network->both;
    for (int64_t a = 0; a < s->count; a++)
        for (int64_t p = pairs->row[start + a]; p < pairs->row[start + a + 1]; p++) {
            int64_t b = pairs->key[p] - start, far = hops_to(s, a);
            bool goes = hops_to(s, b) < far; /* seen from its nearer end */
            int along = g->x->inputs.node.relation[r];
            int64_t slot = basin_explainer_fact_slot(g->x, along,
                                                     both ? g->x->facts / 3 * 2
                                                     : goes && g->x->network->directed ? facts
                                                                                       : 0);
            double all = 0;
            for (int64_t c = 0; c < facts; c++) {
                int64_t cell = p * facts + c;
                double one = scale * l->sum[cell] * basin_line_length(l, cell);
                basin_explainer_add(e, g->x, slot + c, goes ? hops_to(s, b) : far, one);
                all += one;
            }
            BASIN_TRY(push_pair(e, g->x, s, a, b, all, error));
        }
    return BASIN_OK;
}

static basin_status add_node(integral *g, int64_t i, double scale, basin_error *error) {
    const surroundings *s = &g->of[i];
    basin_nodes_explanation *e = g->x->of[g->first + i];
    for (int64_t n = 0; n < s->count; n++) {
        int64_t at = (g->start[i] + n) * g->columns;
        row_moves p = {g->x, e, g->line[0].sum + at, g->line[0].own + at, scale};
        if (n == 0)
            add_own(&p);
        else if (n <= s->firsts)
            basin_explainer_push(e, s->node[n], add_row(&p, 1));
        else
            BASIN_TRY(basin_explainer_push_between(e, g->x, s->node[n], add_row(&p, 2), error));
    }
    for (int r = 0; r + 1 < g->lines; r++) BASIN_TRY(add_edges(g, i, r, scale, error));
    return BASIN_OK;
}

/* A batch of nodes; members have equal shares. */
static basin_status explain_batch(integral *g, basin_error *error) {
    basin_explainer *x = g->x;
    double weight = x->weight[BASIN_NODES_NETWORK] / (double)x->model->members;
    BASIN_TRY(integral_open(g, error));
    for (int64_t m = 0; m < x->model->members; m++) {
        BASIN_TRY(basin_params_read(&g->net.params, g->store, x->model->member[m], error));
        BASIN_TRY(integrate(g, error));
        for (int64_t i = 0; i < g->count; i++) {
            basin_nodes_explanation *e = x->of[g->first + i];
            e->typical_logit += weight * g->ends[i];
            e->rest += weight * g->ends[g->count + i];
            BASIN_TRY(add_node(g, i, weight, error));
        }
    }
    return BASIN_OK;
}

basin_status basin_explain_network(basin_explainer *x, basin_error *error) {
    if (!(x->weight[BASIN_NODES_NETWORK] > 0)) return BASIN_OK;
    for (int64_t first = 0; first < x->count;) {
        BASIN_AT_EXIT(integral_close) integral g = {.x = x, .first = first};
        BASIN_TRY(explain_batch(&g, error));
        first += g.count;
    }
    return BASIN_OK;
}

/* ---- Energies at the end of the descent, and attention, on the whole graph ---- */

typedef struct lens {
    basin_explainer *x;
    basin_store *store;
    basin_nodes_net net;
    basin_plan *plan;
    basin_pairs pairs[BASIN_MAX_RELATIONS];
    basin_expr part[2];                    /* [N] each: attention, memories; or NULL */
    basin_expr share[BASIN_MAX_RELATIONS]; /* [pairs] mean over heads and blocks */
    double *energy[2];                     /* [N] each, means over members */
    double *value;                         /* [N or most pairs] */
} lens;

static basin_expr add_to(basin_expr sum, basin_expr one) {
    return sum && one ? basin_add(sum, one) : sum ? sum : one;
}

/* Attention at the beginning of each block, and both terms of each node's energy at the end. */
static void watch_descent(lens *l, int relation) {
    const basin_anomaly *m = &l->net.energy;
    basin_block_graph_inputs edges = {.facts = l->net.facts[relation]};
    basin_block_bound bound = {.pattern = &l->net.pattern[relation], .graph = &edges};
    basin_expr x = basin_anomaly_embed(m, l->net.seen, NULL, NULL), sum = NULL;
    for (int b = 0; b < m->config.blocks; b++) {
        bound.block = basin_anomaly_block(m, b);
        sum = add_to(sum, basin_block_view_of(&bound, basin_block_norm(bound.block, x)).share);
        basin_energy energy = basin_block_energy(&bound);
        x = basin_descend(&energy, x, &m->config.descent, NULL);
    }
    l->share[relation] = sum ? basin_scale(sum, 1.0 / m->config.blocks) : NULL;
    basin_block_view view = basin_block_view_of(&bound, basin_block_norm(bound.block, x));
    for (int i = 0; i < 2; i++) l->part[i] = add_to(l->part[i], view.energy[i]);
}

static basin_status lens_open(lens *l, basin_error *error) {
    const basin_node_inputs *inputs = &l->x->inputs;
    int64_t nodes = inputs->shape.nodes, max = nodes;
    basin_expr output[2 + BASIN_MAX_RELATIONS];
    int outputs = 0, relations = inputs->shape.relations;
    BASIN_TRY(basin_store_new(&l->store, l->x->work.backend, error));
    BASIN_TRY(basin_nodes_net_new(&l->net, inputs->settings, &inputs->shape, false, error));
    for (int r = 0; r < relations; r++) watch_descent(l, r);
    for (int i = 0; i < 2; i++)
        if (l->part[i]) output[outputs++] = l->part[i];
    for (int r = 0; r < relations; r++)
        if (l->share[r]) output[outputs++] = l->share[r];
    BASIN_TRY(basin_graph_check(l->net.graph, error));
    basin_plan_spec spec = {.output = output, .outputs = outputs};
    BASIN_TRY(basin_plan_new(&l->plan, l->store, &spec, error));
    BASIN_TRY(basin_node_inputs_pairs(l->pairs, inputs, inputs->network, nodes, 0, error));
    basin_nodes_net_data data = basin_node_inputs_data(inputs, l->pairs);
    BASIN_TRY(basin_nodes_net_write(&l->net, l->plan, &data, error));
    for (int r = 0; r < relations; r++) max = basin_int_max(max, inputs->shape.pairs[r]);
    for (int i = 0; i < 2; i++) BASIN_TRY(BASIN_NEW(&l->energy[i], nodes, "an explanation", error));
    return BASIN_NEW_RAW(&l->value, max, "an explanation", error);
}

static void lens_close(lens *l) {
    basin_plan_free(l->plan);
    basin_nodes_net_free(&l->net);
    basin_store_free(l->store);
    for (int r = 0; r < BASIN_MAX_RELATIONS; r++) basin_pairs_free(&l->pairs[r]);
    free(l->energy[0]), free(l->energy[1]), free(l->value);
}

/* Attention from an explained node to its neighbours, and back. */
static void add_shares(basin_nodes_explanation *e, const basin_pairs *p, const double *share,
                       double factor) {
    e->has_attention = true;
    for (basin_nodes_neighbour *n = e->neighbour; n < e->neighbour + e->neighbours; n++) {
        int32_t node = (int32_t)e->node, other = (int32_t)n->node;
        int64_t given = basin_pairs_find(p, node, other), got = basin_pairs_find(p, other, node);
        if (given >= 0) n->share += factor * share[given];
        if (got >= 0) n->returned += factor * share[got];
    }
}

static basin_status run_member(lens *l, int64_t member, basin_error *error) {
    basin_explainer *x = l->x;
    int relations = x->inputs.shape.relations;
    double factor = 1.0 / (double)x->model->members;
    BASIN_TRY(basin_params_read(&l->net.params, l->store, x->model->member[member], error));
    BASIN_TRY(basin_plan_run(l->plan, error));
    for (int k = 0; k < 2; k++) {
        if (!l->part[k]) continue;
        BASIN_TRY(basin_values_read(l->plan, l->part[k], l->value, BASIN_F64, error));
        for (int64_t i = 0; i < x->inputs.shape.nodes; i++) l->energy[k][i] += factor * l->value[i];
    }
    for (int r = 0; r < relations; r++) {
        if (!l->share[r]) continue;
        BASIN_TRY(basin_values_read(l->plan, l->share[r], l->value, BASIN_F64, error));
        for (int64_t i = 0; i < x->count; i++)
            add_shares(x->of[i], &l->pairs[r], l->value, factor / relations);
    }
    return BASIN_OK;
}

/* Those of the explained nodes, beside those of all. */
static basin_status keep_energies(lens *l, basin_error *error) {
    int64_t N = l->x->network->nodes;
    double mean, deviation;
    BASIN_SCRATCH_RAW(double, all, N, "an explanation", error);
    for (int64_t i = 0; i < N; i++) all[i] = l->energy[0][i] + l->energy[1][i];
    basin_mean_deviation(&mean, &deviation, all, N);
    for (int64_t i = 0; i < l->x->count; i++) {
        basin_nodes_explanation *e = l->x->of[i];
        int64_t below = 0;
        e->has_energy = true;
        e->attention = l->energy[0][e->node], e->hopfield = l->energy[1][e->node];
        e->energy = all[e->node];
        e->energy_mean = mean, e->energy_deviation = deviation;
        for (int64_t k = 0; k < N; k++) below += all[k] < e->energy;
        e->energy_below = (double)below / (double)N;
    }
    return BASIN_OK;
}

basin_status basin_explain_look(basin_explainer *x, basin_error *error) {
    BASIN_AT_EXIT(lens_close) lens l = {.x = x};
    BASIN_TRY(lens_open(&l, error));
    for (int64_t m = 0; m < x->model->members; m++) BASIN_TRY(run_member(&l, m, error));
    return keep_energies(&l, error);
}
