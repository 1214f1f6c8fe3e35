/* What the commands of graphs share; see graph_options.h. */
#include "cli/graph_options.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *basin_graph_cache(const char *option, char *text, size_t size) {
    if (option) return strcmp(option, "none") ? option : NULL;
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (base && *base)
        n = snprintf(text, size, "%s", base);
    else if (home && *home)
        n = snprintf(text, size, "%s/.cache", home);
    if (n < 0 || (size_t)n + 7 > size) return NULL;
    mkdir(text, 0777);
    memcpy(text + n, "/basin", 7);
    return text;
}

basin_status basin_graph_part(int64_t **list, int64_t *count, const basin_graphset *set,
                              const char *part, const char *path, basin_error *error) {
    static const char *const name[3] = {"train", "validation", "test"};
    int64_t first = 0;
    *count = set->graphs;
    for (int i = 0, found = 0; i < 3 && strcmp(part, "all") && !found; i++) {
        found = !strcmp(part, name[i]);
        *count = set->split[i];
        first += found ? 0 : *count;
    }
    if (strcmp(part, "all") && !*count)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: no graphs are set apart for '%s'; wanted a set with splits, or all",
                          path, part);
    *list = basin_graph_range(first, *count);
    return *list ? BASIN_OK : basin_fail(error, BASIN_NO_MEMORY, "no memory for a list of graphs");
}

void basin_graph_score_json(basin_json *json, const basin_graph_score *score,
                            basin_graph_task task) {
    basin_json_integer(json, task == BASIN_NODE_CLASSES ? "nodes" : "graphs", score->items);
    if (task == BASIN_GRAPH_VALUES) {
        basin_json_number(json, "mae", score->loss);
        basin_json_number(json, "rmse", score->deviation);
    } else {
        basin_json_number(json, "accuracy", score->accuracy);
        basin_json_number(json, "balanced_accuracy", score->balanced);
        basin_json_number(json, "cross_entropy", score->loss);
    }
}

void basin_graph_score_text(char *text, size_t size, const basin_graph_score *score,
                            basin_graph_task task) {
    if (task == BASIN_GRAPH_VALUES)
        snprintf(text, size, "mean absolute error %.4f, root mean square error %.4f", score->loss,
                 score->deviation);
    else
        snprintf(text, size, "accuracy %.2f %%, class-averaged %.2f %%, cross entropy %.4f",
                 score->accuracy, score->balanced, score->loss);
}
