/* How far a model can be trusted with a hole: it fills the same hole beside it, where the truth is
 * known. */
#ifndef BASIN_TASK_IMAGE_COMPLETE_REHEARSE_H
#define BASIN_TASK_IMAGE_COMPLETE_REHEARSE_H

#include "task/image/complete/filling.h"

/* What rehearsals found, added up over pixels: with truth k, membrane h and the model's guess m,
 * the sums of (k - h)(m - h) and (m - h)^2. Their quotient is how much of the model's departure
 * from the membrane is right. */
typedef struct basin_trust {
    double agreed, departed;
} basin_trust;

/* Marks patches for a rehearsal: the hidden ones of a window moved aside, to the right, the left,
 * down or up (`way` 0 to 3), clear of those that are hidden. False where less than half of them
 * find room. */
bool basin_rehearse_place(uint8_t *place /* [N] */, const uint8_t *hidden /* [N] */, int64_t across,
                          int way);
/* Adds what the model's output for a window with those patches hidden, too, tells. */
basin_status basin_rehearse_judge(basin_trust *trust, const basin_image_model *model,
                                  const uint8_t *place,                      /* [N] */
                                  const float *patches, const float *output, /* [N, P] */
                                  double fade, basin_error *error);
/* The share, 0 to 1; one half where nothing could be rehearsed. */
double basin_trust_share(const basin_trust *trust);

#endif
