/* Inputs that settings leave open. */
#ifndef BASIN_TASK_NODES_CHOOSE_H
#define BASIN_TASK_NODES_CHOOSE_H

#include "task/nodes/nodes.h"

/* Settles scaling and hops: by quick probes on validation, or, where there is none or `ask` is
 * false, by rule. *stopped: the watcher stopped a probe, and nothing is settled. */
basin_status basin_nodes_choose_inputs(basin_nodes_settings *settings,
                                       const basin_task_settings *task, bool *stopped,
                                       const basin_network *network, const uint8_t *part /* [N] */,
                                       bool ask, const basin_nodes_resources *work,
                                       basin_error *error);

#endif
