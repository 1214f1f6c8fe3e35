/* What the commands of graphs share: the cache of positions, opening a model with the graphs it is
 * used on, printing measures. */
#ifndef BASIN_CLI_GRAPH_OPTIONS_H
#define BASIN_CLI_GRAPH_OPTIONS_H

#include "basin/tasks/graphs.h"
#include "cli/command.h"
#include "io/json_writer.h"

/* The folder of cached positions: --cache, or basin/ in the user's cache folder; NULL for "none".
 */
const char *basin_graph_cache(const char *option, char *text, size_t size);
#define BASIN_GRAPH_OPTION_CACHE(type)                                                             \
    BASIN_TEXT(type, cache, 0, "cache", "DIR",                                                     \
               "Where positions of nodes are kept between runs; none: nowhere. Without it, the "   \
               "user's cache folder.")

/* `type` has members part, cache, backend, products and threads. */
#define BASIN_GRAPH_OPTIONS(type)                                                                  \
    BASIN_CHOICE(type, part, "part", "auto|train|validation|test|all",                             \
                 "Which graphs; auto: the test part of a set that has one, else all."),            \
        BASIN_GRAPH_OPTION_CACHE(type), BASIN_OPTIONS_COMPUTE(type)

/* A model and the graphs it is to be used on. */
typedef struct basin_graph_use {
    basin_backend *backend;
    basin_graphs_model *model;
    basin_graphset set;
    int64_t *list, count; /* the graphs of the part */
    char folder[4096];    /* of the cache */
    basin_graphs_data data;
} basin_graph_use;

/* Points into itself, so it must stay where it is. Its backend must be open. Without `labels`
 * those of the set are not read. */
basin_status basin_graph_use_open(basin_graph_use *use, const char *model, const char *data,
                                  const char *part, const char *cache, bool labels,
                                  basin_error *error);
/* A word on labels that training did not see, and on descents that did not rest. */
void basin_graph_use_tell(basin_graph_use *use, bool quiet);
void basin_graph_use_close(basin_graph_use *use);

/* The fields of measures of a target; and with the number of graphs or nodes before them. */
void basin_graph_measures_json(basin_json *json, const basin_graphs_measures *measures,
                               basin_graphs_target target);
void basin_graph_items_json(basin_json *json, const basin_graphs_measures *measures,
                            basin_graphs_target target);
/* What the number that chooses epochs is: "accuracy, percent". */
const char *basin_graph_score_name(basin_graphs_target target);
/* "accuracy 87.50 %, .." or "mean absolute error 0.2100, ..". */
void basin_graph_measures_text(char *text, size_t size, const basin_graphs_measures *measures,
                               const basin_graphs_model *model);
/* Where several values are pooled: in which units. Else "". */
const char *basin_graph_units(const basin_graphs_model *model);

#endif
