/* Shards of a batch; see shards.h. */
#include "tasks/common/shards/shards.h"
#include "base/training.h"

#include "basin/plan.h"
#include "basin/train.h"
#include "tasks/common/run/run.h"

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

basin_status basin_shards_check(int64_t shards, int64_t batch, basin_error *error) {
    if (batch % shards == 0) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "shards is %lld, expected a divisor of the batch, %lld", (long long)shards,
                      (long long)batch);
}

static int64_t count_of(basin_expr state) { return basin_shape_count(basin_expr_shape(state)); }

/* ---- who has which device ---- */

/* NCCL refuses two ranks on one device. */
static basin_status all_apart(bool *apart, basin_shards *s, basin_error *error) {
    int64_t count = basin_ranks_count(s->ranks);
    char mine[BASIN_COLLECTIVE_NAME];
    BASIN_FREE_AT_EXIT char(*all)[BASIN_COLLECTIVE_NAME] = NULL;
    BASIN_TRY(BASIN_NEW_RAW(&all, count, "ranks", error));
    s->table->name(s->backend, mine);
    BASIN_TRY(basin_ranks_gather(s->ranks, all, mine, sizeof mine, error));
    *apart = true;
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < i; k++)
            if (!memcmp(all[i], all[k], sizeof all[i])) *apart = false;
    return BASIN_OK;
}

/* Where NCCL is absent on any rank, none uses it. */
static basin_status join(bool *direct, basin_shards *s, basin_error *error) {
    char id[BASIN_COLLECTIVE_ID] = "";
    int64_t count = basin_ranks_count(s->ranks), rank = basin_ranks_rank(s->ranks);
    bool absent = s->table->invite(s->backend, id, error) != BASIN_OK;
    basin_status status = basin_ranks_any(s->ranks, &absent, error);
    if (status || absent) return status;
    status = basin_ranks_broadcast(s->ranks, id, sizeof id, 0, error);
    if (!status) status = s->table->join(s->backend, id, (int)rank, (int)count, error);
    status = basin_ranks_agree(s->ranks, status, error);
    *direct = !status;
    return status;
}

static basin_status device_begin(basin_shards *s, const basin_training_options *training,
                                 basin_error *error) {
    bool apart, direct = false;
    s->backend = training->backend;
    s->table = basin_backend_collective(training->backend);
    if (!s->table || basin_ranks_count(s->ranks) == 1) return BASIN_OK;
    BASIN_TRY(all_apart(&apart, s, error));
    if (apart) BASIN_TRY(join(&direct, s, error));
    if (!direct) s->table = NULL;
    basin_watch_note(training->watch, "gradients travel %s",
                     direct  ? "from GPU to GPU, by NCCL"
                     : apart ? "through the host's memory: NCCL is absent"
                             : "through the host's memory: ranks share a GPU");
    return BASIN_OK;
}

/* ---- beginning ---- */

basin_status basin_shards_begin(basin_shards *shards, const basin_training_options *training,
                                int64_t count, const basin_params *params, basin_error *error) {
    basin_ranks *ranks = training->ranks;
    if (count < 1) count = 1;
    *shards =
        (basin_shards){.ranks = ranks, .count = count, .share = basin_ranks_deal(ranks, count)};
    if (count == 1 && basin_ranks_count(ranks) == 1) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(&shards->losses, 2 * (size_t)count, "losses", error));
    BASIN_TRY(device_begin(shards, training, error));
    return basin_ranks_tree_new(&shards->tree, ranks, count, basin_params_total(params),
                                shards->backend, shards->table, error);
}

basin_status basin_shards_trainer_new(basin_shards *shards, basin_trainer **trainer,
                                      const basin_training_options *training, int64_t count,
                                      basin_store *store, const basin_params *params,
                                      basin_expr loss, basin_trainer_spec *spec,
                                      basin_error *error) {
    BASIN_TRY(basin_shards_begin(shards, training, count, params, error));
    spec->reduction = shards->tree ? &basin_shards_reduction : NULL;
    return basin_trainer_new(trainer, store, params, loss, spec, error);
}

void basin_shards_end(basin_shards *shards) {
    basin_ranks_tree_free(shards->tree);
    free(shards->losses);
    *shards = (basin_shards){0};
}

/* ---- gradients and the tree ---- */

/* A gradient times the weight, as floats. */
static basin_status take(float *to, basin_shards *shards, basin_store *store, basin_expr state,
                         double weight, basin_error *error) {
    const char *name = basin_expr_name(state);
    int64_t count = count_of(state);
    if (shards->table) {
        const float *from = basin_store_memory(store, name, false);
        shards->table->scale(shards->backend, to, from, (float)weight, count);
        return BASIN_OK;
    }
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor gradient = {0};
    BASIN_TRY(basin_store_get(&gradient, store, name, error));
    const float *from = gradient.data, factor = (float)weight;
    if (gradient.dtype == BASIN_F32)
        for (int64_t i = 0; i < count; i++) to[i] = from[i] * factor;
    else
        for (int64_t i = 0; i < count; i++) to[i] = (float)(basin_tensor_at(&gradient, i) * weight);
    return BASIN_OK;
}

/* The gradients that are there, one after the other, and the loss. */
static basin_status take_all(basin_shards *shards, basin_trainer *trainer, double loss,
                             double weight, basin_error *error) {
    float *to = basin_ranks_tree_next(shards->tree);
    double *losses = shards->losses + 2 * (shards->share.first + shards->done++);
    basin_trainer_info info = basin_trainer_info_of(trainer);
    for (size_t i = 0; i < info.gradients->count; i++) {
        basin_expr state = info.gradients->param[i].state;
        BASIN_TRY(take(to, shards, info.store, state, weight, error));
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
    BASIN_TRY(basin_plan_run(basin_trainer_plan(trainer), error));
    BASIN_TRY(basin_trainer_loss(&loss, trainer, error));
    return take_all(shards, trainer, loss, weight, error);
}

/* A weight of 0 takes what is there only for its shape. */
basin_status basin_shards_add_empty(basin_shards *shards, basin_trainer *trainer,
                                    basin_error *error) {
    return take_all(shards, trainer, 0, 0, error);
}

/* ---- the step ---- */

/* Loss and weight of the batch, from all shards in their order. */
static basin_status sum_losses(basin_shards *shards, double *loss, double *weight,
                               basin_error *error) {
    int64_t ranks = basin_ranks_count(shards->ranks);
    BASIN_SCRATCH_RAW(size_t, bytes, ranks, "losses", error);
    for (int64_t r = 0; r < ranks; r++)
        bytes[r] = (size_t)basin_ranks_deal_to(r, ranks, shards->count).count * 2 * sizeof(double);
    double *losses = shards->losses;
    BASIN_TRY(basin_ranks_gather_parts(shards->ranks, losses, losses + 2 * shards->share.first,
                                       bytes, error));
    *loss = *weight = 0;
    for (int64_t i = 0; i < shards->count; i++)
        *loss += losses[2 * i], *weight += losses[2 * i + 1];
    if (!(*weight > 0))
        return basin_fail(error, BASIN_BAD_VALUE, "a batch of which nothing counts in the loss");
    *loss /= *weight;
    return BASIN_OK;
}

/* The sum times `factor` into the states of the gradients. */
static basin_status give(basin_shards *shards, const basin_trainer *trainer, float *sum,
                         float factor, basin_error *error) {
    basin_trainer_info info = basin_trainer_info_of(trainer);
    const basin_params *g = info.gradients;
    for (size_t i = 0; i < g->count; i++) {
        basin_expr state = g->param[i].state;
        const char *name = basin_expr_name(state);
        int64_t count = count_of(state);
        if (shards->table)
            shards->table->scale(shards->backend, basin_store_memory(info.store, name, true), sum,
                                 factor, count);
        else {
            for (int64_t k = 0; k < count; k++) sum[k] *= factor;
            basin_tensor tensor = basin_tensor_borrow(sum, BASIN_F32, basin_expr_shape(state));
            BASIN_TRY(basin_store_write(info.store, name, &tensor, error));
        }
        sum += count;
    }
    return BASIN_OK;
}

basin_status basin_shards_step(basin_shards *shards, double *loss, double *weight,
                               basin_trainer *trainer, basin_error *error) {
    float *sum;
    shards->done = 0;
    BASIN_TRY(sum_losses(shards, loss, weight, error));
    BASIN_TRY(basin_ranks_tree_sum(&sum, shards->tree, error));
    BASIN_TRY(give(shards, trainer, sum, (float)(1 / *weight), error));
    return basin_trainer_apply(trainer, error);
}

basin_status basin_shards_run(basin_shards *shards, basin_trainer *trainer, int64_t step,
                              basin_shards_write *write, void *context, basin_error *error) {
    double weight;
    basin_trainer_set_step(trainer, step);
    for (int64_t i = 0; i < shards->share.count; i++) {
        BASIN_TRY(write(context, &weight, step, shards->share.first + i, error));
        BASIN_TRY(shards->tree ? basin_shards_add(shards, trainer, weight, error)
                               : basin_trainer_step(NULL, trainer, error));
    }
    return shards->tree ? basin_shards_step(shards, &shards->loss, &weight, trainer, error)
                        : BASIN_OK;
}

basin_status basin_shards_loss(const basin_shards *shards, double *loss,
                               const basin_trainer *trainer, basin_error *error) {
    *loss = shards->loss;
    return shards->tree ? BASIN_OK : basin_trainer_loss(loss, trainer, error);
}
