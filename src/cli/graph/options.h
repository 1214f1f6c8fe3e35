/* What the commands of graphs share: the options of a model, opening data, a backend and
 * positions, printing scores. */
#ifndef BASIN_CLI_GRAPH_OPTIONS_H
#define BASIN_CLI_GRAPH_OPTIONS_H

#include "cli/command.h"
#include "task/graphs/graphs.h"

/* The folder of cached positions: --cache, or basin/ in the user's cache folder; NULL for "none".
 */
const char *basin_graphs_cache(const char *option, char *text, size_t size);
#define BASIN_GRAPH_OPTION_CACHE(type)                                                             \
    BASIN_TEXT(type, cache, 0, "cache", "DIR",                                                     \
               "Where positions of nodes are kept between runs; none: nowhere. Without it, the "   \
               "user's cache folder.")

/* The graphs of a set: train, validation, test as it says, or all. Free *list. */
basin_status basin_graphs_part(int64_t **list, int64_t *count, const basin_graphset *set,
                               const char *part, const char *path, basin_error *error);

/* A model and the graphs it is to be used on. */
typedef struct basin_graphs_use {
    basin_graphset set;
    basin_positions positions;
    basin_backend *backend;
    basin_graphs_session session;
    int64_t *list, count; /* the graphs */
    float *output;        /* [rows, C] */
} basin_graphs_use;

/* Opens both and computes the outputs of the part. Classes of the set are renumbered to the
 * model's. With `labels` a set without is refused. */
basin_status basin_graphs_use_open(basin_graphs_use *use, const char *model, const char *data,
                                   const char *part, const char *cache, const char *backend,
                                   const char *products, int64_t threads, bool labels,
                                   basin_error *error);
void basin_graphs_use_free(basin_graphs_use *use);

/* The fields of a score for a task, with `prefix` before their names. */
void basin_graphs_score_json(basin_json *json, const basin_graphs_score *score,
                             basin_graphs_target task);
/* "87.50 % (balanced 85.00 %)" or "MAE 0.2100". */
void basin_graphs_score_text(char *text, size_t size, const basin_graphs_score *score,
                             basin_graphs_target task);

#endif
