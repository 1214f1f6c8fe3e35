/* From pictures to the numbers a model sees: crop, resize, flip, colour jitter, normalisation.
 *
 * Training (the paper's table, torchvision's definitions): a random part of the picture with
 * `scale` of its area and a log-uniform aspect `ratio`, ten tries, then the largest central part
 * within the ratios; resized bilinearly with antialiasing; flipped; brightness, contrast and
 * saturation each by a factor of 1 - jitter .. 1 + jitter, in random order.
 * Evaluation: the short side resized to `size * enlarge` (one of `size` stays as it is), the centre
 * cut out; or the whole resized.
 *
 * What is drawn depends on (seed, epoch, index of the picture) alone. */
#ifndef BASIN_TASKS_AUGMENT_H
#define BASIN_TASKS_AUGMENT_H

#include <stdbool.h>

#include "basin/tasks/picture.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum basin_picture_fit {
    BASIN_FIT_CROP,    /* short side to size * enlarge, then the centre */
    BASIN_FIT_STRETCH, /* the whole picture, aspect lost */
    BASIN_FIT_RANDOM,  /* a random part: training */
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

/* The paper's training transforms, and evaluation, at this size; mean 0 and deviation 1. */
BASIN_API basin_augment basin_augment_training(int64_t size, int channels, int64_t patch);
BASIN_API basin_augment basin_augment_evaluation(int64_t size, int channels, int64_t patch);

/* How many values a picture becomes: channels * size * size. */
BASIN_API int64_t basin_augment_values(const basin_augment *augment);
BASIN_API basin_status basin_augment_check(const basin_augment *augment, basin_error *error);

/* Memory that is reused from picture to picture; one a thread. Zero it before the first use. */
typedef struct basin_scratch {
    float *memory, *plane;
    size_t capacity, plane_capacity;
    basin_picture picture, spare;
} basin_scratch;
BASIN_API void basin_scratch_free(basin_scratch *scratch);

/* One picture; `values` holds basin_augment_values of them. */
BASIN_API basin_status basin_augment_apply(float *values, const basin_augment *augment,
                                           const basin_picture *picture, uint64_t seed,
                                           int64_t epoch, int64_t index, basin_scratch *scratch,
                                           basin_error *error);

/* Back from values to a picture: undoes the normalisation and the patches, rounds, and clips. */
BASIN_API basin_status basin_augment_picture(basin_picture *picture, const basin_augment *augment,
                                             const float *values, basin_error *error);

/* A picture of another size, bilinear with antialiasing (a triangle filter as wide as the
 * reduction): the definition of Pillow and torchvision. */
BASIN_API basin_status basin_picture_scale(basin_picture *to, const basin_picture *from,
                                           int64_t height, int64_t width, basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
