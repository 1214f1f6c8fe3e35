/* A step's batch in shards: each is computed by itself, by whichever rank it is dealt to, and the
 * gradients are added in one order (ranks/ranks.h), so that the weights do not depend on the number
 * of ranks. The batch's loss is the mean of its shards' by weight. */
#ifndef BASIN_TRAIN_SHARDS_SHARDS_H
#define BASIN_TRAIN_SHARDS_SHARDS_H

#include "basin/collective.h"
#include "basin/tasks/run.h"
#include "basin/train.h"
#include "tasks/common/ranks/ranks.h"

typedef struct basin_shards {
    basin_ranks *ranks;
    int64_t count;           /* of a batch; 1: a batch is one plan's, and there is one rank */
    basin_ranks_share share; /* this rank's */
    basin_ranks_tree *tree;  /* of gradients; NULL where count is 1 */
    double *losses;          /* [count, 2] losses, times their weights, and weights */
    int64_t done;            /* of this rank's in this step */
    double loss;             /* of the last batch of several shards */
    /* Sums in the memory of a device: added there, and sent from device to device by NCCL where
     * each rank has a separate one. */
    basin_backend *backend;
    const basin_collective *table; /* NULL: sums in the host's memory */
} basin_shards;

/* For the spec of trainers where there is more than one shard: basin_shards_step updates. */
static const basin_reduction basin_shards_reduction = {0};

/* What the setting `shards` comes to: what was asked for, that of the checkpoint (0: none), or, of
 * 0, with ranks up to eight that divide the batch, otherwise one. */
int64_t basin_shards_choose(int64_t asked, int64_t saved, int64_t batch, const basin_ranks *ranks);
/* An error where they do not divide the batch. */
basin_status basin_shards_check(int64_t shards, int64_t batch, basin_error *error);

/* `params` are those that the trainers have. Both must stay where they are. */
basin_status basin_shards_begin(basin_shards *shards, const basin_training_options *training,
                                int64_t count, const basin_params *params, basin_error *error);
void basin_shards_end(basin_shards *shards);

/* The same, and a trainer for these. */
basin_status basin_shards_trainer_new(basin_shards *shards, basin_trainer **trainer,
                                      const basin_training_options *training, int64_t count,
                                      basin_store *store, const basin_params *params,
                                      basin_expr loss, basin_trainer_spec *spec,
                                      basin_error *error);

/* ---- a step ---- */

/* Writes a shard to the trainer's plan; `weight` is what it weighs in the loss. */
typedef basin_status basin_shards_write(void *context, double *weight, int64_t step, int64_t shard,
                                        basin_error *error);
/* Step `step` of a run: each of this rank's shards is written and computed, then the update. A
 * batch that is one shard is not waited for until its loss is asked for. */
basin_status basin_shards_run(basin_shards *shards, basin_trainer *trainer, int64_t step,
                              basin_shards_write *write, void *context, basin_error *error);
basin_status basin_shards_loss(const basin_shards *shards, double *loss,
                               const basin_trainer *trainer, basin_error *error);

/* ---- its parts, where shards differ in their plans ---- */

/* Computes the gradients of the shard that was written, and takes them. */
basin_status basin_shards_add(basin_shards *shards, basin_trainer *trainer, double weight,
                              basin_error *error);
/* A shard without items; the trainer is any. */
basin_status basin_shards_add_empty(basin_shards *shards, basin_trainer *trainer,
                                    basin_error *error);
/* After the last of this rank: the update, alike on all ranks, with the batch's loss and weight.
 * Any trainer of these parameters will do. */
basin_status basin_shards_step(basin_shards *shards, double *loss, double *weight,
                               basin_trainer *trainer, basin_error *error);

#endif
