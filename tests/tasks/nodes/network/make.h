/* Pictures and files for the tests of src/data, made by formula. */
#ifndef TESTS_DATA_MAKE_H
#define TESTS_DATA_MAKE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "basin/tasks/picture.h"

/* A smooth picture with a little of everything; the same numbers for the same sizes and `kind`. */
static inline basin_picture make_picture(int64_t height, int64_t width, int channels, int kind) {
    basin_picture picture = {0};
    if (basin_picture_resize_memory(&picture, height, width, channels, NULL)) abort();
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            for (int c = 0; c < channels; c++) {
                int64_t v = 40 + 97 * y / height + 80 * x / width * (c + 1) / 3 + 11 * kind;
                if ((x / 7 + y / 5 + c) % 3 == 0) v += 30;
                picture.pixel[(y * width + x) * channels + c] = (uint8_t)(v % 256);
            }
    return picture;
}

/* What make_jpeg writes besides the pixels. */
typedef struct jpeg_form {
    int quality;     /* 0: 90 */
    int orientation; /* EXIF, 0: none */
    int big_endian;  /* of the EXIF block */
    int progressive;
    int subsample; /* 1: no subsampling of colours; 0: 2 x 2 */
    int inks; /* 1: CMYK, 2: YCCK, as Adobe writes them: inverted; 3: CMYK without its marker */
} jpeg_form;

static inline void make_exif(uint8_t block[32], int orientation, int big) {
    static const uint8_t little[] = "Exif\0\0II*\0\10\0\0\0\1\0\22\1\3\0\1\0\0\0";
    static const uint8_t large[] = "Exif\0\0MM\0*\0\0\0\10\0\1\1\22\0\3\0\0\0\1";
    memset(block, 0, 32);
    memcpy(block, big ? large : little, 24);
    block[big ? 25 : 24] = (uint8_t)orientation;
}

/* A JPEG file in memory, which the caller frees. For inks, RGB becomes C = 255 - R, ... and K = 0.
 */
static inline size_t make_jpeg(uint8_t **out, const basin_picture *picture, jpeg_form form) {
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long size = 0;
    uint8_t exif[32];
    int channels = form.inks ? 4 : picture->channels;
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &bytes, &size);
    info.image_width = (JDIMENSION)picture->width;
    info.image_height = (JDIMENSION)picture->height;
    info.input_components = channels;
    info.in_color_space = form.inks ? JCS_CMYK : channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(&info);
    if (form.inks) jpeg_set_colorspace(&info, form.inks == 2 ? JCS_YCCK : JCS_CMYK);
    if (form.inks == 3) info.write_Adobe_marker = FALSE;
    jpeg_set_quality(&info, form.quality ? form.quality : 90, TRUE);
    if (form.progressive) jpeg_simple_progression(&info);
    if (form.subsample && channels == 3)
        info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = 1;
    jpeg_start_compress(&info, TRUE);
    make_exif(exif, form.orientation, form.big_endian);
    if (form.orientation) jpeg_write_marker(&info, JPEG_APP0 + 1, exif, sizeof exif);
    uint8_t *row = malloc((size_t)(picture->width * channels));
    for (int64_t y = 0; y < picture->height; y++) {
        const uint8_t *from = picture->pixel + y * picture->width * picture->channels;
        if (!form.inks) memcpy(row, from, (size_t)(picture->width * channels));
        for (int64_t x = 0; form.inks && x < picture->width; x++)
            for (int c = 0; c < 4; c++) {
                int light = c < 3 ? from[3 * x + c] : 255;
                row[4 * x + c] = (uint8_t)(form.inks == 3 ? 255 - light : light);
            }
        JSAMPROW rows[1] = {row};
        jpeg_write_scanlines(&info, rows, 1);
    }
    free(row);
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    *out = bytes;
    return size;
}

/* The largest difference of two pictures; 999 where their sizes differ. */
static inline int picture_difference(const basin_picture *a, const basin_picture *b) {
    int most = 0;
    if (a->height != b->height || a->width != b->width || a->channels != b->channels) return 999;
    for (int64_t i = 0; i < a->height * a->width * a->channels; i++) {
        int d = abs(a->pixel[i] - b->pixel[i]);
        if (d > most) most = d;
    }
    return most;
}

#endif
