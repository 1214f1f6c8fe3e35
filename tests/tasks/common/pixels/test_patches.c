/* Patches and pictures: bytes survive, every value stands in its place, values beyond are cut. */
#include <math.h>

#include "support/test.h"
#include "tasks/common/pixels/picture.h"

enum { SIZE = 12, PATCH = 4, AREA = SIZE * SIZE, MOST = 3 * AREA };

static basin_patching patching(int64_t channels, int64_t patch) {
    return (basin_patching){SIZE, patch, channels, {0.4, 0.5, 0.6}, {0.2, 0.25, 0.3}};
}

TEST(bytes_survive) {
    const int64_t side[] = {1, PATCH, SIZE};
    for (int64_t channels = 1; channels <= 3; channels += 2)
        for (int k = 0; k < 3; k++) {
            basin_patching p = patching(channels, side[k]);
            uint8_t pixel[MOST], back[MOST] = {0};
            float values[MOST];
            for (int i = 0; i < MOST; i++) pixel[i] = (uint8_t)(i * 37 + i / 256);
            basin_patches_from_pixels(values, pixel, &p);
            basin_patches_to_pixels(back, values, &p);
            assert_memory_equal(pixel, back, (size_t)(channels * AREA));
        }
}

TEST(values_stand_in_their_place) {
    basin_patching p = patching(3, PATCH);
    uint8_t pixel[MOST];
    float values[MOST], plane[MOST];
    for (int i = 0; i < MOST; i++) pixel[i] = (uint8_t)(i * 37);
    basin_patches_from_pixels(values, pixel, &p);
    basin_patches_to_planes(plane, values, &p);
    for (int n = 0; n < 9; n++)
        for (int v = 0; v < 48; v++) {
            int c = v / 16, y = n / 3 * PATCH + v % 16 / PATCH, x = n % 3 * PATCH + v % PATCH;
            double byte = pixel[(y * SIZE + x) * 3 + c] / 255.0;
            assert_true(values[n * 48 + v] == (float)((byte - p.mean[c]) / p.deviation[c]));
            assert_float_equal(plane[c * AREA + y * SIZE + x], byte, 1e-6);
        }
}

TEST(values_beyond_are_cut) {
    basin_patching p = {2, 1, 1, {0.5}, {0.25}};
    const float values[] = {-9, 9, NAN, 0};
    const uint8_t wanted[] = {0, 255, 0, 128};
    const float plane_wanted[] = {0, 1, 0, 0.5F};
    uint8_t pixel[4];
    float plane[4];
    basin_patches_to_pixels(pixel, values, &p);
    basin_patches_to_planes(plane, values, &p);
    assert_memory_equal(pixel, wanted, sizeof wanted);
    assert_memory_equal(plane, plane_wanted, sizeof plane_wanted);
}
