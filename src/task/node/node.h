/* Classes of nodes inside the library: the face that the models of task/anomaly have for any number
 * of classes. Callers see include/basin/tasks/node.h. */
#ifndef BASIN_TASK_NODE_NODE_H
#define BASIN_TASK_NODE_NODE_H

#include "basin/tasks/node.h"
#include "task/anomaly/anomaly.h"

/* What means another thing than for a detector, or offers other choices. */
#define BASIN_NODE_JUDGE_SETTINGS(X)                                                               \
    X(CHOICE, select, BASIN_CHOICES("accuracy", "macro_f1", "auroc"),                              \
      "What on validation chooses the epoch; of equals the one with the smaller loss.",            \
      .absent = "accuracy")                                                                        \
    X(CHOICE, balance, BASIN_CHOICES("full", "root", "none"),                                      \
      "Weight of a class in the loss: one over its share of the nodes, the root of that, or 1.",   \
      .absent = "none")
#define BASIN_NODE_MEMBER_SETTINGS(X)                                                              \
    X(INTEGER, members, "N", 0, 64,                                                                \
      "Networks trained from different seeds and averaged; 0: 2 up to 2 million edges, else 1.")

extern const basin_task_settings basin_node_task;

#endif
