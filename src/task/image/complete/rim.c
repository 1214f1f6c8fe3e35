/* Matching a filled hole to its rim. Some windows hide known pixels k beside the hole, too, so that
 * the error k - e of their guesses e is known there; elsewhere at the rim the picture is taken as
 * going on without a step, and the error as k - e of the guess next to it. The correction u inside
 * minimises
 *     sum over neighbours inside (u_i - u_j)^2 + sum at the rim (u_i - error)^2 + sum u_i^2 / L^2
 * the membrane through the errors at the rim, held back by a spring so that it fades within L
 * pixels. Successive over-relaxation solves it; with the spring some L sweeps are enough. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "task/image/complete/filling.h"

typedef struct rim {
    const basin_picture *picture;
    const basin_hole *hole;
    const float *guess, *weight; /* [height, width, channels] [height, width] of the box */
    float *u;                    /* [height, width] correction of one channel */
    int channel;
    double spring, relax;
} rim;

/* What the neighbour at (y, x) of the box asks of pixel i: its own correction, or the error. */
static double ask(const rim *r, int64_t i, int64_t y, int64_t x) {
    const basin_area *box = &r->hole->box;
    const basin_picture *p = r->picture;
    int64_t at = y * box->width + x;
    bool inside = y >= 0 && x >= 0 && y < box->height && x < box->width;
    if (inside && r->hole->depth[at] > 0) return r->u[at];
    double known = p->pixel[((box->top + y) * p->width + box->left + x) * p->channels + r->channel];
    if (!inside || !(r->weight[at] > 0)) at = i;
    return known - r->guess[at * p->channels + r->channel];
}

static void relax_pixel(rim *r, int64_t i) {
    static const int down[] = {-1, 1, 0, 0}, right[] = {0, 0, -1, 1};
    const basin_area *box = &r->hole->box;
    double sum = 0, weight = r->spring;
    for (int k = 0; k < 4; k++) {
        int64_t y = i / box->width + down[k], x = i % box->width + right[k];
        if (box->top + y < 0 || box->left + x < 0 || box->top + y >= r->picture->height ||
            box->left + x >= r->picture->width)
            continue;
        sum += ask(r, i, y, x);
        weight += 1;
    }
    r->u[i] += (float)(r->relax * (sum / weight - r->u[i]));
}

basin_status basin_rim_match(float *guess, const float *weight, const basin_picture *picture,
                             const basin_hole *hole, double fade, basin_error *error) {
    int64_t count = hole->box.height * hole->box.width;
    int sweeps = 20 + (int)(3 * fade);
    rim r = {.picture = picture,
             .hole = hole,
             .guess = guess,
             .weight = weight,
             .spring = 1 / (fade * fade),
             .relax = 2 / (1 + sin(1 / fade))};
    r.u = basin_array_new((size_t)count, sizeof *r.u);
    if (!r.u) return basin_fail(error, BASIN_NO_MEMORY, "no memory to match a hole to its rim");
    for (r.channel = 0; r.channel < picture->channels; r.channel++) {
        for (int64_t i = 0; i < count; i++) r.u[i] = 0;
        for (int k = 0; k < sweeps; k++)
            for (int64_t i = 0; i < count; i++)
                if (hole->depth[i] > 0) relax_pixel(&r, i);
        for (int64_t i = 0; i < count; i++) guess[i * picture->channels + r.channel] += r.u[i];
    }
    free(r.u);
    return BASIN_OK;
}
