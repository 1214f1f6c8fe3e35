/* A graph in parts: inputs and training; see net.h. */
#include "base/info.h"
#include "base/sort.h"
#include "base/states.h"
#include "base/training.h"
#include "basin/plan.h"
#include "tasks/nodes/net.h"

/* ---- opening ---- */

static basin_status check(const basin_nodes_settings *s, basin_error *error) {
    bool placed = !basin_choice_is(s->position, "none");
    if (!placed) return BASIN_OK;
    return basin_fail(error, BASIN_UNSUPPORTED,
                      "position %s is not supported for a partitioned graph; use position none",
                      s->position);
}

static void set_shape(basin_parted_inputs *in) {
    const basin_parts *p = in->parts;
    const basin_node_inputs *first = in->whole = &in->part[0];
    in->shape = first->shape;
    if (!p) return;
    bool loops = basin_choice_is(first->settings->self_loops, "add");
    in->whole = &in->part[p->count];
    *in->whole =
        (basin_node_inputs){.network = p->face, .settings = first->settings, .shape = first->shape};
    in->whole->shape.nodes = in->whole->shape.positions = p->face->nodes;
    in->shape.nodes = in->shape.positions = p->max_nodes;
    in->shape.halo = p->max_halo;
    in->shape.parts = p->parts;
    for (int r = 0; r < in->shape.relations; r++) {
        in->shape.pairs[r] = p->max_edges[first->node.relation[r]] + (loops ? p->max_nodes : 0);
        in->whole->node.relation[r] = first->node.relation[r];
    }
}

static basin_status open_all(basin_parted_inputs *in, const basin_network *network,
                             const basin_nodes_settings *settings, basin_error *error) {
    basin_parts *p = in->parts;
    if (p) BASIN_TRY(check(settings, error));
    BASIN_TRY(BASIN_NEW(&in->part, in->count + 1, "the inputs of parts", error));
    for (int64_t k = 0; k < in->count; k++) {
        BASIN_TRY(basin_node_inputs_open(&in->part[k], p ? p->part[k]->network : network, settings,
                                         error));
        in->part[k].node.halo = p ? p->part[k]->halo : 0;
    }
    return BASIN_OK;
}

basin_status basin_parted_inputs_open(basin_parted_inputs *in, const basin_network *network,
                                      basin_parts *parts, const basin_nodes_settings *settings,
                                      basin_error *error) {
    *in = (basin_parted_inputs){.parts = parts, .count = parts ? parts->count : 1};
    basin_status status = open_all(in, network, settings, error);
    if (parts) status = basin_ranks_agree(parts->ranks, status, error);
    if (!status) set_shape(in);
    if (status) basin_parted_inputs_close(in);
    return status;
}

void basin_parted_inputs_close(basin_parted_inputs *in) {
    for (int64_t k = 0; in->part && k < in->count; k++) basin_node_inputs_close(&in->part[k]);
    free(in->part);
    *in = (basin_parted_inputs){0};
}

static size_t node_inputs_bytes(const basin_node_inputs *inputs) {
    const basin_network *n = inputs->network;
    size_t N = (size_t)n->nodes, bytes = N * (size_t)(inputs->shape.columns + n->features) * 4;
    for (int r = 0; r < n->relations; r++)
        bytes += (N + 1) * sizeof(int64_t) +
                 (size_t)n->relation[r].edges *
                     (sizeof(int32_t) + (size_t)n->facts.count * sizeof(float));
    return bytes;
}

size_t basin_parted_inputs_bytes(const basin_parted_inputs *in) {
    size_t bytes = 0;
    for (int64_t k = 0; k < in->count; k++) bytes += node_inputs_bytes(&in->part[k]);
    return bytes;
}

/* Facts of up to `max` edges of a node after their count, evenly taken. */
static void take_edges(float *row, const basin_node_inputs *in, int r, int64_t node, int64_t max) {
    const basin_facts *facts = &in->network->facts;
    const basin_relation *relation = &in->network->relation[in->node.relation[r]];
    int64_t first = relation->row[node], degree = relation->row[node + 1] - first;
    int64_t count = basin_int_min(degree, max);
    *row++ = (float)count;
    for (int64_t i = 0; i < count; i++, row += basin_facts_width(facts))
        basin_facts_columns(row, facts,
                            relation->fact + (first + i * degree / count) * facts->count);
}

/* One scale of edges of training nodes on every rank; so many of each that there are enough. */
static basin_status fit_edges(basin_scaler *scale, const basin_parted_inputs *in,
                              const uint8_t *chosen, int64_t nodes, basin_error *error) {
    static const char what[] = "a scale of edges";
    const basin_parts *p = in->parts;
    int R = in->shape.relations;
    int64_t width = in->shape.facts, max = 1 + BASIN_FITTED_EDGES / nodes / R, kept = 0;
    int64_t stride = 1 + max * width;
    BASIN_SCRATCH(float, own, nodes *stride, what, error);
    BASIN_SCRATCH(float, all, R *nodes *stride, what, error);
    BASIN_SCRATCH_RAW(int64_t, row, R * nodes * max, what, error);
    for (int r = 0; r < R; r++) {
        float *to = own, *of = all + r * nodes * stride;
        for (int64_t k = 0; k < p->count; k++)
            for (int64_t i = 0; i < p->part[k]->network->nodes; i++)
                if (chosen[p->part[k]->network->origin[i]])
                    take_edges(to, &in->part[k], r, i, max), to += stride;
        BASIN_TRY(basin_parts_gather_packed(of, in->parts, own, chosen, (size_t)stride * sizeof *of,
                                            error));
        for (int64_t i = 0; i < nodes; i++) {
            int64_t count = (int64_t)of[i * stride];
            for (int64_t e = 0; e < count; e++, kept++) {
                memmove(all + kept * width, of + i * stride + 1 + e * width,
                        (size_t)width * sizeof *all);
                row[kept] = kept;
            }
        }
    }
    if (!kept) row[kept++] = 0; /* training nodes without edges: a count of 0 */
    return basin_scaler_fit(scale, BASIN_SCALE_QUANTILE, all, width, row, kept, error);
}

/* With parts, every rank fits the same scale, on the rows of all training nodes. */
basin_status basin_parted_inputs_fit(basin_scaler *scale, basin_scaler *edge_scale,
                                     const basin_parted_inputs *in, const int64_t *node,
                                     int64_t nodes, basin_error *error) {
    basin_parts *p = in->parts;
    if (!p) return basin_node_inputs_fit(scale, edge_scale, in->part, node, nodes, error);
    basin_node_inputs train = {.settings = in->part[0].settings, .node.own = in->part[0].node.own};
    BASIN_FREE_AT_EXIT const void **mine = NULL;
    BASIN_SCRATCH(uint8_t, chosen, p->face->nodes, "the inputs of parts", error);
    BASIN_TRY(BASIN_NEW_RAW(&mine, p->count, "the inputs of parts", error));
    BASIN_SCRATCH_RAW(float, raw, (nodes * train.node.own), "the inputs of parts", error);
    BASIN_SCRATCH_RAW(int64_t, all, nodes, "the inputs of parts", error);
    for (int64_t i = 0; i < nodes; i++) chosen[node[i]] = 1, all[i] = i;
    for (int64_t k = 0; k < p->count; k++) mine[k] = in->part[k].raw;
    BASIN_TRY(
        basin_parts_gather(raw, p, mine, chosen, (size_t)train.node.own * sizeof *raw, error));
    train.raw = raw;
    BASIN_TRY(basin_node_inputs_fit(scale, NULL, &train, all, nodes, error));
    return in->shape.facts ? fit_edges(edge_scale, in, chosen, nodes, error) : BASIN_OK;
}

basin_status basin_parted_inputs_scale(basin_parted_inputs *in, const basin_scaler *scale,
                                       const basin_scaler *edge_scale, basin_error *error) {
    basin_parts *p = in->parts;
    const basin_node_table *first = &in->part[0].node;
    if (!p) {
        BASIN_TRY(basin_node_inputs_scale(in->part, scale, edge_scale, error));
        in->shape = in->whole->shape;
        return BASIN_OK;
    }
    basin_status status = BASIN_OK;
    for (int64_t k = 0; k < p->count && !status; k++)
        status = basin_node_inputs_scale_rows(&in->part[k], scale, edge_scale, error);
    BASIN_TRY(basin_ranks_agree(p->ranks, status, error));
    in->shape.columns = in->whole->shape.columns = first->stride;
    for (int64_t b = 1; b <= first->means; b++) {
        BASIN_TRY(basin_node_tables_fetch(p, first, sizeof *in->part, error));
        for (int64_t k = 0; k < p->count; k++)
            basin_node_table_means(&in->part[k].node, b,
                                   basin_parts_threads(p, p->part[k]->network->nodes * first->own));
    }
    for (int64_t k = 0; k < p->count; k++) { /* rows of the halo are no longer needed */
        basin_node_table *t = &in->part[k].node;
        float *rows = realloc(t->row, (size_t)(t->network->nodes * t->stride) * sizeof *rows);
        if (rows) t->row = rows;
        t->halo = 0;
    }
    return BASIN_OK;
}

/* ---- into plans ---- */

basin_status basin_parted_inputs_write(const basin_parted_inputs *in, int64_t k,
                                       const basin_nodes_net *net, basin_plan *plan,
                                       const float *label, const float *weight,
                                       basin_error *error) {
    const basin_node_inputs *part = &in->part[k];
    const basin_network *n = part->network;
    basin_pairs pairs[BASIN_MAX_RELATIONS] = {{0}};
    BASIN_FREE_AT_EXIT float *own_label = NULL;
    BASIN_FREE_AT_EXIT float *own_weight = NULL;
    if (in->parts) {
        BASIN_TRY(basin_rows_take(&own_label, label, basin_nodes_width(part->settings), n, error));
        BASIN_TRY(basin_rows_take(&own_weight, weight, 1, n, error));
    }
    if (basin_nodes_on_graph(part->settings))
        BASIN_TRY(basin_node_inputs_pairs(pairs, part, n, in->shape.nodes, in->shape.halo, error));
    basin_nodes_net_data data = basin_node_inputs_data(part, pairs);
    data.label = in->parts ? own_label : label, data.weight = in->parts ? own_weight : weight;
    basin_status status = basin_nodes_net_write(net, plan, &data, error);
    for (int r = 0; r < part->shape.relations; r++) basin_pairs_free(&pairs[r]);
    return status;
}

/* ---- Training on parts: each plan gives its share of loss and gradients, halos are exchanged
 * mid-plan; the shares are summed in the order of the parts on every rank. ---- */

struct basin_parted_trainer {
    basin_parts *parts;
    const basin_nodes_settings *settings;
    const basin_nodes_net *net;
    basin_expr *output;    /* [1 + params] the loss, and the gradient of each parameter */
    basin_plan **plan;     /* [parts of this rank] of these */
    basin_trainer *update; /* by sums of the gradients */
    basin_ranks_tree *tree;
};

static basin_status make(basin_parted_trainer *t, const basin_parted_inputs *inputs,
                         basin_store *store, const basin_trainer_spec *spec, const float *label,
                         const float *weight, basin_error *error) {
    const basin_params *params = &t->net->params;
    basin_plan_spec plan = {.outputs = (int)params->count + 1};
    BASIN_TRY(BASIN_NEW_RAW(&t->output, params->count + 1, "training on parts", error));
    BASIN_TRY(BASIN_NEW(&t->plan, t->parts->count, "training on parts", error));
    t->output[0] = t->net->loss;
    BASIN_TRY(basin_gradients(t->output + 1, params, t->net->loss, error));
    plan.output = t->output;
    for (int64_t k = 0; k < t->parts->count; k++) {
        BASIN_TRY(basin_plan_new(&t->plan[k], store, &plan, error));
        BASIN_TRY(basin_parted_inputs_write(inputs, k, t->net, t->plan[k], label, weight, error));
    }
    BASIN_TRY(basin_trainer_new(&t->update, store, params, NULL, spec, error));
    return basin_ranks_tree_new(&t->tree, t->parts->ranks, t->parts->parts,
                                basin_params_total(params), NULL, NULL, error);
}

basin_status basin_parted_trainer_new(basin_parted_trainer **trainer,
                                      const basin_parted_inputs *inputs, const basin_nodes_net *net,
                                      basin_store *store, const basin_trainer_spec *spec,
                                      const float *label, const float *weight, basin_error *error) {
    BASIN_TRY(BASIN_NEW(trainer, 1, "training on parts", error));
    **trainer = (basin_parted_trainer){
        .parts = inputs->parts, .settings = inputs->whole->settings, .net = net};
    basin_status status = make(*trainer, inputs, store, spec, label, weight, error);
    return basin_ranks_agree(inputs->parts->ranks, status, error);
}

void basin_parted_trainer_free(basin_parted_trainer *t) {
    if (!t) return;
    for (int64_t k = 0; k < t->parts->count && t->plan; k++) basin_plan_free(t->plan[k]);
    basin_trainer_free_at(&t->update);
    basin_ranks_tree_free(t->tree);
    free(t->plan), free(t->output);
    free(t);
}

void basin_parted_trainer_release(basin_parted_trainer *t) {
    for (int64_t k = 0; k < t->parts->count; k++) basin_plan_release(t->plan[k]);
}

size_t basin_parted_trainer_bytes(const basin_parted_trainer *t) {
    size_t bytes = 0;
    for (int64_t k = 0; k < t->parts->count; k++) bytes += basin_plan_work_bytes(t->plan[k]);
    return bytes;
}

/* The sums over all parts become the gradients of the update. */
static basin_status sum_gradients(basin_parted_trainer *t, basin_error *error) {
    basin_trainer_info update = basin_trainer_info_of(t->update);
    const basin_params *gradients = update.gradients;
    float *sum;
    for (int64_t k = 0; k < t->parts->count; k++) {
        float *to = basin_ranks_tree_next(t->tree);
        for (size_t i = 1; i <= gradients->count; i++) {
            BASIN_TRY(basin_values_read(t->plan[k], t->output[i], to, BASIN_F32, error));
            to += basin_shape_count(basin_expr_shape(t->output[i]));
        }
        basin_ranks_tree_push(t->tree);
    }
    BASIN_TRY(basin_ranks_tree_sum(&sum, t->tree, error));
    for (size_t i = 0; i < gradients->count; i++) {
        basin_expr state = gradients->param[i].state;
        basin_tensor tensor = basin_tensor_borrow(sum, BASIN_F32, basin_expr_shape(state));
        BASIN_TRY(basin_store_write(update.store, basin_expr_name(state), &tensor, error));
        sum += basin_shape_count(tensor.shape);
    }
    return BASIN_OK;
}

static basin_status sum_losses(basin_parted_trainer *t, double *loss, basin_error *error) {
    BASIN_SCRATCH(double, share, t->parts->parts, "training on parts", error);
    for (int64_t k = 0; k < t->parts->count; k++)
        share[t->parts->first + k] = basin_plan_scalar(t->plan[k], t->net->loss);
    BASIN_TRY(basin_ranks_sum(t->parts->ranks, share, t->parts->parts, error)); /* 0 of others */
    *loss = 0;
    for (int64_t q = 0; q < t->parts->parts; q++) *loss += share[q];
    return basin_loss_check(*loss, basin_trainer_info_of(t->update).step, error);
}

basin_status basin_parted_trainer_step(basin_parted_trainer *t, double *loss, int64_t step,
                                       uint64_t seed, basin_error *error) {
    basin_exchange_callback way = {basin_parts_move, t->parts};
    basin_trainer_set_step(t->update, step);
    /* Other draws for every part; those of the first are as for a whole graph. */
    for (int64_t k = 0; k < t->parts->count; k++) {
        uint64_t mixed = seed ^ (uint64_t)(t->parts->first + k) * UINT64_C(0xd1342543de82ef95);
        BASIN_TRY(basin_nodes_net_write_seed(t->net, t->plan[k], mixed, error));
    }
    BASIN_TRY(basin_plans_run(t->plan, (int)t->parts->count, &way, error));
    BASIN_TRY(sum_gradients(t, error));
    BASIN_TRY(sum_losses(t, loss, error));
    return basin_trainer_apply(t->update, error);
}
