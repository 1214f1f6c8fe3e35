/* What --mask says: patches at random, rectangles, a PNG, or a folder of one PNG a picture. */
#ifndef BASIN_CLI_IMAGE_MASKS_H
#define BASIN_CLI_IMAGE_MASKS_H

#include "basin/tasks/image.h"

typedef struct basin_masks {
    const char *text, *folder; /* the option; the same where it is a folder */
    int64_t *rectangle;        /* [rectangles, 4] */
    int64_t rectangles;
    basin_picture picture; /* read from the file, or from the folder for one picture */
    int64_t dark;          /* its pixels that are nearly black, not quite */
} basin_masks;

basin_status basin_masks_open(basin_masks *masks, const char *text, basin_error *error);
void basin_masks_free(basin_masks *masks);
/* The hole of a picture that is called `name` here. `how` borrows from `masks`. */
basin_status basin_masks_set(basin_image_completing *how, basin_masks *masks, const char *name,
                             basin_error *error);

#endif
