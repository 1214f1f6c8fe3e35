/* PNG through libpng: every kind becomes 8-bit grey or RGB, transparency on white. Errors come back
 * by longjmp; nothing that changes after a setjmp lives outside of the heap. */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "base/memory.h"
#include "picture/decoder.h"

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

static basin_status fail(const reader *r, basin_error *error) {
    if (strstr(r->text, "memory"))
        return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to decode", r->decoder->name);
    return basin_fail(error, BASIN_BAD_FILE, "%s: damaged PNG: %s", r->decoder->name, r->text);
}

static size_t big(const uint8_t *at) {
    return (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
}

/* The eXIf chunk may stand before the pixels or behind them, so it is looked for here. */
static int orientation_of(const basin_decoder *decoder) {
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

static basin_status read_header(basin_decoder *decoder, reader *r, basin_error *error) {
    enum { SIDE = 1 << 24 };
    if (setjmp(r->escape)) return fail(r, error);
    png_set_read_fn(r->png, r, get);
    png_set_user_limits(r->png, SIDE, SIDE);
    png_read_info(r->png, r->info);
    decoder->height = png_get_image_height(r->png, r->info);
    decoder->width = png_get_image_width(r->png, r->info);
    decoder->channels = png_get_color_type(r->png, r->info) & PNG_COLOR_MASK_COLOR ? 3 : 1;
    decoder->orientation = orientation_of(decoder);
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
    return read_header(decoder, r, error);
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
    if (setjmp(r->escape)) return fail(r, error);
    read_pixels(decoder, r);
    int64_t height = png_get_image_height(r->png, r->info);
    int64_t width = png_get_image_width(r->png, r->info);
    size_t channels = (size_t)decoder->channels, count = (size_t)height * (size_t)width;
    basin_status status =
        basin_picture_resize_memory(picture, height, width, decoder->channels, error);
    if (status) return status;
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
