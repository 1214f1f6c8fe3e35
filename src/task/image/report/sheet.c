/* Pictures of patches; see report.h. */
#include "base/try.h"
#include "task/image/report/report.h"

#include <math.h>
#include <string.h>

enum { GREY = 128 };

static uint8_t to_byte(double value) { return (uint8_t)lrint(255 * fmin(fmax(value, 0), 1)); }

/* What lies between the patches of a sheet: no grey, so that grey patches show their edges. */
static const uint8_t gap[3] = {104, 134, 166};

static void fill_gaps(basin_picture *picture) {
    for (int64_t i = 0; i < picture->height * picture->width; i++)
        memcpy(picture->pixel + 3 * i, gap, 3);
}

/* Draws patch [P] (NULL: grey) with its corner at (top, left), each pixel as `zoom` x `zoom`. */
static void draw(basin_picture *picture, const float *patch, int64_t top, int64_t left,
                 int64_t zoom, const basin_image_settings *s) {
    int64_t side = s->patch * zoom;
    int channels = picture->channels;
    for (int64_t y = 0; y < side; y++)
        for (int64_t x = 0; x < side; x++)
            for (int c = 0; c < channels; c++) {
                int64_t from = c < s->channels ? c : 0; /* a grey patch in a sheet of colours */
                int64_t v = (from * s->patch + y / zoom) * s->patch + x / zoom;
                uint8_t *to = picture->pixel + ((top + y) * picture->width + left + x) * channels;
                to[c] = patch ? to_byte(patch[v] * s->deviation[from] + s->mean[from]) : GREY;
            }
}

basin_status basin_image_sheet_picture(basin_picture *picture, const float *patches,
                                       const uint8_t *mask, const basin_image_settings *s,
                                       basin_error *error) {
    int64_t across = s->size / s->patch, values = basin_image_patch_values(s);
    BASIN_TRY(basin_picture_resize_memory(picture, s->size, s->size, (int)s->channels, error));
    for (int64_t n = 0; n < across * across; n++) {
        bool hidden = mask && mask[n] == BASIN_PATCH_REPLACED;
        draw(picture, hidden ? NULL : patches + n * values, n / across * s->patch,
             n % across * s->patch, 1, s);
    }
    return BASIN_OK;
}

/* Maps are drawn at about this size, so that the lines between them can be thin. */
enum { MAP_SIDE = 600 };

basin_status basin_image_sheet(basin_picture *picture, const float *patches, const int64_t *order,
                               int64_t count, int64_t columns, int64_t side,
                               const basin_image_settings *s, basin_error *error) {
    int64_t zoom = s->patch < side ? side / s->patch : 1, line = 3;
    int64_t cell = s->patch * zoom + line, values = basin_image_patch_values(s);
    int64_t rows = (count + columns - 1) / columns;
    BASIN_TRY(
        basin_picture_resize_memory(picture, rows * cell - line, columns * cell - line, 3, error));
    fill_gaps(picture);
    for (int64_t i = 0; i < count; i++)
        draw(picture, patches + (order ? order[i] : i) * values, i / columns * cell,
             i % columns * cell, zoom, s);
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

/* Where a picture was shown, an error map has nothing to say. */
static const uint8_t nothing[3] = {52, 56, 64};

basin_status basin_image_sheet_errors(basin_picture *picture, const float *output,
                                      const float *truth, const uint8_t *mask,
                                      const basin_image_settings *s, double most,
                                      basin_error *error) {
    int64_t across = s->size / s->patch, area = s->patch * s->patch, P = s->channels * area;
    BASIN_TRY(basin_picture_resize_memory(picture, s->size, s->size, 3, error));
    for (int64_t i = 0; i < s->size * s->size; i++) {
        int64_t y = i / s->size, x = i % s->size, n = y / s->patch * across + x / s->patch;
        int64_t v = n * P + y % s->patch * s->patch + x % s->patch;
        double sum = 0;
        for (int64_t c = 0; c < s->channels; c++) {
            double off = s->deviation[c] * ((double)output[v + c * area] - truth[v + c * area]);
            sum += off * off / (double)s->channels;
        }
        if (mask[n] == BASIN_PATCH_REPLACED)
            colour(picture->pixel + 3 * i, sqrt(sum) / most);
        else
            memcpy(picture->pixel + 3 * i, nothing, 3);
    }
    return BASIN_OK;
}

basin_status basin_image_sheet_positions(basin_picture *picture, const double *cosine,
                                         int64_t across, double low, basin_error *error) {
    int64_t N = across * across, zoom = N < MAP_SIDE ? MAP_SIDE / N : 1, line = zoom > 1 ? 3 : 1;
    int64_t map = across * zoom + line, side = across * map - line;
    double range = low < 1 ? 1 - low : 1;
    BASIN_TRY(basin_picture_resize_memory(picture, side, side, 3, error));
    memset(picture->pixel, GREY, (size_t)(side * side * 3));
    for (int64_t y = 0; y < side; y++)
        for (int64_t x = 0; x < side; x++) {
            if (y % map >= across * zoom || x % map >= across * zoom) continue;
            int64_t i = y / map * across + x / map;
            int64_t j = y % map / zoom * across + x % map / zoom;
            colour(picture->pixel + (y * side + x) * 3, (cosine[i * N + j] - low) / range);
        }
    return BASIN_OK;
}
