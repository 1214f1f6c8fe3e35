/* The two halves of texture by association: texture.c chooses what is copied, join.c fills. */
#ifndef BASIN_TASK_IMAGE_COMPLETE_TEXTURE_H
#define BASIN_TASK_IMAGE_COMPLETE_TEXTURE_H

#include "tasks/pictures/complete/complete.h"

enum { BASIN_LABELS = 80 };

typedef struct basin_shift {
    int64_t down, right;
} basin_shift;

/* The surroundings of one hole, on a grid of `by` x `by` pixels of the picture each. */
typedef struct basin_scene {
    basin_area area; /* in the picture */
    basin_area box;  /* of the hole, in the grid */
    int64_t by, height, width;
    int channels;
    float *pixel;   /* [height, width, channels] 0 to 1, the completion in the hole */
    float *half;    /* [height, width, channels] the same, smoothed, for searches in steps of 2 */
    float *feature; /* [height, width, FEATURES] what data terms compare */
    uint8_t *known; /* [height, width] */
    basin_shift label[BASIN_LABELS];
    int64_t labels;
} basin_scene;

/* The surroundings of the hole in `box`, and the shifts by which they fit it. */
basin_status basin_scene_new(basin_scene *s, const basin_picture *p, const basin_hole *hole,
                             basin_area box, basin_error *error);
void basin_scene_free(basin_scene *s);
/* The label of each pixel of the hole, [box.height, box.width]; -1 for others. */
basin_status basin_associate(int32_t *label, const basin_scene *s, basin_backend *backend,
                             basin_course *course, basin_error *error);
/* A Gaussian over z [height, width, depth] in place, by weights [height, width] (NULL: ones). */
basin_status basin_blur(float *z, const uint8_t *weight, int64_t height, int64_t width,
                        int64_t depth, double sigma, basin_error *error);

#endif
