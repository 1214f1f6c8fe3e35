/* Shards of a batch; see shards.h. */
#include "train/shards/shards.h"

#include <stdlib.h>

#include "base/try.h"
#include "plan/plan.h"
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
static basin_status no_reduction(void *context, basin_store *store, const char *const *name,
                                 int count, basin_error *error) {
    (void)context, (void)store, (void)name, (void)count;
    return basin_fail(error, BASIN_UNSUPPORTED, "a step of one shard alone");
}

const basin_reduction basin_shards_reduction = {.sum = no_reduction};

static int64_t count_of(basin_expr state) { return basin_shape_count(basin_expr_shape(state)); }

/* ---- beginning ---- */

basin_status basin_shards_begin(basin_shards *shards, const basin_training *training, int64_t count,
                                const basin_params *params, basin_error *error) {
    basin_ranks *ranks = training->ranks;
    if (count < 1) count = 1;
    *shards = (basin_shards){
        .ranks = ranks, .count = count, .share = basin_ranks_deal(ranks, count), .how = ""};
    if (count == 1 && basin_ranks_count(ranks) == 1) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(&shards->losses, 2 * (size_t)count, "losses", error));
    BASIN_TRY(
        basin_shards_device_begin(&shards->device, &shards->how, ranks, training->backend, error));
    basin_ranks_memory memory = basin_shards_device_memory(&shards->device);
    return basin_ranks_tree_new(&shards->tree, ranks, count, basin_params_total(params),
                                shards->device.table ? &memory : NULL, error);
}

void basin_shards_end(basin_shards *shards) {
    basin_ranks_tree_free(shards->tree);
    basin_shards_device_end(&shards->device);
    free(shards->losses);
    *shards = (basin_shards){0};
}

/* ---- gradients and the tree ---- */

/* A gradient times the weight, as floats. */
static basin_status take(float *to, basin_shards *shards, basin_store *store, basin_expr state,
                         double weight, basin_error *error) {
    const char *name = basin_expr_name(state);
    const basin_shards_device *d = &shards->device;
    int64_t count = count_of(state);
    if (d->table) {
        const float *from = basin_store_memory(store, name, false);
        d->table->scale(d->backend, to, from, (float)weight, count);
        return BASIN_OK;
    }
    basin_tensor gradient;
    BASIN_TRY(basin_store_read(store, name, &gradient, error));
    const float *from = gradient.data, factor = (float)weight;
    if (gradient.dtype == BASIN_F32)
        for (int64_t i = 0; i < count; i++) to[i] = from[i] * factor;
    else
        for (int64_t i = 0; i < count; i++) to[i] = (float)(basin_tensor_at(&gradient, i) * weight);
    basin_tensor_free(&gradient);
    return BASIN_OK;
}

/* The gradients that are there, one behind the other, and the loss. */
static basin_status take_all(basin_shards *shards, basin_trainer *trainer, double loss,
                             double weight, basin_error *error) {
    float *to = basin_ranks_tree_next(shards->tree);
    double *losses = shards->losses + 2 * (shards->share.first + shards->done++);
    for (size_t i = 0; i < trainer->gradients.count; i++) {
        basin_expr state = trainer->gradients.param[i].state;
        BASIN_TRY(take(to, shards, trainer->store, state, weight, error));
        to += count_of(state);
    }
    losses[0] = loss * weight;
    losses[1] = weight;
    basin_ranks_tree_push(shards->tree);
    return BASIN_OK;
}

basin_status basin_shards_add(basin_shards *shards, basin_trainer *trainer, double weight,
                              basin_error *error) {
    double loss;
    BASIN_TRY(basin_trainer_differentiate(trainer, error));
    BASIN_TRY(basin_trainer_loss(trainer, &loss, error));
    return take_all(shards, trainer, loss, weight, error);
}

/* A weight of 0 takes what is there for its shape alone. */
basin_status basin_shards_add_empty(basin_shards *shards, basin_trainer *trainer,
                                    basin_error *error) {
    return take_all(shards, trainer, 0, 0, error);
}

/* ---- the step ---- */

/* Loss and weight of the batch, from all shards in their order. */
static basin_status sum_losses(basin_shards *shards, double *loss, double *weight,
                               basin_error *error) {
    int64_t ranks = basin_ranks_count(shards->ranks);
    size_t *bytes = basin_array_new((size_t)ranks, sizeof *bytes);
    if (!bytes) return basin_fail_memory(error, "losses");
    for (int64_t r = 0; r < ranks; r++)
        bytes[r] = (size_t)basin_ranks_deal_to(r, ranks, shards->count).count * 2 * sizeof(double);
    double *losses = shards->losses;
    basin_status status = basin_ranks_gather_parts(shards->ranks, losses,
                                                   losses + 2 * shards->share.first, bytes, error);
    free(bytes);
    *loss = *weight = 0;
    for (int64_t i = 0; i < shards->count; i++)
        *loss += losses[2 * i], *weight += losses[2 * i + 1];
    if (!status && !(*weight > 0))
        return basin_fail(error, BASIN_BAD_VALUE, "a batch of which nothing counts in the loss");
    *loss /= *weight;
    return status;
}

/* The sum times `factor` into the states of the gradients. */
static basin_status give(basin_shards *shards, const basin_trainer *trainer, float *sum,
                         float factor, basin_error *error) {
    const basin_params *g = &trainer->gradients;
    const basin_shards_device *d = &shards->device;
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < g->count && !status; i++) {
        basin_expr state = g->param[i].state;
        const char *name = basin_expr_name(state);
        int64_t count = count_of(state);
        if (d->table)
            d->table->scale(d->backend, basin_store_memory(trainer->store, name, true), sum, factor,
                            count);
        else {
            for (int64_t k = 0; k < count; k++) sum[k] *= factor;
            basin_tensor tensor = basin_tensor_borrow(sum, BASIN_F32, basin_expr_shape(state));
            status = basin_store_write(trainer->store, name, &tensor, error);
        }
        sum += count;
    }
    return status;
}

basin_status basin_shards_step(basin_shards *shards, double *loss, double *weight,
                               basin_trainer *trainer, basin_error *error) {
    float *sum;
    shards->done = 0;
    basin_status status = sum_losses(shards, loss, weight, error);
    if (!status) status = basin_ranks_tree_sum(&sum, shards->tree, error);
    if (!status) status = give(shards, trainer, sum, (float)(1 / *weight), error);
    return status ? status : basin_trainer_apply(trainer, error);
}
