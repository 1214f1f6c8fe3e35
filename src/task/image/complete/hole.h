/* What is missing in a picture: which pixels, and how far each is from what is known. */
#ifndef BASIN_TASK_IMAGE_COMPLETE_HOLE_H
#define BASIN_TASK_IMAGE_COMPLETE_HOLE_H

#include "task/image/image.h"

typedef struct basin_area {
    int64_t top, left, height, width;
} basin_area;

/* The maps cover the box around all that is missing, so that a small hole in a large photograph
 * takes little memory. */
typedef struct basin_hole {
    basin_area box; /* in the picture */
    int32_t
        *depth; /* [box.height, box.width] steps, diagonal ones too, to what is known; 0: known */
    int64_t missing; /* pixels */
    int64_t deepest; /* the greatest depth */
} basin_hole;

/* By the mask, the rectangles or the share of patches that `how` has; `number` is the picture's
 * among those of the call. A hole that is empty, reaches out of the picture or takes all of it is
 * an error. */
basin_status basin_hole_make(basin_hole *hole, const basin_picture *picture, int64_t patch,
                             const basin_image_completing *how, int64_t number, basin_error *error);
void basin_hole_free(basin_hole *hole);
/* Whether patches are to be drawn at random. */
bool basin_hole_is_drawn(const basin_image_completing *how);
/* The depth of a pixel of the picture. */
int32_t basin_hole_depth(const basin_hole *hole, int64_t y, int64_t x);

#endif
