/* A PNG file written anew with some pixels replaced. What libpng read is written again, with its
 * depth, transparency, profile and orientation; palettes and small depths become whole samples, so
 * that any colour can stand in. Errors come back by longjmp; nothing that changes after a setjmp
 * lives outside of the heap. */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "io/file.h"
#include "picture/decoder.h"

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

static void on_error(png_structp png, png_const_charp text) {
    patcher *p = png_get_error_ptr(png);
    if (!p->why.status)
        (void)basin_fail(&p->why, strstr(text, "memory") ? BASIN_NO_MEMORY : BASIN_BAD_FILE,
                         "%s: damaged PNG: %s", p->name, text);
    longjmp(p->escape, 1);
}

static void on_warning(png_structp png, png_const_charp text) { (void)png, (void)text; }

static void get(png_structp png, png_bytep to, size_t count) {
    patcher *p = png_get_io_ptr(png);
    if (count > p->map.size - p->at) png_error(png, "it is cut short");
    memcpy(to, (const char *)p->map.data + p->at, count);
    p->at += count;
}

static void put(png_structp png, png_bytep bytes, size_t count) {
    patcher *p = png_get_io_ptr(png);
    if (basin_writer_put(&p->writer, bytes, count, &p->why)) png_error(png, "cannot be written");
}

static void on_flush(png_structp png) { (void)png; }

/* A sample of 8 bits at the file's depth, big end first. */
static void put_sample(uint8_t *to, uint8_t value, int bytes) {
    for (int i = 0; i < bytes; i++) to[i] = value;
}

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
        for (int c = 0; c < channels; c++, to += bytes)
            put_sample(to, c < colours ? from->pixel[i * from->channels + c % from->channels] : 255,
                       bytes);
    }
}

static void read_all(patcher *p) {
    png_set_read_fn(p->in, p, get);
    png_read_png(p->in, p->info, PNG_TRANSFORM_EXPAND, NULL);
}

/* 1 where the file's picture is not the one to patch it with. */
static int check(patcher *p, const basin_decoder *decoder) {
    const basin_picture *from = p->picture;
    if (decoder->height == from->height && decoder->width == from->width &&
        p->where->height == from->height && p->where->width == from->width)
        return 0;
    (void)basin_fail(&p->why, BASIN_BAD_SHAPE, "%s: %lld x %lld pixels, wanted %lld x %lld",
                     p->name, (long long)decoder->width, (long long)decoder->height,
                     (long long)from->width, (long long)from->height);
    return 1;
}

static void run(patcher *p, const basin_decoder *decoder, const char *path) {
    if (check(p, decoder) || setjmp(p->escape)) return;
    read_all(p);
    replace(p, decoder->orientation);
    if (basin_writer_create(&p->writer, path, &p->why)) return;
    p->writing = true;
    png_set_write_fn(p->out, p, put, on_flush);
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
    p->in = png_create_read_struct(PNG_LIBPNG_VER_STRING, p, on_error, on_warning);
    p->out = png_create_write_struct(PNG_LIBPNG_VER_STRING, p, on_error, on_warning);
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
    patcher *p = calloc(1, sizeof *p);
    if (!p) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to patch it", original);
    p->picture = picture;
    p->where = where;
    p->name = original;
    basin_status status = basin_map_open(&p->map, original, error);
    if (!status) {
        status = patch(p, path, error);
        basin_map_close(&p->map);
    }
    free(p);
    return status;
}
