/* Looking into a model of images: its descent step by step, attention, its weights, decoded into
 * the image plane (figures 2, 4 and those of appendix B). Any vector of the token space can be
 * decoded: layer norm, then the affine decoder. */
#ifndef BASIN_TASK_IMAGE_REPORT_LOOK_H
#define BASIN_TASK_IMAGE_REPORT_LOOK_H

#include "task/image/image.h"

/* ---- attention ---- */

/* What each patch looks at, of a few pictures at a few steps. A row, one query's shares of all
 * keys, is scaled so that its greatest is 255: bytes over their sum are the shares again. */
typedef struct basin_image_attention {
    int64_t pictures;
    int64_t heads, tokens, keys; /* H; N; N, or N + 1 with CLS before the patches */
    int steps, *step;            /* [steps] which ones, rising */
    uint8_t *share;              /* [pictures, steps, H, N, keys] */
} basin_image_attention;

/* Room for attention of `pictures` at steps 0 .. last in about `bytes`: where that is not enough,
 * fewer pictures, down to two, then fewer steps, the first and the last among them. A model without
 * attention has no heads; where not even one map fits, there are no shares. */
basin_status basin_image_attention_new(basin_image_attention *attention,
                                       const basin_image_settings *settings, int64_t pictures,
                                       int last, size_t bytes, basin_error *error);
void basin_image_attention_free(basin_image_attention *attention);
/* Whether that step is kept; then fills it in from the queries, times beta, and keys of `count`
 * pictures. */
bool basin_image_attention_wants(const basin_image_attention *attention, int step);
basin_status basin_image_attention_set(basin_image_attention *attention, int step,
                                       const float *query, /* [count, keys, H, Y] */
                                       const float *key,   /* [count, keys, H, Y] */
                                       int64_t head_dim, bool exclude_self, basin_error *error);

/* ---- the descent ---- */

/* A few pictures on their way down. Of a ViT, its layers take the place of steps, and there are no
 * parts. Forces are decoded by themselves: what is added to the tokens, not how much of it. */
typedef struct basin_image_trace {
    int steps, parts;    /* T; attention and Hopfield network, as the model has them */
    const char *part[2]; /* their names */
    int64_t count;       /* pictures */
    float *token;        /* [T + 1, count, N, P] before step 0 .. at the end */
    float *force[2];     /* [T + 1, count, N, P] */
    double *energy[2];   /* [T + 1, count] */
    double *square[2];   /* [T + 1, count] mean square of the force on replaced tokens */
    double *use;         /* [M] what each memory has of the Hopfield energy at the end */
    basin_image_attention *attention; /* the caller's, filled in on the way; or NULL */
} basin_image_trace;

basin_status basin_image_trace_new(basin_image_trace *trace, basin_image_model *model,
                                   const float *patches, /* [count, N, P] */
                                   const uint8_t *mask,  /* [count, N] */
                                   int64_t count, basin_error *error);
/* The same, and fills in attention that was made for these pictures. */
basin_status basin_image_trace_attention(basin_image_trace *trace, basin_image_attention *attention,
                                         basin_image_model *model, const float *patches,
                                         const uint8_t *mask, int64_t count, basin_error *error);
void basin_image_trace_free(basin_image_trace *trace);

/* ---- errors ---- */

/* What the mean colour in place of every occluded patch would score. */
typedef struct basin_image_baseline {
    double mse, psnr;
} basin_image_baseline;

/* Step by step, means over pictures that were traced. */
typedef struct basin_image_course {
    int steps, parts;
    int64_t pictures;
    double *energy[2], *size[2];   /* [T + 1]; size: root mean square of the force */
    double *mse, *psnr;            /* [T + 1] of the decoded tokens, as scores have them */
    basin_image_baseline baseline; /* on the same pictures */
    int64_t rises;                 /* steps of pictures in which the energy rose */
    double *use;                   /* [M] sums of the traces', or NULL */
} basin_image_course;

/* Adds what was traced; the first one makes room. basin_image_course_end makes means of sums. */
basin_status basin_image_course_add(basin_image_course *course, const basin_image_trace *trace,
                                    const float *patches, const uint8_t *mask,
                                    const basin_image_settings *settings, basin_error *error);
void basin_image_course_end(basin_image_course *course);
void basin_image_course_free(basin_image_course *course);

/* Adds one picture's; `zero` [N, P] is the mean colour as models see it. */
basin_status basin_image_baseline_add(basin_image_baseline *baseline, const float *zero,
                                      const float *truth, const uint8_t *mask,
                                      const basin_image_settings *settings, basin_error *error);
/* PSNR of a whole picture, its shown patches pasted into the output, as scores have it. */
basin_status basin_image_masked_psnr(double *psnr, const float *output, /* [N, P] */
                                     const float *truth,                /* [N, P] */
                                     const uint8_t *mask,               /* [N] */
                                     const basin_image_settings *settings, basin_error *error);
/* `output` where the mask says REPLACED, the truth elsewhere; all [N, P]. */
void basin_image_paste(float *out, const float *output, const float *truth, const uint8_t *mask,
                       int64_t tokens, int64_t values);

/* ---- weights ---- */

/* Weights as patches; those that the model lacks are NULL. */
typedef struct basin_image_weights {
    float *memory;      /* [M, P] */
    float *key, *query; /* [H, Y, P] */
    double *cosine;     /* [N, N] of positions, CLS left out */
    double gamma;       /* gain of the block's layer norm; NaN of a ViT */
} basin_image_weights;

basin_status basin_image_weights_new(basin_image_weights *weights, basin_image_model *model,
                                     basin_error *error);
void basin_image_weights_free(basin_image_weights *weights);

#endif
