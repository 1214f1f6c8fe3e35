/* Pictures of patches: one picture with its occluded patches in grey, sheets of many patches, maps
 * of positions. */
#ifndef BASIN_TASK_IMAGE_REPORT_SHEET_H
#define BASIN_TASK_IMAGE_REPORT_SHEET_H

#include "basin/tasks/picture.h"
#include "task/image/image.h"

/* Pixels of normalised patches [N, P]; REPLACED patches of `mask` [N] are grey, NULL: none. */
basin_status basin_image_sheet_picture(basin_picture *picture, const float *patches,
                                       const uint8_t *mask, const basin_image_settings *settings,
                                       basin_error *error);
/* Patches [.., P] side by side with a line between, small ones enlarged; `order` [count] chooses,
 * NULL: the first. In colour. */
basin_status basin_image_sheet(basin_picture *picture, const float *patches, const int64_t *order,
                               int64_t count, int64_t columns, const basin_image_settings *settings,
                               basin_error *error);
/* across x across maps of across x across colours, from cosine [N, N] within low .. 1. */
basin_status basin_image_sheet_positions(basin_picture *picture, const double *cosine,
                                         int64_t across, double low, basin_error *error);
/* The colours of such maps from low to high. */
basin_status basin_image_sheet_colours(basin_picture *picture, basin_error *error);

#endif
