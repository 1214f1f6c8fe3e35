/* Pictures from pixels in memory: those of another picture, or floats. */
#include <math.h>
#include <string.h>

#include "basin/tasks/picture.h"

basin_status basin_picture_copy(basin_picture *to, const basin_picture *from, basin_error *error) {
    if (!from->pixel) return basin_fail(error, BASIN_BAD_VALUE, "a picture has no pixels");
    basin_status status =
        basin_picture_resize_memory(to, from->height, from->width, from->channels, error);
    if (status) return status;
    memcpy(to->pixel, from->pixel, (size_t)(from->height * from->width * from->channels));
    return BASIN_OK;
}

basin_status basin_picture_from_floats(basin_picture *picture, const float *value, int64_t height,
                                       int64_t width, int channels, basin_error *error) {
    basin_status status = basin_picture_resize_memory(picture, height, width, channels, error);
    for (int64_t i = 0; i < height * width * channels && !status; i++) {
        if (value[i] >= 0 && value[i] <= 1)
            picture->pixel[i] = (uint8_t)lrintf(255 * value[i]);
        else
            status =
                basin_fail(error, BASIN_BAD_VALUE, "value %lld of a picture is %g, wanted 0 to 1",
                           (long long)i, (double)value[i]);
    }
    return status;
}
