/* Decoding a part of a picture: the header first, so that a window can be chosen by the picture's
 * size, then the pixels of that window alone, reduced by 2, 4 or 8 where a JPEG can do so while it
 * decodes. A window's pixels equal those of the whole picture decoded. */
#ifndef BASIN_PICTURE_DECODER_H
#define BASIN_PICTURE_DECODER_H

#include <stdbool.h>

#include "basin/tasks/picture.h"

/* A rectangle of a picture; pixel (i, j) covers i .. i + 1 by j .. j + 1. */
typedef struct basin_box {
    double y, x, height, width;
} basin_box;

typedef struct basin_decoder {
    const uint8_t *bytes;
    size_t size;
    const char *name;
    int64_t height, width; /* upright */
    int channels;
    int orientation; /* EXIF, 1 .. 8 */
    bool png, webp;  /* which it is, decoded whole; neither: a JPEG */
    double aside;    /* bytes of memory that decoding takes beside the picture */
    size_t limit;    /* bytes that it may take in all; 0: an eighth of basin_memory_share */
    void *state;     /* the format's own, on the heap */
} basin_decoder;

basin_status basin_decoder_open(basin_decoder *decoder, const void *bytes, size_t size,
                                const char *name, basin_error *error);
/* Decodes what is needed for `box` (in pixels of the whole, upright picture). `picture` gets the
 * pixels and `inside` the box in pixels of `picture`. A JPEG is reduced by 1, 2, 4 or 8 as told;
 * others want 1. Once per open decoder. */
basin_status basin_decoder_read(basin_picture *picture, basin_box *inside, basin_decoder *decoder,
                                const basin_box *box, int reduction, basin_error *error);
void basin_decoder_close(basin_decoder *decoder);

/* The largest reduction that leaves a box at least so large: 1, 2, 4 or 8. */
int basin_decoder_reduction(const basin_box *box, double least_height, double least_width);

/* What a format provides, in stored (not upright) coordinates. */
typedef struct basin_stored {
    int64_t y, x, height, width; /* of the reduced picture */
} basin_stored;

basin_status basin_jpeg_open(basin_decoder *decoder, basin_error *error);
/* Decodes at least the window; on return `window` is what `picture` holds. */
basin_status basin_jpeg_read(basin_picture *picture, basin_stored *window, basin_decoder *decoder,
                             int reduction, basin_error *error);
void basin_jpeg_close(basin_decoder *decoder);

basin_status basin_png_open(basin_decoder *decoder, basin_error *error);
basin_status basin_png_read(basin_picture *picture, basin_decoder *decoder, basin_error *error);
void basin_png_close(basin_decoder *decoder);

bool basin_webp_is(const void *bytes, size_t size);
basin_status basin_webp_open(basin_decoder *decoder, basin_error *error);
basin_status basin_webp_read(basin_picture *picture, basin_decoder *decoder, basin_error *error);
void basin_webp_close(basin_decoder *decoder);

/* Drops the last of `channels` + 1, transparency: pixels as they look on white. */
void basin_pixels_on_white(uint8_t *to, const uint8_t *from, size_t count, size_t channels);
/* Where a file of `rows` x `columns` and that orientation keeps the upright pixel (y, x). */
void basin_stored_place(int64_t *row, int64_t *column, int orientation, int64_t rows,
                        int64_t columns, int64_t y, int64_t x);

/* The orientation that a TIFF block of EXIF data names; 1 where it names none that is valid. */
int basin_exif_orientation(const uint8_t *tiff, size_t size);

/* Refuses sizes that are 0, too large, or more than `size` bytes of the format could hold. */
basin_status basin_decoder_check(const basin_decoder *decoder, double pixels_per_byte,
                                 basin_error *error);

#endif
