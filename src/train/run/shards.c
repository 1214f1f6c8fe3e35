/* Shards of a batch; see shards.h. Behind the gradients a shard's numbers hold its loss, times its
 * weight, and the weight, so that these come to every rank along with them. */
#include "train/run/shards.h"

#include <math.h>
#include <string.h>

#include "train/gradients.h"

enum { USUAL = 8 };

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

int64_t basin_shards_choose(int64_t asked, int64_t saved, int64_t batch, const basin_ranks *ranks) {
    if (asked) return asked;
    if (saved) return saved;
    return ranks ? common_divisor(batch, USUAL) : 1;
}

/* Trainers are stepped by basin_shards_step, and never meet by themselves. */
static basin_status no_meeting(void *context, basin_store *store, const char *const *name,
                               int count, basin_error *error) {
    (void)context, (void)store, (void)name, (void)count;
    return basin_fail(error, BASIN_UNSUPPORTED, "a step of one shard alone");
}

const basin_meeting basin_shards_meeting = {.sum = no_meeting};

basin_status basin_shards_begin(basin_shards *shards, basin_ranks *ranks, int64_t count,
                                const basin_params *params, basin_error *error) {
    if (count < 1) count = 1;
    *shards = (basin_shards){.count = count,
                             .share = basin_ranks_deal(ranks, count),
                             .numbers = basin_params_total(params)};
    if (count == 1 && basin_ranks_count(ranks) == 1) return BASIN_OK;
    return basin_ranks_tree_new(&shards->tree, ranks, count, shards->numbers + 2, error);
}

void basin_shards_end(basin_shards *shards) {
    basin_ranks_tree_free(shards->tree);
    *shards = (basin_shards){0};
}

/* ---- gradients and the tree ---- */

/* A gradient times the weight, as floats. */
static basin_status take(float *to, basin_store *store, const char *name, double weight,
                         basin_error *error) {
    basin_tensor gradient;
    basin_status status = basin_store_read(store, name, &gradient, error);
    if (status) return status;
    int64_t count = basin_shape_count(gradient.shape);
    const float *from = gradient.data, factor = (float)weight;
    if (gradient.dtype == BASIN_F32)
        for (int64_t i = 0; i < count; i++) to[i] = from[i] * factor;
    else
        for (int64_t i = 0; i < count; i++) to[i] = (float)(basin_tensor_at(&gradient, i) * weight);
    basin_tensor_free(&gradient);
    return BASIN_OK;
}

basin_status basin_shards_add(basin_shards *shards, basin_trainer *trainer, double weight,
                              basin_error *error) {
    const basin_params *g = &trainer->gradients;
    float *to = basin_ranks_tree_next(shards->tree);
    double loss = 0;
    basin_status status = basin_trainer_differentiate(trainer, error);
    for (size_t i = 0; i < g->count && !status; i++) {
        basin_expr state = g->param[i].state;
        status = take(to, trainer->store, basin_expr_name(state), weight, error);
        to += basin_shape_count(basin_expr_shape(state));
    }
    if (!status) status = basin_trainer_loss(trainer, &loss, error);
    if (status) return status;
    to[0] = (float)(loss * weight);
    to[1] = (float)weight;
    basin_ranks_tree_push(shards->tree);
    return BASIN_OK;
}

void basin_shards_add_empty(basin_shards *shards) {
    float *to = basin_ranks_tree_next(shards->tree);
    memset(to, 0, (size_t)(shards->numbers + 2) * sizeof *to);
    basin_ranks_tree_push(shards->tree);
}

/* The mean of all shards, into the states of the gradients. */
static basin_status give(const basin_trainer *trainer, float *sum, double weight,
                         basin_error *error) {
    const basin_params *g = &trainer->gradients;
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < g->count && !status; i++) {
        basin_expr state = g->param[i].state;
        basin_shape shape = basin_expr_shape(state);
        int64_t count = basin_shape_count(shape);
        float factor = (float)(1 / weight);
        for (int64_t k = 0; k < count; k++) sum[k] *= factor;
        basin_tensor tensor = basin_tensor_borrow(sum, BASIN_F32, shape);
        status = basin_store_write(trainer->store, basin_expr_name(state), &tensor, error);
        sum += count;
    }
    return status;
}

basin_status basin_shards_step(basin_shards *shards, double *loss, double *weight,
                               basin_trainer *trainer, basin_error *error) {
    float *sum;
    basin_status status = basin_ranks_tree_sum(&sum, shards->tree, error);
    if (status) return status;
    *weight = (double)sum[shards->numbers + 1];
    *loss = (double)sum[shards->numbers] / *weight;
    if (!(*weight > 0))
        return basin_fail(error, BASIN_BAD_VALUE, "a batch of which nothing counts in the loss");
    status = give(trainer, sum, *weight, error);
    return status ? status : basin_trainer_apply(trainer, error);
}
