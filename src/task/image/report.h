/* A report on a model of images: one page of HTML that needs nothing else. Completed pictures, the
 * descent step by step, energies, memories, keys and queries, positions, the best and the worst,
 * parameters and settings. */
#ifndef BASIN_TASK_IMAGE_REPORT_H
#define BASIN_TASK_IMAGE_REPORT_H

#include <stdio.h>

#include "task/image/eval.h"
#include "task/image/look.h"

typedef struct basin_image_report_spec {
    const char *model, *source;   /* what the page calls the model and the pictures */
    const basin_image_data *data; /* pictures to score and to choose from */
    int masks;                    /* mask seeds to score with */
    int64_t shown;                /* completed pictures on the page */
    int64_t traced;               /* how many of them step by step */
    int64_t extremes;             /* so many best and so many worst ones */
    const char *log;              /* of the training, for its curve; NULL: none */
    const basin_watch *watch;
} basin_image_report_spec;

/* Chosen pictures, completed. */
typedef struct basin_image_exhibit {
    int64_t count;
    int64_t *index;          /* [count] numbers in the collection */
    double *mse;             /* [count] over all masks scored */
    float *patches, *output; /* [count, N, P] */
    uint8_t *mask;           /* [count, N] that of the first mask seed */
} basin_image_exhibit;

/* The learning curve, as a log has it. */
typedef struct basin_image_curve {
    double *step, *loss;          /* [count] */
    double *test_step, *test_mse; /* [tests] */
    int64_t count, tests;
} basin_image_curve;
basin_status basin_image_curve_read(basin_image_curve *curve, const char *path, basin_error *error);
void basin_image_curve_free(basin_image_curve *curve);

/* All that the page shows. */
typedef struct basin_image_report {
    const basin_image_report_spec *spec;
    basin_image_session *session;
    basin_image_scores scores;
    int64_t shown, extremes;     /* as many as there are */
    basin_image_exhibit exhibit; /* shown ones, then the best, then the worst */
    basin_image_trace trace;     /* of the first of them */
    basin_image_weights weights;
    basin_image_curve curve;
} basin_image_report;

basin_status basin_image_report_new(basin_image_report *report, basin_image_session *session,
                                    const basin_image_report_spec *spec, basin_error *error);
void basin_image_report_free(basin_image_report *report);
/* The page; written aside and renamed. */
basin_status basin_image_report_write(const char *path, const basin_image_report *report,
                                      basin_error *error);

#endif
