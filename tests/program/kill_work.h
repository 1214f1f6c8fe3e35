/* Small runs of anomaly train and graph train for kills, and their data. */
#ifndef TESTS_CLI_KILL_WORK_H
#define TESTS_CLI_KILL_WORK_H

#include "program/accounts.h"
#include "program/kill.h"
#include "tasks/graphs/graph_world.h"

#define ANOMALY                                                                                    \
    "anomaly train accounts.csv transfers.csv --blocks 1 --dim 16 --head-dim 8 --memories 16 "     \
    "--hidden 16 --members 2 --patience 0 --evaluate 5 --threads 1 --quiet --save-every 0 "

/* Without a teacher, whose predictions take longer than the rest: kills come in training. */
#define FEW_TREES "--trees 4 --no-teacher "

#define GRAPH                                                                                      \
    "graph train set.safetensors --dim 16 --heads 2 --head-dim 8 --memories 16 --blocks 1 "        \
    "--hidden 8 --walks 4 --edge-walks 2 --threads 1 -q --save-every 0.02 "

#endif
