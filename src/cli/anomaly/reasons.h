/* Reasons in words, in the user's units: what moves a node's score. */
#ifndef BASIN_CLI_ANOMALY_REASONS_H
#define BASIN_CLI_ANOMALY_REASONS_H

#include "basin/tasks/anomaly.h"
#include "io/json_writer.h"

enum { BASIN_REASON_TEXT = 300 };

/* "amount", "amount, mean 1 hop away", "number of neighbours", "known anomalies, .." */
const char *basin_reason_name(char text[BASIN_REASON_TEXT], const basin_network *network,
                              const basin_anomaly_feature *feature);
/* The n-th of the features that raise the score: "amount 15200 (typical 320) +2.31"; "" where there
 * are fewer. */
const char *basin_reason_code(char text[BASIN_REASON_TEXT],
                              const basin_anomaly_explanation *explanation,
                              const basin_network *network, const basin_schema *schema, int n);
/* Logits, neighbours and features, as fields of an object; at most so many of each. */
void basin_put_reasons(basin_json *json, const basin_anomaly_explanation *explanation,
                       const basin_network *network, const basin_schema *schema, int64_t neighbours,
                       int64_t features);

#endif
