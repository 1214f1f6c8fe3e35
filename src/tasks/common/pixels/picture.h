/* Decoding a part of a picture: the header first, so that a window can be chosen by the picture's
 * size, then only the pixels of that window, reduced by 2, 4 or 8 where a JPEG can do so while it
 * decodes. A window's pixels equal those of the whole picture decoded. */
#ifndef BASIN_PICTURE_PICTURE_H
#define BASIN_PICTURE_PICTURE_H

/* What nearly every file needs of the C library. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "basin/tasks/picture.h"

/* ---- From pictures to the numbers a model sees. Training (torchvision's definitions): a random
 * part with `scale` of the area and a log-uniform aspect `ratio`, ten tries, then the largest
 * central part; resized bilinearly with antialiasing; flipped; brightness, contrast and saturation
 * each by a factor of 1 - jitter .. 1 + jitter, in random order. Evaluation: the short side resized
 * to `size * enlarge`, the centre cut out; or the whole resized. Draws depend only on (seed,
 * epoch, index) ---- */

/* The paper's training transforms, and evaluation, at this size; mean 0 and deviation 1. */
basin_augment basin_augment_training(int64_t size, int channels, int64_t patch);
basin_augment basin_augment_evaluation(int64_t size, int channels, int64_t patch);

/* The number of values of one picture: channels * size * size. */
int64_t basin_augment_values(const basin_augment *augment);
basin_status basin_augment_check(const basin_augment *augment, basin_error *error);

/* Memory that is reused from picture to picture; one per thread. Zero it before the first use. */
typedef struct basin_scratch {
    float *memory, *plane;
    size_t capacity, plane_capacity;
    basin_picture picture;
} basin_scratch;
void basin_scratch_free(basin_scratch *scratch);

/* ---- decoding ---- */

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
    int orientation;   /* EXIF, 1 .. 8 */
    bool png, webp;    /* which it is, decoded whole; neither: a JPEG */
    bool transparency; /* read this instead of colours, into one channel; of PNG and WebP */
    double aside;      /* bytes of memory that decoding takes beside the picture */
    size_t limit;      /* bytes that it may take in all; 0: an eighth of basin_memory_share */
    void *state;       /* the format's own, on the heap */
} basin_decoder;

/* The name of a format of pictures that is not read, by its first bytes; or NULL. */
const char *basin_picture_foreign(const void *bytes, size_t size);
basin_status basin_decoder_open(basin_decoder *decoder, const void *bytes, size_t size,
                                const char *name, basin_error *error);
/* Decodes what `box` (pixels of the upright picture) needs; `inside`: the box in pixels of
 * `picture`. A JPEG is reduced by 1, 2, 4 or 8; others need 1. Once per decoder. */
basin_status basin_decoder_read(basin_picture *picture, basin_box *inside, basin_decoder *decoder,
                                const basin_box *box, int reduction, basin_error *error);
void basin_decoder_close(basin_decoder *decoder);

/* The largest reduction that leaves a box at least so large: 1, 2, 4 or 8. */
int basin_decoder_reduction(const basin_box *box, double min_height, double min_width);

/* What a format provides, in stored (not upright) coordinates. */
typedef struct basin_stored {
    int64_t y, x, height, width; /* of the reduced picture */
} basin_stored;

/* Where a file of `rows` x `columns` and that orientation keeps the upright pixel (y, x). */
void basin_stored_place(int64_t *row, int64_t *column, int orientation, int64_t rows,
                        int64_t columns, int64_t y, int64_t x);

/* The orientation that a TIFF block of EXIF data names; 1 where it names none that is valid. */
int basin_exif_orientation(const uint8_t *tiff, size_t size);

/* ---- Bilinear resizing with antialiasing, of the requested outputs only. Output i of n
 * over a stretch [b, b + l) of the source has its centre at c = b + (i + 1/2) l / n. The filter is
 * a triangle of half width s = max(1, l / n): pixel j, centre j + 1/2, weighs max(0, 1 - |j + 1/2 -
 * c| / s), and the weights of an output are divided by their sum. Pixels outside of the stretch do
 * not count ---- */

/* The box becomes height x width, of which out_height x out_width from (y, x) are computed. */
typedef struct basin_resize {
    basin_box box;
    int64_t height, width;
    int64_t y, x, out_height, out_width;
    bool flip; /* columns come out in the other order */
} basin_resize;

/* Values 0 .. 255, a plane per channel. `picture` holds at least what basin_resize_needs asked. */
basin_status basin_resize_run(float *plane /* [channels, out_height, out_width] */,
                              const basin_resize *resize, const basin_picture *picture,
                              basin_scratch *scratch, basin_error *error);

/* basin_picture_scale of a part of the picture. */
basin_status basin_picture_scale_box(basin_picture *to, const basin_picture *from,
                                     const basin_box *box, int64_t height, int64_t width,
                                     basin_error *error);

/* ---- Square pictures and the normalised patches that models see of them. values [N, P]: patches
 * by rows, P in the order channel, row, column; (value - mean) / deviation of values 0 .. 1 ---- */

typedef struct basin_patching {
    int64_t size, patch, channels; /* of the picture, of a patch (`size`: one patch); 1 or 3 */
    double mean[3], deviation[3];
} basin_patching;

/* Both ways between values and bytes [size, size, channels]; values beyond the range are cut. */
void basin_patches_to_pixels(uint8_t *pixel, const float *values, const basin_patching *patching);
void basin_patches_from_pixels(float *values, const uint8_t *pixel, const basin_patching *patching);

/* Planes [channels, size, size] of numbers 0 .. 1 from values, cut as above, not rounded. */
void basin_patches_to_planes(float *plane, const float *values, const basin_patching *patching);

/* ---- The halves of an augmentation: what is drawn for a picture's size, and doing it ---- */

typedef struct basin_drawn {
    basin_resize resize; /* the box is in pixels of the whole picture */
    int order[3];        /* of brightness 0, contrast 1, saturation 2 */
    float factor[3];     /* 1: left alone */
} basin_drawn;

void basin_augment_draw(basin_drawn *drawn, const basin_augment *augment, int64_t height,
                        int64_t width, uint64_t seed, int64_t epoch, int64_t index);
/* `drawn->resize.box` in pixels of `picture`. */
basin_status basin_augment_run(float *values, const basin_augment *augment,
                               const basin_drawn *drawn, const basin_picture *picture,
                               basin_scratch *scratch, basin_error *error);
/* By how much a JPEG may be reduced while decoded; 1 for every box: kept ones are equal. */
int basin_augment_reduction(const basin_augment *augment, const basin_resize *resize);

/* Decodes what was drawn, or all of the picture, and turns the box into pixels of `picture`. */
basin_status basin_augment_decode(basin_picture *picture, basin_drawn *drawn,
                                  const basin_augment *augment, basin_decoder *decoder, bool all,
                                  basin_error *error);

/* Colour jitter in place, on values 0 .. 255. */
void basin_jitter(float *plane /* [channels, area] */, int channels, size_t area,
                  const basin_drawn *drawn);

/* ---- Pictures as JPEG, for pages: a tenth of a PNG's size for photographs ---- */

/* The caller frees the bytes; `quality` 1 to 100; without full_colour half the resolution. */
basin_status basin_jpeg_encode(uint8_t **bytes, size_t *size, const basin_picture *picture,
                               int quality, bool full_colour, basin_error *error);

/* ---- more of pictures ---- */

/* PNG in memory, which the caller frees. */
basin_status basin_png_encode(uint8_t **bytes, size_t *size, const basin_picture *picture,
                              basin_error *error);
/* How far each pixel of a file is from opaque, 0 to 255, in one channel; no pixels of a JPEG. */
basin_status basin_picture_transparency(basin_picture *picture, const void *bytes, size_t size,
                                        const char *name, basin_error *error);
/* `to` must be zeroed or hold a picture. */
basin_status basin_picture_copy(basin_picture *to, const basin_picture *from, basin_error *error);

#endif
