/* WebP through libwebp, which is opened at run time: still pictures, lossy and lossless, become
 * 8-bit RGB, transparency on white. Its two functions are declared here, as libwebp has them since
 * 0.1, so that building needs no header of it. */
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "base/memory.h"
#include "picture/decoder.h"

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
static int orientation_of(const basin_decoder *decoder) {
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
    decoder->orientation = orientation_of(decoder);
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
    uint8_t *pixel = status ? NULL : basin_array_new(count, 4); /* [height, width, RGBA] */
    if (!status && !pixel)
        status = basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to decode", decoder->name);
    if (!status &&
        !c->WebPDecodeRGBAInto(decoder->bytes, decoder->size, pixel, count * 4, (int)width * 4))
        status =
            basin_fail(error, BASIN_BAD_FILE, "%s: damaged WebP, or an animation", decoder->name);
    if (!status) basin_pixels_on_white(picture->pixel, pixel, count, 3);
    free(pixel);
    return status;
}

void basin_webp_close(basin_decoder *decoder) {
    free(decoder->state);
    decoder->state = NULL;
}
