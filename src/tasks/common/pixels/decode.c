/* Decoding pictures: what a file may claim, its orientation, the three formats, and the requested
 * part in the file's coordinates and back, by EXIF. */
#include <jerror.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

#include "base/file.h"
#include "base/library.h"
#include "base/try.h"
#include "tasks/common/pixels/picture.h"

/* Larger pictures need some bytes: half a gigapixel packs into 64 KB and takes 20 s. */
enum { LARGE = 64000000, PLAUSIBLE = 256 };

static basin_status no_memory(const basin_decoder *decoder, basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to decode", decoder->name);
}

/* Refuses sizes that are 0, too large, or more than the bytes of the format could hold. */
static basin_status check_size(const basin_decoder *decoder, double pixels_per_byte,
                               basin_error *error) {
    double pixels = (double)decoder->height * (double)decoder->width;
    if (decoder->height < 1 || decoder->width < 1 || pixels > (double)BASIN_MAX_PICTURE_PIXELS)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: %lld x %lld pixels; expected 1 to %lld in all", decoder->name,
                          (long long)decoder->width, (long long)decoder->height,
                          (long long)BASIN_MAX_PICTURE_PIXELS);
    if (pixels > LARGE && pixels > PLAUSIBLE * (double)decoder->size)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: %lld x %lld pixels in %zu bytes; expected at most %d million, or a "
                          "byte for each %d",
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
    /* A tar of BMW/a.jpg begins with the same letters; a BMP goes on with its size and zeros. */
    bool bmp =
        size >= 10 && !memcmp(bytes, "BM", 2) && !memcmp((const char *)bytes + 6, "\0\0\0", 4);
    return bmp ? "BMP" : NULL;
}

/* ---- The orientation tag of EXIF data: in the first TIFF directory, tag 0x0112 ---- */

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

/* ---- JPEG (libjpeg-turbo). Errors longjmp; what changes after setjmp is on the heap ---- */

typedef struct jpeg {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    jmp_buf escape;
    char text[JMSG_LENGTH_MAX];
    bool no_memory;
    uint8_t *line; /* one row as decoded, where it is not the picture's own */
} jpeg;

static void error_exit(j_common_ptr info) {
    jpeg *j = info->client_data;
    j->no_memory = info->err->msg_code == JERR_OUT_OF_MEMORY;
    info->err->format_message(info, j->text);
    longjmp(j->escape, 1);
}

/* Warnings of level -1 mean damaged data. The harmless ones, stray bytes between segments and odd
 * Adobe or JFIF headers, are common among photographs and change no pixel. */
static void emit_message(j_common_ptr info, int level) {
    if (level >= 0) return;
    switch (info->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_BOGUS_ICC: return;
    default: error_exit(info);
    }
}

static void output_message(j_common_ptr info) { (void)info; }

static basin_status fail(const basin_decoder *decoder, const jpeg *j, basin_error *error) {
    if (j->no_memory) return no_memory(decoder, error);
    return basin_fail(error, BASIN_BAD_FILE, "%s: damaged JPEG: %s", decoder->name, j->text);
}

static int orientation_of(const struct jpeg_decompress_struct *info) {
    for (jpeg_saved_marker_ptr m = info->marker_list; m; m = m->next)
        if (m->marker == JPEG_APP0 + 1 && m->data_length > 6 && !memcmp(m->data, "Exif\0", 6))
            return basin_exif_orientation(m->data + 6, m->data_length - 6);
    return 1;
}

/* A whole file has an end marker somewhere after its first scan's header. Looking for it here finds
 * a truncated file even if the requested window lies before the cut. */
static bool has_end(const jpeg *j) {
    const uint8_t *start = j->info.src->next_input_byte;
    for (size_t at = j->info.src->bytes_in_buffer; at >= 2; at--)
        if (start[at - 2] == 0xff && start[at - 1] == JPEG_EOI) return true;
    return false;
}

static basin_status read_header(basin_decoder *decoder, jpeg *j, basin_error *error) {
    if (setjmp(j->escape)) return fail(decoder, j, error);
    jpeg_create_decompress(&j->info);
    jpeg_save_markers(&j->info, JPEG_APP0 + 1, 0xffff);
    jpeg_mem_src(&j->info, decoder->bytes, (unsigned long)decoder->size);
    jpeg_read_header(&j->info, TRUE);
    decoder->height = j->info.image_height;
    decoder->width = j->info.image_width;
    decoder->channels = j->info.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;
    decoder->orientation = orientation_of(&j->info);
    if (jpeg_has_multiple_scans(&j->info)) /* all coefficients, of two bytes each */
        decoder->aside =
            (double)decoder->height * (double)decoder->width * 2 * (double)j->info.num_components;
    if (j->info.data_precision != 8)
        return basin_fail(error, BASIN_UNSUPPORTED, "%s: JPEG of %d bits per sample; expected 8",
                          decoder->name, j->info.data_precision);
    if (!has_end(j))
        return basin_fail(error, BASIN_BAD_FILE, "%s: cut short: the JPEG has no end marker",
                          decoder->name);
    /* A block of 64 pixels takes a bit at least, except in arithmetic code. */
    return check_size(decoder, j->info.arith_code ? 1e6 : 1024, error);
}

static basin_status open_jpeg(basin_decoder *decoder, basin_error *error) {
    jpeg *j = calloc(1, sizeof *j);
    decoder->state = j;
    if (!j) return no_memory(decoder, error);
    j->info.err = jpeg_std_error(&j->errors);
    j->errors.error_exit = error_exit;
    j->errors.emit_message = emit_message;
    j->errors.output_message = output_message;
    j->info.client_data = j;
    return read_header(decoder, j, error);
}

/* Inks to light: the Adobe files store 255 - ink. */
static void row_from_cmyk(uint8_t *to, const uint8_t *from, int64_t width, bool inverted) {
    unsigned flip = inverted ? 0 : 255;
    for (int64_t i = 0; i < width; i++, from += 4, to += 3) {
        unsigned black = from[3] ^ flip;
        for (int c = 0; c < 3; c++) to[c] = (uint8_t)(((from[c] ^ flip) * black + 127) / 255);
    }
}

static void choose_space(struct jpeg_decompress_struct *info) {
    switch (info->jpeg_color_space) {
    case JCS_GRAYSCALE: info->out_color_space = JCS_GRAYSCALE; break;
    case JCS_CMYK:
    case JCS_YCCK: info->out_color_space = JCS_CMYK; break;
    default: info->out_color_space = JCS_RGB;
    }
}

/* Columns are cut at whole blocks; two columns more, since colours are smoothed at a cut. */
static void cut_columns(struct jpeg_decompress_struct *info, basin_stored *window) {
    enum { BESIDE = 2 };
    int64_t from = window->x > BESIDE ? window->x - BESIDE : 0;
    int64_t to = window->x + window->width + BESIDE;
    if (to > (int64_t)info->output_width) to = (int64_t)info->output_width;
    JDIMENSION first = (JDIMENSION)from, count = (JDIMENSION)(to - from);
    if (count < info->output_width) jpeg_crop_scanline(info, &first, &count);
    window->x = first;
    window->width = count;
}

static void read_rows(basin_picture *picture, const basin_stored *window, jpeg *j) {
    struct jpeg_decompress_struct *info = &j->info;
    bool inks = info->out_color_space == JCS_CMYK;
    size_t stride = (size_t)window->width * (size_t)picture->channels;
    if (window->y > 0) jpeg_skip_scanlines(info, (JDIMENSION)window->y);
    for (int64_t i = 0; i < window->height; i++) {
        uint8_t *to = picture->pixel + (size_t)i * stride;
        JSAMPROW row = inks ? j->line : to;
        jpeg_read_scanlines(info, &row, 1);
        if (inks) row_from_cmyk(to, row, window->width, info->saw_Adobe_marker);
    }
}

static basin_status read_jpeg(basin_picture *picture, basin_stored *window, basin_decoder *decoder,
                              int reduction, basin_error *error) {
    jpeg *j = decoder->state;
    if (setjmp(j->escape)) return fail(decoder, j, error);
    choose_space(&j->info);
    j->info.scale_num = 1;
    j->info.scale_denom = (unsigned)reduction;
    jpeg_start_decompress(&j->info);
    cut_columns(&j->info, window);
    BASIN_TRY(basin_picture_resize_memory(picture, window->height, window->width, decoder->channels,
                                          error));
    if (j->info.out_color_space == JCS_CMYK) j->line = basin_array_new((size_t)window->width, 4);
    if (j->info.out_color_space == JCS_CMYK && !j->line) return no_memory(decoder, error);
    read_rows(picture, window, j);
    return BASIN_OK;
}

static void close_jpeg(basin_decoder *decoder) {
    jpeg *j = decoder->state;
    if (!j) return;
    jpeg_destroy_decompress(&j->info);
    BASIN_FREE(j->line, j);
}

/* ---- PNG through libpng: every kind becomes 8-bit grey or RGB, transparency on white. Errors come
 * back by longjmp; nothing that changes after a setjmp lives outside of the heap ---- */

typedef struct reader {
    png_structp png;
    png_infop info;
    size_t at;
    const basin_decoder *decoder;
    jmp_buf escape;
    char text[160];
    uint8_t *pixel; /* [height, width, channels with alpha], and its rows */
    png_bytep *row;
} reader;

static void on_error(png_structp png, png_const_charp text) {
    reader *r = png_get_error_ptr(png);
    strncpy(r->text, text, sizeof r->text - 1);
    longjmp(r->escape, 1);
}

static void on_warning(png_structp png, png_const_charp text) { (void)png, (void)text; }

static void get(png_structp png, png_bytep to, size_t count) {
    reader *r = png_get_io_ptr(png);
    if (count > r->decoder->size - r->at) png_error(png, "it is cut short");
    memcpy(to, r->decoder->bytes + r->at, count);
    r->at += count;
}

static basin_status png_fail(const reader *r, basin_error *error) {
    if (strstr(r->text, "memory")) return no_memory(r->decoder, error);
    return basin_fail(error, BASIN_BAD_FILE, "%s: damaged PNG: %s", r->decoder->name, r->text);
}

/* The eXIf chunk may stand before the pixels or after them, so it is looked for here. */
static int png_orientation(const basin_decoder *decoder) {
    enum { MAGIC = 8, HEAD = 8, CHECKSUM = 4 };
    for (size_t at = MAGIC; decoder->size - at >= HEAD;) {
        const uint8_t *chunk = decoder->bytes + at;
        size_t length = number(chunk, 4, true), left = decoder->size - at - HEAD;
        if (left < CHECKSUM || length > left - CHECKSUM) return 1;
        if (!memcmp(chunk + 4, "eXIf", 4)) return basin_exif_orientation(chunk + HEAD, length);
        at += HEAD + length + CHECKSUM;
    }
    return 1;
}

static basin_status read_png_header(basin_decoder *decoder, reader *r, basin_error *error) {
    enum { SIDE = 1 << 24 };
    if (setjmp(r->escape)) return png_fail(r, error);
    png_set_read_fn(r->png, r, get);
    png_set_user_limits(r->png, SIDE, SIDE);
    png_read_info(r->png, r->info);
    decoder->height = png_get_image_height(r->png, r->info);
    decoder->width = png_get_image_width(r->png, r->info);
    decoder->channels = png_get_color_type(r->png, r->info) & PNG_COLOR_MASK_COLOR ? 3 : 1;
    decoder->orientation = png_orientation(decoder);
    /* all rows, perhaps with alpha */
    decoder->aside = (double)decoder->height * (double)decoder->width * (decoder->channels + 1);
    /* Deflate packs at most 1032 to 1, and a byte holds up to 8 pixels. */
    return check_size(decoder, 8 * 1032, error);
}

static basin_status open_png(basin_decoder *decoder, basin_error *error) {
    reader *r = calloc(1, sizeof *r);
    decoder->state = r;
    if (!r) return no_memory(decoder, error);
    r->decoder = decoder;
    r->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, on_error, on_warning);
    r->info = r->png ? png_create_info_struct(r->png) : NULL;
    if (!r->info) return no_memory(decoder, error);
    return read_png_header(decoder, r, error);
}

static void read_pixels(basin_decoder *decoder, reader *r) {
    png_set_expand(r->png);
    png_set_scale_16(r->png);
    png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    size_t stride = png_get_rowbytes(r->png, r->info), rows = (size_t)decoder->height;
    if (decoder->orientation >= 5) rows = (size_t)decoder->width;
    r->pixel = basin_array_new(rows, stride);
    r->row = basin_array_new(rows, sizeof *r->row);
    if (!r->pixel || !r->row) png_error(r->png, "out of memory");
    for (size_t i = 0; i < rows; i++) r->row[i] = r->pixel + i * stride;
    png_read_image(r->png, r->row);
    png_read_end(r->png, r->info);
}

/* The last of `channels` + 1: how far pixels are from opaque, 0 to 255. */
static void put_transparency(uint8_t *to, const uint8_t *from, size_t count, size_t channels) {
    for (size_t i = 0; i < count; i++) to[i] = (uint8_t)(255 - from[i * (channels + 1) + channels]);
}

/* Drops the last of `channels` + 1, transparency: pixels as they look on white. */
static void put_on_white(uint8_t *to, const uint8_t *from, size_t count, size_t channels) {
    for (size_t i = 0; i < count; i++, from += channels + 1)
        for (size_t c = 0; c < channels; c++)
            *to++ =
                (uint8_t)((from[c] * from[channels] + 255 * (255 - from[channels]) + 127) / 255);
}

static basin_status read_png(basin_picture *picture, basin_decoder *decoder, basin_error *error) {
    reader *r = decoder->state;
    if (setjmp(r->escape)) return png_fail(r, error);
    read_pixels(decoder, r);
    int64_t height = png_get_image_height(r->png, r->info);
    int64_t width = png_get_image_width(r->png, r->info);
    size_t channels = (size_t)decoder->channels, count = (size_t)height * (size_t)width;
    bool alpha = png_get_channels(r->png, r->info) > decoder->channels;
    int kept = decoder->transparency ? 1 : decoder->channels;
    BASIN_TRY(basin_picture_resize_memory(picture, height, width, kept, error));
    if (alpha)
        (decoder->transparency ? put_transparency : put_on_white)(picture->pixel, r->pixel, count,
                                                                  channels);
    else if (decoder->transparency)
        memset(picture->pixel, 0, count);
    else
        memcpy(picture->pixel, r->pixel, count * channels);
    return BASIN_OK;
}

static void close_png(basin_decoder *decoder) {
    reader *r = decoder->state;
    if (!r) return;
    if (r->png) png_destroy_read_struct(&r->png, &r->info, NULL);
    BASIN_FREE(r->pixel, r->row, r);
}

/* ---- WebP through libwebp, opened at run time: still pictures become 8-bit RGB, on white. Its two
 * functions are declared here: building needs no header ---- */

int WebPGetInfo(const uint8_t *data, size_t size, int *width, int *height);
uint8_t *WebPDecodeRGBAInto(const uint8_t *data, size_t size, uint8_t *output, size_t output_size,
                            int stride);

#define FUNCTIONS(X) X(WebPGetInfo) X(WebPDecodeRGBAInto)

typedef struct codec {
    FUNCTIONS(BASIN_LIBRARY_FIELD)
} codec;

/* RIFF: chunks of a name, a length, and bytes, padded to an even number. */
static int webp_orientation(const basin_decoder *decoder) {
    enum { MAGIC = 12, HEAD = 8, PREFIX = 6 };
    for (size_t at = MAGIC; at <= decoder->size && decoder->size - at >= HEAD;) {
        const uint8_t *chunk = decoder->bytes + at, *data = chunk + HEAD;
        size_t length = number(chunk + 4, 4, false);
        if (length > decoder->size - at - HEAD) return 1;
        if (!memcmp(chunk, "EXIF", 4)) {
            bool prefixed = length >= PREFIX && !memcmp(data, "Exif\0\0", PREFIX);
            size_t skip = prefixed ? PREFIX : 0;
            return basin_exif_orientation(data + skip, length - skip);
        }
        at += HEAD + length + length % 2;
    }
    return 1;
}

static basin_status open_webp(basin_decoder *decoder, basin_error *error) {
    static const basin_library_function functions[] = {FUNCTIONS(BASIN_LIBRARY_NAME){0}};
    int width = 0, height = 0;
    codec *c = calloc(1, sizeof *c);
    basin_error why;
    decoder->state = c;
    if (!c) return no_memory(decoder, error);
    if (basin_library_load(c, BASIN_LIBRARY_WEBP, functions, &why))
        return basin_fail(error, why.status, "%s: %s", decoder->name, why.text);
    if (!c->WebPGetInfo(decoder->bytes, decoder->size, &width, &height))
        return basin_fail(error, BASIN_BAD_FILE, "%s: damaged WebP", decoder->name);
    decoder->height = height;
    decoder->width = width;
    decoder->channels = 3;
    decoder->orientation = webp_orientation(decoder);
    decoder->aside = 4.0 * height * width;
    /* A plain surface of any size takes a few bytes: the memory is what bounds it. */
    return check_size(decoder, (double)BASIN_MAX_PICTURE_PIXELS, error);
}

static basin_status read_webp(basin_picture *picture, basin_decoder *decoder, basin_error *error) {
    const codec *c = decoder->state;
    bool swapped = decoder->orientation >= 5;
    int64_t height = swapped ? decoder->width : decoder->height;
    int64_t width = swapped ? decoder->height : decoder->width;
    size_t count = (size_t)height * (size_t)width;
    BASIN_TRY(
        basin_picture_resize_memory(picture, height, width, decoder->transparency ? 1 : 3, error));
    BASIN_FREE_AT_EXIT uint8_t *pixel = basin_array_new(count, 4); /* [height, width, RGBA] */
    if (!pixel) return no_memory(decoder, error);
    if (!c->WebPDecodeRGBAInto(decoder->bytes, decoder->size, pixel, count * 4, (int)width * 4))
        return basin_fail(error, BASIN_BAD_FILE, "%s: damaged WebP, or an animation",
                          decoder->name);
    (decoder->transparency ? put_transparency : put_on_white)(picture->pixel, pixel, count, 3);
    return BASIN_OK;
}

/* ---- any of them ---- */

basin_status basin_decoder_open(basin_decoder *decoder, const void *bytes, size_t size,
                                const char *name, basin_error *error) {
    static const uint8_t png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    static const uint8_t jpeg_magic[3] = {0xff, 0xd8, 0xff};
    basin_status status;
    *decoder = (basin_decoder){.bytes = bytes, .size = size, .name = name, .orientation = 1};
    if (size >= sizeof png && !memcmp(bytes, png, sizeof png)) {
        decoder->png = true;
        status = open_png(decoder, error);
    } else if (size >= sizeof jpeg_magic && !memcmp(bytes, jpeg_magic, sizeof jpeg_magic)) {
        status = open_jpeg(decoder, error);
    } else if (size >= 12 && !memcmp(bytes, "RIFF", 4) &&
               !memcmp((const char *)bytes + 8, "WEBP", 4)) {
        decoder->webp = true;
        status = open_webp(decoder, error);
    } else {
        const char *foreign = basin_picture_foreign(bytes, size);
        status = foreign
                     ? basin_fail(error, BASIN_UNSUPPORTED,
                                  "%s: is a %s file; expected JPEG, PNG or WebP", name, foreign)
                     : basin_fail(error, BASIN_BAD_FILE, "%s: is %s; expected JPEG, PNG or WebP",
                                  name, size ? "not a picture" : "empty");
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
        close_png(decoder);
    else if (decoder->webp)
        free(decoder->state);
    else
        close_jpeg(decoder);
    decoder->state = NULL;
}

int basin_decoder_reduction(const basin_box *box, double min_height, double min_width) {
    int by = 1;
    while (by < 8 && box->height >= 2 * by * min_height && box->width >= 2 * by * min_width)
        by *= 2;
    return by;
}

/* Whether the file's rows and columns run against, and are swapped: upright(y, x) = stored at swap
 * ? (x, y) : (y, x), each counted from the end where flipped. */
typedef struct turn {
    bool swap, flip_row, flip_column;
} turn;

static turn turn_of(int orientation) {
    static const turn of[9] = {{0},       {0, 0, 0}, {0, 0, 1}, {0, 1, 1}, {0, 1, 0},
                               {1, 0, 0}, {1, 1, 0}, {1, 1, 1}, {1, 0, 1}};
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
    BASIN_TRY(basin_picture_resize_memory(&out, t.swap ? columns : rows, t.swap ? rows : columns,
                                          picture->channels, error));
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
        BASIN_TRY((decoder->png ? read_png : read_webp)(picture, decoder, error));
    } else {
        /* libjpeg rounds the reduced sizes up; pixel i still covers by * i .. by * (i + 1) */
        stored = (basin_box){stored.y / by, stored.x / by, stored.height / by, stored.width / by};
        cover(&window.y, &window.height, stored.y, stored.height, (rows + by - 1) / by);
        cover(&window.x, &window.width, stored.x, stored.width, (columns + by - 1) / by);
        BASIN_TRY(check_room(decoder, &window, error));
        BASIN_TRY(read_jpeg(picture, &window, decoder, by, error));
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

static basin_status decode(basin_picture *picture, const void *bytes, size_t size, const char *name,
                           bool transparency, basin_error *error) {
    basin_decoder decoder;
    basin_box inside;
    BASIN_TRY(basin_decoder_open(&decoder, bytes, size, name, error));
    decoder.transparency = transparency && (decoder.png || decoder.webp);
    basin_box whole = {0, 0, (double)decoder.height, (double)decoder.width};
    basin_status status = basin_decoder_read(picture, &inside, &decoder, &whole, 1, error);
    if (!status && transparency && !decoder.transparency) basin_picture_free(picture);
    basin_decoder_close(&decoder);
    return status;
}

basin_status basin_picture_decode(basin_picture *picture, const void *bytes, size_t size,
                                  const char *name, basin_error *error) {
    return decode(picture, bytes, size, name, false, error);
}

basin_status basin_picture_transparency(basin_picture *picture, const void *bytes, size_t size,
                                        const char *name, basin_error *error) {
    return decode(picture, bytes, size, name, true, error);
}

basin_status basin_picture_read(basin_picture *picture, const char *path, basin_error *error) {
    BASIN_AT_EXIT(basin_map_close) basin_map map = {0};
    BASIN_TRY(basin_map_open(&map, path, error));
    return basin_picture_decode(picture, map.data, map.size, path, error);
}
