/* Square pictures and the normalised patches that models see of them. values [N, P]: patches by
 * rows, P in the order channel, row, column; (value - mean) / deviation of values 0 .. 1. */
#ifndef BASIN_PICTURE_PATCHES_H
#define BASIN_PICTURE_PATCHES_H

#include <stdint.h>

typedef struct basin_patching {
    int64_t size, patch, channels; /* of the picture, of a patch (`size`: one patch); 1 or 3 */
    double mean[3], deviation[3];
} basin_patching;

/* Both ways between values and bytes [size, size, channels]; values beyond the range are cut. */
void basin_patches_to_pixels(uint8_t *pixel, const float *values, const basin_patching *patching);
void basin_patches_from_pixels(float *values, const uint8_t *pixel, const basin_patching *patching);

/* Planes [channels, size, size] of numbers 0 .. 1 from values, cut as above, not rounded. */
void basin_patches_to_planes(float *plane, const float *values, const basin_patching *patching);

#endif
