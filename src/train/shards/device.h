/* The numbers of a sum over shards in the memory of a device: added there, and sent from device to
 * device by NCCL where every rank has one of its own, else by way of the host's memory. */
#ifndef BASIN_TRAIN_SHARDS_DEVICE_H
#define BASIN_TRAIN_SHARDS_DEVICE_H

#include "backend/device.h"
#include "ranks/ranks.h"

typedef struct basin_shards_device {
    basin_ranks *ranks;
    basin_backend *backend;
    const basin_collective_table *table; /* NULL: the backend computes in the host's memory */
    bool direct;                         /* by NCCL */
    char *room;                          /* [bytes] of the host, for what is on its way */
    size_t bytes;
} basin_shards_device;

/* `how` says how messages travel, for people; "" where there are none, or no device. */
basin_status basin_shards_device_begin(basin_shards_device *device, const char **how,
                                       basin_ranks *ranks, basin_backend *backend,
                                       basin_error *error);
void basin_shards_device_end(basin_shards_device *device);
/* For basin_ranks_tree_new; the device must stay where it is. */
basin_ranks_memory basin_shards_device_memory(basin_shards_device *device);

#endif
