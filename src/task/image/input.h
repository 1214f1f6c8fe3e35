/* Where a training run's pictures come from: a feed on the host, or pictures that were decoded once
 * and are cropped by the device, straight into the plan's input. What is drawn for a step is the
 * same either way. */
#ifndef BASIN_TASK_IMAGE_INPUT_H
#define BASIN_TASK_IMAGE_INPUT_H

#include "task/image/set.h"

typedef struct basin_image_input_config {
    const basin_image_set *set;
    const basin_image_settings *settings;
    basin_backend *backend;
    const char *keep_decoded, *cut_from; /* as in basin_image_data */
    int threads;                         /* that decode; 0: as many as fit */
    int64_t first, count;                /* the places of a batch that are wanted; 0: all */
    const basin_watch *watch;
} basin_image_input_config;

typedef struct basin_image_input basin_image_input;

/* Make the plan first: memory is judged by what it left. With "auto" pictures are kept where all of
 * them fit, in the device's memory rather than the host's, whole rather than reduced. */
basin_status basin_image_input_new(basin_image_input **input,
                                   const basin_image_input_config *config, basin_error *error);
void basin_image_input_free(basin_image_input *input);

/* Draws what a step needs, ahead of writing it, while a device is busy. */
void basin_image_input_prepare(basin_image_input *input, int64_t step);
/* Of the places of a step those from `at` on, as many as the input [B, N, P] of the plan has. */
basin_status basin_image_input_write(basin_image_input *input, basin_plan *plan, basin_expr patches,
                                     int64_t step, int64_t at, basin_error *error);

/* What "auto" came to, and what it takes. */
const char *basin_image_input_keep(const basin_image_input *input); /* off, host, device */
const char *basin_image_input_cut(const basin_image_input *input);  /* files, whole, reduced */
size_t basin_image_input_bytes(const basin_image_input *input);
int64_t basin_image_input_unreadable(const basin_image_input *input);
double basin_image_input_waited(const basin_image_input *input); /* seconds without a picture */

#endif
