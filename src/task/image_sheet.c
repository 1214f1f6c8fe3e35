/* Pictures of patches; see image_sheet.h. */
#include "task/image_sheet.h"

#include <math.h>
#include <string.h>

enum { GREY = 128 };

static uint8_t to_byte(double value) { return (uint8_t)lrint(255 * fmin(fmax(value, 0), 1)); }

/* Draws patch [P] (NULL: grey) with its corner at (top, left). */
static void draw(basin_picture *picture, const float *patch, int64_t top, int64_t left,
                 const basin_image_settings *s) {
    int64_t area = s->patch * s->patch;
    for (int64_t v = 0; v < s->channels * area; v++) {
        int64_t c = v / area, row = top + v % area / s->patch, column = left + v % s->patch;
        uint8_t value = patch ? to_byte(patch[v] * s->deviation[c] + s->mean[c]) : GREY;
        picture->pixel[(row * picture->width + column) * s->channels + c] = value;
    }
}

basin_status basin_image_sheet_picture(basin_picture *picture, const float *patches,
                                       const uint8_t *mask, const basin_image_settings *s,
                                       basin_error *error) {
    int64_t across = s->size / s->patch, values = basin_image_patch_values(s);
    basin_status status =
        basin_picture_resize_memory(picture, s->size, s->size, (int)s->channels, error);
    for (int64_t n = 0; n < across * across && !status; n++) {
        bool hidden = mask && mask[n] == BASIN_PATCH_REPLACED;
        draw(picture, hidden ? NULL : patches + n * values, n / across * s->patch,
             n % across * s->patch, s);
    }
    return status;
}

basin_status basin_image_sheet(basin_picture *picture, const float *patches, const int64_t *order,
                               int64_t count, int64_t columns, const basin_image_settings *s,
                               basin_error *error) {
    int64_t cell = s->patch + 1, values = basin_image_patch_values(s);
    int64_t rows = (count + columns - 1) / columns;
    basin_status status = basin_picture_resize_memory(picture, rows * cell - 1, columns * cell - 1,
                                                      (int)s->channels, error);
    if (status) return status;
    memset(picture->pixel, GREY, (size_t)(picture->height * picture->width * picture->channels));
    for (int64_t i = 0; i < count; i++)
        draw(picture, patches + (order ? order[i] : i) * values, i / columns * cell,
             i % columns * cell, s);
    return BASIN_OK;
}

/* Dark blue to yellow by way of green, as bright as the value is high. */
static void colour(uint8_t rgb[3], double value) {
    static const double stop[][3] = {
        {68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}};
    double at = 4 * fmin(fmax(value, 0), 1);
    int i = at >= 4 ? 3 : (int)at;
    for (int c = 0; c < 3; c++)
        rgb[c] = (uint8_t)lrint(stop[i][c] + (at - i) * (stop[i + 1][c] - stop[i][c]));
}

basin_status basin_image_sheet_positions(basin_picture *picture, const double *cosine,
                                         int64_t across, double low, basin_error *error) {
    int64_t cell = across + 1, side = across * cell - 1, N = across * across;
    double range = low < 1 ? 1 - low : 1;
    basin_status status = basin_picture_resize_memory(picture, side, side, 3, error);
    if (status) return status;
    memset(picture->pixel, GREY, (size_t)(side * side * 3));
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < N; j++) {
            int64_t row = i / across * cell + j / across, column = i % across * cell + j % across;
            colour(picture->pixel + (row * side + column) * 3, (cosine[i * N + j] - low) / range);
        }
    return BASIN_OK;
}

basin_status basin_image_sheet_colours(basin_picture *picture, basin_error *error) {
    enum { WIDTH = 64, HEIGHT = 4 };
    basin_status status = basin_picture_resize_memory(picture, HEIGHT, WIDTH, 3, error);
    for (int64_t i = 0; i < WIDTH * HEIGHT && !status; i++)
        colour(picture->pixel + i * 3, (double)(i % WIDTH) / (WIDTH - 1));
    return status;
}
