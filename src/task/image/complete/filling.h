/* Filling holes of pictures level by level: coarse windows first where a hole is larger than what a
 * window sees around, then finer ones, which see the coarse result deep in the hole. */
#ifndef BASIN_TASK_IMAGE_COMPLETE_FILLING_H
#define BASIN_TASK_IMAGE_COMPLETE_FILLING_H

#include "task/image/complete/hole.h"
#include "task/image/complete/window.h"

/* A picture on its way. */
typedef struct basin_filling {
    basin_picture now; /* what is known, and the best guess for the rest */
    basin_hole hole;
    int levels;      /* 1, and more for deep holes */
    int lanes;       /* channels that a grey model sees one by one; else 1 */
    int copies;      /* 1, or the frames of the last level */
    float *sum;      /* [copies, box.height, box.width, channels] weighted guesses */
    float *weight;   /* [box.height, box.width] */
    float *span;     /* [box.height, box.width, channels] the membrane through the rim */
    double share;    /* how much the model's guesses count beside the membrane, last level */
    int64_t windows; /* looked at so far */
    int64_t steps;   /* the most that a window took */
} basin_filling;

/* The side of a window at a level, 0 the finest, in pixels of the picture. */
int64_t basin_filling_side(const basin_filling *fill, int64_t size, int level);
/* How deep a window at that level looks; deeper ones keep what coarser windows gave. */
int64_t basin_filling_reach(const basin_filling *fill, int64_t size, int level);

/* Runs the model over all pictures. In the end `now` holds the results; where frames were asked
 * for, `sum` still holds them, divided by their weights. */
basin_status basin_filling_run(basin_filling *fill /* [count] */, int64_t count,
                               basin_image_model *model, const basin_image_completing *how,
                               basin_error *error);

void basin_filling_free(basin_filling *fill);

/* Puts guesses, rounded, where a picture lacks something. */
void basin_filling_write(basin_picture *to, const basin_hole *hole, const float *guess);

/* ---- what the rim tells ---- */

/* The smoothest surface through the known pixels around the hole. */
basin_status basin_rim_span(float *guess, /* [box.height, box.width, channels] */
                            const basin_picture *picture, const basin_hole *hole,
                            basin_error *error);
/* Corrects guesses by what can be told from the known pixels beside the hole, fading within `fade`
 * pixels. Known pixels of the box that have a weight have guesses, too. */
basin_status basin_rim_match(float *guess,        /* [box.height, box.width, channels] */
                             const float *weight, /* [box.height, box.width] */
                             const basin_picture *picture, const basin_hole *hole, double fade,
                             basin_error *error);

#endif
