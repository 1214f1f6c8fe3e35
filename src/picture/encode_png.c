/* Pictures as PNG and animated PNG. libpng packs a frame; an animation wraps the packed frames
 * again: acTL announces them, fcTL precedes each, and from the second on IDAT becomes fdAT, which
 * begins with a sequence number. */
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>
#include <zlib.h>

#include "base/memory.h"
#include "basin/tasks/picture.h"
#include "io/file.h"

typedef struct buffer {
    uint8_t *bytes;
    size_t size, capacity;
    bool failed;
} buffer;

static void put(buffer *to, const void *bytes, size_t count) {
    if (to->failed || count == 0) return;
    if (count > SIZE_MAX - to->size ||
        !basin_array_reserve((void **)&to->bytes, &to->capacity, to->size + count, 1)) {
        to->failed = true;
        return;
    }
    memcpy(to->bytes + to->size, bytes, count);
    to->size += count;
}

/* ---- one picture ---- */

typedef struct writer {
    png_structp png;
    png_infop info;
    jmp_buf escape;
    char text[160];
    buffer out;
} writer;

static void on_error(png_structp png, png_const_charp text) {
    writer *w = png_get_error_ptr(png);
    strncpy(w->text, text, sizeof w->text - 1);
    longjmp(w->escape, 1);
}

static void on_warning(png_structp png, png_const_charp text) { (void)png, (void)text; }

static void on_bytes(png_structp png, png_bytep bytes, size_t count) {
    writer *w = png_get_io_ptr(png);
    put(&w->out, bytes, count);
    if (w->out.failed) png_error(png, "out of memory");
}

static void on_flush(png_structp png) { (void)png; }

static basin_status pack(writer *w, const basin_picture *picture, basin_error *error) {
    if (setjmp(w->escape))
        return basin_fail(error, w->out.failed ? BASIN_NO_MEMORY : BASIN_BAD_VALUE,
                          "a picture of %lld x %lld cannot be packed as PNG: %s",
                          (long long)picture->width, (long long)picture->height, w->text);
    png_set_write_fn(w->png, w, on_bytes, on_flush);
    png_set_IHDR(w->png, w->info, (png_uint_32)picture->width, (png_uint_32)picture->height, 8,
                 picture->channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(w->png, w->info);
    size_t stride = (size_t)picture->width * (size_t)picture->channels;
    for (int64_t y = 0; y < picture->height; y++)
        png_write_row(w->png, picture->pixel + (size_t)y * stride);
    png_write_end(w->png, w->info);
    return BASIN_OK;
}

basin_status basin_png_encode(uint8_t **bytes, size_t *size, const basin_picture *picture,
                              basin_error *error) {
    basin_status status = BASIN_OK;
    writer *w = calloc(1, sizeof *w);
    *bytes = NULL;
    *size = 0;
    if (w) w->png = png_create_write_struct(PNG_LIBPNG_VER_STRING, w, on_error, on_warning);
    if (w && w->png) w->info = png_create_info_struct(w->png);
    if (!w || !w->info)
        status = basin_fail(error, BASIN_NO_MEMORY, "out of memory to pack a picture as PNG");
    else
        status = pack(w, picture, error);
    if (w && w->png) png_destroy_write_struct(&w->png, &w->info);
    if (status) {
        if (w) free(w->out.bytes);
    } else {
        *bytes = w->out.bytes;
        *size = w->out.size;
    }
    free(w);
    return status;
}

/* ---- animations ---- */

static void big(uint8_t *to, uint32_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; i--, value >>= 8) to[i] = (uint8_t)value;
}

static uint32_t big_at(const uint8_t *from) {
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

/* A chunk whose data come in two pieces: its length, name, data, and the checksum of name and
 * data. */
static void put_chunk(buffer *to, const char name[4], const void *head, size_t head_size,
                      const void *data, size_t size) {
    uint8_t number[4];
    uLong sum = crc32(0, (const Bytef *)name, 4);
    if (head_size) sum = crc32(sum, head, (uInt)head_size);
    if (size) sum = crc32(sum, data, (uInt)size);
    big(number, (uint32_t)(head_size + size), 4);
    put(to, number, 4);
    put(to, name, 4);
    put(to, head, head_size);
    put(to, data, size);
    big(number, (uint32_t)sum, 4);
    put(to, number, 4);
}

static void put_frame_control(buffer *to, uint32_t *sequence, const basin_picture *frame,
                              int delay_ms) {
    uint8_t control[26] = {0};
    big(control, (*sequence)++, 4);
    big(control + 4, (uint32_t)frame->width, 4);
    big(control + 8, (uint32_t)frame->height, 4);
    big(control + 20, (uint32_t)delay_ms, 2);
    big(control + 22, 1000, 2);
    put_chunk(to, "fcTL", control, sizeof control, NULL, 0);
}

/* Copies a packed picture: of the first frame all chunks, with the animation's before its pixels;
 * of the others the pixels alone. */
static void put_frame(buffer *to, uint32_t *sequence, const uint8_t *bytes, size_t size,
                      const basin_picture *frame, int delay_ms, int frames_if_first) {
    enum { MAGIC = 8, AROUND = 12 };
    bool begun = false;
    if (frames_if_first) put(to, bytes, MAGIC);
    for (size_t at = MAGIC, step; at < size; at += step) {
        const uint8_t *chunk = bytes + at;
        size_t length = big_at(chunk);
        step = AROUND + length;
        if (memcmp(chunk + 4, "IDAT", 4) != 0) {
            if (frames_if_first && memcmp(chunk + 4, "IEND", 4) != 0) put(to, chunk, step);
            continue;
        }
        if (!begun && frames_if_first) {
            uint8_t animation[8] = {0};
            big(animation, (uint32_t)frames_if_first, 4);
            put_chunk(to, "acTL", animation, sizeof animation, NULL, 0);
        }
        if (!begun) put_frame_control(to, sequence, frame, delay_ms);
        begun = true;
        if (frames_if_first) {
            put(to, chunk, step);
        } else {
            uint8_t number[4];
            big(number, (*sequence)++, 4);
            put_chunk(to, "fdAT", number, sizeof number, chunk + 8, length);
        }
    }
}

static basin_status check_frames(const basin_picture *frame, int frames, int delay_ms, int hold_ms,
                                 basin_error *error) {
    if (frames < 1 || delay_ms < 0 || delay_ms > 65535 || hold_ms < 0 || hold_ms > 65535)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "an animation of %d frames, %d and %d ms: want frames, and at most 65535",
                          frames, delay_ms, hold_ms);
    for (int i = 1; i < frames; i++)
        if (frame[i].height != frame->height || frame[i].width != frame->width ||
            frame[i].channels != frame->channels)
            return basin_fail(error, BASIN_BAD_SHAPE,
                              "frame %d of an animation is %lld x %lld x %d, the first %lld x %lld "
                              "x %d",
                              i, (long long)frame[i].height, (long long)frame[i].width,
                              frame[i].channels, (long long)frame->height, (long long)frame->width,
                              frame->channels);
    return BASIN_OK;
}

basin_status basin_apng_encode(uint8_t **bytes, size_t *size, const basin_picture *frame,
                               int frames, int delay_ms, int hold_ms, basin_error *error) {
    buffer out = {0};
    uint32_t sequence = 0;
    *bytes = NULL;
    *size = 0;
    basin_status status = check_frames(frame, frames, delay_ms, hold_ms, error);
    for (int i = 0; i < frames && !status; i++) {
        uint8_t *packed;
        size_t packed_size;
        status = basin_png_encode(&packed, &packed_size, &frame[i], error);
        if (status) break;
        put_frame(&out, &sequence, packed, packed_size, &frame[i],
                  i == frames - 1 ? hold_ms : delay_ms, i == 0 ? frames : 0);
        free(packed);
    }
    put_chunk(&out, "IEND", NULL, 0, NULL, 0);
    if (!status && out.failed)
        status = basin_fail(error, BASIN_NO_MEMORY, "out of memory to pack an animation");
    if (status) {
        free(out.bytes);
        return status;
    }
    *bytes = out.bytes;
    *size = out.size;
    return BASIN_OK;
}

/* ---- files ---- */

static basin_status write_bytes(const char *path, const uint8_t *bytes, size_t size,
                                basin_error *error) {
    basin_writer to;
    basin_status status = basin_writer_create(&to, path, error);
    if (status) return status;
    status = basin_writer_put(&to, bytes, size, error);
    if (!status) return basin_writer_commit(&to, error);
    basin_writer_discard(&to);
    return status;
}

basin_status basin_picture_write_png(const char *path, const basin_picture *picture,
                                     basin_error *error) {
    uint8_t *bytes;
    size_t size;
    basin_status status = basin_png_encode(&bytes, &size, picture, error);
    if (!status) status = write_bytes(path, bytes, size, error);
    free(bytes);
    return status;
}

basin_status basin_picture_write_apng(const char *path, const basin_picture *frame, int frames,
                                      int delay_ms, int hold_ms, basin_error *error) {
    uint8_t *bytes;
    size_t size;
    basin_status status = basin_apng_encode(&bytes, &size, frame, frames, delay_ms, hold_ms, error);
    if (!status) status = write_bytes(path, bytes, size, error);
    free(bytes);
    return status;
}
