/* Bilinear resizing with antialiasing, of the outputs that are wanted alone.
 *
 * Output i of n over a stretch [b, b + l) of the source has its centre at c = b + (i + 1/2) l / n.
 * The filter is a triangle of half width s = max(1, l / n): pixel j, centre j + 1/2, weighs
 * max(0, 1 - |j + 1/2 - c| / s), and the weights of an output are divided by their sum. Pixels
 * outside of the stretch do not count. */
#ifndef BASIN_PICTURE_RESIZE_H
#define BASIN_PICTURE_RESIZE_H

#include "basin/tasks/augment.h"
#include "picture/decoder.h"

/* The box of the source becomes height x width; of that, the rows from y and the columns from x are
 * computed, out_height x out_width of them. */
typedef struct basin_resize {
    basin_box box;
    int64_t height, width;
    int64_t y, x, out_height, out_width;
    bool flip; /* columns come out in the other order */
} basin_resize;

/* The part of the source that the outputs depend on, for a source reduced at most 8 times, or not
 * at all. */
basin_box basin_resize_needs(const basin_resize *resize, int reduction);

/* Values 0 .. 255, a plane a channel. `picture` holds at least what basin_resize_needs asked
 * for. */
basin_status basin_resize_run(float *plane /* [channels, out_height, out_width] */,
                              const basin_resize *resize, const basin_picture *picture,
                              basin_scratch *scratch, basin_error *error);

/* basin_picture_scale of a part of the picture. */
basin_status basin_picture_scale_box(basin_picture *to, const basin_picture *from,
                                     const basin_box *box, int64_t height, int64_t width,
                                     basin_error *error);

/* Makes room for `count` floats, which are the scratch's until the next call. */
float *basin_scratch_take(basin_scratch *scratch, size_t count);

#endif
