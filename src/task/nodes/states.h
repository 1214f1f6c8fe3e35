/* What the anomaly task does with the parameters of a store besides copying them by prefix
 * (basin_states_copy): average them, clear their moments, take them out. */
#ifndef BASIN_TASK_ANOMALY_STATES_H
#define BASIN_TASK_ANOMALY_STATES_H

#include "train/run/run.h"

/* average = a average + (1 - a) parameter; early steps count more, so that it forgets the start. */
basin_status basin_states_average(basin_store *store, const basin_params *params, const char *to,
                                  double a, int64_t step, basin_error *error);
basin_status basin_states_clear_moments(basin_store *store, const basin_params *params,
                                        basin_error *error);
/* The parameters `prefix` + NAME as a bundle of NAMEs, which replaces *bundle. */
basin_status basin_states_bundle(basin_bundle **bundle, basin_store *store,
                                 const basin_params *params, const char *prefix,
                                 basin_error *error);

#endif
