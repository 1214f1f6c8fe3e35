/* Parts of a network to train on where the whole does not fit: subgraphs, and nodes with some of
 * their neighbours. A draw is a function of seed and stream alone. */
#ifndef BASIN_TASK_NODES_BATCH_H
#define BASIN_TASK_NODES_BATCH_H

#include "task/nodes/inputs.h"
#include "train/run/run.h"

typedef struct basin_nodes_batch {
    basin_network *network; /* the part; `origin` leads back */
    const basin_edge_reader *reader;
    basin_pairs pairs[BASIN_ANOMALY_RELATIONS];
    float *table, *eigenvectors, *label, *weight, *node_weight[BASIN_ANOMALY_RELATIONS];
    int32_t *place;          /* [nodes] who they are in the network */
    basin_nodes_shape shape; /* capacities a plan for it should have */
    int64_t targets;         /* nodes that the loss counts */
} basin_nodes_batch;

/* What batches are drawn from. */
typedef struct basin_nodes_source {
    const basin_node_inputs *inputs;
    const float *label, *weight; /* [N], of classes [N, C]; [N], 0: not a training node */
    const int64_t *train;        /* [train_count] */
    int64_t train_count;
    int64_t shard, shards; /* which of its shards is drawn of a batch of neighbours; 0 of 0: all */
} basin_nodes_source;

/* How many batches an epoch has: subgraphs one, neighbours `fraction` of the training nodes. */
int64_t basin_nodes_batch_count(const basin_nodes_source *source);
/* How many nodes they take: those whose loss counts where neighbours are sampled, else all. */
int64_t basin_nodes_batch_nodes(const basin_nodes_source *source);
/* Batch `number` of an epoch; one without targets, which a shard may be, has no network. */
basin_status basin_nodes_batch_draw(basin_nodes_batch *batch, const basin_nodes_source *source,
                                    uint64_t seed, int64_t epoch, int64_t number,
                                    basin_error *error);
/* A given part of the network, which becomes the batch's; its `origin` leads to the inputs. Of the
 * source the inputs are enough. */
basin_status basin_nodes_batch_take(basin_nodes_batch *batch, const basin_nodes_source *source,
                                    basin_network *part, basin_error *error);
basin_nodes_net_data basin_nodes_batch_data(const basin_nodes_batch *batch);
void basin_nodes_batch_free(basin_nodes_batch *batch);

#endif
