/* Where a run stood, out of checkpoints of 0.1, in which each task had its own way to say so. */
#ifndef BASIN_TRAIN_RUN_STATE_0_1_H
#define BASIN_TRAIN_RUN_STATE_0_1_H

#include "train/run/state.h"

/* `steps` an epoch. The loss of the epoch that was cut is lost: 0.1 did not keep it. */
basin_status basin_run_state_read_0_1(basin_run_state *state, const basin_bundle *bundle,
                                      int64_t steps, basin_error *error);
/* Whether a tensor of such a file is no state but a list of numbers. */
bool basin_run_is_numbers_0_1(const char *name);

#endif
