/* Looking into a model of images: its descent step by step and its weights, decoded into the image
 * plane (figures 2, 4 and those of appendix B). Any vector of the token space can be decoded: layer
 * norm, then the affine decoder. */
#ifndef BASIN_TASK_IMAGE_REPORT_LOOK_H
#define BASIN_TASK_IMAGE_REPORT_LOOK_H

#include "task/image/image.h"

/* A few pictures on their way down. Of a ViT, its layers take the place of steps, and there are no
 * parts. Forces are decoded by themselves: what is added to the tokens, not how much of it. */
typedef struct basin_image_trace {
    int steps, parts;    /* T; attention and Hopfield network, as the model has them */
    const char *part[2]; /* their names */
    int64_t count;       /* pictures */
    float *token;        /* [T + 1, count, N, P] before step 0 .. at the end */
    float *force[2];     /* [T + 1, count, N, P] */
    double *energy[2];   /* [T + 1] mean over pictures */
    double *size[2];     /* [T + 1] root mean square of the force on replaced tokens */
    double *use;         /* [M] what each memory has of the Hopfield energy at the end */
} basin_image_trace;

basin_status basin_image_trace_new(basin_image_trace *trace, basin_image_model *model,
                                   const float *patches, /* [count, N, P] */
                                   const uint8_t *mask,  /* [count, N] */
                                   int64_t count, basin_error *error);
void basin_image_trace_free(basin_image_trace *trace);

/* Weights as patches; those that the model lacks are NULL. */
typedef struct basin_image_weights {
    float *memory;      /* [M, P] */
    float *key, *query; /* [H, Y, P] */
    double *cosine;     /* [N, N] of positions, CLS left out */
} basin_image_weights;

basin_status basin_image_weights_new(basin_image_weights *weights, basin_image_model *model,
                                     basin_error *error);
void basin_image_weights_free(basin_image_weights *weights);

#endif
