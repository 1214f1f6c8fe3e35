/* Reasons as JSON: what moves a node's score. */
#ifndef BASIN_CLI_ANOMALY_REASONS_H
#define BASIN_CLI_ANOMALY_REASONS_H

#include "basin/tasks/anomaly.h"
#include "io/json_writer.h"

/* Logits, neighbours and features, as fields of an object; at most so many of each. */
void basin_put_reasons(basin_json *json, const basin_anomaly_explanation *explanation,
                       const basin_network *network, const basin_schema *schema, int64_t neighbours,
                       int64_t features);

#endif
