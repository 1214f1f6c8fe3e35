/* Pictures of patches: one picture with its occluded patches in grey, its errors as colours, sheets
 * of many patches, maps of positions. */
#ifndef BASIN_TASK_IMAGE_REPORT_SHEET_H
#define BASIN_TASK_IMAGE_REPORT_SHEET_H

#include "basin/tasks/picture.h"
#include "task/image/image.h"

/* Pixels of normalised patches [N, P]; REPLACED patches of `mask` [N] are grey, NULL: none. */
basin_status basin_image_sheet_picture(basin_picture *picture, const float *patches,
                                       const uint8_t *mask, const basin_image_settings *settings,
                                       basin_error *error);
/* Patches [.., P] next to each other with a line between, small ones enlarged to about `side`
 * pixels; `order` [count] chooses, NULL: the first. In colour. */
basin_status basin_image_sheet(basin_picture *picture, const float *patches, const int64_t *order,
                               int64_t count, int64_t columns, int64_t side,
                               const basin_image_settings *settings, basin_error *error);
/* Colours for the error of each pixel of REPLACED patches: the root mean square over channels of
 * the difference, on values 0 .. 1, from 0 to `most`. output and truth are [N, P]. */
basin_status basin_image_sheet_errors(basin_picture *picture, const float *output,
                                      const float *truth, const uint8_t *mask,
                                      const basin_image_settings *settings, double most,
                                      basin_error *error);
/* across x across maps of across x across colours, from cosine [N, N] within low .. 1. */
basin_status basin_image_sheet_positions(basin_picture *picture, const double *cosine,
                                         int64_t across, double low, basin_error *error);
/* The colours of maps from low to high. */
basin_status basin_image_sheet_colours(basin_picture *picture, basin_error *error);

#endif
