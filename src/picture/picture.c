/* Pictures in memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "basin/tasks/picture.h"
#include "picture/picture.h"

basin_status basin_picture_resize_memory(basin_picture *picture, int64_t height, int64_t width,
                                         int channels, basin_error *error) {
    size_t bytes;
    if (height < 1 || width < 1 || (channels != 1 && channels != 3) ||
        height > BASIN_PICTURE_PIXELS / width)
        return basin_fail(error, BASIN_BAD_SHAPE, "a picture of %lld x %lld pixels in %d channels",
                          (long long)height, (long long)width, channels);
    bytes = (size_t)height * (size_t)width * (size_t)channels;
    if (bytes > picture->capacity) {
        free(picture->pixel);
        picture->capacity = 0;
        picture->pixel = malloc(bytes);
        if (!picture->pixel)
            return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a picture of %lld x %lld",
                              (long long)height, (long long)width);
        picture->capacity = bytes;
    }
    picture->height = height;
    picture->width = width;
    picture->channels = channels;
    return BASIN_OK;
}

void basin_picture_free(basin_picture *picture) {
    free(picture->pixel);
    *picture = (basin_picture){0};
}

basin_status basin_picture_set_channels(basin_picture *picture, int channels, basin_error *error) {
    size_t count = (size_t)picture->height * (size_t)picture->width;
    if (channels == picture->channels) return BASIN_OK;
    if (channels == 1) {
        for (size_t i = 0; i < count; i++) {
            const uint8_t *p = picture->pixel + 3 * i;
            picture->pixel[i] =
                (uint8_t)((19595U * p[0] + 38470U * p[1] + 7471U * p[2] + 0x8000U) >> 16);
        }
        picture->channels = 1;
        return BASIN_OK;
    }
    basin_picture wide = {0};
    BASIN_TRY(basin_picture_resize_memory(&wide, picture->height, picture->width, channels, error));
    for (size_t i = 0; i < count; i++)
        wide.pixel[3 * i] = wide.pixel[3 * i + 1] = wide.pixel[3 * i + 2] = picture->pixel[i];
    basin_picture_free(picture);
    *picture = wide;
    return BASIN_OK;
}

/* ---- Pictures from pixels in memory: those of another picture, or floats ---- */

basin_status basin_picture_copy(basin_picture *to, const basin_picture *from, basin_error *error) {
    if (!from->pixel) return basin_fail(error, BASIN_BAD_VALUE, "a picture has no pixels");
    BASIN_TRY(basin_picture_resize_memory(to, from->height, from->width, from->channels, error));
    memcpy(to->pixel, from->pixel, (size_t)(from->height * from->width * from->channels));
    return BASIN_OK;
}

basin_status basin_picture_from_floats(basin_picture *picture, const float *value, int64_t height,
                                       int64_t width, int channels, basin_error *error) {
    BASIN_TRY(basin_picture_resize_memory(picture, height, width, channels, error));
    for (int64_t i = 0; i < height * width * channels; i++) {
        if (value[i] >= 0 && value[i] <= 1)
            picture->pixel[i] = (uint8_t)lrintf(255 * value[i]);
        else
            return basin_fail(error, BASIN_BAD_VALUE,
                              "value %lld of a picture is %g, wanted 0 to 1", (long long)i,
                              (double)value[i]);
    }
    return BASIN_OK;
}
