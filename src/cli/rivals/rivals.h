/* What `--rivals` of `basin anomaly eval` and `basin node eval` trains beside a model:
 * XGBoost beside detectors; beside classes a perceptron and the paper's block alone. */
#ifndef BASIN_CLI_RIVALS_RIVALS_H
#define BASIN_CLI_RIVALS_RIVALS_H

#include "basin/tasks/node.h"
#include "data/network/network.h"

enum { BASIN_CLI_RIVALS = 16 };

typedef struct basin_cli_rivals {
    const char *task;                     /* "anomaly" or "node" */
    const char *preset[BASIN_CLI_RIVALS]; /* [count] the library's own names, or "xgboost" */
    int count;
} basin_cli_rivals;

/* From "mlp,paper", or "all"; none where `list` is NULL. */
basin_status basin_cli_rivals_parse(basin_cli_rivals *rivals, const char *task, const char *list,
                                    basin_error *error);
/* Which is run by basin_anomaly_xgboost, not as below. */
bool basin_cli_rival_is_xgboost(const char *name);
basin_status basin_cli_rival_train(basin_anomaly_model **model, basin_outcome *outcome,
                                   const char *task, const char *preset, int64_t seed,
                                   const basin_anomaly_data *data, const basin_training *training,
                                   basin_error *error);

#endif
