/* The form in which a picture is kept: decoded whole, perhaps reduced, 8 bits a value. Crops are
 * drawn by the size that the picture has in its file and then cut from the kept pixels, so that
 * reducing changes how sharp a crop is, not what it shows. */
#ifndef BASIN_DATA_PICTURES_KEEP_H
#define BASIN_DATA_PICTURES_KEEP_H

#include "basin/tasks/feed.h"
#include "data/pictures/pictures.h"
#include "picture/augment.h"

enum { BASIN_KEPT_SIDES = 64 }; /* the longest side kept, in sides of the crop */

typedef struct basin_kept {
    int64_t height, width; /* in the file, upright */
    basin_picture picture; /* the same, or smaller */
} basin_kept;

/* The sizes that a picture is kept with, for crops of `size` pixels; cut is not BASIN_CUT_FILES. */
void basin_kept_sizes(int64_t *kept_height, int64_t *kept_width, int64_t height, int64_t width,
                      basin_cut cut, int64_t size);

/* Picture i in the form to keep. The memory of `kept->picture` is reused; `spare` is for what is
 * decoded on the way. */
basin_status basin_kept_load(basin_kept *kept, const basin_pictures *pictures, int64_t i,
                             basin_cut cut, int64_t size, basin_picture *spare, basin_error *error);

/* What is drawn for a picture of height x width, with the box in pixels of kept_height x
 * kept_width. */
void basin_kept_draw(basin_drawn *drawn, const basin_augment *augment, int64_t height,
                     int64_t width, int64_t kept_height, int64_t kept_width, uint64_t seed,
                     int64_t epoch, int64_t index);

#endif
