/* Energies of all nodes at the end of the descent, and the attention that explained nodes give and
 * get; on the whole graph, without gradients. See explain.h. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "task/nodes/explain/explain.h"

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
    basin_expr part[3], weight = l->net.node_weight[relation];
    basin_block_token_energies(part, &bound, basin_block_norm(b, x));
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
        basin_expr one = basin_block_shares(&plain, basin_block_norm(bound.block, x));
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
        status = basin_fail(error, BASIN_NO_MEMORY, "out of memory for an explanation");
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

static int lower_first(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Those of the explained nodes, and all of them in order. */
static basin_status keep_energies(lens *l, basin_error *error) {
    basin_explainer *x = l->x;
    int64_t N = x->network->nodes;
    double *all = x->energy = basin_array_new((size_t)N, sizeof *all);
    if (!all) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for an explanation");
    for (int64_t i = 0; i < N; i++) all[i] = l->energy[0][i] + l->energy[1][i];
    basin_mean_deviation(&x->energy_mean, &x->energy_deviation, all, N);
    qsort(all, (size_t)N, sizeof *all, lower_first);
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
        if (!told->share || !told->returned)
            return basin_fail(error, BASIN_NO_MEMORY, "out of memory for an explanation");
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
