/* Looking into models of images, and reports on them: the descent step by step, attention, weights
 * decoded into the image plane (figures 2, 4 and those of appendix B), and what a report shows;
 * gathered by report.c, written by document.c. Any vector of the token space can be decoded: layer
 * norm, then the affine decoder. See basin_image_report. */
#ifndef BASIN_TASK_IMAGE_REPORT_REPORT_H
#define BASIN_TASK_IMAGE_REPORT_REPORT_H

#include "tasks/pictures/image.h"

/* ---- attention ---- */

/* What each patch looks at, of a few pictures at a few steps. A row, one query's shares of all
 * keys, is scaled so that its greatest is 255: bytes over their sum are the shares again. */
typedef struct basin_image_attention {
    int64_t pictures;
    int64_t heads, tokens, keys; /* H; N; N, or N + 1 with CLS before the patches */
    int steps, *step;            /* [steps] which ones, rising */
    uint8_t *share;              /* [pictures, steps, H, N, keys] */
} basin_image_attention;

/* Memory for attention of `pictures` at steps 0 .. last in about `bytes`: where that is not enough,
 * fewer pictures, down to two, then fewer steps, the first and the last among them. A model without
 * attention has no heads; where not even one map fits, there are no shares. */
basin_status basin_image_attention_new(basin_image_attention *attention,
                                       const basin_image_settings *settings, int64_t pictures,
                                       int last, size_t bytes, basin_error *error);
void basin_image_attention_free(basin_image_attention *attention);

/* ---- the descent ---- */

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
    basin_image_attention *attention; /* the caller's, filled in on the way; or NULL */
} basin_image_trace;

/* Also fills in attention that was made for these pictures; NULL: none. */
basin_status basin_image_trace_new(basin_image_trace *trace, basin_image_attention *attention,
                                   basin_image_model *model,
                                   const float *patches, /* [count, N, P] */
                                   const uint8_t *mask,  /* [count, N] */
                                   int64_t count, basin_error *error);
void basin_image_trace_free(basin_image_trace *trace);

/* ---- errors ---- */

/* Step by step, means over pictures that were traced. */
typedef struct basin_image_course {
    int steps, parts;
    int64_t pictures;
    double *energy[2], *size[2]; /* [T + 1]; size: root mean square of the force */
    double *mse, *psnr;          /* [T + 1] of the decoded tokens, as scores have them */
    double mean_mse, mean_psnr;  /* of the mean colour of what is shown, on the same pictures */
    int64_t rises;               /* steps of pictures in which the energy rose */
    double *use;                 /* [M] sums of the traces', or NULL */
} basin_image_course;

/* Adds what was traced; the first one allocates. basin_image_course_end makes means of sums. */
basin_status basin_image_course_add(basin_image_course *course, const basin_image_trace *trace,
                                    const float *patches, const uint8_t *mask,
                                    const basin_image_settings *settings, basin_error *error);
void basin_image_course_end(basin_image_course *course);
void basin_image_course_free(basin_image_course *course);

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

/* ---- pictures of patches ---- */

/* Pixels of normalised patches [N, P]; REPLACED patches of `mask` [N] are grey, NULL: none. */
basin_status basin_image_sheet_picture(basin_picture *picture, const float *patches,
                                       const uint8_t *mask, const basin_image_settings *settings,
                                       basin_error *error);
/* From 0 .. 1, cut off there. */
uint8_t basin_image_byte(double value);

/* ---- what a report shows ---- */

/* Chosen pictures, completed. */
typedef struct basin_image_exhibit {
    int64_t count;
    int64_t *index;          /* [count] numbers in the collection */
    double *mse;             /* [count] over all masks scored */
    float *patches, *output; /* [count, N, P] */
    uint8_t *mask;           /* [count, N] that of the first mask seed */
} basin_image_exhibit;

/* One model of the page. */
typedef struct basin_image_entry {
    basin_image_model *model;
    const char *name;
    basin_image_evaluate_result scores;
    basin_image_exhibit exhibit; /* shown ones, then the best, then the worst of the first model */
    basin_image_trace trace;     /* of the first of them */
    basin_image_attention attention; /* of the same */
    basin_image_course course;       /* of those shown */
    basin_image_weights weights;
} basin_image_entry;

enum { BASIN_IMAGE_REPORT_MODELS = 8 };

/* All that the page shows. */
typedef struct basin_image_findings {
    const basin_image_report_options *options;
    basin_image_set set; /* the pictures scored */
    basin_image_entry entry[BASIN_IMAGE_REPORT_MODELS];
    int entries;
    int64_t shown, extremes, traced; /* as many as there are */
} basin_image_findings;

/* The document, as a page or bare; see view/document.h. */
basin_status basin_image_document_write(const char *path, const basin_image_findings *findings,
                                        basin_error *error);

#endif
