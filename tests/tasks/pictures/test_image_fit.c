/* Settings that fit the pictures, where a caller names none. */
#include "tasks/pictures/image_bench.h"

/* Settings with those of `given`, "name value" pairs, set by name, fitted to the pictures at
 * `path`. */
static void fit(basin_image_settings *s, char told[200], const char *path,
                const char *const given[4]) {
    basin_settings *settings;
    basin_image_source source = {.path = &path, .paths = 1};
    assert_ok(basin_settings_new(&settings, "image", NULL, &failure));
    for (int i = 0; i < 4 && given[i]; i += 2)
        assert_ok(basin_settings_set(settings, given[i], given[i + 1], &failure));
    assert_ok(basin_image_fit(settings, told, 200, &source, NULL, &failure));
    assert_ok(basin_settings_check(settings, &failure));
    *s = *(basin_image_settings *)settings->values;
    basin_settings_free(settings);
}

TEST(settings_come_from_the_pictures) {
    static const struct {
        const char *path, *given[4], *told;
        int64_t size, channels, dim, batch;
    } trial[] = {
        {"shapes", {0}, "preset fashion, 1 channel, 28 pixels, batch 256: from", 28, 1, 128, 256},
        {"shapes:", {0}, "preset fashion, 1 channel, 28 pixels, batch 256: from", 28, 1, 128, 256},
        {"shapes:40:1:32x32x3", {0}, "preset cifar10, 3 channels, 32 pix", 32, 3, 256, 32},
        {"shapes:40:1:30x31x1", {"dim", "8"}, "preset fashion, 1 channel, 28 pix", 28, 1, 8, 32},
        {"shapes:40:1:90x70x3",
         {"size", "32", "batch", "8"},
         "preset photos, 3 channels, 32 pixels, batch 8",
         32,
         3,
         256,
         8},
        {"shapes:40:1:90x50x1", {0}, "preset photos, 1 channel, 48 pixels", 48, 1, 256, 32},
        {"shapes:1:1:300x300x3",
         {0},
         "preset photos, 3 channels, 64 pixels, batch 1",
         64,
         3,
         256,
         1},
    };
    for (size_t i = 0; i < sizeof trial / sizeof *trial; i++) {
        basin_image_settings s;
        char told[200];
        fit(&s, told, trial[i].path, trial[i].given);
        if (!strstr(told, trial[i].told)) fail_msg("%s: %s", trial[i].path, told);
        assert_int_equal(s.size, trial[i].size);
        assert_int_equal(s.channels, trial[i].channels);
        assert_int_equal(s.dim, trial[i].dim);
        assert_int_equal(s.batch, trial[i].batch);
    }
}

/* Three channels that are equal but for a trace of compression are grey. */
TEST(grey_pictures_stored_in_colour_are_grey) {
    enum { SIDE = 12 };
    BASIN_AT_EXIT(basin_picture_free) basin_picture picture = {0};
    basin_settings *settings;
    basin_pictures *pictures;
    char told[200];
    assert_ok(basin_settings_new(&settings, "image", NULL, &failure));
    for (int colour = 0; colour < 2; colour++) {
        float value[SIDE * SIDE * 3];
        for (int i = 0; i < SIDE * SIDE * 3; i++)
            value[i] = (float)(i / 3) / (SIDE * SIDE) + (i == 200 && colour ? 0.2F : 0);
        assert_ok(basin_picture_from_floats(&picture, value, SIDE, SIDE, 3, &failure));
        assert_ok(basin_pictures_from_memory(&pictures, &picture, 1, &failure));
        basin_image_source source = {.pictures = pictures};
        assert_ok(basin_image_fit(settings, told, sizeof told, &source, NULL, &failure));
        assert_int_equal(((basin_image_settings *)settings->values)->channels, colour ? 3 : 1);
        basin_pictures_close(pictures);
    }
    basin_settings_free(settings);
}
