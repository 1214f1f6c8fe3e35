/* JPEG through libjpeg-turbo. Errors come back by longjmp; nothing that changes after a setjmp
 * lives outside of the heap. */
#include <jerror.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

#include "base/library.h"
#include "base/try.h"
#include "picture/picture.h"

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
    if (j->no_memory)
        return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to decode", decoder->name);
    return basin_fail(error, BASIN_BAD_FILE, "%s: damaged JPEG: %s", decoder->name, j->text);
}

static int orientation_of(const struct jpeg_decompress_struct *info) {
    for (jpeg_saved_marker_ptr m = info->marker_list; m; m = m->next)
        if (m->marker == JPEG_APP0 + 1 && m->data_length > 6 && !memcmp(m->data, "Exif\0", 6))
            return basin_exif_orientation(m->data + 6, m->data_length - 6);
    return 1;
}

/* A whole file has an end marker somewhere behind its first scan's header. Looking for it here
 * tells a file that was cut even where the window wanted lies before the cut. */
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
        return basin_fail(error, BASIN_UNSUPPORTED, "%s: JPEG of %d bits a sample, want 8",
                          decoder->name, j->info.data_precision);
    if (!has_end(j))
        return basin_fail(error, BASIN_BAD_FILE, "%s: cut short: the JPEG has no end marker",
                          decoder->name);
    /* A block of 64 pixels takes a bit at least, except in arithmetic code. */
    return basin_decoder_check(decoder, j->info.arith_code ? 1e6 : 1024, error);
}

basin_status basin_jpeg_open(basin_decoder *decoder, basin_error *error) {
    jpeg *j = calloc(1, sizeof *j);
    decoder->state = j;
    if (!j) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to decode", decoder->name);
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

/* Columns are cut at whole blocks. At a cut the colours are smoothed as at the picture's border, so
 * that two columns more keep those that matter exact. */
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

basin_status basin_jpeg_read(basin_picture *picture, basin_stored *window, basin_decoder *decoder,
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
    if (j->info.out_color_space == JCS_CMYK) {
        j->line = basin_array_new((size_t)window->width, 4);
        if (!j->line)
            BASIN_TRY(
                basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to decode", decoder->name));
    }
    read_rows(picture, window, j);
    return BASIN_OK;
}

void basin_jpeg_close(basin_decoder *decoder) {
    jpeg *j = decoder->state;
    if (!j) return;
    jpeg_destroy_decompress(&j->info);
    free(j->line);
    free(j);
    decoder->state = NULL;
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
    if (strstr(r->text, "memory"))
        return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to decode", r->decoder->name);
    return basin_fail(error, BASIN_BAD_FILE, "%s: damaged PNG: %s", r->decoder->name, r->text);
}

static size_t big(const uint8_t *at) {
    return (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
}

/* The eXIf chunk may stand before the pixels or behind them, so it is looked for here. */
static int png_orientation(const basin_decoder *decoder) {
    enum { MAGIC = 8, HEAD = 8, CHECKSUM = 4 };
    for (size_t at = MAGIC; decoder->size - at >= HEAD;) {
        const uint8_t *chunk = decoder->bytes + at;
        size_t length = big(chunk), left = decoder->size - at - HEAD;
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
    return basin_decoder_check(decoder, 8 * 1032, error);
}

basin_status basin_png_open(basin_decoder *decoder, basin_error *error) {
    reader *r = calloc(1, sizeof *r);
    decoder->state = r;
    if (!r) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to decode", decoder->name);
    r->decoder = decoder;
    r->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, on_error, on_warning);
    r->info = r->png ? png_create_info_struct(r->png) : NULL;
    if (!r->info)
        return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to decode", decoder->name);
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

void basin_pixels_on_white(uint8_t *to, const uint8_t *from, size_t count, size_t channels) {
    for (size_t i = 0; i < count; i++, from += channels + 1)
        for (size_t c = 0; c < channels; c++)
            *to++ =
                (uint8_t)((from[c] * from[channels] + 255 * (255 - from[channels]) + 127) / 255);
}

basin_status basin_png_read(basin_picture *picture, basin_decoder *decoder, basin_error *error) {
    reader *r = decoder->state;
    if (setjmp(r->escape)) return png_fail(r, error);
    read_pixels(decoder, r);
    int64_t height = png_get_image_height(r->png, r->info);
    int64_t width = png_get_image_width(r->png, r->info);
    size_t channels = (size_t)decoder->channels, count = (size_t)height * (size_t)width;
    BASIN_TRY(basin_picture_resize_memory(picture, height, width, decoder->channels, error));
    if (png_get_channels(r->png, r->info) > decoder->channels)
        basin_pixels_on_white(picture->pixel, r->pixel, count, channels);
    else
        memcpy(picture->pixel, r->pixel, count * channels);
    return BASIN_OK;
}

void basin_png_close(basin_decoder *decoder) {
    reader *r = decoder->state;
    if (!r) return;
    if (r->png) png_destroy_read_struct(&r->png, &r->info, NULL);
    free(r->pixel);
    free(r->row);
    free(r);
    decoder->state = NULL;
}

/* ---- WebP through libwebp, which is opened at run time: still pictures, lossy and lossless,
 * become 8-bit RGB, transparency on white. Its two functions are declared here, as libwebp has them
 * since 0.1, so that building needs no header of it ---- */

int WebPGetInfo(const uint8_t *data, size_t size, int *width, int *height);
uint8_t *WebPDecodeRGBAInto(const uint8_t *data, size_t size, uint8_t *output, size_t output_size,
                            int stride);

#define FUNCTIONS(X) X(WebPGetInfo) X(WebPDecodeRGBAInto)

typedef struct codec {
    FUNCTIONS(BASIN_LIBRARY_FIELD)
} codec;

static size_t little(const uint8_t *at) {
    return at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
}

/* RIFF: chunks of a name, a length, and bytes, padded to an even number. */
static int webp_orientation(const basin_decoder *decoder) {
    enum { MAGIC = 12, HEAD = 8, PREFIX = 6 };
    for (size_t at = MAGIC; at <= decoder->size && decoder->size - at >= HEAD;) {
        const uint8_t *chunk = decoder->bytes + at, *data = chunk + HEAD;
        size_t length = little(chunk + 4);
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

bool basin_webp_is(const void *bytes, size_t size) {
    const char *text = bytes;
    return size >= 12 && !memcmp(text, "RIFF", 4) && !memcmp(text + 8, "WEBP", 4);
}

basin_status basin_webp_open(basin_decoder *decoder, basin_error *error) {
    static const basin_library_function functions[] = {FUNCTIONS(BASIN_LIBRARY_NAME){0}};
    int width = 0, height = 0;
    codec *c = calloc(1, sizeof *c);
    decoder->state = c;
    if (!c) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to decode", decoder->name);
    basin_error why;
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
    return basin_decoder_check(decoder, (double)BASIN_PICTURE_PIXELS, error);
}

basin_status basin_webp_read(basin_picture *picture, basin_decoder *decoder, basin_error *error) {
    const codec *c = decoder->state;
    bool turned = decoder->orientation >= 5;
    int64_t height = turned ? decoder->width : decoder->height;
    int64_t width = turned ? decoder->height : decoder->width;
    size_t count = (size_t)height * (size_t)width;
    basin_status status = basin_picture_resize_memory(picture, height, width, 3, error);
    BASIN_FREE_AT_EXIT uint8_t *pixel =
        status ? NULL : basin_array_new(count, 4); /* [height, width, RGBA] */
    if (!status && !pixel)
        status = basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to decode", decoder->name);
    if (!status &&
        !c->WebPDecodeRGBAInto(decoder->bytes, decoder->size, pixel, count * 4, (int)width * 4))
        status =
            basin_fail(error, BASIN_BAD_FILE, "%s: damaged WebP, or an animation", decoder->name);
    if (!status) basin_pixels_on_white(picture->pixel, pixel, count, 3);
    return status;
}

void basin_webp_close(basin_decoder *decoder) {
    free(decoder->state);
    decoder->state = NULL;
}
