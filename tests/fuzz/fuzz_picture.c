/* Fuzz target: any bytes as a picture, decoded whole and in part. PNG is tried a second time with
 * its checksums made right, since no mutation gets past those by itself. */
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "fuzz/fuzz.h"
#include "tasks/common/pixels/picture.h"
#include "tasks/nodes/network/make.h"

/* Larger ones would only make the fuzzer slow. */
enum { PIXELS = 1 << 18 };

static void check(basin_status status, const basin_error *error) {
    if (status && (error->status != status || strncmp(error->text, "fuzz", 4) != 0 ||
                   strchr(error->text, '\n')))
        abort();
}

static void decode(const uint8_t *data, size_t size) {
    basin_decoder decoder;
    basin_picture picture = {0};
    basin_error error = {0};
    basin_status status = basin_decoder_open(&decoder, data, size, "fuzz", &error);
    check(status, &error);
    if (status) return;
    bool small = decoder.height * decoder.width <= PIXELS;
    int by = decoder.png || decoder.webp ? 1 : 1 << size % 4;
    basin_box inside, box = {(double)decoder.height / 3, (double)decoder.width / 4,
                             (double)decoder.height / 2, (double)decoder.width / 2};
    if (small) {
        status = basin_decoder_read(&picture, &inside, &decoder, &box, by, &error);
        check(status, &error);
        if (!status && (inside.y < 0 || inside.x < 0 ||
                        inside.y + inside.height > (double)picture.height + 1e-6 ||
                        inside.x + inside.width > (double)picture.width + 1e-6))
            abort();
    }
    basin_decoder_close(&decoder);
    if (small) check(basin_picture_decode(&picture, data, size, "fuzz", &error), &error);
    basin_picture_free(&picture);
}

static void repair(uint8_t *data, size_t size) {
    for (size_t at = 8; at <= size && size - at >= 12;) {
        size_t length = (size_t)data[at] << 24 | (size_t)data[at + 1] << 16 |
                        (size_t)data[at + 2] << 8 | data[at + 3];
        if (length > size - at - 12) return;
        uLong sum = crc32(0, data + at + 4, (uInt)length + 4);
        for (int i = 0; i < 4; i++)
            data[at + 8 + length + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
        at += length + 12;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    decode(data, size);
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) return 0;
    if (size) memcpy(copy, data, size);
    repair(copy, size);
    decode(copy, size);
    free(copy);
    return 0;
}

/* JPEG: baseline, progressive, inks, turned; PNG: colour and grey. */
size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    static const jpeg_form form[] = {{.orientation = 6},
                                     {.progressive = 1},
                                     {.inks = 2},
                                     {.subsample = 1, .orientation = 3, .big_endian = 1}};
    uint8_t *bytes;
    size_t size;
    if (index > 5) return 0;
    basin_picture picture = make_picture(24, 19, index == 5 ? 1 : 3, index);
    if (index < 4)
        size = make_jpeg(&bytes, &picture, form[index]);
    else if (basin_png_encode(&bytes, &size, &picture, NULL))
        abort();
    if (size > FUZZ_ROOM) abort();
    memcpy(out, bytes, size);
    free(bytes);
    basin_picture_free(&picture);
    return size;
}
