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

/* The map covers the box around all that is missing, with what is known beside it. */
typedef struct basin_hole {
    basin_area box; /* in the picture */
    int32_t
        *depth; /* [box.height, box.width] steps, diagonal ones too, to what is known; 0: known */
    int64_t missing; /* pixels */
    int64_t deepest; /* the greatest depth */
} basin_hole;

/* By the mask or the rectangles of `how`; `number` is the picture's among those of the call. A hole
 * that is empty, reaches out of the picture or takes all of it is an error. The box has up to
 * `margin` pixels more on each side, at least 1. */
basin_status basin_hole_make(basin_hole *hole, const basin_picture *picture, int64_t margin,
                             const basin_image_complete_options *how, int64_t number,
                             basin_error *error);
/* Takes narrow parts out of the hole: they count as known. A part is narrow that is at most 10
 * pixels wide, 2 for a model with patches of 4. `missing` and the box stay. */
basin_status basin_hole_keep_wide(basin_hole *hole, int64_t patch, basin_error *error);
void basin_hole_free(basin_hole *hole);
/* The depth of a pixel of the picture. */
int32_t basin_hole_depth(const basin_hole *hole, int64_t y, int64_t x);
/* The box, in the picture, of the part around pixel `first` of the map, which is marked; its
 * greatest depth goes to `deepest`. */
basin_area basin_hole_part(uint8_t *mark /* [box] */, int64_t *stack /* [box] */,
                           const basin_hole *hole, int64_t first, int64_t *deepest);

/* ---- Smooth surfaces over the pixels of a hole ---- */

/* What the surface over missing pixels is tied to; arrays are [height, width, stride]. */
typedef struct basin_ties {
    int64_t height, width, stride;
    const uint8_t *missing; /* [height, width] */
    const float *known;
    /* NULL, or a guess of which the surface is the correction: k - e where there is one for the
     * known pixel (`weight` [height, width] above 0, or NULL), elsewhere k - e of the guess next to
     * it, as if the picture went on without a step. */
    const float *guess, *weight;
    double spring;
} basin_ties;

/* Adds to the missing pixels of the first channels of `to` [height, width, stride] the surface u
 * that minimises, over pairs of neighbours of which one is missing,
 *     sum of (u_i - u_j)^2 + spring sum of u_i^2, u_j as tied where j is known
 * on grids of half the size first: large holes take no more sweeps than small ones. */
basin_status basin_membrane_add(float *to, const basin_ties *ties, int channels,
                                basin_error *error);

/* ---- The picture as a memory of itself ---- */

enum { BASIN_COURSE = 128 };

/* Energies by step and term; it begins anew on each grid, and for each of several holes. */
typedef struct basin_course {
    double memory[BASIN_COURSE], model[BASIN_COURSE];
    int steps;
} basin_course;

/* Fills the hole, where `picture` holds the model's, with what the descent on the
 * energy at the head of memory.c retrieves from around it; left as it is where little is known, as
 * in pictures of 28 x 28 pixels. */
basin_status basin_memory_fill(basin_picture *picture, const basin_hole *hole, uint64_t seed,
                               const basin_watch *watch, basin_course *course, basin_error *error);

/* ---- Where a model looks at a picture with a hole: squares around what is missing ---- */

/* A part of the picture that the model sees resized to its own size. */
typedef struct basin_window {
    int64_t top, left, side;
    int lane; /* of a colour picture, the channel that a grey model sees */
} basin_window;

typedef struct basin_windows {
    basin_window *window; /* [count] */
    size_t count, capacity;
} basin_windows;

/* A picture on its way through the model. */
typedef struct basin_guessing {
    const basin_image_model *model;
    const basin_picture *picture; /* what is known, and the membrane */
    const basin_hole *hole;
    int64_t side, across;     /* of a window, at most the picture's sides; patches in a row of it */
    uint8_t missing;          /* patches that hide something: replaced, or guessed by a membrane */
    float *sum;               /* [box.height, box.width, channels] weighted guesses */
    float *weight;            /* [box.height, box.width] */
    float *hill;              /* [side] weights of the rows and columns of a window */
    basin_picture part, seen; /* scratch: a window in the picture's channels, in the model's */
} basin_guessing;

/* Adds windows in which all that is missing lies, centred on it as far as the picture lets them,
 * and placed so that their patches hide few known pixels. Neighbours overlap by half. */
basin_status basin_windows_cover(basin_windows *windows, const basin_guessing *g,
                                 basin_error *error);
void basin_windows_free(basin_windows *windows);

/* Makes room for the guesses, and weights that vanish at the borders of windows and of patches. */
basin_status basin_guess_begin(basin_guessing *g, basin_error *error);
void basin_guessing_free(basin_guessing *g);
/* What the model sees of a window; patches that hold something missing are hidden. */
basin_status basin_window_to_patches(float *patches /* [N, P] */, uint8_t *hidden /* [N] */,
                                     basin_guessing *g, const basin_window *w, basin_error *error);
/* Adds the model's output for a window to the sums. */
basin_status basin_guess_add(basin_guessing *g, const basin_window *w,
                             const uint8_t *hidden /* [N] */, const float *output /* [N, P] */,
                             basin_error *error);

#endif
