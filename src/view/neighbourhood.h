/* A node and its neighbours as SVG: thickness shows attention, colour the score. */
#ifndef BASIN_VIEW_NEIGHBOURHOOD_H
#define BASIN_VIEW_NEIGHBOURHOOD_H

#include <stdint.h>
#include <stdio.h>

typedef struct basin_star_ray {
    const char *name;
    double share; /* of the attention, 0 to 1 */
    double score; /* 0 to 1 */
} basin_star_ray;

typedef struct basin_star {
    const char *title, *subtitle; /* subtitle may be NULL */
    const char *name;             /* of the centre */
    double score;
    const basin_star_ray *ray; /* [rays] by falling share */
    int rays;
    int64_t left_out; /* neighbours that are not drawn */
} basin_star;

/* Needs no other file, follows the reader's light or dark scheme; the file's own error flag tells
 * whether all went well. */
void basin_star_write(FILE *file, const basin_star *star);

#endif
