/* Looking into a model of images, and a report on it: the descent step by step, attention, weights
 * decoded into the image plane (figures 2, 4 and those of appendix B); written by
 * report.c. Any vector of the token space can be decoded: layer norm, then the affine
 * decoder. See basin_image_report. */
#ifndef BASIN_TASK_IMAGE_REPORT_REPORT_H
#define BASIN_TASK_IMAGE_REPORT_REPORT_H

#include "tasks/pictures/image.h"

/* ---- the descent ---- */

/* What each patch looks at, of the first pictures at a few steps. A row, one query's shares of all
 * keys, is scaled so that its greatest is 255: bytes over their sum are the shares again. */
typedef struct basin_image_attention {
    int64_t pictures;
    int64_t heads, tokens, keys; /* H, 0 without attention; N; N, or N + 1 with CLS first */
    int steps, *step;            /* [steps] which ones, rising */
    uint8_t *share;              /* [pictures, steps, H, N, keys] */
} basin_image_attention;

enum { BASIN_IMAGE_MEMORY, BASIN_IMAGE_KEY, BASIN_IMAGE_QUERY, BASIN_IMAGE_WEIGHTS };

/* The descent of a few pictures. For a ViT, layers take the place of steps, and there are no parts.
 * Forces are decoded by themselves: their direction, not their length. */
typedef struct basin_image_trace {
    int steps, parts;    /* T; attention and Hopfield network, as the model has them */
    const char *part[2]; /* their names */
    int64_t count;       /* pictures */
    float *token;        /* [T + 1, count, N, P] before step 0 .. at the end */
    float *force[2];     /* [T + 1, count, N, P] */
    double *energy[2];   /* [T + 1, count] */
    double *square[2];   /* [T + 1, count] mean square of the force on replaced tokens */
    double *use;         /* [M] what each memory has of the Hopfield energy at the end */
    double gamma;        /* gain of the block's layer norm; NaN of a ViT */
    float *weight[BASIN_IMAGE_WEIGHTS]; /* [M, P], [H, Y, P] decoded; NULL: the model has none */
    basin_image_attention attention;
} basin_image_trace;

/* Attention takes about `bytes`: of two pictures at as many steps as that holds, evenly spread with
 * the first and the last among them; 0: none. */
basin_status basin_image_trace_new(basin_image_trace *trace, basin_image_model *model,
                                   const float *patches, /* [count, N, P] */
                                   const uint8_t *mask,  /* [count, N] */
                                   int64_t count, size_t bytes, basin_error *error);
void basin_image_trace_free(basin_image_trace *trace);
/* Steps of pictures in which the energy rose. */
int64_t basin_image_trace_rises(const basin_image_trace *trace);

/* ---- pictures of patches ---- */

/* Pixels of normalised patches [N, P]; REPLACED patches of `mask` [N] are grey, NULL: none. */
basin_status basin_image_sheet_picture(basin_picture *picture, const float *patches,
                                       const uint8_t *mask, const basin_image_settings *settings,
                                       basin_error *error);
/* From 0 .. 1, cut off there. */
uint8_t basin_image_byte(double value);

#endif
