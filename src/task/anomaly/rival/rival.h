/* Models that the Energy Transformer is compared with, in the same run: the settings `arch`,
 * what they mean for a graph network (basin/gnn.h), and the presets rival-*. */
#ifndef BASIN_TASK_ANOMALY_RIVAL_RIVAL_H
#define BASIN_TASK_ANOMALY_RIVAL_RIVAL_H

#include "basin/gnn.h"
#include "task/anomaly/net.h"

/* Whether the settings' arch is another than et. */
bool basin_rival_asked(const basin_anomaly_settings *settings);
basin_gnn_config basin_rival_config(const basin_anomaly_settings *settings,
                                    const basin_anomaly_shape *shape);
/* An error where a setting that the arch does not have differs from the task's default. */
basin_status basin_rival_check(const basin_anomaly_settings *settings,
                               const basin_task_settings *task, basin_error *error);

#endif
