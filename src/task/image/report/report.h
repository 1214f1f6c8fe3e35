/* What a report on models of images shows: gathered by report.c, written as a page of HTML by
 * page.c and its neighbours; see basin_image_report. */
#ifndef BASIN_TASK_IMAGE_REPORT_REPORT_H
#define BASIN_TASK_IMAGE_REPORT_REPORT_H

#include "task/image/eval.h"
#include "task/image/report/look.h"

/* Chosen pictures, completed. */
typedef struct basin_image_exhibit {
    int64_t count;
    int64_t *index;          /* [count] numbers in the collection */
    double *mse;             /* [count] over all masks scored */
    float *patches, *output; /* [count, N, P] */
    uint8_t *mask;           /* [count, N] that of the first mask seed */
} basin_image_exhibit;

/* The pictures at those places of the scores, read once more and completed. */
basin_status basin_image_exhibit_new(basin_image_exhibit *exhibit, basin_image_model *model,
                                     const basin_image_set *set, const basin_image_scores *scores,
                                     const int64_t *place /* [count] */, int64_t count,
                                     const basin_watch *watch, basin_error *error);
void basin_image_exhibit_free(basin_image_exhibit *exhibit);

/* What a model that always answers the mean colour would score, on the pictures of a set. */
basin_status basin_image_baseline_new(basin_image_baseline *baseline,
                                      const basin_image_settings *settings,
                                      const basin_image_set *set, int masks, basin_error *error);

/* The learning curve, as a log has it: the losses of its step lines or, where a short run has fewer
 * of these, of its epochs; and the scores of test pictures. */
typedef struct basin_image_line {
    double *step, *value; /* [count] */
    int64_t count;
    size_t room[2];
} basin_image_line;
typedef struct basin_image_curve {
    basin_image_line loss, test;
} basin_image_curve;
basin_status basin_image_curve_read(basin_image_curve *curve, const char *path, basin_error *error);
void basin_image_curve_free(basin_image_curve *curve);

/* One model of the page. */
typedef struct basin_image_entry {
    basin_image_model *model;
    const char *name;
    basin_image_scores scores;
    basin_image_baseline baseline;
    basin_image_exhibit exhibit; /* shown ones, then the best, then the worst of the first model */
    basin_image_trace trace;     /* of the first of them */
    basin_image_attention attention; /* of the same */
    basin_image_course course;       /* of those shown */
    basin_image_weights weights;
} basin_image_entry;

enum { BASIN_IMAGE_REPORT_MODELS = 8 };

/* All that the page shows. */
typedef struct basin_image_findings {
    const basin_image_reporting *spec;
    basin_image_set set; /* the pictures scored */
    basin_image_entry entry[BASIN_IMAGE_REPORT_MODELS];
    int entries;
    int64_t shown, extremes, traced; /* as many as there are */
    basin_image_curve curve;         /* of the first model */
} basin_image_findings;

/* Whether models see the same numbers of a picture, so that their errors have one unit. */
bool basin_image_same_units(const basin_image_settings *a, const basin_image_settings *b);

/* The page; written aside and renamed. */
basin_status basin_image_page_write(const char *path, const basin_image_findings *findings,
                                    basin_error *error);

#endif
