/* What a step of training reads: pictures and their masks, those that this rank computes. A batch
 * is cut into shards of equal size. */
#ifndef BASIN_TASK_IMAGE_BATCH_H
#define BASIN_TASK_IMAGE_BATCH_H

#include "task/image/input.h"

typedef struct basin_image_batch {
    const basin_image_settings *settings;
    basin_image_input *input; /* owned */
    int64_t first, count;     /* the pictures of each batch that are this rank's */
    uint8_t *mask;            /* [count, N] */
    float *replaced, *counts; /* [count, N] */
    int64_t step;             /* that they are of; -1: none yet */
} basin_image_batch;

/* `input` is the batch's from here on, also where this fails. */
basin_status basin_image_batch_new(basin_image_batch *batch, basin_image_input *input,
                                   const basin_image_settings *settings, int64_t first,
                                   int64_t count, basin_error *error);
void basin_image_batch_free(basin_image_batch *batch);

/* Draws what a step needs, ahead of writing it, while a device is busy. */
void basin_image_batch_prepare(basin_image_batch *batch, int64_t step);
/* The pictures from `at` on, of this rank's, as many as the graph takes, to its inputs. */
basin_status basin_image_batch_write(basin_image_batch *batch, basin_plan *plan,
                                     const basin_image_graph *graph, int64_t step, int64_t at,
                                     basin_error *error);
/* How many of their patches count in the loss, after they were written. */
double basin_image_batch_weight(const basin_image_batch *batch, int64_t at, int64_t count);

#endif
