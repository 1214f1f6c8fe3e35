/* Reading pictures: every kind of JPEG and PNG that is promised, upright; windows that equal the
 * whole; files that are cut, damaged or absurd; and what is written read back. */
#include <png.h>
#include <zlib.h>

#include "basin/random.h"
#include "support/folder.h"
#include "support/test.h"
#include "tasks/common/pixels/picture.h"
#include "tasks/nodes/network/make.h"

static basin_picture decode(const uint8_t *bytes, size_t size) {
    basin_picture picture = {0};
    assert_ok(basin_picture_decode(&picture, bytes, size, "f", &failure));
    return picture;
}

/* ---- JPEG ---- */

TEST(jpeg_of_every_kind) {
    const jpeg_form form[] = {{0},
                              {.progressive = 1},
                              {.subsample = 1},
                              {.inks = 1, .quality = 98},
                              {.inks = 2, .quality = 98},
                              {.inks = 3, .quality = 98}};
    for (int channels = 1; channels <= 3; channels += 2)
        for (size_t i = 0; i < sizeof form / sizeof *form; i++) {
            if (form[i].inks && channels == 1) continue;
            uint8_t *bytes;
            jpeg_form f = form[i];
            if (!f.quality) f.quality = 98;
            basin_picture wanted = make_picture(37, 51, channels, 0);
            /* what was smoothed before packing comes back nearly as it was */
            for (int64_t k = 0; k < 37 * 51 * channels; k++)
                wanted.pixel[k] = (uint8_t)(60 + k / channels % 51 + k / channels / 51);
            size_t size = make_jpeg(&bytes, &wanted, f);
            basin_picture got = decode(bytes, size);
            assert_in_range(picture_difference(&got, &wanted), 0, 4);
            basin_picture_free(&got);
            basin_picture_free(&wanted);
            free(bytes);
        }
}

/* Where pixel (y, x) of the upright picture is in the file, from the EXIF specification: which side
 * row 0 and column 0 of the file are. */
static void stored_at(int64_t *row, int64_t *column, int orientation, int64_t y, int64_t x,
                      int64_t rows, int64_t columns) {
    switch (orientation) {
    case 1: *row = y, *column = x; break;                          /* top, left */
    case 2: *row = y, *column = columns - 1 - x; break;            /* top, right */
    case 3: *row = rows - 1 - y, *column = columns - 1 - x; break; /* bottom, right */
    case 4: *row = rows - 1 - y, *column = x; break;               /* bottom, left */
    case 5: *row = x, *column = y; break;                          /* left, top */
    case 6: *row = rows - 1 - x, *column = y; break;               /* right, top */
    case 7: *row = rows - 1 - x, *column = columns - 1 - y; break; /* right, bottom */
    default: *row = x, *column = columns - 1 - y; break;           /* left, bottom */
    }
}

static basin_picture upright(const basin_picture *stored, int orientation) {
    basin_picture out = {0};
    bool swap = orientation >= 5;
    int c = stored->channels;
    basin_picture_resize_memory(&out, swap ? stored->width : stored->height,
                                swap ? stored->height : stored->width, c, NULL);
    for (int64_t y = 0; y < out.height; y++)
        for (int64_t x = 0; x < out.width; x++) {
            int64_t row, column;
            stored_at(&row, &column, orientation, y, x, stored->height, stored->width);
            memcpy(out.pixel + (y * out.width + x) * c,
                   stored->pixel + (row * stored->width + column) * c, (size_t)c);
        }
    return out;
}

TEST(jpeg_orientations) {
    BASIN_AT_EXIT(basin_picture_free) basin_picture picture = make_picture(40, 61, 3, 2);
    uint8_t *bytes;
    size_t size = make_jpeg(&bytes, &picture, (jpeg_form){0});
    BASIN_AT_EXIT(basin_picture_free) basin_picture plain = decode(bytes, size);
    free(bytes);
    for (int o = 1; o <= 8; o++)
        for (int big = 0; big <= 1; big++) {
            size = make_jpeg(&bytes, &picture, (jpeg_form){.orientation = o, .big_endian = big});
            basin_picture got = decode(bytes, size), wanted = upright(&plain, o);
            assert_int_equal(picture_difference(&got, &wanted), 0);
            basin_picture_free(&got);
            basin_picture_free(&wanted);
            free(bytes);
        }
}

TEST(exif_that_lies) {
    uint8_t block[32];
    make_exif(block, 6, 1);
    assert_int_equal(basin_exif_orientation(block + 6, 26), 6);
    for (size_t cut = 0; cut < 20; cut++)
        assert_int_equal(basin_exif_orientation(block + 6, cut), 1);
    make_exif(block, 9, 0);
    assert_int_equal(basin_exif_orientation(block + 6, 26), 1);
    make_exif(block, 6, 0);
    memset(block + 10, 0xff, 4); /* the directory lies far beyond */
    assert_int_equal(basin_exif_orientation(block + 6, 26), 1);
}

/* Every window decodes to the pixels that the whole has there. */
TEST(jpeg_windows) {
    BASIN_AT_EXIT(basin_picture_free)
    basin_picture picture = make_picture(83, 121, 3, 1), part = {0};
    basin_random random = basin_random_start(4, 0, 0);
    for (int form = 0; form < 24; form++) {
        jpeg_form f = {.progressive = form % 2,
                       .subsample = form / 2 % 2,
                       .orientation = form / 4 + 1,
                       .inks = form == 23};
        uint8_t *bytes;
        size_t size = make_jpeg(&bytes, &picture, f);
        basin_picture whole = decode(bytes, size);
        for (int i = 0; i < 20; i++) {
            basin_decoder d;
            basin_box inside;
            assert_int_equal(basin_decoder_open(&d, bytes, size, "f", NULL), BASIN_OK);
            int64_t y = (int64_t)basin_random_below(&random, (uint64_t)d.height);
            int64_t x = (int64_t)basin_random_below(&random, (uint64_t)d.width);
            int64_t h = 1 + (int64_t)basin_random_below(&random, (uint64_t)(d.height - y));
            int64_t w = 1 + (int64_t)basin_random_below(&random, (uint64_t)(d.width - x));
            basin_box box = {(double)y, (double)x, (double)h, (double)w};
            assert_int_equal(basin_decoder_read(&part, &inside, &d, &box, 1, NULL), BASIN_OK);
            basin_decoder_close(&d);
            assert_true(inside.height == (double)h && inside.width == (double)w);
            int64_t py = (int64_t)inside.y, px = (int64_t)inside.x;
            assert_true(py >= 0 && px >= 0 && py + h <= part.height && px + w <= part.width);
            for (int64_t k = 0; k < h; k++)
                assert_memory_equal(part.pixel + ((py + k) * part.width + px) * 3,
                                    whole.pixel + ((y + k) * whole.width + x) * 3, (size_t)w * 3);
        }
        basin_picture_free(&whole);
        free(bytes);
    }
}

/* Reduced by 2, 4, 8, a window is near the mean of the pixels it stands for. */
TEST(jpeg_reduced) {
    BASIN_AT_EXIT(basin_picture_free)
    basin_picture picture = make_picture(130, 170, 3, 0), part = {0};
    for (int64_t k = 0; k < 130 * 170 * 3; k++)
        picture.pixel[k] = (uint8_t)(40 + k / 3 % 170 / 2 + k / 510 / 2);
    uint8_t *bytes;
    size_t size = make_jpeg(&bytes, &picture, (jpeg_form){.orientation = 6, .quality = 95});
    for (int by = 2; by <= 8; by *= 2) {
        basin_decoder d;
        basin_box inside, box = {32, 16, 64, 80}; /* upright the picture is 170 x 130 */
        assert_int_equal(basin_decoder_open(&d, bytes, size, "f", NULL), BASIN_OK);
        assert_int_equal(basin_decoder_read(&part, &inside, &d, &box, by, NULL), BASIN_OK);
        basin_decoder_close(&d);
        assert_true(inside.height == 64.0 / by && inside.width == 80.0 / by);
        for (int64_t y = 0; y < 64 / by; y++)
            for (int64_t x = 0; x < 80 / by; x++) {
                /* rotated: upright row = file column, upright column = 129 - file row; half a pixel
                 * of drift where the sizes are not multiples of 8 */
                double column = 32 + (y + 0.5) * by, row = 130 - (16 + (x + 0.5) * by);
                double want = 40 + (column - 0.5) / 2 + (row - 0.5) / 2 - 0.5;
                int64_t py = (int64_t)inside.y + y, px = (int64_t)(inside.x + 0.5) + x;
                double got = part.pixel[(py * part.width + px) * 3];
                assert_true(got - want < 3 && want - got < 3);
            }
    }
    assert_int_equal(basin_decoder_reduction(&(basin_box){0, 0, 448, 500}, 224, 224), 2);
    assert_int_equal(basin_decoder_reduction(&(basin_box){0, 0, 447, 500}, 224, 224), 1);
    assert_int_equal(basin_decoder_reduction(&(basin_box){0, 0, 9000, 9000}, 224, 224), 8);
    free(bytes);
}

/* ---- PNG ---- */

typedef struct out {
    uint8_t bytes[1 << 16];
    size_t size;
} out;

static void put_bytes(png_structp png, png_bytep data, size_t size) {
    out *o = png_get_io_ptr(png);
    memcpy(o->bytes + o->size, data, size);
    o->size += size;
}

static void put_nothing(png_structp png) { (void)png; }

/* Rows of a picture of any PNG kind; `exif` is an orientation, 0 for none. */
static void make_png(out *o, int h, int w, int type, int depth, const uint8_t *rows, size_t stride,
                     bool interlaced, int exif) {
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    uint8_t block[32];
    o->size = 0;
    png_set_write_fn(png, o, put_bytes, put_nothing);
    png_set_IHDR(png, info, (png_uint_32)w, (png_uint_32)h, depth, type,
                 interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    static const png_color palette[3] = {{10, 20, 30}, {200, 100, 50}, {0, 255, 7}};
    static const png_byte clear[2] = {255, 51}; /* the second colour shines through */
    if (type == PNG_COLOR_TYPE_PALETTE) {
        png_set_PLTE(png, info, palette, 3);
        if (exif < 0) png_set_tRNS(png, info, clear, 2, NULL);
    }
    make_exif(block, exif > 0 ? exif : 1, 1);
    if (exif > 0) png_set_eXIf_1(png, info, 26, block + 6);
    png_write_info(png, info);
    png_bytep row[64];
    for (int i = 0; i < h; i++) row[i] = (png_bytep)rows + (size_t)i * stride;
    png_write_image(png, row);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
}

static out png; /* too large for a stack */

static void assert_pixels(const uint8_t *wanted, int channels, size_t count) {
    BASIN_AT_EXIT(basin_picture_free) basin_picture got = decode(png.bytes, png.size);
    assert_int_equal(got.channels, channels);
    assert_memory_equal(got.pixel, wanted, count);
}

TEST(png_of_every_kind) {
    for (int interlaced = 0; interlaced <= 1; interlaced++) {
        const uint8_t grey16[] = {0, 0, 0, 127, 0, 129, 0x80, 0x80, 0xff, 0xff, 0xfe, 0xff};
        make_png(&png, 2, 3, PNG_COLOR_TYPE_GRAY, 16, grey16, 6, interlaced, 0);
        /* 127/257 rounds to 0, 129/257 to 1, 0x8080 is 128 exactly, 0xfeff is 254.0039 */
        assert_pixels((const uint8_t[]){0, 0, 1, 128, 255, 254}, 1, 6);
        const uint8_t bits[] = {0xa0, 0x40};
        make_png(&png, 2, 3, PNG_COLOR_TYPE_GRAY, 1, bits, 1, interlaced, 0);
        assert_pixels((const uint8_t[]){255, 0, 255, 0, 255, 0}, 1, 6);
        const uint8_t index[] = {0, 1, 2, 2, 1, 0};
        make_png(&png, 2, 3, PNG_COLOR_TYPE_PALETTE, 8, index, 3, interlaced, 0);
        assert_pixels((const uint8_t[]){10, 20, 30, 200, 100, 50, 0, 255, 7}, 3, 9);
        make_png(&png, 2, 3, PNG_COLOR_TYPE_PALETTE, 8, index, 3, interlaced, -1);
        /* a fifth of 200, 100, 50 on white */
        assert_pixels((const uint8_t[]){10, 20, 30, 244, 224, 214, 0, 255, 7}, 3, 9);
        const uint8_t alpha[] = {100, 255, 100, 0, 0, 128};
        make_png(&png, 1, 3, PNG_COLOR_TYPE_GRAY_ALPHA, 8, alpha, 6, interlaced, 0);
        assert_pixels((const uint8_t[]){100, 255, 127}, 1, 3);
        const uint8_t rgba[] = {1, 2, 3, 255, 1, 2, 3, 0};
        make_png(&png, 1, 2, PNG_COLOR_TYPE_RGB_ALPHA, 8, rgba, 8, interlaced, 0);
        assert_pixels((const uint8_t[]){1, 2, 3, 255, 255, 255}, 3, 6);
        const uint8_t rgb[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
        make_png(&png, 1, 4, PNG_COLOR_TYPE_RGB, 8, rgb, 12, interlaced, 3);
        assert_pixels((const uint8_t[]){10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3}, 3, 12);
        make_png(&png, 2, 2, PNG_COLOR_TYPE_RGB, 8, rgb, 6, interlaced, 6);
        assert_pixels((const uint8_t[]){7, 8, 9, 1, 2, 3, 10, 11, 12, 4, 5, 6}, 3, 12);
    }
}

/* ---- what cannot be read ---- */

static void assert_fails(const void *bytes, size_t size, const char *text) {
    BASIN_AT_EXIT(basin_picture_free) basin_picture picture = {0};
    basin_error error = {0};
    basin_status status = basin_picture_decode(&picture, bytes, size, "f", &error);
    assert_int_not_equal(status, BASIN_OK);
    assert_int_equal(status, error.status);
    assert_true(!strncmp(error.text, "f: ", 3) && !strchr(error.text, '\n'));
    if (text) assert_string_equal(error.text, text);
}

TEST(every_cut_is_an_error) {
    BASIN_AT_EXIT(basin_picture_free) basin_picture picture = make_picture(30, 40, 3, 3);
    for (int form = 0; form < 3; form++) {
        uint8_t *bytes;
        size_t size;
        if (form < 2)
            size = make_jpeg(&bytes, &picture, (jpeg_form){.progressive = form});
        else
            assert_int_equal(basin_png_encode(&bytes, &size, &picture, NULL), BASIN_OK);
        for (size_t cut = 0; cut < size; cut++) {
            uint8_t *copy = malloc(cut ? cut : 1);
            memcpy(copy, bytes, cut);
            assert_fails(copy, cut, cut ? NULL : "f: is empty; expected JPEG, PNG or WebP");
            free(copy);
        }
        free(bytes);
    }
}

static void big32(uint8_t *to, uint32_t v) {
    for (int i = 3; i >= 0; i--, v >>= 8) to[i] = (uint8_t)v;
}

TEST(absurd_files) {
    uint8_t *bytes;
    assert_fails("GIF89a....", 10, "f: is a GIF file; expected JPEG, PNG or WebP");
    assert_fails("BM....\0\0\0", 10, "f: is a BMP file; expected JPEG, PNG or WebP");
    assert_fails("MM\0*......", 10, "f: is a TIFF file; expected JPEG, PNG or WebP");
    assert_fails("nothing...", 10, "f: is not a picture; expected JPEG, PNG or WebP");
    basin_picture picture = make_picture(8, 8, 1, 0);
    size_t size = make_jpeg(&bytes, &picture, (jpeg_form){0});
    for (size_t i = 0; i + 8 < size; i++)
        if (bytes[i] == 0xff && bytes[i + 1] == 0xc0) memset(bytes + i + 5, 0xfd, 4);
    assert_fails(bytes, size, "f: 65021 x 65021 pixels; expected 1 to 536870912 in all");
    for (size_t i = 0; i + 8 < size; i++)
        if (bytes[i] == 0xff && bytes[i + 1] == 0xc0) memcpy(bytes + i + 5, "\x1f\x00\x1f\x00", 4);
    char text[100];
    snprintf(text, sizeof text, "f: claims 7936 x 7936 pixels, more than its %zu bytes can hold",
             size);
    assert_fails(bytes, size, text);
    free(bytes);
    assert_int_equal(basin_png_encode(&bytes, &size, &picture, NULL), BASIN_OK);
    static const uint32_t side[] = {7000, 16000};
    static const char *const wrong[] = {
        "f: claims 7000 x 7000 pixels, more than its %zu bytes can hold",
        "f: 16000 x 16000 pixels in %zu bytes; expected at most 64 million, or a byte for each "
        "256"};
    for (int i = 0; i < 2; i++) {
        big32(bytes + 16, side[i]);
        big32(bytes + 20, side[i]);
        big32(bytes + 29, (uint32_t)crc32(0, bytes + 12, 17));
        snprintf(text, sizeof text, wrong[i], size);
        assert_fails(bytes, size, text);
    }
    free(bytes);
    basin_picture_free(&picture);
    assert_says(basin_picture_read(&picture, "/nowhere/a.png", &failure), BASIN_IO,
                "/nowhere/a.png: cannot open for reading: No such file or directory");
}

/* ---- writing ---- */

TEST(written_and_read) {
    char *path = folder_path(state, "a.png");
    for (int channels = 1; channels <= 3; channels += 2) {
        basin_picture picture = make_picture(19, 33, channels, 5), got = {0};
        assert_int_equal(basin_picture_write_png(path, &picture, NULL), BASIN_OK);
        assert_int_equal(basin_picture_read(&got, path, NULL), BASIN_OK);
        assert_int_equal(picture_difference(&picture, &got), 0);
        assert_int_equal(folder_count(state), 1);
        basin_picture_free(&picture);
        basin_picture_free(&got);
    }
}

TEST(channels_change) {
    BASIN_AT_EXIT(basin_picture_free) basin_picture picture = make_picture(2, 2, 3, 0);
    memcpy(picture.pixel, "\xff\0\0\0\xff\0\0\0\xff\x64\x64\x64", 12);
    assert_int_equal(basin_picture_set_channels(&picture, 1, NULL), BASIN_OK);
    assert_memory_equal(picture.pixel, "\x4c\x96\x1d\x64", 4); /* 76 150 29 100 */
    assert_int_equal(basin_picture_set_channels(&picture, 3, NULL), BASIN_OK);
    assert_memory_equal(picture.pixel, "\x4c\x4c\x4c\x96\x96\x96\x1d\x1d\x1d\x64\x64\x64", 12);
}

/* What decoding takes is known from the header and bounded before anything is allocated. */
TEST(bounded_memory) {
    BASIN_AT_EXIT(basin_picture_free) basin_picture picture = make_picture(64, 48, 3, 1);
    for (int form = 0; form < 3; form++) { /* PNG, JPEG, progressive JPEG */
        uint8_t *bytes;
        size_t size, area = 64 * 48, need = (form == 0 ? 7 : form == 1 ? 3 : 9) * area;
        if (form)
            size = make_jpeg(&bytes, &picture, (jpeg_form){.progressive = form == 2});
        else
            assert_int_equal(basin_png_encode(&bytes, &size, &picture, NULL), BASIN_OK);
        for (size_t less = 0; less < 2; less++) {
            basin_decoder decoder;
            basin_box whole = {0, 0, 64, 48}, inside;
            basin_picture got = {0};
            basin_error error;
            assert_ok(basin_decoder_open(&decoder, bytes, size, "f", &failure));
            decoder.limit = need - less;
            assert_int_equal(basin_decoder_read(&got, &inside, &decoder, &whole, 1, &error),
                             less ? BASIN_BAD_FILE : BASIN_OK);
            if (less) assert_non_null(strstr(error.text, "GiB of memory, allowed are"));
            basin_decoder_close(&decoder);
            basin_picture_free(&got);
        }
        free(bytes);
    }
}

int main(void) { return tests_run(folder_new, folder_remove); }
