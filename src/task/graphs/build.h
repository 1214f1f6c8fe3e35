/* What the files of the graph task share among themselves. */
#ifndef BASIN_TASK_GRAPHS_BUILD_H
#define BASIN_TASK_GRAPHS_BUILD_H

#include "task/graphs/graphs.h"

/* The model that a session's settings and encoding describe; without noise and seed. */
basin_graphs_config basin_graph_session_config(const basin_graph_session *session);

/* A plan for a room: with `schedule` for training, else for scores. */
basin_status basin_graph_plan_new(basin_graph_plan **plan, basin_graph_session *session,
                                  basin_graph_room room, const basin_schedule *schedule,
                                  basin_error *error);
void basin_graph_plan_free(basin_graph_plan *plan);

#endif
