/* Pictures: 8-bit pixels in memory, read from JPEG, PNG and WebP, written as PNG.
 *
 * What a file holds becomes grey or RGB, upright:
 *   16-bit samples are scaled to 8 with rounding, palettes and small depths are expanded;
 *   transparency is composited on white, on the values as they are stored;
 *   CMYK and YCCK (also Adobe's inverted ones) become RGB by the plain product of inks;
 *   the EXIF orientation, 1 to 8, is applied, in JPEG, PNG's eXIf and WebP's EXIF. */
#ifndef BASIN_TASKS_PICTURE_H
#define BASIN_TASKS_PICTURE_H

#include <stddef.h>
#include <stdint.h>

#include "basin/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct basin_picture {
    int64_t height, width;
    int channels;    /* 1 grey, 3 RGB */
    uint8_t *pixel;  /* [height, width, channels], owned */
    size_t capacity; /* bytes allocated: filling a picture again reuses its memory */
} basin_picture;

/* Pictures with more pixels are refused: no photograph is that large, but a malicious file may
 * claim it. */
#define BASIN_MAX_PICTURE_PIXELS ((int64_t)1 << 29)

/* Gives `picture` these sizes; it must be zeroed or hold a picture, whose memory is reused. The
 * pixels are undefined. */
BASIN_API basin_status basin_picture_resize_memory(basin_picture *picture, int64_t height,
                                                   int64_t width, int channels, basin_error *error);
BASIN_API void basin_picture_free(basin_picture *picture);

/* A whole picture from the bytes of a JPEG, PNG or WebP file, distinguished by content. `name` is
 * for messages. `picture` must be zeroed or hold a picture. A file that ends early, or whose data
 * are damaged, is an error. */
BASIN_API basin_status basin_picture_decode(basin_picture *picture, const void *bytes, size_t size,
                                            const char *name, basin_error *error);
BASIN_API basin_status basin_picture_read(basin_picture *picture, const char *path,
                                          basin_error *error);

/* Changes the channels in place: grey is 0.299 R + 0.587 G + 0.114 B, rounded. */
BASIN_API basin_status basin_picture_set_channels(basin_picture *picture, int channels,
                                                  basin_error *error);

/* Writes a PNG file: to a temporary file, then renamed. */
BASIN_API basin_status basin_picture_write_png(const char *path, const basin_picture *picture,
                                               basin_error *error);

/* The PNG file `original` with some pixels replaced, by those of `picture` where `where` is not
 * black; both are upright and of its size. The others stay to their last bit, 16-bit samples and
 * transparency included, and so do profile and orientation. What is replaced becomes opaque.
 * BASIN_UNSUPPORTED where `original` is not a PNG file. */
BASIN_API basin_status basin_picture_patch_png(const char *path, const char *original,
                                               const basin_picture *picture,
                                               const basin_picture *where, basin_error *error);

/* A picture of another size, bilinear with antialiasing (a triangle filter as wide as the
 * reduction): the definition of Pillow and torchvision. */
BASIN_API basin_status basin_picture_scale(basin_picture *to, const basin_picture *from,
                                           int64_t height, int64_t width, basin_error *error);
/* A picture from values 0 .. 1; `picture` must be zeroed or hold a picture. */
BASIN_API basin_status basin_picture_from_floats(basin_picture *picture,
                                                 const float *value, /* [height, width, channels] */
                                                 int64_t height, int64_t width, int channels,
                                                 basin_error *error);

/* ---- from pictures to the numbers that a model sees ----
 *
 * In training, by torchvision's definitions: a random part of the picture, resized, mirrored, with
 * brightness, contrast and saturation each changed by a factor of 1 - x .. 1 + x. In evaluation
 * the centre. Values 0 .. 1 are normalised and come as patches. */

typedef enum basin_picture_fit {
    BASIN_PICTURE_FIT_CROP,    /* short side to size * enlarge, then the centre */
    BASIN_PICTURE_FIT_STRETCH, /* the whole picture, aspect lost */
    BASIN_PICTURE_FIT_RANDOM,  /* a random part: training */
} basin_picture_fit;

typedef struct basin_augment {
    int64_t size;  /* of the square that comes out */
    int channels;  /* 1 or 3; pictures are converted */
    int64_t patch; /* side of a patch: values come as [N, P], P = c h w; 0: as [c, size, size] */
    basin_picture_fit fit;
    double enlarge;                          /* FIT_CROP: 256 / 224, or 1 */
    double scale_low, scale_high;            /* FIT_RANDOM: share of the area */
    double ratio_low, ratio_high;            /* width over height */
    double flip;                             /* how often left and right are exchanged */
    double brightness, contrast, saturation; /* 0: left alone; saturation is for colour only */
    float mean[3], deviation[3];             /* of values 0 .. 1; (value - mean) / deviation */
} basin_augment;

#ifdef __cplusplus
}
#endif
#endif
