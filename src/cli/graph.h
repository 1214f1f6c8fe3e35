/* What the commands of graphs share: printing measures. */
#ifndef BASIN_CLI_GRAPH_H
#define BASIN_CLI_GRAPH_H

#include "basin/tasks/graphs.h"
#include "cli/cli.h"

/* The fields of measures of a target; with `items`, the number of graphs or nodes before them. */
void basin_record_measures(basin_record *r, const basin_graphs_measures *measures,
                           basin_graphs_target target, bool items);
/* What the number that chooses epochs is: "accuracy, percent". */
const char *basin_graph_score_name(basin_graphs_target target);

#endif
