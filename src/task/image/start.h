/* The settings that a run trains with. */
#ifndef BASIN_TASK_IMAGE_START_H
#define BASIN_TASK_IMAGE_START_H

#include "task/image/set.h"
#include "train/run/run.h"

/* Fills in what the settings leave open: statistics of the pictures and shards, from the
 * checkpoint, the model that the run begins with, or the training pictures. What differs from the
 * checkpoint is an error. */
basin_status basin_image_start(basin_image_settings *settings, const basin_run *run,
                               const basin_image_set *set, basin_error *error);

#endif
