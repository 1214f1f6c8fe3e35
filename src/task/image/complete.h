/* Completing a picture of any size: cut into tiles of the model's size or resized to it, occluded,
 * completed, and put together again at the picture's own size. */
#ifndef BASIN_TASK_IMAGE_COMPLETE_H
#define BASIN_TASK_IMAGE_COMPLETE_H

#include "basin/tasks/picture.h"
#include "task/image/image.h"

typedef struct basin_image_occlusion {
    double ratio;              /* share of the patches, drawn at random; without the other two */
    const basin_picture *mask; /* grey, of the picture's size: what is not black is occluded */
    int64_t rectangle[4];      /* left, top, width, height in pixels; width 0: none */
    uint64_t seed, stream;
} basin_image_occlusion;

typedef struct basin_image_completing {
    basin_image_occlusion occlusion;
    bool tile;   /* tiles of the model's size; else the whole picture is resized */
    bool frames; /* keep every step of the descent */
} basin_image_completing;

/* All of the picture's size, in the model's channels. What was not occluded is the original. */
typedef struct basin_image_completion {
    basin_picture original, masked, completed;
    basin_picture *frame; /* [frames] completed at every step, T + 1 of them; NULL: not asked for */
    int frames;
    int64_t tiles, patches, occluded; /* how many there were */
} basin_image_completion;

basin_status basin_image_complete(basin_image_completion *completion, basin_image_session *session,
                                  const basin_picture *picture,
                                  const basin_image_completing *completing, basin_error *error);
void basin_image_completion_free(basin_image_completion *completion);

#endif
