/* How well a model completes pictures: the squared error on occluded patches, PSNR and SSIM of
 * completed pictures, over pictures and mask seeds. */
#ifndef BASIN_TASK_IMAGE_EVAL_H
#define BASIN_TASK_IMAGE_EVAL_H

#include "task/image/data.h"

typedef struct basin_image_scoring {
    const basin_image_data *data;
    int masks;           /* mask seeds 0 .. masks - 1 */
    uint64_t first_mask; /* the first of them */
    int64_t batch;       /* 0: one that suits */
    bool pictures;       /* PSNR and SSIM, too */
    const basin_watch *watch;
} basin_image_scoring;

/* All occluded patches are replaced by MASK, none kept. The error is the mean over pixels of
 * occluded patches, of normalised values; PSNR and SSIM compare the whole picture, shown patches
 * pasted in, on values 0 .. 1. Means over pictures; deviations between mask seeds, as
 * basin_mean_deviation has them. */
typedef struct basin_image_scores {
    int64_t pictures, unreadable;
    int masks;
    double mse, psnr, ssim;
    double mse_deviation, psnr_deviation, ssim_deviation;
    int64_t *index;      /* [pictures] numbers in the collection */
    double *picture_mse; /* [pictures] mean over the masks */
} basin_image_scores;

/* Mask number `mask_seed` of picture `index`: a stream of its own, the same whatever the batch. */
void basin_image_score_mask(uint8_t *mask /* [N] */, const basin_image_settings *settings,
                            int64_t index, uint64_t mask_seed);

basin_status basin_image_score(basin_image_scores *scores, basin_image_session *session,
                               const basin_image_scoring *scoring, basin_error *error);
void basin_image_scores_free(basin_image_scores *scores);
/* Positions in index of the `count` pictures with the least error, or the greatest. */
basin_status basin_image_scores_rank(int64_t *order /* [count] */, const basin_image_scores *scores,
                                     int64_t count, bool worst, basin_error *error);

#endif
