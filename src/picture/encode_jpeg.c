/* JPEG into memory, by libjpeg; see jpeg.h. */
#include "picture/encode_jpeg.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

typedef struct guard {
    struct jpeg_error_mgr manager; /* libjpeg knows this part alone */
    jmp_buf escape;
    char text[JMSG_LENGTH_MAX];
} guard;

static void on_error(j_common_ptr info) {
    guard *g = (guard *)info->err;
    info->err->format_message(info, g->text);
    longjmp(g->escape, 1);
}

static void on_message(j_common_ptr info) { (void)info; }

static void write_rows(struct jpeg_compress_struct *info, const basin_picture *picture) {
    size_t row = (size_t)picture->width * (size_t)picture->channels;
    jpeg_start_compress(info, TRUE);
    while (info->next_scanline < info->image_height) {
        JSAMPROW line = picture->pixel + info->next_scanline * row;
        jpeg_write_scanlines(info, &line, 1);
    }
    jpeg_finish_compress(info);
}

basin_status basin_jpeg_encode(uint8_t **bytes, size_t *size, const basin_picture *picture,
                               int quality, bool full_colour, basin_error *error) {
    struct jpeg_compress_struct info = {0};
    guard g;
    unsigned char *volatile out = NULL;
    unsigned long length = 0;
    info.err = jpeg_std_error(&g.manager);
    g.manager.error_exit = on_error;
    g.manager.output_message = on_message;
    if (setjmp(g.escape)) {
        jpeg_destroy_compress(&info);
        free(out);
        return basin_fail(error, BASIN_BAD_VALUE, "a picture of %lld x %lld as JPEG: %s",
                          (long long)picture->height, (long long)picture->width, g.text);
    }
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, (unsigned char **)&out, &length);
    info.image_width = (JDIMENSION)picture->width;
    info.image_height = (JDIMENSION)picture->height;
    info.input_components = picture->channels;
    info.in_color_space = picture->channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, quality, TRUE);
    info.optimize_coding = TRUE;
    for (int c = 0; full_colour && c < info.num_components; c++)
        info.comp_info[c].h_samp_factor = info.comp_info[c].v_samp_factor = 1;
    write_rows(&info, picture);
    jpeg_destroy_compress(&info);
    *bytes = out;
    *size = length;
    return BASIN_OK;
}
