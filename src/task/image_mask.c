/* Masks and pixels of masked image completion; see image.h. */
#include <math.h>

#include "basin/random.h"
#include "task/image.h"

/* Selection sampling: patch i is taken with the chance that leaves every subset equally likely,
 * then the kept ones are chosen among the taken in the same way. */
void basin_image_mask_draw(uint8_t *mask, int64_t tokens, int64_t occlude, int64_t keep,
                           uint64_t seed, uint64_t stream) {
    basin_random random = basin_random_start(seed, stream, 0);
    int64_t open = occlude, kept = keep;
    for (int64_t i = 0; i < tokens; i++) {
        mask[i] = BASIN_PATCH_SHOWN;
        if ((int64_t)basin_random_below(&random, (uint64_t)(tokens - i)) >= open) continue;
        bool stays = (int64_t)basin_random_below(&random, (uint64_t)open) < kept;
        mask[i] = stays ? BASIN_PATCH_KEPT : BASIN_PATCH_REPLACED;
        kept -= stays;
        open--;
    }
}

/* The pixel of value v of patch n: rows of patches, within a patch channel, row, column. */
static int64_t pixel_at(const basin_image_settings *s, int64_t n, int64_t v) {
    int64_t across = s->size / s->patch, area = s->patch * s->patch;
    int64_t row = n / across * s->patch + v % area / s->patch;
    int64_t column = n % across * s->patch + v % s->patch;
    return (row * s->size + column) * s->channels + v / area;
}

void basin_image_to_pixels(uint8_t *pixel, const float *patches, const basin_image_settings *s) {
    int64_t tokens = basin_image_tokens(s), values = basin_image_patch_values(s);
    for (int64_t n = 0; n < tokens; n++)
        for (int64_t v = 0; v < values; v++) {
            int64_t channel = v / (s->patch * s->patch);
            double value = patches[n * values + v] * s->deviation[channel] + s->mean[channel];
            pixel[pixel_at(s, n, v)] = (uint8_t)lrint(255 * fmin(fmax(value, 0), 1));
        }
}

void basin_image_from_pixels(float *patches, const uint8_t *pixel, const basin_image_settings *s) {
    int64_t tokens = basin_image_tokens(s), values = basin_image_patch_values(s);
    for (int64_t n = 0; n < tokens; n++)
        for (int64_t v = 0; v < values; v++) {
            int64_t channel = v / (s->patch * s->patch);
            double value = pixel[pixel_at(s, n, v)] / 255.0;
            patches[n * values + v] = (float)((value - s->mean[channel]) / s->deviation[channel]);
        }
}
