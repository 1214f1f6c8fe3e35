/* What of a detector is kept: states copied within a store, checkpoints of a run, model files. */
#ifndef BASIN_TASK_ANOMALY_FILE_H
#define BASIN_TASK_ANOMALY_FILE_H

#include "task/anomaly/inputs.h"
#include "train/run/run.h"

/* average = a average + (1 - a) parameter; early steps count more, so that it forgets the start. */
basin_status basin_states_average(basin_store *store, const basin_params *params, const char *to,
                                  double a, int64_t step, basin_error *error);
basin_status basin_states_clear_moments(basin_store *store, const basin_params *params,
                                        basin_error *error);
/* The parameters `prefix` + NAME as a bundle of NAMEs. */
basin_status basin_states_bundle(basin_bundle **bundle, basin_store *store,
                                 const basin_params *params, const char *prefix,
                                 basin_error *error);
basin_status basin_states_write(basin_store *store, const basin_bundle *bundle, basin_error *error);

/* Where a run stands. */
typedef struct basin_fit_state {
    int64_t member, epoch, best_epoch;
    double best;
} basin_fit_state;

/* The settings with all that was left to be chosen; of the detector, how its finished members went.
 */
basin_status basin_fit_save(const char *path, const basin_anomaly_settings *settings,
                            basin_store *store, int64_t step, const basin_fit_state *state,
                            const basin_anomaly_detector *detector, basin_error *error);
/* The checkpoint at `path`, or NULL where there is none; what the settings leaves open (scaling,
 * hops, sampling) becomes what the checkpoint's run had chosen. */
basin_status basin_fit_open(basin_bundle **checkpoint, basin_anomaly_settings *settings,
                            const char *path, basin_error *error);
/* The settings must be that of the checkpoint. */
basin_status basin_fit_load(int64_t *step, basin_fit_state *state, basin_anomaly_detector *detector,
                            basin_store *store, const basin_bundle *checkpoint,
                            const basin_anomaly_settings *settings, const basin_params *params,
                            basin_error *error);

basin_status basin_detector_new(basin_anomaly_detector **detector,
                                const basin_anomaly_settings *settings,
                                const basin_network *network, basin_error *error);
/* Remembers the relations' names. */
basin_status basin_detector_name(basin_anomaly_detector *detector, const basin_node_inputs *inputs,
                                 basin_error *error);
/* The mean of all members' probabilities. */
basin_status basin_anomaly_mean(double *probability, const basin_anomaly_detector *detector,
                                basin_anomaly_scorer *scorer, int64_t nodes,
                                const basin_anomaly_work *work, basin_error *error);

#endif
