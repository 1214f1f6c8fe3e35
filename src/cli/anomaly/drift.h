/* What commands say about drift against training. */
#ifndef BASIN_CLI_ANOMALY_DRIFT_H
#define BASIN_CLI_ANOMALY_DRIFT_H

#include "basin/tasks/anomaly.h"
#include "data/network/network.h"
#include "io/json_writer.h"

/* One line on standard error: the worst columns by name. */
void basin_cli_drift_say(const basin_anomaly_drift *drift);
/* All columns, as an object "drift". */
void basin_put_drift(basin_json *json, const basin_anomaly_drift *drift);

#endif
