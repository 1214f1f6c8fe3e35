/* Pixels replaced in a PNG file: the others keep all their 16 bits, their transparency and the
 * file's orientation. */
#include <stdbool.h>

#include <png.h>

#include "basin/tasks/picture.h"
#include "support/folder.h"
#include "support/test.h"

enum { ROWS = 5, COLUMNS = 6, SAMPLES = 4, ROW = COLUMNS * SAMPLES * 2 };

/* EXIF data that say: turn by 90 degrees to the right. */
static uint8_t turned[] = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0,
                           3,   0,   0, 0,  1, 0, 6, 0, 0, 0, 0, 0,    0};

static void write_deep(const char *path, uint8_t pixel[ROWS][ROW]) {
    FILE *file = fopen(path, "wb");
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_bytep row[ROWS];
    assert_non_null(file);
    for (int y = 0; y < ROWS; y++) row[y] = pixel[y];
    png_init_io(png, file);
    png_set_IHDR(png, info, COLUMNS, ROWS, 16, PNG_COLOR_TYPE_RGBA, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_eXIf_1(png, info, sizeof turned, turned);
    png_write_info(png, info);
    png_write_image(png, row);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    assert_int_equal(fclose(file), 0);
}

static void read_deep(uint8_t pixel[ROWS][ROW], const char *path) {
    FILE *file = fopen(path, "rb");
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    assert_non_null(file);
    png_init_io(png, file);
    png_read_png(png, info, PNG_TRANSFORM_IDENTITY, NULL);
    assert_int_equal(png_get_bit_depth(png, info), 16);
    assert_int_equal(png_get_color_type(png, info), PNG_COLOR_TYPE_RGBA);
    for (int y = 0; y < ROWS; y++) memcpy(pixel[y], png_get_rows(png, info)[y], ROW);
    png_destroy_read_struct(&png, &info, NULL);
    fclose(file);
}

TEST(known_pixels_keep_all_bits) {
    char *from = folder_path(state, "deep.png");
    BASIN_AT_EXIT(basin_picture_free) basin_picture picture = {0}, where = {0};
    uint8_t before[ROWS][ROW], after[ROWS][ROW];
    for (int i = 0; i < ROWS * ROW; i++) before[i / ROW][i % ROW] = (uint8_t)(i * 37 + i / 5);
    write_deep(from, before);
    assert_ok(basin_picture_read(&picture, from, &failure));
    assert_int_equal(picture.height, COLUMNS); /* upright */
    assert_ok(basin_picture_resize_memory(&where, picture.height, picture.width, 1, &failure));
    memset(where.pixel, 0, ROWS * COLUMNS);
    /* Upright (1, 3): 3rd from the right before the turn, so row 5 - 1 - 3, column 1. */
    where.pixel[1 * ROWS + 3] = 255;
    memset(picture.pixel + (1 * ROWS + 3) * 3, 77, 3);
    char *to = folder_path(state, "patched.png");
    assert_ok(basin_picture_patch_png(to, from, &picture, &where, &failure));
    read_deep(after, to);
    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < COLUMNS; x++)
            for (int k = 0; k < 2 * SAMPLES; k++) {
                bool here = y == 1 && x == 1;
                uint8_t wanted = here ? (k < 6 ? 77 : 255) : before[y][x * 8 + k];
                assert_int_equal(after[y][x * 8 + k], wanted);
            }
    BASIN_AT_EXIT(basin_picture_free) basin_picture again = {0};
    assert_ok(basin_picture_read(&again, to, &failure));
    assert_memory_equal(again.pixel, picture.pixel, ROWS * COLUMNS * 3);
}

TEST(what_does_not_fit_is_refused) {
    char *from = folder_path(state, "deep.png");
    basin_error error = {0};
    BASIN_AT_EXIT(basin_picture_free) basin_picture picture = {0}, where = {0};
    uint8_t pixel[ROWS][ROW] = {0};
    write_deep(from, pixel);
    char *to = folder_path(state, "none.png");
    assert_ok(basin_picture_resize_memory(&picture, 3, 3, 3, &failure));
    assert_ok(basin_picture_resize_memory(&where, 3, 3, 1, &failure));
    assert_failure(basin_picture_patch_png(to, from, &picture, &where, &failure), BASIN_BAD_SHAPE,
                   "5 x 6 pixels; expected 3 x 3");
    assert_int_equal(truncate(from, 90), 0);
    basin_picture_resize_memory(&picture, COLUMNS, ROWS, 3, &error);
    basin_picture_resize_memory(&where, COLUMNS, ROWS, 1, &error);
    assert_int_equal(basin_picture_patch_png(to, from, &picture, &where, &error), BASIN_BAD_FILE);
    assert_int_not_equal(access(to, F_OK), 0);
}

int main(void) { return tests_run(folder_new, folder_remove); }
