/* What the rim of a hole tells: a first guess, the membrane through the known pixels around it; and
 * the correction of a model's guesses. Some windows hide known pixels k beside the hole, too, so
 * that the error k - e of their guesses e is known there; elsewhere at the rim the picture is taken
 * as going on without a step, and the error as k - e of the guess next to it. The correction is the
 * membrane through these errors, held back by a spring so that it fades within L pixels. */
#include "task/image/complete/filling.h"
#include "task/image/complete/membrane.h"

typedef struct rim {
    const basin_picture *picture;
    const basin_hole *hole;
    const float *guess, *weight; /* [height, width, channels] [height, width] of the box, or NULL */
    int channel;
} rim;

/* What the known pixel (y, x) of the box asks of its missing neighbour i: to be as itself, or to be
 * corrected by its error. */
static double ask(const rim *r, int64_t i, int64_t y, int64_t x) {
    const basin_area *box = &r->hole->box;
    const basin_picture *p = r->picture;
    double known = p->pixel[((box->top + y) * p->width + box->left + x) * p->channels + r->channel];
    if (!r->guess) return known;
    int64_t at = y * box->width + x;
    bool guessed = y >= 0 && x >= 0 && y < box->height && x < box->width && r->weight[at] > 0;
    return known - r->guess[(guessed ? at : i) * p->channels + r->channel];
}

/* Ties missing pixels to their known neighbours. */
static void tie(basin_membrane *m, const rim *r) {
    static const int down[] = {-1, 1, 0, 0}, right[] = {0, 0, -1, 1};
    const basin_area *box = &r->hole->box;
    for (int64_t i = 0; i < box->height * box->width; i++) {
        m->free[i] = r->hole->depth[i] > 0;
        m->pull[i] = m->toward[i] = m->u[i] = 0;
        for (int k = 0; k < 4 && m->free[i]; k++) {
            int64_t y = i / box->width + down[k], x = i % box->width + right[k];
            int64_t py = box->top + y, px = box->left + x;
            if (py < 0 || px < 0 || py >= r->picture->height || px >= r->picture->width) continue;
            if (basin_hole_depth(r->hole, py, px) > 0) continue;
            m->pull[i] += 1;
            m->toward[i] += (float)ask(r, i, y, x);
        }
    }
}

/* Solves channel by channel; the surface is added to `to`. */
static basin_status add_membranes(float *to, rim *r, double spring, basin_error *error) {
    int64_t count = r->hole->box.height * r->hole->box.width;
    int channels = r->picture->channels;
    basin_membrane m;
    basin_status status = basin_membrane_new(&m, r->hole->box.height, r->hole->box.width, error);
    if (status) return status;
    m.spring = spring;
    for (r->channel = 0; r->channel < channels && !status; r->channel++) {
        tie(&m, r);
        status = basin_membrane_solve(&m, error);
        for (int64_t i = 0; i < count && !status; i++) to[i * channels + r->channel] += m.u[i];
    }
    basin_membrane_free(&m);
    return status;
}

basin_status basin_rim_match(float *guess, const float *weight, const basin_picture *picture,
                             const basin_hole *hole, double fade, basin_error *error) {
    rim r = {.picture = picture, .hole = hole, .guess = guess, .weight = weight};
    return add_membranes(guess, &r, 1 / (fade * fade), error);
}

basin_status basin_rim_span(float *guess, const basin_picture *picture, const basin_hole *hole,
                            basin_error *error) {
    rim r = {.picture = picture, .hole = hole};
    for (int64_t i = 0; i < hole->box.height * hole->box.width * picture->channels; i++)
        guess[i] = 0;
    return add_membranes(guess, &r, 0, error);
}
