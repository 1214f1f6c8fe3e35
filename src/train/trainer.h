/* The gradients that optimisers see, and the two halves of a step for those who sum them over
 * several batches or processes in between. */
#ifndef BASIN_TRAIN_TRAINER_H
#define BASIN_TRAIN_TRAINER_H

#include "basin/train.h"

/* Of `loss`, one a parameter, passed through params->adjust. */
basin_status basin_gradients(basin_expr *gradient, const basin_params *params, basin_expr loss,
                             basin_error *error);

/* Of a trainer with a reduction, whose plan computes the gradients of the batch that was written
 * and leaves them in the store as trainer->gradients names them: updates by those that are there,
 * at the schedule's rate. */
basin_status basin_trainer_apply(basin_trainer *trainer, basin_error *error);

/* The update alone, for those who compute gradients themselves: zeros become a trainer without a
 * plan, whose states `gradients` the caller fills. basin_trainer_free frees it, after an error,
 * too. */
basin_status basin_trainer_new_update(basin_trainer *trainer, basin_store *store,
                                      const basin_params *params, const basin_trainer_spec *spec,
                                      basin_error *error);
/* The learning rate of a step. */
double basin_schedule_rate(const basin_schedule *schedule, int64_t step);
/* An error where a loss is not a finite number. */
basin_status basin_loss_check(double loss, int64_t step, basin_error *error);

/* An input from an array of its shape, and an output to one; an absent input is left out. */
basin_status basin_values_write(basin_plan *plan, basin_expr input, const void *values,
                                basin_dtype dtype, basin_error *error);
basin_status basin_values_read(basin_plan *plan, basin_expr output, void *values, basin_dtype dtype,
                               basin_error *error);

/* ---- states and parameters into files, and out of them ---- */

/* Adds the value of a state, or of all parameters, to the bundle. */
basin_status basin_state_add(basin_bundle *bundle, basin_store *store, const char *name,
                             basin_error *error);
basin_status basin_params_add(basin_bundle *bundle, const basin_params *params, basin_store *store,
                              basin_error *error);
/* The state `name` of the store becomes the tensor of that name in the bundle, which must be there,
 * of this shape, and finite. */
basin_status basin_state_restore(basin_store *store, const char *name, basin_shape shape,
                                 const basin_bundle *bundle, basin_error *error);

#endif
