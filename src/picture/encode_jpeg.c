/* JPEG into memory, by libjpeg; see encode_jpeg.h. The bytes are gathered here: libjpeg's own
 * memory destination does not tell where they are until it has ended well. */
#include "picture/encode_jpeg.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jerror.h>
#include <jpeglib.h>

#include "base/memory.h"

enum { ROOM = 16384 };

/* On the heap, where a longjmp leaves it alone. */
typedef struct packer {
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr destination;
    jmp_buf escape;
    char text[JMSG_LENGTH_MAX];
    bool no_memory;
    uint8_t *bytes;
    size_t size, capacity;
} packer;

static void on_error(j_common_ptr info) {
    packer *p = info->client_data;
    p->no_memory = info->err->msg_code == JERR_OUT_OF_MEMORY;
    info->err->format_message(info, p->text);
    longjmp(p->escape, 1);
}

static void on_message(j_common_ptr info) { (void)info; }

/* Room behind the bytes that are there. */
static void more_room(j_compress_ptr info) {
    packer *p = info->client_data;
    if (!basin_array_reserve((void **)&p->bytes, &p->capacity, p->size + ROOM, 1))
        ERREXIT1(info, JERR_OUT_OF_MEMORY, 0);
    p->destination.next_output_byte = p->bytes + p->size;
    p->destination.free_in_buffer = p->capacity - p->size;
}

/* libjpeg asks when the room is full to the last byte. */
static boolean on_full(j_compress_ptr info) {
    packer *p = info->client_data;
    p->size = p->capacity;
    more_room(info);
    return TRUE;
}

static void on_end(j_compress_ptr info) {
    packer *p = info->client_data;
    p->size = p->capacity - p->destination.free_in_buffer;
}

static void write_rows(struct jpeg_compress_struct *info, const basin_picture *picture) {
    size_t row = (size_t)picture->width * (size_t)picture->channels;
    jpeg_start_compress(info, TRUE);
    while (info->next_scanline < info->image_height) {
        JSAMPROW line = picture->pixel + info->next_scanline * row;
        jpeg_write_scanlines(info, &line, 1);
    }
    jpeg_finish_compress(info);
}

static basin_status pack(packer *p, const basin_picture *picture, int quality, bool full_colour,
                         basin_error *error) {
    struct jpeg_compress_struct *info = &p->info;
    if (setjmp(p->escape))
        return basin_fail(error, p->no_memory ? BASIN_NO_MEMORY : BASIN_BAD_VALUE,
                          "a picture of %lld x %lld as JPEG: %s", (long long)picture->height,
                          (long long)picture->width, p->text);
    jpeg_create_compress(info);
    info->dest = &p->destination;
    info->image_width = (JDIMENSION)picture->width;
    info->image_height = (JDIMENSION)picture->height;
    info->input_components = picture->channels;
    info->in_color_space = picture->channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(info);
    jpeg_set_quality(info, quality, TRUE);
    info->optimize_coding = TRUE;
    for (int c = 0; full_colour && c < info->num_components; c++)
        info->comp_info[c].h_samp_factor = info->comp_info[c].v_samp_factor = 1;
    write_rows(info, picture);
    return BASIN_OK;
}

basin_status basin_jpeg_encode(uint8_t **bytes, size_t *size, const basin_picture *picture,
                               int quality, bool full_colour, basin_error *error) {
    packer *p = calloc(1, sizeof *p);
    *bytes = NULL;
    *size = 0;
    if (!p) return basin_fail(error, BASIN_NO_MEMORY, "out of memory to pack a picture as JPEG");
    p->info.err = jpeg_std_error(&p->errors);
    p->errors.error_exit = on_error;
    p->errors.output_message = on_message;
    p->info.client_data = p;
    p->destination.init_destination = more_room;
    p->destination.empty_output_buffer = on_full;
    p->destination.term_destination = on_end;
    basin_status status = pack(p, picture, quality, full_colour, error);
    jpeg_destroy_compress(&p->info);
    if (!status)
        *bytes = p->bytes, *size = p->size;
    else
        free(p->bytes);
    free(p);
    return status;
}
