/* WebP pictures, written by libwebp's own encoder; without the library all of this is skipped. */
#include "base/library.h"
#include "basin/tasks/pictures.h"
#include "support/folder.h"
#include "support/test.h"
#include "tasks/common/pixels/picture.h"

enum { HEIGHT = 9, WIDTH = 13 };

/* RGBA of a pixel: opaque, but for a clear column and a half clear one. */
static void paint(uint8_t *rgba) {
    for (int i = 0; i < HEIGHT * WIDTH; i++) {
        int y = i / WIDTH, x = i % WIDTH;
        rgba[4 * i] = (uint8_t)(20 * y), rgba[4 * i + 1] = (uint8_t)(19 * x);
        rgba[4 * i + 2] = 77, rgba[4 * i + 3] = x == 0 ? 0 : x == 1 ? 128 : 255;
    }
}

/* Lossless; free it. */
static uint8_t *encode(size_t *size) {
    size_t (*pack)(const uint8_t *, int, int, int, uint8_t **);
    uint8_t rgba[HEIGHT * WIDTH * 4], *bytes = NULL;
    void *function = basin_library_find(BASIN_LIBRARY_WEBP, "WebPEncodeLosslessRGBA");
    if (!function) skip();
    memcpy(&pack, &function, sizeof pack);
    paint(rgba);
    *size = pack(rgba, WIDTH, HEIGHT, WIDTH * 4, &bytes);
    assert_true(*size > 20);
    return bytes;
}

TEST(pixels_come_back) {
    size_t size;
    uint8_t rgba[HEIGHT * WIDTH * 4], *bytes = encode(&size);
    BASIN_AT_EXIT(basin_picture_free) basin_picture p = {0};
    paint(rgba);
    assert_ok(basin_picture_decode(&p, bytes, size, "f", &failure));
    assert_true(p.height == HEIGHT && p.width == WIDTH && p.channels == 3);
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        for (int c = 0; c < 3; c++) {
            int a = rgba[4 * i + 3], wanted = (rgba[4 * i + c] * a + 255 * (255 - a) + 127) / 255;
            assert_int_equal(p.pixel[3 * i + c], a ? wanted : 255);
        }
    free(bytes);
}

/* An EXIF chunk behind the pixels: orientation 6, the file's first row is the right side. */
TEST(orientation_is_followed) {
    static const uint8_t exif[] = {'E', 'X', 'I', 'F', 26, 0, 0,    0, 'I', 'I', 42, 0,
                                   8,   0,   0,   0,   1,  0, 0x12, 1, 3,   0,   1,  0,
                                   0,   0,   6,   0,   0,  0, 0,    0, 0,   0};
    size_t size;
    uint8_t *bytes = encode(&size), *turned = calloc(size + sizeof exif, 1);
    BASIN_AT_EXIT(basin_picture_free) basin_picture plain = {0}, upright = {0};
    assert_non_null(turned);
    memcpy(turned, bytes, size);
    memcpy(turned + size, exif, sizeof exif);
    uint32_t riff = (uint32_t)(size + sizeof exif - 8);
    for (int i = 0; i < 4; i++) turned[4 + i] = (uint8_t)(riff >> 8 * i);
    assert_ok(basin_picture_decode(&plain, bytes, size, "f", &failure));
    assert_ok(basin_picture_decode(&upright, turned, size + sizeof exif, "f", &failure));
    assert_true(upright.height == WIDTH && upright.width == HEIGHT);
    for (int64_t y = 0; y < WIDTH; y++)
        for (int64_t x = 0; x < HEIGHT; x++)
            assert_memory_equal(upright.pixel + 3 * (y * HEIGHT + x),
                                plain.pixel + 3 * ((HEIGHT - 1 - x) * WIDTH + y), 3);
    free(bytes);
    free(turned);
}

TEST(what_is_cut_or_too_large_is_an_error) {
    size_t size;
    uint8_t *bytes = encode(&size);
    BASIN_AT_EXIT(basin_picture_free) basin_picture p = {0};
    basin_decoder decoder;
    basin_box inside, whole = {0, 0, HEIGHT, WIDTH};
    for (size_t cut = 12; cut < size; cut++) {
        uint8_t *copy = malloc(cut);
        assert_non_null(copy);
        memcpy(copy, bytes, cut);
        assert_failure(basin_picture_decode(&p, copy, cut, "f", &failure), BASIN_BAD_FILE,
                       "f: damaged WebP");
        free(copy);
    }
    assert_ok(basin_decoder_open(&decoder, bytes, size, "f", &failure));
    decoder.limit = HEIGHT * WIDTH * 6; /* RGBA and RGB take 7 bytes a pixel */
    assert_int_equal(basin_decoder_read(&p, &inside, &decoder, &whole, 1, &failure),
                     BASIN_BAD_FILE);
    basin_decoder_close(&decoder);
    free(bytes);
}

TEST(folders_have_them) {
    size_t size;
    char *path = folder_path(state, "a.WebP");
    uint8_t *bytes = encode(&size);
    const char *folder = *state, *alone = path;
    basin_pictures *pictures;
    assert_int_equal(file_put(path, bytes, size), 0);
    for (int i = 0; i < 2; i++) {
        const char *const *from = i ? &alone : &folder;
        assert_ok(basin_pictures_open(&pictures, from, 1, BASIN_PICTURES_ALL, &failure));
        assert_int_equal(basin_pictures_count(pictures), 1);
        basin_pictures_close(pictures);
    }
    free(bytes);
}

int main(void) { return tests_run(folder_new, folder_remove); }
