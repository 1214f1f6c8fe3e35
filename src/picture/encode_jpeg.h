/* Pictures as JPEG, for pages: a tenth of a PNG's size where the picture is a photograph. */
#ifndef BASIN_PICTURE_ENCODE_JPEG_H
#define BASIN_PICTURE_ENCODE_JPEG_H

#include <stdbool.h>

#include "basin/tasks/picture.h"

/* The caller frees the bytes. `quality` is libjpeg's, 1 to 100. Without full_colour, colours
 * are kept at half the resolution, as cameras do. */
basin_status basin_jpeg_encode(uint8_t **bytes, size_t *size, const basin_picture *picture,
                               int quality, bool full_colour, basin_error *error);

#endif
