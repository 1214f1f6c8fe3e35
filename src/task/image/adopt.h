/* Beginning a run with the weights of another model. */
#ifndef BASIN_TASK_IMAGE_ADOPT_H
#define BASIN_TASK_IMAGE_ADOPT_H

#include "basin/io.h"
#include "task/image/image.h"

/* An error that names a setting where the weights in `from`, a model file, are of no use to a model
 * with these settings. The size of the pictures may differ, and what has no weights: steps, alpha.
 */
basin_status basin_image_adopt_check(const basin_image_settings *settings, const basin_bundle *from,
                                     basin_error *error);
/* Takes the weights; positions of another number of patches are resampled, bicubically. */
basin_status basin_image_adopt(basin_store *store, const basin_params *params,
                               const basin_image_settings *settings, const basin_bundle *from,
                               basin_error *error);

#endif
