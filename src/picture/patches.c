/* Patches to pictures and back; see patches.h. */
#include "picture/patches.h"

#include <math.h>

/* The place among values of a channel of the pixel (y, x). */
static int64_t place(const basin_patching *p, int64_t c, int64_t y, int64_t x) {
    int64_t side = p->patch, across = p->size / side;
    int64_t patch = y / side * across + x / side;
    return ((patch * p->channels + c) * side + y % side) * side + x % side;
}

/* What a value shows, 0 .. 1; NaN shows 0. */
static double shown(const basin_patching *p, const float *values, int64_t c, int64_t y, int64_t x) {
    double value = values[place(p, c, y, x)] * p->deviation[c] + p->mean[c];
    return fmin(fmax(value, 0), 1);
}

void basin_patches_to_pixels(uint8_t *pixel, const float *values, const basin_patching *p) {
    for (int64_t y = 0; y < p->size; y++)
        for (int64_t x = 0; x < p->size; x++)
            for (int64_t c = 0; c < p->channels; c++)
                *pixel++ = (uint8_t)lrint(255 * shown(p, values, c, y, x));
}

void basin_patches_from_pixels(float *values, const uint8_t *pixel, const basin_patching *p) {
    for (int64_t y = 0; y < p->size; y++)
        for (int64_t x = 0; x < p->size; x++)
            for (int64_t c = 0; c < p->channels; c++)
                values[place(p, c, y, x)] =
                    (float)((*pixel++ / 255.0 - p->mean[c]) / p->deviation[c]);
}

void basin_patches_to_planes(float *plane, const float *values, const basin_patching *p) {
    for (int64_t c = 0; c < p->channels; c++)
        for (int64_t y = 0; y < p->size; y++)
            for (int64_t x = 0; x < p->size; x++) *plane++ = (float)shown(p, values, c, y, x);
}
