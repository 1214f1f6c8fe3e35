/* What the commands of graphs share: the cache of positions, printing measures. */
#ifndef BASIN_CLI_GRAPH_H
#define BASIN_CLI_GRAPH_H

#include "basin/tasks/graphs.h"
#include "cli/cli.h"

/* The folder of cached positions: --cache, or basin/ in the user's cache folder; NULL for "none".
 */
const char *basin_graph_cache(const basin_args *args, char *text, size_t size);
#define BASIN_GRAPH_OPTION_CACHE                                                                   \
    BASIN_TEXT(cache, 0, "cache", "DIR",                                                           \
               "Where positions of nodes are kept between runs; none: nowhere. Without it, the "   \
               "user's cache folder.",                                                             \
               .more = true)

/* The fields of measures of a target; with `items`, the number of graphs or nodes before them. */
void basin_record_measures(basin_record *r, const basin_graphs_measures *measures,
                           basin_graphs_target target, bool items);
/* What the number that chooses epochs is: "accuracy, percent". */
const char *basin_graph_score_name(basin_graphs_target target);

#endif
