/* A step's batch in shards: each is computed by itself, by whichever rank it is dealt to, and the
 * gradients are added in one order (ranks/ranks.h). So the weights are a function of the settings,
 * of which `shards` is one, and not of the number of ranks.
 *
 *     for (i = 0; i < shards.share.count; i++) {
 *         ... write shard shards.share.first + i to the trainer's plan
 *         basin_shards_add(&shards, &trainer, weight, &error);
 *     }
 *     basin_shards_step(&shards, &loss, &weight, &trainer, &error);
 *
 * The batch's loss is the mean of its shards' by weight. */
#ifndef BASIN_TRAIN_SHARDS_SHARDS_H
#define BASIN_TRAIN_SHARDS_SHARDS_H

#include "backend/device.h"
#include "basin/tasks/run.h"
#include "basin/train.h"
#include "ranks/ranks.h"

/* The numbers of a sum over shards in the memory of a device: added there, and sent from device to
 * device by NCCL where every rank has one of its own, else by way of the host's memory. */
typedef struct basin_shards_device {
    basin_ranks *ranks;
    basin_backend *backend;
    const basin_collective_table *table; /* NULL: the backend computes in the host's memory */
    bool direct;                         /* by NCCL */
    char *room;                          /* [bytes] of the host, for what is on its way */
    size_t bytes;
} basin_shards_device;

typedef struct basin_shards {
    basin_ranks *ranks;
    int64_t count;           /* of a batch; 1: a batch is one plan's, and there is one rank */
    basin_ranks_share share; /* this rank's */
    basin_ranks_tree *tree;  /* of gradients; NULL where count is 1 */
    double *losses;          /* [count, 2] losses, times their weights, and weights */
    int64_t done;            /* of this rank's in this step */
    basin_shards_device device;
    const char *how; /* gradients travel, for people; "" where there is nothing to tell */
} basin_shards;

/* For the spec of trainers where there is more than one shard. */
extern const basin_reduction basin_shards_reduction;

/* What the setting `shards` comes to: what was asked for, that of the checkpoint (0: none), or, of
 * 0, with ranks up to eight that divide the batch and alone one. */
int64_t basin_shards_choose(int64_t asked, int64_t saved, int64_t batch, const basin_ranks *ranks);

/* `params` are those that the trainers have. Both must stay where they are. */
basin_status basin_shards_begin(basin_shards *shards, const basin_training *training, int64_t count,
                                const basin_params *params, basin_error *error);
void basin_shards_end(basin_shards *shards);

/* ---- a step ---- */

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
