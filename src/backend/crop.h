/* Crops on the device: from 8-bit pictures in memory that the device reads to a batch of normalised
 * values, as picture/augment.c has it on the host and to the same bits.
 *
 * The box of the picture becomes full_height x full_width, bilinear with antialiasing
 * (picture/resize.h). Of that, `size` rows from from_y and `size` columns from from_x are taken,
 * mirrored where `mirror` is set. Brightness, contrast and saturation change by their factors, in
 * `order` (picture/jitter.c). Then each value becomes value * factor[c] + offset[c]. */
#ifndef BASIN_BACKEND_CROP_H
#define BASIN_BACKEND_CROP_H

#include <stdint.h>

#include "basin/backend.h"

#define BASIN_CROP_EXTENSION "crop"

/* A box may be at least 64 times as large as what it becomes. */
typedef struct basin_crop {
    const uint8_t *pixel; /* [height, width, channels], where the device can read it */
    double box_y, box_x, box_height, box_width;
    int32_t height, width, channels; /* of the picture; 1 or 3 */
    int32_t full_height, full_width, from_y, from_x;
    int32_t mirror;
    int32_t order[3]; /* of brightness 0, contrast 1, saturation 2 */
    float factor[3];  /* 1: left alone */
} basin_crop;

typedef struct basin_crop_batch {
    const basin_crop *crop; /* [count], in the host's memory, which the caller may reuse at once */
    int64_t count, size;
    int64_t patch;    /* values come as [N, (c, patch, patch)]; 0: as [c, size, size] */
    int32_t channels; /* 1 or 3; pictures are converted */
    float factor[3], offset[3];
} basin_crop_batch;

/* What a backend that crops offers as an extension of its table. */
typedef struct basin_crop_table {
    /* Queues the crops of a batch into `values` [count, channels * size * size]. */
    void (*crop)(basin_backend *backend, float *values, const basin_crop_batch *batch);
    /* Memory of the host that `crop` can read, too. */
    void *(*alloc_host)(basin_backend *backend, size_t bytes);
    void (*free_host)(basin_backend *backend, void *memory);
} basin_crop_table;

/* NULL where the host cuts the crops. */
const basin_crop_table *basin_backend_crops(const basin_backend *backend);

#endif
