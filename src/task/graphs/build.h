/* What the files of the graph task share among themselves. */
#ifndef BASIN_TASK_GRAPHS_BUILD_H
#define BASIN_TASK_GRAPHS_BUILD_H

#include "task/graphs/graphs.h"

/* The model that a session's settings and encoding describe; without noise and seed. */
basin_graphs_config basin_graphs_session_config(const basin_graphs_session *session);

/* A plan for a room: with `schedule` for training, else for scores. */
basin_status basin_graphs_plan_new(basin_graphs_plan **plan, basin_graphs_session *session,
                                   basin_graphs_capacity room, const basin_schedule *schedule,
                                   basin_error *error);
void basin_graphs_plan_free(basin_graphs_plan *plan);

#endif
