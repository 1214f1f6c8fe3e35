/* Filling holes of pictures by one energy: a model's picture of what is missing, at a scale where a
 * window sees the whole hole, and the memory of the picture's own patches (memory.c), which begins
 * with it. Narrow holes get a membrane only. */
#ifndef BASIN_TASK_IMAGE_COMPLETE_COMPLETE_H
#define BASIN_TASK_IMAGE_COMPLETE_COMPLETE_H

#include "tasks/pictures/image.h"

/* ---- What is missing in a picture: which pixels, and how far each is from what is known ---- */

typedef struct basin_area {
    int64_t top, left, height, width;
} basin_area;

/* The maps cover the box around all that is missing. */
typedef struct basin_hole {
    basin_area box; /* in the picture */
    int32_t
        *depth; /* [box.height, box.width] steps, diagonal ones too, to what is known; 0: known */
    int64_t missing; /* pixels */
    int64_t deepest; /* the greatest depth */
} basin_hole;

/* By the mask, the rectangles or the share of patches that `how` has; `number` is the picture's
 * among those of the call. A hole that is empty, reaches out of the picture or takes all of it is
 * an error. */
basin_status basin_hole_make(basin_hole *hole, const basin_picture *picture, int64_t patch,
                             const basin_image_complete_options *how, int64_t number,
                             basin_error *error);
/* Takes narrow parts out of the hole: they count as known. A part is narrow that is at most 10
 * pixels wide, 2 for a model with patches of 4. `missing` and the box stay. */
basin_status basin_hole_keep_wide(basin_hole *hole, const basin_picture *picture, int64_t patch,
                                  basin_error *error);
void basin_hole_free(basin_hole *hole);
/* Whether patches are to be drawn at random. */
bool basin_hole_is_drawn(const basin_image_complete_options *how);
/* The depth of a pixel of the picture. */
int32_t basin_hole_depth(const basin_hole *hole, int64_t y, int64_t x);

/* ---- corrections from the rim ---- */

/* The smoothest surface through the known pixels around the hole. */
basin_status basin_rim_span(float *guess, /* [box.height, box.width, channels] */
                            const basin_picture *picture, const basin_hole *hole,
                            basin_error *error);
/* Corrects guesses by the known pixels beside the hole, fading within `fade` pixels. Known pixels
 * of the box that have a weight also have guesses. */
basin_status basin_rim_match(float *guess,        /* [box.height, box.width, channels] */
                             const float *weight, /* [box.height, box.width] */
                             const basin_picture *picture, const basin_hole *hole, double fade,
                             basin_error *error);

/* ---- Smooth surfaces over the pixels of a hole ---- */

/* The surface u over the free pixels that minimises
 *     sum over free neighbours (u_i - u_j)^2 + sum pull_i u_i^2 - 2 toward_i u_i + spring u_i^2
 * where pull counts the fixed neighbours of each pixel, and toward sums their values. */
typedef struct basin_membrane {
    int64_t height, width;
    uint8_t *free;        /* [height, width] */
    float *pull, *toward; /* [height, width], 0 where not free */
    float *u;             /* [height, width] the surface, 0 where not free */
    double spring;
} basin_membrane;

/* Zeroes; all pixels are not free. */
basin_status basin_membrane_new(basin_membrane *m, int64_t height, int64_t width,
                                basin_error *error);
void basin_membrane_free(basin_membrane *m);
/* Solved on grids of half the size first: large holes take no more sweeps than small ones. */
basin_status basin_membrane_solve(basin_membrane *m, basin_error *error);

/* ---- The picture as a memory of itself ---- */

enum { BASIN_COURSE = 128 };

/* Energies by step and term; it begins anew on each grid, and for each of several holes. */
typedef struct basin_course {
    double memory[BASIN_COURSE], model[BASIN_COURSE];
    int steps;
} basin_course;

/* Fills the hole, where `picture` holds the model's, with what the descent on the
 * energy at the head of memory.c retrieves from around it; left as it is where little is known, as
 * in pictures of 28 x 28 pixels.
 */
basin_status basin_memory_fill(basin_picture *picture, const basin_hole *hole, uint64_t seed,
                               const basin_watch *watch, basin_course *course, basin_error *error);

/* ---- Where a model looks at a picture with a hole: squares around what is missing ---- */

/* A part of the picture, mostly a square, that the model sees resized to its own size. */
typedef struct basin_window {
    int64_t top, left, height, width;
    int lane;        /* of a colour picture, the channel that a grey model sees */
    int64_t picture; /* its number in the call */
} basin_window;

typedef struct basin_windows {
    basin_window *window; /* [count] */
    size_t count, capacity;
} basin_windows;

/* How windows are laid over a hole. */
typedef struct basin_cover {
    const basin_hole *hole;
    int64_t height, width; /* of the picture */
    int64_t side;          /* of a window, at most both */
    int64_t across;        /* patches in a row of it */
    bool whole;            /* one window, the whole picture */
    int lanes;
    int64_t picture;
} basin_cover;

/* Adds windows in which all that is missing lies, centred on it as far as the picture lets them,
 * and placed so that their patches hide few known pixels. Neighbours overlap by half. */
basin_status basin_windows_cover(basin_windows *windows, const basin_cover *cover,
                                 basin_error *error);
void basin_windows_free(basin_windows *windows);

/* ---- Pictures being filled ---- */

/* A picture on its way. */
typedef struct basin_filling {
    basin_picture now; /* what is known, and the best guess for the rest */
    basin_hole hole;
    bool seen;       /* by the model; else the membrane is all */
    int lanes;       /* channels that a grey model sees one by one; else 1 */
    int copies;      /* 1, or the frames of the 0 to 1 */
    float *sum;      /* [copies, box.height, box.width, channels] weighted guesses */
    float *weight;   /* [box.height, box.width] */
    float *span;     /* [box.height, box.width, channels] the membrane through the rim */
    double share;    /* how much the model's guesses count beside the membrane, 0 to 1 */
    int64_t windows; /* looked at so far */
} basin_filling;

void basin_filling_free(basin_filling *fill);

/* ---- Between windows of a picture and patches of a model ---- */

typedef struct basin_guessing {
    basin_filling *fill; /* [pictures] */
    const basin_image_model *model;
    basin_picture part, seen; /* scratch: a window in the picture's channels, in the model's */
    float *down, *right;      /* [height] [width] weights of the rows and columns of a window */
    size_t downs, rights;     /* capacities */
} basin_guessing;
void basin_guessing_free(basin_guessing *l);

/* Patches that hold something missing. */
void basin_guess_hide(uint8_t *hidden /* [N] */, const basin_guessing *l, const basin_window *w);
basin_status basin_window_to_patches(float *patches /* [N, P] */, basin_guessing *l,
                                     const basin_window *w, basin_error *error);
/* Weights that vanish at the borders of windows and of patches. */
basin_status basin_guess_weigh(basin_guessing *l, const basin_window *w, basin_error *error);
/* Adds the model's output for a window to copy number `copy` of its picture's sums. */
basin_status basin_guess_add(basin_guessing *l, const basin_window *w,
                             const uint8_t *hidden /* [N] */, const float *output /* [N, P] */,
                             int copy, basin_error *error);

#endif
