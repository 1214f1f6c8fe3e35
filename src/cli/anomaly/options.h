/* What the anomaly commands share: goals of thresholds, networks read as training was, tables of
 * reliability. */
#ifndef BASIN_CLI_ANOMALY_OPTIONS_H
#define BASIN_CLI_ANOMALY_OPTIONS_H

#include "basin/tasks/anomaly.h"
#include "cli/command.h"
#include "cli/network.h"
#include "cli/training.h"
#include "cli/watch.h"
#include "data/network/network.h"
#include "io/json_writer.h"

#define BASIN_THRESHOLD_FOR_HELP                                                                   \
    "Another threshold: precision=X, that share of the alerts right; recall=X, that share of the " \
    "anomalies found (both by the validation nodes); alerts=N, at most N of these nodes."

/* An error where there is a goal, and it is none: before anything is trained or scored. */
basin_status basin_goal_check(const char *goal, basin_error *error);

/* Opens what a model is to score, as its training was read; says what did not fit. */
basin_status basin_open_as_trained(basin_network **network, const basin_anomaly_model *model,
                                   const char *model_path, const basin_network_flags *flags,
                                   double gib, int paths, char **path, bool quiet,
                                   basin_error *error);

/* Probabilities beside frequencies: as a table (false: no memory), as an object "reliability". */
bool basin_cli_reliability_print(const basin_reliability *reliability);
void basin_put_reliability(basin_json *json, const basin_reliability *reliability);

#endif
