/* Training on a graph in parts: each plan gives its part's share of the loss and of the gradients,
 * activations of halos go round in the middle of it; then the shares are summed in the order of the
 * parts and the update follows, the same on every rank. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "task/nodes/parts/parts.h"
#include "train/gradients.h"

struct basin_parted_trainer {
    basin_parts *parts;
    const basin_nodes_net *net;
    basin_store *store;
    basin_schedule schedule;
    basin_expr *gradient; /* [params] */
    basin_plan **plan;    /* [parts of this rank] loss and gradients */
    basin_params sums;    /* states "gradient.NAME" */
    basin_adamw adamw;
    basin_plan *update;
    basin_ranks_tree *tree;
};

static basin_status no_memory(basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory to train on parts");
}

/* ---- plans ---- */

static basin_status make_plan(basin_parted_trainer *t, int64_t k, basin_error *error) {
    size_t count = t->net->params.count;
    basin_expr *output = basin_array_new(count + 1, sizeof *output);
    if (!output) return no_memory(error);
    output[0] = t->net->loss;
    for (size_t i = 0; i < count; i++) output[i + 1] = t->gradient[i];
    basin_plan_spec spec = {.output = output, .outputs = (int)count + 1};
    basin_status status = basin_plan_new(&t->plan[k], t->store, &spec, error);
    free(output);
    return status;
}

static basin_status make_update(basin_parted_trainer *t, const basin_trainer_spec *spec,
                                basin_error *error) {
    const basin_params *params = &t->net->params;
    basin_expr *sum = basin_array_new(params->count, sizeof *sum);
    if (!sum) return no_memory(error);
    basin_params_begin(&t->sums, params->graph);
    for (size_t i = 0; i < params->count; i++) {
        basin_expr p = params->param[i].state;
        sum[i] = basin_param_add(&t->sums, "gradient.", basin_expr_name(p), basin_expr_shape(p),
                                 (basin_init){0});
    }
    const basin_error *found = basin_graph_error(params->graph);
    basin_status status = found ? basin_fail(error, found->status, "%s", found->text) : BASIN_OK;
    if (!status) status = basin_adamw_from(&t->adamw, params, sum, &spec->adamw, error);
    basin_plan_spec plan = {.update = t->adamw.update, .updates = t->adamw.updates};
    if (!status) status = basin_plan_new(&t->update, t->store, &plan, error);
    free(sum);
    return status;
}

/* A batch norm's mean would be that of one part. */
static basin_status refuse_statistics(const basin_params *params, basin_error *error) {
    for (size_t i = 0; i < params->count; i++)
        if (params->param[i].statistic)
            return basin_fail(error, BASIN_UNSUPPORTED,
                              "a model with batch norm on a graph in parts; wanted one without, or "
                              "the whole graph");
    return BASIN_OK;
}

static int64_t count_numbers(const basin_params *params) {
    int64_t count = 0;
    for (size_t i = 0; i < params->count; i++)
        count += basin_shape_count(basin_expr_shape(params->param[i].state));
    return count;
}

static basin_status make(basin_parted_trainer *t, const basin_parted_inputs *inputs,
                         const basin_trainer_spec *spec, const float *label, const float *weight,
                         basin_error *error) {
    const basin_params *params = &t->net->params;
    basin_status status = BASIN_OK;
    t->gradient = basin_array_new(params->count, sizeof *t->gradient);
    t->plan = calloc((size_t)t->parts->count, sizeof *t->plan);
    if (!t->gradient || !t->plan) status = no_memory(error);
    if (!status) status = refuse_statistics(params, error);
    if (!status) status = basin_gradients(t->gradient, params, t->net->loss, error);
    for (int64_t k = 0; k < t->parts->count && !status; k++) {
        status = make_plan(t, k, error);
        if (!status)
            status = basin_parted_inputs_write(inputs, k, t->net, t->plan[k], label, weight, error);
    }
    if (!status) status = make_update(t, spec, error);
    if (!status)
        status = basin_ranks_tree_new(&t->tree, t->parts->ranks, t->parts->parts,
                                      count_numbers(params), NULL, error);
    return basin_ranks_agree(t->parts->ranks, status, error);
}

basin_status basin_parted_trainer_new(basin_parted_trainer **trainer,
                                      const basin_parted_inputs *inputs, const basin_nodes_net *net,
                                      basin_store *store, const basin_trainer_spec *spec,
                                      const float *label, const float *weight, basin_error *error) {
    *trainer = NULL;
    basin_parted_trainer *t = calloc(1, sizeof *t);
    if (!t) return no_memory(error);
    t->parts = inputs->parts, t->net = net, t->store = store, t->schedule = spec->schedule;
    basin_status status = make(t, inputs, spec, label, weight, error);
    if (status)
        basin_parted_trainer_free(t);
    else
        *trainer = t;
    return status;
}

void basin_parted_trainer_free(basin_parted_trainer *t) {
    if (!t) return;
    for (int64_t k = 0; k < t->parts->count && t->plan; k++) basin_plan_free(t->plan[k]);
    basin_plan_free(t->update);
    basin_adamw_free(&t->adamw);
    basin_params_free(&t->sums);
    basin_ranks_tree_free(t->tree);
    free(t->plan), free(t->gradient);
    free(t);
}

void basin_parted_trainer_rest(basin_parted_trainer *t) {
    for (int64_t k = 0; k < t->parts->count; k++) basin_plan_release(t->plan[k]);
}

size_t basin_parted_trainer_bytes(const basin_parted_trainer *t) {
    size_t bytes = 0;
    for (int64_t k = 0; k < t->parts->count; k++) {
        basin_plan_stats stats = basin_plan_get_stats(t->plan[k]);
        bytes += stats.arena_bytes + stats.input_bytes;
    }
    return bytes;
}

basin_status basin_parted_trainer_mask(basin_parted_trainer *t,
                                       const basin_nodes_settings *settings, int64_t member,
                                       basin_error *error) {
    basin_status status = BASIN_OK;
    for (int64_t k = 0; k < t->parts->count && !status; k++)
        status = basin_nodes_mask_write(t->plan[k], t->net->mask, settings, member, error);
    return status;
}

/* ---- a step ---- */

/* Other draws for every part; those of the first are as for a whole graph. */
static basin_status write_seeds(basin_parted_trainer *t, uint64_t seed, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int64_t k = 0; k < t->parts->count && !status; k++) {
        uint64_t mixed = seed ^ (uint64_t)(t->parts->first + k) * UINT64_C(0xd1342543de82ef95);
        status = basin_nodes_net_write_seed(t->net, t->plan[k], mixed, error);
    }
    return status;
}

/* The gradients of one part, one after the other. */
static basin_status read_gradients(basin_parted_trainer *t, int64_t k, basin_error *error) {
    float *to = basin_ranks_tree_next(t->tree);
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < t->net->params.count && !status; i++) {
        basin_shape shape = basin_expr_shape(t->gradient[i]);
        basin_tensor tensor = basin_tensor_borrow(to, BASIN_F32, shape);
        status = basin_plan_read(t->plan[k], t->gradient[i], &tensor, error);
        to += basin_shape_count(shape);
    }
    return status ? status : basin_ranks_tree_push(t->tree, error);
}

static basin_status sum_gradients(basin_parted_trainer *t, basin_error *error) {
    float *sum = NULL;
    basin_status status = BASIN_OK;
    for (int64_t k = 0; k < t->parts->count && !status; k++) status = read_gradients(t, k, error);
    if (!status) status = basin_ranks_tree_sum(&sum, t->tree, error);
    for (size_t i = 0; i < t->sums.count && !status; i++) {
        basin_expr state = t->sums.param[i].state;
        basin_shape shape = basin_expr_shape(state);
        basin_tensor tensor = basin_tensor_borrow(sum, BASIN_F32, shape);
        status = basin_store_write(t->store, basin_expr_name(state), &tensor, error);
        sum += basin_shape_count(shape);
    }
    return status;
}

static basin_status sum_losses(basin_parted_trainer *t, double *loss, int64_t step,
                               basin_error *error) {
    double *share = calloc((size_t)t->parts->parts, sizeof *share);
    if (!share) return no_memory(error);
    for (int64_t k = 0; k < t->parts->count; k++)
        share[t->parts->first + k] = basin_plan_scalar(t->plan[k], t->net->loss);
    basin_status status =
        basin_ranks_sum(t->parts->ranks, share, t->parts->parts, error); /* others' are zero */
    *loss = 0;
    for (int64_t q = 0; q < t->parts->parts; q++) *loss += share[q];
    free(share);
    if (status || isfinite(*loss)) return status;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "the loss is %g at step %lld, wanted a finite number: a smaller learning "
                      "rate or a smaller alpha may help",
                      *loss, (long long)step);
}

basin_status basin_parted_trainer_step(basin_parted_trainer *t, double *loss, int64_t step,
                                       uint64_t seed, basin_error *error) {
    const basin_schedule *s = &t->schedule;
    double rate = basin_rate_cosine(step, s->warmup, s->total, s->first, s->peak, s->last);
    basin_exchange_way way = {basin_parts_move, t->parts};
    basin_status status = write_seeds(t, seed, error);
    if (!status) status = basin_plans_run(t->plan, (int)t->parts->count, &way, error);
    if (!status) status = sum_gradients(t, error);
    if (!status) status = sum_losses(t, loss, step, error);
    if (!status) status = basin_adamw_write(&t->adamw, t->update, step + 1, rate, error);
    return status ? status : basin_plan_run(t->update, error);
}
