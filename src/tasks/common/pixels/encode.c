/* Pictures as PNG and JPEG, in memory and in files. */
#include <jerror.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

#include "base/file.h"
#include "base/try.h"
#include "basin/tasks/picture.h"
#include "tasks/common/pixels/picture.h"

/* What was written to memory; `status` and `error` say whether that went well. */
static basin_status take(uint8_t **bytes, size_t *size, basin_memory_file *memory,
                         basin_status status, basin_error *error) {
    char *text = basin_memory_file_close(memory);
    if (!status && !text) status = basin_fail_memory(error, "a packed picture");
    *bytes = status ? NULL : (uint8_t *)text;
    *size = status ? 0 : memory->size;
    if (status) free(text);
    return status;
}

basin_status basin_png_encode(uint8_t **bytes, size_t *size, const basin_picture *picture,
                              basin_error *error) {
    basin_memory_file memory;
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)picture->width,
                       .height = (png_uint_32)picture->height,
                       .flags = PNG_IMAGE_FLAG_FAST, /* a third of the time, a little larger */
                       .format = picture->channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY};
    basin_status status = BASIN_OK;
    *bytes = NULL;
    *size = 0;
    if (!basin_memory_file_open(&memory)) return basin_fail_memory(error, "a packed picture");
    if (!png_image_write_to_stdio(&image, memory.file, 0, picture->pixel, 0, NULL))
        status =
            basin_fail(error, strstr(image.message, "memory") ? BASIN_NO_MEMORY : BASIN_BAD_VALUE,
                       "a picture of %lld x %lld cannot be packed as PNG: %s",
                       (long long)picture->width, (long long)picture->height, image.message);
    return take(bytes, size, &memory, status, error);
}

basin_status basin_picture_write_png(const char *path, const basin_picture *picture,
                                     basin_error *error) {
    BASIN_FREE_AT_EXIT uint8_t *bytes = NULL;
    size_t size;
    basin_writer to;
    BASIN_TRY(basin_png_encode(&bytes, &size, picture, error));
    BASIN_TRY(basin_writer_create(&to, path, error));
    return basin_writer_finish(&to, basin_writer_put(&to, bytes, size, error), error);
}

/* ---- A PNG file written anew with some pixels replaced, with its depth, transparency, profile and
 * orientation; palettes and small depths become whole samples. Errors longjmp; what changes after a
 * setjmp is on the heap ---- */

typedef struct patcher {
    const basin_picture *picture, *where;
    const char *name;
    basin_map map;
    size_t at; /* bytes read */
    png_structp in, out;
    png_infop info;
    basin_writer writer;
    bool writing;
    jmp_buf escape;
    basin_error why;
} patcher;

static void on_patch_error(png_structp png, png_const_charp text) {
    patcher *p = png_get_error_ptr(png);
    if (!p->why.status)
        (void)basin_fail(&p->why, strstr(text, "memory") ? BASIN_NO_MEMORY : BASIN_BAD_FILE,
                         "%s: damaged PNG: %s", p->name, text);
    longjmp(p->escape, 1);
}

static void on_patch_warning(png_structp png, png_const_charp text) { (void)png, (void)text; }

static void get(png_structp png, png_bytep to, size_t count) {
    patcher *p = png_get_io_ptr(png);
    if (count > p->map.size - p->at) png_error(png, "it is cut short");
    memcpy(to, (const char *)p->map.data + p->at, count);
    p->at += count;
}

static void put_patch(png_structp png, png_bytep bytes, size_t count) {
    patcher *p = png_get_io_ptr(png);
    if (basin_writer_put(&p->writer, bytes, count, &p->why)) png_error(png, "cannot be written");
}

static void on_patch_flush(png_structp png) { (void)png; }

static void replace(patcher *p, int orientation) {
    png_bytepp row = png_get_rows(p->in, p->info);
    int64_t rows = png_get_image_height(p->in, p->info);
    int64_t columns = png_get_image_width(p->in, p->info);
    int channels = png_get_channels(p->in, p->info), colours = channels >= 3 ? 3 : 1;
    int bytes = png_get_bit_depth(p->in, p->info) / 8;
    const basin_picture *from = p->picture;
    for (int64_t i = 0; i < from->height * from->width; i++) {
        int64_t y, x;
        if (p->where->pixel[i * p->where->channels] == 0) continue;
        basin_stored_place(&y, &x, orientation, rows, columns, i / from->width, i % from->width);
        uint8_t *to = row[y] + x * channels * bytes;
        for (int c = 0; c < channels; c++, to += bytes) /* 8 bits at the file's depth */
            memset(to, c < colours ? from->pixel[i * from->channels + c % from->channels] : 255,
                   (size_t)bytes);
    }
}

/* 1 where the file's picture is not the one to patch it with. */
static int check(patcher *p, const basin_decoder *decoder) {
    const basin_picture *from = p->picture;
    if (decoder->height == from->height && decoder->width == from->width &&
        p->where->height == from->height && p->where->width == from->width)
        return 0;
    (void)basin_fail(&p->why, BASIN_BAD_SHAPE, "%s: %lld x %lld pixels; expected %lld x %lld",
                     p->name, (long long)decoder->width, (long long)decoder->height,
                     (long long)from->width, (long long)from->height);
    return 1;
}

static void run(patcher *p, const basin_decoder *decoder, const char *path) {
    if (check(p, decoder) || setjmp(p->escape)) return;
    png_set_read_fn(p->in, p, get);
    png_read_png(p->in, p->info, PNG_TRANSFORM_EXPAND, NULL);
    replace(p, decoder->orientation);
    if (basin_writer_create(&p->writer, path, &p->why)) return;
    p->writing = true;
    png_set_write_fn(p->out, p, put_patch, on_patch_flush);
    png_set_compression_level(p->out, 3); /* as PNG_IMAGE_FLAG_FAST has it */
    png_write_info(p->out, p->info);
    png_write_image(p->out, png_get_rows(p->in, p->info));
    png_write_end(p->out, NULL); /* with the info, libpng would write eXIf a second time */
    p->writing = false;
    (void)basin_writer_commit(&p->writer, &p->why);
}

static basin_status patch(patcher *p, const char *path, basin_error *error) {
    basin_decoder decoder;
    basin_status status = basin_decoder_open(&decoder, p->map.data, p->map.size, p->name, error);
    if (status) return status;
    p->in = png_create_read_struct(PNG_LIBPNG_VER_STRING, p, on_patch_error, on_patch_warning);
    p->out = png_create_write_struct(PNG_LIBPNG_VER_STRING, p, on_patch_error, on_patch_warning);
    p->info = p->in ? png_create_info_struct(p->in) : NULL;
    if (!decoder.png)
        status = basin_fail(error, BASIN_UNSUPPORTED, "%s: not a PNG file", p->name);
    else if (!p->info || !p->out)
        status = basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to patch it", p->name);
    else
        run(p, &decoder, path);
    if (p->writing) basin_writer_discard(&p->writer);
    if (p->in) png_destroy_read_struct(&p->in, &p->info, NULL);
    if (p->out) png_destroy_write_struct(&p->out, NULL);
    basin_decoder_close(&decoder);
    if (status || !p->why.status) return status;
    return basin_fail(error, p->why.status, "%s", p->why.text);
}

basin_status basin_picture_patch_png(const char *path, const char *original,
                                     const basin_picture *picture, const basin_picture *where,
                                     basin_error *error) {
    BASIN_SCRATCH(patcher, p, 1, "patching a PNG file", error);
    p->picture = picture;
    p->where = where;
    p->name = original;
    BASIN_TRY(basin_map_open(&p->map, original, error));
    basin_status status = patch(p, path, error);
    basin_map_close(&p->map);
    return status;
}

/* ---- Pictures as JPEG ---- */

typedef struct packer {
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    jmp_buf escape;
    char text[JMSG_LENGTH_MAX];
    bool no_memory;
} packer;

static void on_jpeg_error(j_common_ptr info) {
    packer *p = info->client_data;
    int code = info->err->msg_code;
    p->no_memory = code == JERR_OUT_OF_MEMORY || code == JERR_FILE_WRITE; /* to memory, that is */
    info->err->format_message(info, p->text);
    longjmp(p->escape, 1);
}

static void on_message(j_common_ptr info) { (void)info; }

static basin_status pack_jpeg(packer *p, FILE *file, const basin_picture *picture, int quality,
                              bool full_colour, basin_error *error) {
    struct jpeg_compress_struct *info = &p->info;
    size_t row = (size_t)picture->width * (size_t)picture->channels;
    if (setjmp(p->escape))
        return basin_fail(error, p->no_memory ? BASIN_NO_MEMORY : BASIN_BAD_VALUE,
                          "a picture of %lld x %lld as JPEG: %s", (long long)picture->height,
                          (long long)picture->width, p->text);
    jpeg_create_compress(info);
    jpeg_stdio_dest(info, file);
    info->image_width = (JDIMENSION)picture->width;
    info->image_height = (JDIMENSION)picture->height;
    info->input_components = picture->channels;
    info->in_color_space = picture->channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(info);
    jpeg_set_quality(info, quality, TRUE);
    info->optimize_coding = TRUE;
    for (int c = 0; full_colour && c < info->num_components; c++)
        info->comp_info[c].h_samp_factor = info->comp_info[c].v_samp_factor = 1;
    jpeg_start_compress(info, TRUE);
    while (info->next_scanline < info->image_height) {
        JSAMPROW line = picture->pixel + info->next_scanline * row;
        jpeg_write_scanlines(info, &line, 1);
    }
    jpeg_finish_compress(info);
    return BASIN_OK;
}

basin_status basin_jpeg_encode(uint8_t **bytes, size_t *size, const basin_picture *picture,
                               int quality, bool full_colour, basin_error *error) {
    basin_memory_file memory;
    *bytes = NULL;
    *size = 0;
    BASIN_SCRATCH(packer, p, 1, "packing a picture as JPEG", error);
    if (!basin_memory_file_open(&memory)) return basin_fail_memory(error, "a packed picture");
    p->info.err = jpeg_std_error(&p->errors);
    p->errors.error_exit = on_jpeg_error;
    p->errors.output_message = on_message;
    p->info.client_data = p;
    basin_status status = pack_jpeg(p, memory.file, picture, quality, full_colour, error);
    jpeg_destroy_compress(&p->info);
    return take(bytes, size, &memory, status, error);
}
