/* Collections of pictures that are in memory: copied, named by number, checked. */
#include "basin/tasks/pictures.h"
#include "support/test.h"

TEST(pictures_of_any_size_are_copied) {
    basin_picture given[2] = {0}, got = {0};
    basin_pictures *pictures;
    char name[BASIN_MAX_PICTURE_NAME];
    const float grey[6] = {0, 0.25F, 0.5F, 0.75F, 1, 0.1F}, colour[3] = {1, 0, 0.5F};
    assert_ok(basin_picture_from_floats(&given[0], grey, 2, 3, 1, &failure));
    assert_ok(basin_picture_from_floats(&given[1], colour, 1, 1, 3, &failure));
    assert_ok(basin_pictures_from_memory(&pictures, given, 2, &failure));
    memset(given[0].pixel, 7, 6);
    assert_int_equal(basin_pictures_count(pictures), 2);
    assert_ok(basin_pictures_load(&got, pictures, 0, &failure));
    assert_true(got.height == 2 && got.width == 3 && got.channels == 1);
    const uint8_t wanted[6] = {0, 64, 128, 191, 255, 26};
    assert_memory_equal(got.pixel, wanted, 6);
    assert_ok(basin_pictures_load(&got, pictures, 1, &failure));
    assert_true(got.height == 1 && got.channels == 3 && got.pixel[0] == 255);
    assert_string_equal(basin_pictures_name(name, pictures, 1), "memory[1]");
    basin_pictures_close(pictures);
    for (int i = 0; i < 2; i++) basin_picture_free(&given[i]);
    basin_picture_free(&got);
}

TEST(what_is_no_picture_is_refused) {
    basin_error error = {0};
    basin_picture picture = {.height = 2, .width = 2, .channels = 3}, made = {0};
    basin_pictures *pictures;
    const float bad[2] = {0.5F, 1.5F};
    assert_int_equal(basin_pictures_from_memory(&pictures, &picture, 0, &error), BASIN_BAD_VALUE);
    assert_string_equal(error.text, "0 pictures; expected at least one");
    assert_int_equal(basin_pictures_from_memory(&pictures, &picture, 1, &error), BASIN_BAD_VALUE);
    assert_string_equal(error.text, "a picture has no pixels");
    uint8_t pixel[12] = {0};
    picture.pixel = pixel;
    picture.channels = 2;
    assert_int_equal(basin_pictures_from_memory(&pictures, &picture, 1, &error), BASIN_BAD_SHAPE);
    assert_null(pictures);
    assert_int_equal(basin_picture_from_floats(&made, bad, 1, 2, 1, &error), BASIN_BAD_VALUE);
    assert_string_equal(error.text, "value 1 of a picture is 1.5; expected 0 to 1");
    basin_picture_free(&made);
}
