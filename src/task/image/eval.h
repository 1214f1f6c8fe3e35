/* Scores inside the library: of a chosen set of pictures, and the masks they are scored with. */
#ifndef BASIN_TASK_IMAGE_EVAL_H
#define BASIN_TASK_IMAGE_EVAL_H

#include "task/image/set.h"

/* Mask number `mask_seed` of picture `index`: a stream of its own, the same whatever the batch. */
void basin_image_score_mask(uint8_t *mask /* [N] */, const basin_image_settings *settings,
                            int64_t index, uint64_t mask_seed);

/* The mean squared error over the replaced patches of one picture. */
double basin_image_masked_error(const float *output, /* [N, P] */
                                const float *truth,  /* [N, P] */
                                const uint8_t *mask, /* [N] */
                                int64_t tokens, int64_t values);
/* The same of the mean colour of the shown patches; and a picture filled in with it, [N, P]. */
double basin_image_mean_error(const float *truth, const uint8_t *mask,
                              const basin_image_settings *settings);
void basin_image_mean_fill(float *out, const float *truth, const uint8_t *mask,
                           const basin_image_settings *settings);
/* `output` where the mask says REPLACED, the truth elsewhere; all [N, P]. */
void basin_image_paste(float *out, const float *output, const float *truth, const uint8_t *mask,
                       int64_t tokens, int64_t values);
/* PSNR of a whole picture; `plane` are two of [channels, size, size], written. */
double basin_image_psnr(float *plane[2], const float *whole, const float *truth,
                        const basin_image_settings *settings);

/* As basin_image_score; the source that `scoring` names is not looked at. */
basin_status basin_image_score_set(basin_image_scores *scores, basin_image_model *model,
                                   const basin_image_set *set, const basin_image_scoring *scoring,
                                   basin_error *error);

#endif
