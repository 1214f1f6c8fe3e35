/* Smooth surfaces over the pixels of a hole. */
#ifndef BASIN_TASK_IMAGE_COMPLETE_MEMBRANE_H
#define BASIN_TASK_IMAGE_COMPLETE_MEMBRANE_H

#include <stdbool.h>
#include <stdint.h>

#include "basin/status.h"

/* The surface u over the free pixels that minimises
 *     sum over free neighbours (u_i - u_j)^2 + sum pull_i u_i^2 - 2 toward_i u_i + spring u_i^2
 * where pull counts what each pixel is tied to outside, and toward adds up what that says. */
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
/* Solved on grids of half the size first, so that large holes take no more sweeps than small ones.
 */
basin_status basin_membrane_solve(basin_membrane *m, basin_error *error);

#endif
