/* Between windows of a picture and patches of a model: what is shown and what is hidden, and how
 * the model's answers are added up. */
#ifndef BASIN_TASK_IMAGE_COMPLETE_GUESS_H
#define BASIN_TASK_IMAGE_COMPLETE_GUESS_H

#include "task/image/complete/filling.h"

typedef struct basin_guessing {
    basin_filling *fill; /* [pictures] */
    const basin_image_model *model;
    int level;
    basin_picture part, seen; /* scratch: a window in the picture's channels, in the model's */
    float *down, *right;      /* [height] [width] weights of the rows and columns of a window */
    size_t downs, rights;     /* capacities */
} basin_guessing;
void basin_guessing_free(basin_guessing *l);

/* Patches that hold something missing within reach. */
void basin_guess_hide(uint8_t *hidden /* [N] */, const basin_guessing *l, const basin_window *w);
basin_status basin_guess_show(float *patches /* [N, P] */, basin_guessing *l, const basin_window *w,
                              basin_error *error);
/* Weights that vanish at the borders of windows and of patches, so that neither shows where
 * guesses of several windows meet. */
basin_status basin_guess_weigh(basin_guessing *l, const basin_window *w, basin_error *error);
/* Adds what the model says about a window to copy number `copy` of its picture's sums. */
basin_status basin_guess_hear(basin_guessing *l, const basin_window *w,
                              const uint8_t *hidden /* [N] */, const float *output /* [N, P] */,
                              int copy, basin_error *error);

#endif
