/* JPEG through libjpeg-turbo. Errors come back by longjmp; nothing that changes after a setjmp
 * lives outside of the heap. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#include "base/memory.h"
#include "picture/decoder.h"

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
    basin_status status = basin_picture_resize_memory(picture, window->height, window->width,
                                                      decoder->channels, error);
    if (!status && j->info.out_color_space == JCS_CMYK) {
        j->line = basin_array_new((size_t)window->width, 4);
        if (!j->line)
            status =
                basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to decode", decoder->name);
    }
    if (!status) read_rows(picture, window, j);
    return status;
}

void basin_jpeg_close(basin_decoder *decoder) {
    jpeg *j = decoder->state;
    if (!j) return;
    jpeg_destroy_decompress(&j->info);
    free(j->line);
    free(j);
    decoder->state = NULL;
}
