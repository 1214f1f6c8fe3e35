/* Training on samples: targets with some of their neighbours, of a graph that every rank has whole
 * (a file that is mapped is in memory once a host). A batch of targets is cut into shards, which
 * ranks share; a shard is a function of the member's seed and its place. See fit.h. */
#include "task/nodes/fit.h"

enum { BATCH_LEAST = 32 }; /* targets, below which a step learns next to nothing */

basin_nodes_source basin_nodes_source_of(const basin_nodes_fitting *f) {
    return (basin_nodes_source){&f->inputs, f->label,       f->weight,
                                f->train,   f->train_count, .shards = f->settings.shards};
}

/* ---- the plan ---- */

static basin_status first_shape(basin_nodes_shape *shape, const basin_nodes_fitting *f,
                                basin_error *error) {
    basin_nodes_source source = basin_nodes_source_of(f);
    basin_nodes_batch batch;
    source.shard = source.shards > 1 ? source.shards - 1 : 0; /* the last has some in any case */
    basin_status status =
        basin_nodes_batch_draw(&batch, &source, (uint64_t)f->settings.seed, 0, 0, error);
    if (status) return status;
    *shape = batch.shape;
    basin_nodes_batch_free(&batch);
    return BASIN_OK;
}

static basin_status make_fitting_trainer(basin_nodes_fitting *f, basin_error *error) {
    for (;;) {
        basin_nodes_shape shape;
        basin_status status = first_shape(&shape, f, error);
        if (!status) status = basin_nodes_make_trainer(f, &shape, error);
        if (status != BASIN_NO_MEMORY || !f->shrink || f->settings.batch <= BATCH_LEAST)
            return status;
        f->settings.batch /= 2;
    }
}

basin_status basin_nodes_make_samples(basin_nodes_fitting *f, basin_error *error) {
    int64_t asked = f->settings.batch;
    basin_status status = make_fitting_trainer(f, error);
    f->model->settings.batch = f->settings.batch;
    if (!status && f->settings.batch < asked)
        basin_watch_note(f->work.watch, "batches of %lld targets: %lld would not fit",
                         (long long)f->settings.batch, (long long)asked);
    if (!status && *f->shards.how) basin_watch_note(f->work.watch, "%s", f->shards.how);
    return status;
}

/* ---- a step ---- */

static bool same_shape(const basin_nodes_shape *a, const basin_nodes_shape *b) {
    bool same = a->nodes == b->nodes;
    for (int r = 0; r < a->relations; r++) same = same && a->pairs[r] == b->pairs[r];
    return same;
}

/* Draws a shard and writes it to the plan; *weight is that of its targets, 0: there are none. */
static basin_status write_sample(basin_nodes_fitting *f, double *weight, int64_t shard,
                                 const basin_run_place *place, uint64_t seed, basin_error *error) {
    basin_nodes_source source = basin_nodes_source_of(f);
    basin_nodes_batch batch;
    source.shard = shard;
    *weight = 0;
    basin_status status =
        basin_nodes_batch_draw(&batch, &source, seed, place->epoch, place->batch, error);
    if (status || !batch.network) return status;
    for (int64_t i = 0; i < batch.targets; i++) *weight += (double)batch.weight[i];
    if (!same_shape(&batch.shape, &f->planned))
        status = basin_nodes_make_trainer(f, &batch.shape, error);
    basin_nodes_net_data data = basin_nodes_batch_data(&batch);
    if (!status) status = basin_nodes_net_write(&f->net, f->trainer.plan, &data, error);
    basin_nodes_batch_free(&batch);
    return status;
}

/* A batch that is one shard, in a process alone. */
static basin_status step_alone(basin_nodes_fitting *f, double *loss, const basin_run_place *place,
                               uint64_t member_seed, uint64_t seed, basin_error *error) {
    double weight;
    basin_status status = write_sample(f, &weight, 0, place, member_seed, error);
    f->trainer.step = place->step;
    if (!status) status = basin_nodes_net_write_seed(&f->net, f->trainer.plan, seed, error);
    return status ? status : basin_trainer_step(&f->trainer, loss, error);
}

/* Where scoring took the plan's memory, a shard without targets finds none. */
static basin_status add_empty(basin_nodes_fitting *f, basin_error *error) {
    basin_nodes_shape shape;
    basin_status status = BASIN_OK;
    if (!f->trainer.plan) {
        status = first_shape(&shape, f, error);
        if (!status) status = basin_nodes_make_trainer(f, &shape, error);
    }
    return status ? status : basin_shards_add_empty(&f->shards, &f->trainer, error);
}

static basin_status add_shard(basin_nodes_fitting *f, int64_t shard, const basin_run_place *place,
                              uint64_t member_seed, uint64_t seed, basin_error *error) {
    double weight;
    uint64_t own = seed ^ (uint64_t)shard * UINT64_C(0xd1342543de82ef95);
    basin_status status = write_sample(f, &weight, shard, place, member_seed, error);
    if (status) return status;
    if (!(weight > 0)) return add_empty(f, error);
    status = basin_nodes_net_write_seed(&f->net, f->trainer.plan, own, error);
    return status ? status : basin_shards_add(&f->shards, &f->trainer, weight, error);
}

basin_status basin_nodes_step_samples(basin_nodes_fitting *f, double *loss,
                                      const basin_run_place *place, uint64_t member_seed,
                                      uint64_t seed, basin_error *error) {
    basin_status status = BASIN_OK;
    double weight;
    if (!f->shards.tree) return step_alone(f, loss, place, member_seed, seed, error);
    for (int64_t i = 0; i < f->shards.share.count && !status; i++)
        status = add_shard(f, f->shards.share.first + i, place, member_seed, seed, error);
    f->trainer.step = place->step;
    return status ? status : basin_shards_step(&f->shards, loss, &weight, &f->trainer, error);
}
