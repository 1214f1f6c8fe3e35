/* States and parameters into files, and out of them. */
#ifndef BASIN_TRAIN_RESTORE_H
#define BASIN_TRAIN_RESTORE_H

#include "basin/train.h"

/* Adds the values of all parameters to the bundle. */
basin_status basin_params_add(basin_bundle *bundle, const basin_params *params, basin_store *store,
                              basin_error *error);
/* The state `name` of the store becomes the tensor of that name in the bundle, which must be there,
 * of this shape, and finite. */
basin_status basin_state_restore(basin_store *store, const char *name, basin_shape shape,
                                 const basin_bundle *bundle, basin_error *error);
/* What basin_params_write writes, for those who add to it. Free the bundle, on failure, too. */
basin_status basin_params_bundle(basin_bundle **bundle, const basin_params *params,
                                 basin_store *store, const basin_meta *meta, int metas,
                                 basin_error *error);

#endif
