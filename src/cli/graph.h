/* What the commands of graphs share: the cache of positions, opening a model with the graphs it is
 * used on, printing measures. */
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

#define BASIN_GRAPH_OPTIONS                                                                        \
    BASIN_CHOICE(part, "part", "auto|train|validation|test|all",                                   \
                 "Which graphs; auto: the test part of a set that has one, else all.",             \
                 .text = "auto"),                                                                  \
        BASIN_GRAPH_OPTION_CACHE, BASIN_COMPUTE_OPTIONS

/* A model and the graphs it is to be used on. */
typedef struct basin_graph_use {
    basin_graphs_model *model;
    basin_graphs_info about;
    basin_graphset set;
    int64_t *list, count; /* the graphs of the part */
    char folder[4096];    /* of the cache */
    basin_graphs_data data;
} basin_graph_use;

/* Opens what the operands MODEL DATA name; `part` NULL: --part. Points into itself, so it must stay
 * where it is. Without `labels` those of the set are not read. */
basin_status basin_graph_use_open(basin_graph_use *use, basin_args *args, const char *part,
                                  bool labels, basin_error *error);
/* Notes on labels that training did not see, and on descents that did not converge. */
void basin_graph_use_note(basin_graph_use *use, const basin_args *args);
void basin_graph_use_close(basin_graph_use *use);

/* The fields of measures of a target; with `items`, the number of graphs or nodes before them. */
void basin_record_measures(basin_record *r, const basin_graphs_measures *measures,
                           basin_graphs_target target, bool items);
/* What the number that chooses epochs is: "accuracy, percent". */
const char *basin_graph_score_name(basin_graphs_target target);

#endif
