/* Pictures side by side in one. */
#ifndef BASIN_VIEW_FIGURES_H
#define BASIN_VIEW_FIGURES_H

#include "basin/tasks/picture.h"
#include "basin/tensor.h"

/* `count` pictures of one height and one number of channels in a row, with white between them,
 * every pixel drawn `zoom` times as large. `strip` must be zeroed or hold a picture. */
basin_status basin_strip_draw(basin_picture *strip, const basin_picture *const *picture, int count,
                              int64_t gap, int64_t zoom, basin_error *error);
/* How much a picture of few pixels is to be enlarged so that people see something. */
int64_t basin_strip_zoom(int64_t height, int64_t width);

/* The root of the sum of squares, and ||a - b|| / ||b||, or ||a|| where b is 0; NaN stays. */
double basin_tensor_norm(const basin_tensor *tensor);
double basin_tensor_distance(const basin_tensor *a, const basin_tensor *b);

#endif
