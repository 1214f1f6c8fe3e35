/* Why a node scores as it does: its energy among all energies, the attention it gives and gets, and
 * exact gradients of its logit, integrated from a typical node's inputs to its own (so that the
 * shares of the features add up to the difference of the logits). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/anomaly/ensemble/story.h"
#include "task/anomaly/inputs.h"
#include "train/run/run.h"

enum { PATH_STEPS = 24 };

/* The plan with everything that is asked of it. */
typedef struct lens {
    const basin_node_inputs *inputs;
    basin_store *store;
    basin_anomaly_net net;
    basin_plan *plan;
    basin_pairs pairs[BASIN_ANOMALY_RELATIONS];
    basin_expr pick, logit, slope;             /* [N], [], [N, columns] */
    basin_expr attention, hopfield;            /* [N] each, or NULL */
    basin_expr share[BASIN_ANOMALY_RELATIONS]; /* [pairs] mean over heads and blocks */
    float *table;                              /* [N, columns] to write */
    int64_t node;
} lens;

/* ---- expressions ---- */

/* Both parts of each node's energy at the tokens x. */
static void node_energies(lens *l, const basin_block *b, basin_expr x, int relation) {
    basin_block_bound bound = {
        .block = b, .pattern = &l->net.pattern[relation], .facts = l->net.facts[relation]};
    basin_expr part[3], weight = l->net.node_weight[relation];
    basin_block_token_energies(part, &bound, basin_block_norm(b, x));
    if (part[0] && weight) part[0] = basin_mul(part[0], weight);
    if (part[0]) l->attention = l->attention ? basin_add(l->attention, part[0]) : part[0];
    if (part[1]) l->hopfield = l->hopfield ? basin_add(l->hopfield, part[1]) : part[1];
}

/* The model's descent once more (equal expressions are shared), with an eye on each block. */
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
        basin_expr one = basin_block_shares(&plain, basin_block_norm(bound.block, x));
        if (one) sum = sum ? basin_add(sum, one) : one;
        basin_energy energy = basin_anomaly_energy(&bound);
        x = basin_descend(&energy, x, &m->config.descent, NULL);
    }
    l->share[relation] = sum ? basin_scale(sum, 1.0 / m->config.blocks) : NULL;
    node_energies(l, bound.block, x, relation);
}

static basin_status lens_plan(lens *l, basin_error *error) {
    const basin_node_inputs *inputs = l->inputs;
    basin_expr output[8 + BASIN_ANOMALY_RELATIONS];
    int outputs = 0;
    l->pick = basin_input(l->net.graph, "pick", BASIN_SHAPE(inputs->shape.nodes));
    l->logit = basin_sum_all(basin_mul(l->pick, l->net.logits));
    l->slope = basin_grad(l->logit, l->net.features);
    output[outputs++] = l->logit;
    output[outputs++] = l->slope;
    output[outputs++] = l->net.probability;
    if (basin_anomaly_descends(inputs->settings))
        for (int r = 0; r < inputs->shape.relations; r++) watch_descent(l, r);
    if (l->attention) output[outputs++] = l->attention;
    if (l->hopfield) output[outputs++] = l->hopfield;
    for (int r = 0; r < inputs->shape.relations; r++)
        if (l->share[r]) output[outputs++] = l->share[r];
    const basin_error *found = basin_graph_error(l->net.graph);
    if (found) return basin_fail(error, found->status, "%s", found->text);
    basin_plan_spec spec = {.output = output, .outputs = outputs};
    return basin_plan_new(&l->plan, l->store, &spec, error);
}

static basin_status lens_write(lens *l, basin_error *error) {
    const basin_node_inputs *inputs = l->inputs;
    int64_t N = inputs->shape.nodes;
    basin_anomaly_net_data data = basin_node_inputs_data(inputs, l->pairs);
    basin_status status = basin_node_inputs_pairs(l->pairs, inputs, inputs->network, error);
    if (!status) status = basin_anomaly_net_write(&l->net, l->plan, &data, error);
    if (status) return status;
    size_t cells = (size_t)(N * inputs->shape.columns);
    l->table = basin_array_new(cells, sizeof *l->table);
    float *pick = calloc((size_t)N, sizeof *pick);
    if (!l->table || !pick) {
        free(pick);
        return basin_fail(error, BASIN_NO_MEMORY, "no memory for an explanation");
    }
    memcpy(l->table, inputs->table, cells * sizeof *l->table);
    pick[l->node] = 1;
    basin_tensor tensor = basin_tensor_borrow(pick, BASIN_F32, BASIN_SHAPE(N));
    status = basin_plan_write(l->plan, l->pick, &tensor, error);
    free(pick);
    return status;
}

static basin_status lens_open(lens *l, const basin_node_inputs *inputs, int64_t node,
                              const basin_anomaly_resources *work, basin_error *error) {
    *l = (lens){.inputs = inputs, .node = node};
    basin_status status = basin_store_new(&l->store, work->backend, error);
    if (!status)
        status = basin_anomaly_net_new(&l->net, inputs->settings, &inputs->shape, false, error);
    if (!status) status = lens_plan(l, error);
    return status ? status : lens_write(l, error);
}

static void lens_close(lens *l) {
    basin_plan_free(l->plan);
    basin_anomaly_net_free(&l->net);
    basin_store_free(l->store);
    for (int r = 0; r < BASIN_ANOMALY_RELATIONS; r++) basin_pairs_free(&l->pairs[r]);
    free(l->table);
}

/* ---- what is gathered, summed over members ---- */

typedef struct gathered {
    double *probability, *attention, *hopfield; /* [N]; the first logits where there are trees */
    bool trees;
    double *share, *returned, *push; /* [N] by neighbour */
    double *typical, *feature;       /* [columns] */
    double logit, typical_logit;
    double *slope; /* [N, columns] */
    double *pair;  /* [most pairs] */
} gathered;

static double *zeros(int64_t count) { return calloc((size_t)count + 1, sizeof(double)); }

static bool gathered_new(gathered *g, const lens *l) {
    int64_t N = l->inputs->shape.nodes, C = l->inputs->shape.columns, pairs = 0;
    for (int r = 0; r < l->inputs->shape.relations; r++)
        if (l->inputs->shape.pairs[r] > pairs) pairs = l->inputs->shape.pairs[r];
    g->probability = zeros(N), g->attention = zeros(N), g->hopfield = zeros(N);
    g->share = zeros(N), g->returned = zeros(N), g->push = zeros(N);
    g->typical = zeros(C), g->feature = zeros(C);
    g->slope = zeros(N * C), g->pair = zeros(pairs);
    return g->probability && g->attention && g->hopfield && g->share && g->returned && g->push &&
           g->typical && g->feature && g->slope && g->pair;
}

static void gathered_free(gathered *g) {
    free(g->probability), free(g->attention), free(g->hopfield);
    free(g->share), free(g->returned), free(g->push);
    free(g->typical), free(g->feature), free(g->slope), free(g->pair);
}

static basin_status read_into(double *sum, double *spare, lens *l, basin_expr output, double factor,
                              basin_error *error) {
    if (!output) return BASIN_OK;
    basin_shape shape = basin_expr_shape(output);
    basin_tensor tensor = basin_tensor_borrow(spare, BASIN_F64, shape);
    basin_status status = basin_plan_read(l->plan, output, &tensor, error);
    for (int64_t i = 0; i < basin_shape_count(shape) && !status; i++) sum[i] += factor * spare[i];
    return status;
}

static basin_status add_logit(double *sum, lens *l, double factor, basin_error *error) {
    double value;
    basin_tensor tensor = basin_tensor_borrow(&value, BASIN_F64, BASIN_SCALAR);
    basin_status status = basin_plan_read(l->plan, l->logit, &tensor, error);
    if (!status) *sum += factor * value;
    return status;
}

/* What the node gives its neighbours and what they give it. */
static basin_status read_shares(gathered *g, lens *l, double factor, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int r = 0; r < l->inputs->shape.relations && !status; r++) {
        if (!l->share[r]) continue;
        const basin_pairs *p = &l->pairs[r];
        basin_tensor tensor =
            basin_tensor_borrow(g->pair, BASIN_F64, basin_expr_shape(l->share[r]));
        status = basin_plan_read(l->plan, l->share[r], &tensor, error);
        double weight = factor / l->inputs->shape.relations;
        for (int32_t e = p->row[l->node]; e < p->row[l->node + 1] && !status; e++)
            g->share[p->key[e]] += weight * g->pair[e];
        for (int32_t e = p->column[l->node]; e < p->column[l->node + 1] && !status; e++)
            g->returned[p->query[e]] += weight * g->pair[p->pair[e]];
    }
    return status;
}

static basin_status read_slope(gathered *g, lens *l, basin_error *error) {
    basin_tensor tensor =
        basin_tensor_borrow(g->slope, BASIN_F64, basin_expr_shape(l->net.features));
    return basin_plan_read(l->plan, l->slope, &tensor, error);
}

/* Logits are what an ensemble mixes. */
static basin_status read_probability(gathered *g, lens *l, double factor, basin_error *error) {
    int64_t N = l->inputs->shape.nodes;
    basin_tensor tensor = basin_tensor_borrow(g->slope, BASIN_F64, BASIN_SHAPE(N));
    basin_status status = basin_plan_read(l->plan, l->net.probability, &tensor, error);
    for (int64_t i = 0; i < N && !status; i++)
        g->probability[i] += factor * (g->trees ? basin_anomaly_logit(g->slope[i]) : g->slope[i]);
    return status;
}

/* The run on the data as they are. */
static basin_status look(gathered *g, lens *l, double factor, basin_error *error) {
    int64_t N = l->inputs->shape.nodes, C = l->inputs->shape.columns;
    basin_status status = basin_plan_run(l->plan, error);
    if (!status) status = read_probability(g, l, factor, error);
    if (!status) status = read_into(g->attention, g->slope, l, l->attention, factor, error);
    if (!status) status = read_into(g->hopfield, g->slope, l, l->hopfield, factor, error);
    if (!status) status = read_shares(g, l, factor, error);
    if (!status) status = read_slope(g, l, error);
    if (!status) status = add_logit(&g->logit, l, factor, error);
    if (status) return status;
    for (int64_t i = 0; i < N; i++)
        for (int64_t c = 0; c < C; c++)
            g->push[i] += factor * g->slope[i * C + c] * (double)l->inputs->table[i * C + c];
    return BASIN_OK;
}

static basin_status run_with_row(lens *l, const gathered *g, double t, basin_error *error) {
    int64_t N = l->inputs->shape.nodes, C = l->inputs->shape.columns;
    const float *own = l->inputs->table + l->node * C;
    for (int64_t c = 0; c < C; c++)
        l->table[l->node * C + c] = (float)(g->typical[c] + t * ((double)own[c] - g->typical[c]));
    basin_tensor tensor = basin_tensor_borrow(l->table, BASIN_F32, BASIN_SHAPE(N, C));
    basin_status status = basin_plan_write(l->plan, l->net.features, &tensor, error);
    return status ? status : basin_plan_run(l->plan, error);
}

/* Integrated gradients by the midpoint rule: from typical inputs to its own. */
static basin_status integrate(gathered *g, lens *l, double factor, basin_error *error) {
    int64_t C = l->inputs->shape.columns;
    const float *own = l->inputs->table + l->node * C;
    basin_status status = run_with_row(l, g, 0, error);
    if (!status) status = add_logit(&g->typical_logit, l, factor, error);
    for (int s = 0; s < PATH_STEPS && !status; s++) {
        status = run_with_row(l, g, (s + 0.5) / PATH_STEPS, error);
        if (!status) status = read_slope(g, l, error);
        for (int64_t c = 0; c < C && !status; c++)
            g->feature[c] +=
                factor / PATH_STEPS * g->slope[l->node * C + c] * ((double)own[c] - g->typical[c]);
    }
    if (!status) status = run_with_row(l, g, 1, error);
    return status;
}

/* ---- the explanation ---- */

static int larger_share(const void *a, const void *b) {
    double x = ((const basin_anomaly_neighbour *)a)->share;
    double y = ((const basin_anomaly_neighbour *)b)->share;
    return (x < y) - (x > y);
}

static int larger_push(const void *a, const void *b) {
    double x = fabs(((const basin_anomaly_neighbour *)a)->push);
    double y = fabs(((const basin_anomaly_neighbour *)b)->push);
    return (x < y) - (x > y);
}

static int larger_size(const void *a, const void *b) {
    double x = fabs(((const basin_anomaly_feature *)a)->share);
    double y = fabs(((const basin_anomaly_feature *)b)->share);
    return (x < y) - (x > y);
}

static void place_energy(basin_anomaly_explanation *e, const gathered *g, int64_t N) {
    double squares = 0;
    e->attention = g->attention[e->node];
    e->hopfield = g->hopfield[e->node];
    e->energy = e->attention + e->hopfield;
    for (int64_t i = 0; i < N; i++) {
        double energy = g->attention[i] + g->hopfield[i];
        e->energy_mean += energy / (double)N;
        e->energy_below += (energy < e->energy) / (double)N;
    }
    for (int64_t i = 0; i < N; i++) {
        double away = g->attention[i] + g->hopfield[i] - e->energy_mean;
        squares += away * away;
    }
    e->energy_deviation = sqrt(squares / (double)N);
}

/* The nodes next to it in any of the relations. */
static int64_t list_neighbours(int64_t *next, const lens *l) {
    int64_t N = l->inputs->shape.nodes, count = 0;
    for (int64_t i = 0; i < N; i++) {
        bool near = false;
        for (int r = 0; r < l->inputs->shape.relations && !near; r++)
            near = basin_pairs_find(&l->pairs[r], (int32_t)l->node, (int32_t)i) >= 0 ||
                   basin_pairs_find(&l->pairs[r], (int32_t)i, (int32_t)l->node) >= 0;
        if (near && next) next[count] = i;
        count += near;
    }
    return count;
}

/* A feature may have become several columns (planes of the scaling): their moves add up, their
 * values are averaged. */
static void tell_features(basin_anomaly_explanation *e, const gathered *g, const lens *l) {
    int64_t C = l->inputs->shape.columns, F = l->inputs->features;
    int64_t planes = C / (F * (1 + l->inputs->settings->hops));
    const float *own = l->inputs->table + e->node * C;
    for (int64_t i = 0; i < e->features; i++) {
        basin_anomaly_feature *f = &e->feature[i];
        *f = (basin_anomaly_feature){.column = i % F, .hop = i / F};
        for (int64_t p = 0; p < planes; p++) {
            int64_t c = (f->hop * planes + p) * F + f->column;
            f->value += (double)own[c] / (double)planes;
            f->typical += g->typical[c] / (double)planes;
            f->share += g->feature[c];
        }
    }
    qsort(e->feature, (size_t)e->features, sizeof *e->feature, larger_size);
}

static basin_status tell(basin_anomaly_explanation *e, const gathered *g, const lens *l,
                         basin_error *error) {
    int64_t N = l->inputs->shape.nodes;
    e->neighbours = list_neighbours(NULL, l);
    e->features = l->inputs->features * (1 + l->inputs->settings->hops);
    e->neighbour = basin_array_new((size_t)e->neighbours, sizeof *e->neighbour);
    e->feature = basin_array_new((size_t)e->features, sizeof *e->feature);
    int64_t *next = basin_array_new((size_t)e->neighbours, sizeof *next);
    if (!e->neighbour || !e->feature || !next) {
        free(next);
        return basin_fail(error, BASIN_NO_MEMORY, "no memory for an explanation");
    }
    list_neighbours(next, l);
    for (int64_t i = 0; i < e->neighbours; i++)
        e->neighbour[i] =
            (basin_anomaly_neighbour){next[i], g->share[next[i]], g->returned[next[i]],
                                      g->push[next[i]], g->probability[next[i]]};
    free(next);
    for (int r = 0; r < l->inputs->shape.relations; r++)
        if (l->share[r]) e->has_attention = true;
    qsort(e->neighbour, (size_t)e->neighbours, sizeof *e->neighbour,
          e->has_attention ? larger_share : larger_push);
    tell_features(e, g, l);
    e->probability = g->probability[e->node];
    e->rank = 1;
    for (int64_t i = 0; i < N; i++) e->rank += g->probability[i] > e->probability;
    e->logit = g->logit;
    e->typical_logit = g->typical_logit;
    e->has_energy = l->attention || l->hopfield;
    if (e->has_energy) place_energy(e, g, N);
    return BASIN_OK;
}

static basin_status explain_with(basin_anomaly_explanation *e, const basin_anomaly_model *model,
                                 const basin_node_inputs *inputs,
                                 const basin_anomaly_resources *work, basin_error *error) {
    lens l;
    gathered g = {.trees = model->ensemble.fits > 0};
    int64_t N = inputs->shape.nodes, C = inputs->shape.columns;
    basin_status status = lens_open(&l, inputs, e->node, work, error);
    if (!status && !gathered_new(&g, &l))
        status = basin_fail(error, BASIN_NO_MEMORY, "no memory for an explanation");
    for (int64_t i = 0; i < N * C && !status; i++)
        g.typical[i % C] += (double)inputs->table[i] / (double)N;
    double factor = 1.0 / (double)model->members;
    for (int64_t m = 0; m < model->members && !status; m++) {
        status = basin_params_read(&l.net.params, l.store, model->member[m], error);
        if (!status)
            status = basin_anomaly_mask_write(l.plan, l.net.mask, inputs->settings, m, error);
        if (!status) status = look(&g, &l, factor, error);
        if (!status) status = integrate(&g, &l, factor, error);
    }
    if (!status && g.trees)
        status = basin_anomaly_story_mix(g.probability, &model->ensemble, inputs->network,
                                         work->memory, error);
    for (int64_t i = 0; i < N && !status; i++)
        g.probability[i] = basin_anomaly_calibrated(model, g.probability[i]);
    if (!status) status = tell(e, &g, &l, error);
    if (!status && g.trees)
        status = basin_anomaly_story_tell(e, &model->ensemble, inputs, work->memory, error);
    gathered_free(&g);
    lens_close(&l);
    return status;
}

/* The node and some of its neighbours and theirs, with all edges among them. */
static basin_status take_nearby(basin_network **part, const basin_network *network, int64_t node,
                                basin_error *error) {
    static const int64_t fanout[] = {256, 32};
    basin_sample_spec spec = {.fanout = fanout, .steps = 2, .induce = true, .seed = 1};
    return basin_network_sample(part, network, &node, 1, &spec, error);
}

/* Node numbers of a part become those of the whole. */
static void lead_back(basin_anomaly_explanation *e, const basin_network *part) {
    e->node = part->origin[e->node];
    for (int64_t i = 0; i < e->neighbours; i++)
        e->neighbour[i].node = part->origin[e->neighbour[i].node];
}

/* The whole graph where it fits, else the node's neighbourhood. */
static basin_status explain(basin_anomaly_explanation *e, const basin_anomaly_model *model,
                            const basin_network *network, const basin_anomaly_resources *work,
                            basin_error *error) {
    const basin_anomaly_settings *settings = &model->settings;
    basin_node_inputs inputs = {0};
    basin_network *part = NULL;
    size_t bytes = 0;
    basin_status status = basin_node_inputs_open(&inputs, network, settings, error);
    if (!status)
        status = basin_node_inputs_scale(&inputs, &model->scale, &model->edge_scale, error);
    if (!status)
        status =
            basin_anomaly_net_memory(&bytes, settings, &inputs.shape, true, work->backend, error);
    if (!status && bytes > basin_anomaly_memory_limit(work) &&
        !basin_choice_is(settings->position, "learned")) {
        basin_node_inputs_close(&inputs);
        status = take_nearby(&part, network, e->node, error);
        if (!status) status = basin_node_inputs_open(&inputs, part, settings, error);
        if (!status)
            status = basin_node_inputs_scale(&inputs, &model->scale, &model->edge_scale, error);
        e->nearby = true;
        e->node = 0; /* the target comes first */
    }
    if (!status) status = explain_with(e, model, &inputs, work, error);
    if (!status && part) lead_back(e, part);
    basin_node_inputs_close(&inputs);
    basin_network_free(part);
    return status;
}

basin_status basin_anomaly_explain(basin_anomaly_explanation **explanation,
                                   const basin_anomaly_model *model, const basin_network *network,
                                   int64_t node, const basin_anomaly_work *work,
                                   basin_error *error) {
    basin_anomaly_resources with;
    *explanation = NULL;
    if (node < 0 || node >= network->nodes)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: node %lld, wanted 0 to %lld", network->path,
                          (long long)node, (long long)network->nodes - 1);
    basin_status status = basin_anomaly_resources_take(&with, work, model->backend, error);
    if (!status) status = basin_anomaly_check_network(model, network, error);
    if (status) return status;
    basin_anomaly_explanation *e = calloc(1, sizeof *e);
    if (!e) return basin_fail(error, BASIN_NO_MEMORY, "no memory for an explanation");
    e->node = node;
    e->threshold = model->threshold;
    status = explain(e, model, network, &with, error);
    if (status)
        basin_anomaly_explanation_free(e);
    else
        *explanation = e;
    return status;
}

void basin_anomaly_explanation_free(basin_anomaly_explanation *explanation) {
    if (!explanation) return;
    free(explanation->neighbour);
    free(explanation->feature);
    free(explanation);
}
