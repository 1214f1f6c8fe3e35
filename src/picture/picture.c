/* Pictures in memory, and decoding them upright: the window wanted is turned into the coordinates
 * of the file, and what the format decoded is turned back by the EXIF orientation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "basin/tasks/picture.h"
#include "io/file.h"
#include "picture/picture.h"

basin_status basin_picture_resize_memory(basin_picture *picture, int64_t height, int64_t width,
                                         int channels, basin_error *error) {
    size_t bytes;
    if (height < 1 || width < 1 || (channels != 1 && channels != 3) ||
        height > BASIN_PICTURE_PIXELS / width)
        return basin_fail(error, BASIN_BAD_SHAPE, "a picture of %lld x %lld pixels in %d channels",
                          (long long)height, (long long)width, channels);
    bytes = (size_t)height * (size_t)width * (size_t)channels;
    if (bytes > picture->capacity) {
        free(picture->pixel);
        picture->capacity = 0;
        picture->pixel = malloc(bytes);
        if (!picture->pixel)
            return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a picture of %lld x %lld",
                              (long long)height, (long long)width);
        picture->capacity = bytes;
    }
    picture->height = height;
    picture->width = width;
    picture->channels = channels;
    return BASIN_OK;
}

void basin_picture_free(basin_picture *picture) {
    free(picture->pixel);
    *picture = (basin_picture){0};
}

basin_status basin_picture_set_channels(basin_picture *picture, int channels, basin_error *error) {
    size_t count = (size_t)picture->height * (size_t)picture->width;
    if (channels == picture->channels) return BASIN_OK;
    if (channels == 1) {
        for (size_t i = 0; i < count; i++) {
            const uint8_t *p = picture->pixel + 3 * i;
            picture->pixel[i] =
                (uint8_t)((19595U * p[0] + 38470U * p[1] + 7471U * p[2] + 0x8000U) >> 16);
        }
        picture->channels = 1;
        return BASIN_OK;
    }
    basin_picture wide = {0};
    basin_status status =
        basin_picture_resize_memory(&wide, picture->height, picture->width, channels, error);
    if (status) return status;
    for (size_t i = 0; i < count; i++)
        wide.pixel[3 * i] = wide.pixel[3 * i + 1] = wide.pixel[3 * i + 2] = picture->pixel[i];
    basin_picture_free(picture);
    *picture = wide;
    return BASIN_OK;
}

/* ---- decoding ---- */

/* A larger picture must have some bytes to show for it: an empty one of half a gigapixel packs into
 * 64 KB, and takes 20 seconds to decode. */
enum { LARGE = 64000000, PLAUSIBLE = 256 };

basin_status basin_decoder_check(const basin_decoder *decoder, double pixels_per_byte,
                                 basin_error *error) {
    double pixels = (double)decoder->height * (double)decoder->width;
    if (decoder->height < 1 || decoder->width < 1 || pixels > (double)BASIN_PICTURE_PIXELS)
        return basin_fail(error, BASIN_BAD_FILE, "%s: %lld x %lld pixels, want 1 to %lld in all",
                          decoder->name, (long long)decoder->width, (long long)decoder->height,
                          (long long)BASIN_PICTURE_PIXELS);
    if (pixels > LARGE && pixels > PLAUSIBLE * (double)decoder->size)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: %lld x %lld pixels in %zu bytes, want at most %d million, or a byte "
                          "for each %d",
                          decoder->name, (long long)decoder->width, (long long)decoder->height,
                          decoder->size, LARGE / 1000000, PLAUSIBLE);
    if (pixels > pixels_per_byte * (double)decoder->size)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: claims %lld x %lld pixels, more than its %zu bytes can hold",
                          decoder->name, (long long)decoder->width, (long long)decoder->height,
                          decoder->size);
    return BASIN_OK;
}

const char *basin_picture_foreign(const void *bytes, size_t size) {
    static const struct {
        const char *name, *mark;
        size_t at, length;
    } known[] = {{"GIF", "GIF89a", 0, 6},   {"GIF", "GIF87a", 0, 6},    {"TIFF", "II*", 0, 4},
                 {"TIFF", "MM\0*", 0, 4},   {"HEIC", "ftypheic", 4, 8}, {"HEIC", "ftypmif1", 4, 8},
                 {"AVIF", "ftypavif", 4, 8}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (size >= known[i].at + known[i].length &&
            !memcmp((const char *)bytes + known[i].at, known[i].mark, known[i].length))
            return known[i].name;
    /* A tar of BMW/a.jpg begins so, too; a BMP goes on with its size and zeros. */
    bool bmp =
        size >= 10 && !memcmp(bytes, "BM", 2) && !memcmp((const char *)bytes + 6, "\0\0\0", 4);
    return bmp ? "BMP" : NULL;
}

basin_status basin_decoder_open(basin_decoder *decoder, const void *bytes, size_t size,
                                const char *name, basin_error *error) {
    static const uint8_t png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    static const uint8_t jpeg[3] = {0xff, 0xd8, 0xff};
    basin_status status;
    *decoder = (basin_decoder){.bytes = bytes, .size = size, .name = name, .orientation = 1};
    if (size >= sizeof png && !memcmp(bytes, png, sizeof png)) {
        decoder->png = true;
        status = basin_png_open(decoder, error);
    } else if (size >= sizeof jpeg && !memcmp(bytes, jpeg, sizeof jpeg)) {
        status = basin_jpeg_open(decoder, error);
    } else if (basin_webp_is(bytes, size)) {
        decoder->webp = true;
        status = basin_webp_open(decoder, error);
    } else {
        const char *foreign = basin_picture_foreign(bytes, size);
        status = foreign ? basin_fail(error, BASIN_UNSUPPORTED,
                                      "%s: is a %s file, want JPEG, PNG or WebP", name, foreign)
                         : basin_fail(error, BASIN_BAD_FILE, "%s: is %s JPEG, PNG or WebP file",
                                      name, size ? "no" : "empty, want a");
    }
    if (status) basin_decoder_close(decoder);
    if (!status && decoder->orientation >= 5) {
        int64_t height = decoder->height;
        decoder->height = decoder->width;
        decoder->width = height;
    }
    return status;
}

void basin_decoder_close(basin_decoder *decoder) {
    if (decoder->png)
        basin_png_close(decoder);
    else if (decoder->webp)
        basin_webp_close(decoder);
    else
        basin_jpeg_close(decoder);
}

int basin_decoder_reduction(const basin_box *box, double least_height, double least_width) {
    int by = 1;
    while (by < 8 && box->height >= 2 * by * least_height && box->width >= 2 * by * least_width)
        by *= 2;
    return by;
}

/* Whether the file's rows run against, and its columns, and whether they are swapped at last:
 * upright(y, x) = stored(row, column) with (row, column) = swap ? (x, y) : (y, x), each counted
 * from the end where flipped. */
typedef struct turn {
    bool swap, flip_row, flip_column;
} turn;

static turn turn_of(int orientation) {
    static const turn of[9] = {{0},
                               {false, false, false},
                               {false, false, true},
                               {false, true, true},
                               {false, true, false},
                               {true, false, false},
                               {true, true, false},
                               {true, true, true},
                               {true, false, true}};
    return of[orientation];
}

void basin_stored_place(int64_t *row, int64_t *column, int orientation, int64_t rows,
                        int64_t columns, int64_t y, int64_t x) {
    turn t = turn_of(orientation);
    *row = t.swap ? x : y;
    *column = t.swap ? y : x;
    if (t.flip_row) *row = rows - 1 - *row;
    if (t.flip_column) *column = columns - 1 - *column;
}

/* A box of a picture of `height` x `width` after the turn, in coordinates before it; it is its own
 * way back when the sizes given are those before the turn and `back` is set. */
static basin_box box_turn(basin_box box, turn t, double height, double width, bool back) {
    basin_box out = box;
    if (t.swap && !back) out = (basin_box){box.x, box.y, box.width, box.height};
    if (t.flip_row) out.y = height - out.y - out.height;
    if (t.flip_column) out.x = width - out.x - out.width;
    if (t.swap && back) out = (basin_box){out.x, out.y, out.width, out.height};
    return out;
}

static basin_status picture_turn(basin_picture *picture, int orientation, basin_error *error) {
    turn t = turn_of(orientation);
    int64_t rows = picture->height, columns = picture->width;
    size_t c = (size_t)picture->channels;
    basin_picture out = {0};
    basin_status status = basin_picture_resize_memory(
        &out, t.swap ? columns : rows, t.swap ? rows : columns, picture->channels, error);
    if (status) return status;
    for (int64_t y = 0; y < out.height; y++)
        for (int64_t x = 0; x < out.width; x++) {
            int64_t row, column;
            basin_stored_place(&row, &column, orientation, rows, columns, y, x);
            memcpy(out.pixel + (size_t)(y * out.width + x) * c,
                   picture->pixel + (size_t)(row * columns + column) * c, c);
        }
    basin_picture_free(picture);
    *picture = out;
    return BASIN_OK;
}

/* Whole pixels that cover low .. low + length, of `count`. */
static void cover(int64_t *first, int64_t *extent, double low, double length, int64_t count) {
    double from = floor(low), to = ceil(low + length);
    if (from < 0) from = 0;
    if (from > (double)(count - 1)) from = (double)(count - 1);
    if (to > (double)count) to = (double)count;
    if (to < from + 1) to = from + 1;
    *first = (int64_t)from;
    *extent = (int64_t)to - *first;
}

/* A small file can claim a huge picture. Several threads may decode at once, hence the eighth. */
static basin_status check_room(const basin_decoder *decoder, const basin_stored *window,
                               basin_error *error) {
    enum { SMALL = 1 << 26, THREADS = 8 };
    double pixels = (double)window->height * (double)window->width * decoder->channels;
    double bytes = decoder->aside + pixels * (decoder->orientation == 1 ? 1 : 2);
    size_t limit = decoder->limit;
    if (!limit) limit = bytes > SMALL ? basin_memory_share() / THREADS : SMALL;
    return basin_memory_check(bytes, limit, decoder->name, BASIN_BAD_FILE, error);
}

basin_status basin_decoder_read(basin_picture *picture, basin_box *inside, basin_decoder *decoder,
                                const basin_box *box, int by, basin_error *error) {
    turn t = turn_of(decoder->orientation);
    int64_t rows = t.swap ? decoder->width : decoder->height;
    int64_t columns = t.swap ? decoder->height : decoder->width;
    basin_box stored = box_turn(*box, t, (double)rows, (double)columns, false);
    basin_stored window = {0, 0, rows, columns};
    if (decoder->png || decoder->webp) {
        BASIN_TRY(check_room(decoder, &window, error));
        BASIN_TRY((decoder->png ? basin_png_read : basin_webp_read)(picture, decoder, error));
    } else {
        /* libjpeg rounds the reduced sizes up; pixel i still covers by * i .. by * (i + 1) */
        stored = (basin_box){stored.y / by, stored.x / by, stored.height / by, stored.width / by};
        cover(&window.y, &window.height, stored.y, stored.height, (rows + by - 1) / by);
        cover(&window.x, &window.width, stored.x, stored.width, (columns + by - 1) / by);
        BASIN_TRY(check_room(decoder, &window, error));
        BASIN_TRY(basin_jpeg_read(picture, &window, decoder, by, error));
    }
    stored.y -= (double)window.y;
    stored.x -= (double)window.x;
    if (decoder->orientation == 1) {
        *inside = stored;
        return BASIN_OK;
    }
    *inside = box_turn(stored, t, (double)picture->height, (double)picture->width, true);
    return picture_turn(picture, decoder->orientation, error);
}

basin_status basin_picture_decode(basin_picture *picture, const void *bytes, size_t size,
                                  const char *name, basin_error *error) {
    basin_decoder decoder;
    basin_box inside;
    basin_status status = basin_decoder_open(&decoder, bytes, size, name, error);
    if (status) return status;
    basin_box whole = {0, 0, (double)decoder.height, (double)decoder.width};
    status = basin_decoder_read(picture, &inside, &decoder, &whole, 1, error);
    basin_decoder_close(&decoder);
    return status;
}

basin_status basin_picture_read(basin_picture *picture, const char *path, basin_error *error) {
    basin_map map;
    basin_status status = basin_map_open(&map, path, error);
    if (status) return status;
    status = basin_picture_decode(picture, map.data, map.size, path, error);
    basin_map_close(&map);
    return status;
}

/* ---- Pictures from pixels in memory: those of another picture, or floats ---- */

basin_status basin_picture_copy(basin_picture *to, const basin_picture *from, basin_error *error) {
    if (!from->pixel) return basin_fail(error, BASIN_BAD_VALUE, "a picture has no pixels");
    BASIN_TRY(basin_picture_resize_memory(to, from->height, from->width, from->channels, error));
    memcpy(to->pixel, from->pixel, (size_t)(from->height * from->width * from->channels));
    return BASIN_OK;
}

basin_status basin_picture_from_floats(basin_picture *picture, const float *value, int64_t height,
                                       int64_t width, int channels, basin_error *error) {
    BASIN_TRY(basin_picture_resize_memory(picture, height, width, channels, error));
    for (int64_t i = 0; i < height * width * channels; i++) {
        if (value[i] >= 0 && value[i] <= 1)
            picture->pixel[i] = (uint8_t)lrintf(255 * value[i]);
        else
            return basin_fail(error, BASIN_BAD_VALUE,
                              "value %lld of a picture is %g, wanted 0 to 1", (long long)i,
                              (double)value[i]);
    }
    return BASIN_OK;
}

/* ---- The orientation tag of EXIF data: a TIFF header, and in its first directory tag 0x0112 ----
 */

static unsigned number(const uint8_t *at, int bytes, bool big) {
    unsigned value = 0;
    for (int i = 0; i < bytes; i++) value = value << 8 | at[big ? i : bytes - 1 - i];
    return value;
}

int basin_exif_orientation(const uint8_t *tiff, size_t size) {
    enum { ENTRY = 12, TAG = 0x0112, SHORT = 3 };
    if (size < 8) return 1;
    bool big = tiff[0] == 'M';
    if (tiff[0] != tiff[1] || (!big && tiff[0] != 'I') || number(tiff + 2, 2, big) != 42) return 1;
    size_t at = number(tiff + 4, 4, big);
    if (at > size - 2) return 1;
    unsigned entries = number(tiff + at, 2, big);
    at += 2;
    for (unsigned i = 0; i < entries && size - at >= ENTRY; i++, at += ENTRY) {
        const uint8_t *entry = tiff + at;
        if (number(entry, 2, big) != TAG || number(entry + 2, 2, big) != SHORT) continue;
        unsigned value = number(entry + 8, 2, big);
        return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}
