/* Arrays into plans and out of them, states and parameters into files and out of them. */
#ifndef BASIN_BASE_STATES_H
#define BASIN_BASE_STATES_H

#include "basin/io.h"
#include "basin/params.h"
#include "basin/plan.h"

/* An input from an array of its shape, and an output to one. Without an input nothing is done. */
basin_status basin_values_write(basin_plan *plan, basin_expr input, const void *values,
                                basin_dtype dtype, basin_error *error);
basin_status basin_values_read(basin_plan *plan, basin_expr output, void *values, basin_dtype dtype,
                               basin_error *error);

/* An error where a loss is not a finite number. */
basin_status basin_loss_check(double loss, int64_t step, basin_error *error);

/* Adds the value of a state, or of all parameters, to the bundle. */
basin_status basin_state_add(basin_bundle *bundle, basin_store *store, const char *name,
                             basin_error *error);
basin_status basin_params_add(basin_bundle *bundle, const basin_params *params, basin_store *store,
                              basin_error *error);
/* The state `name` of the store becomes the tensor of that name in the bundle, which must be there,
 * have this shape, and be finite. */
basin_status basin_state_restore(basin_store *store, const char *name, basin_shape shape,
                                 const basin_bundle *bundle, basin_error *error);

#endif
