/* The two halves of an augmentation: what is drawn for a picture of a known size, and doing it. */
#ifndef BASIN_PICTURE_AUGMENT_H
#define BASIN_PICTURE_AUGMENT_H

#include "picture/resize.h"

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
/* By how much a JPEG may be reduced while it is decoded. Where this is 1 for every box, a picture
 * kept decoded gives the same values. */
int basin_augment_reduction(const basin_augment *augment, const basin_resize *resize);

/* Decodes what was drawn, or all of the picture, and turns the box into pixels of `picture`. */
basin_status basin_augment_decode(basin_picture *picture, basin_drawn *drawn,
                                  const basin_augment *augment, basin_decoder *decoder, bool all,
                                  basin_error *error);

/* Colour jitter in place, on values 0 .. 255. */
void basin_jitter(float *plane /* [channels, area] */, int channels, size_t area,
                  const basin_drawn *drawn);

#endif
