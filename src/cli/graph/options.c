/* What the commands of graphs share; see options.h. */
#include "cli/graph/options.h"

#include <stdio.h>
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

basin_status basin_graph_use_open(basin_graph_use *use, const char *model, const char *data,
                                  const char *part, const char *cache, bool labels,
                                  basin_error *error) {
    basin_status status = basin_graphs_open(&use->model, model, use->backend, error);
    if (!status)
        status = (labels ? basin_graphset_read : basin_graphset_read_bare)(&use->set, data, error);
    if (!status) status = basin_graphs_part(&use->list, &use->count, &use->set, part, error);
    use->data =
        (basin_graphs_data){.size = sizeof use->data,
                            .set = &use->set,
                            .path = data,
                            .graph = use->list,
                            .graphs = use->count,
                            .cache = basin_graph_cache(cache, use->folder, sizeof use->folder)};
    return status;
}

static void tell_unknown(const basin_graph_use *use) {
    static const char *const of[2] = {"nodes", "edges"};
    int64_t unknown[2];
    if (basin_graphs_unknown_labels(unknown, use->model, &use->data, NULL)) return;
    for (int i = 0; i < 2; i++)
        if (unknown[i])
            basin_say("basin: note: %s with a label beyond those of training, whom the model sees "
                      "as without one: %lld",
                      of[i], (long long)unknown[i]);
}

void basin_graph_use_tell(basin_graph_use *use, bool quiet) {
    char text[400];
    if (!quiet) tell_unknown(use);
    basin_rests rests = basin_graphs_take_rests(use->model);
    if (basin_rests_tell(text, sizeof text, &rests) && !quiet) basin_say("basin: note: %s", text);
}

void basin_graph_use_close(basin_graph_use *use) {
    free(use->list);
    basin_graphset_free(&use->set);
    basin_graphs_close(use->model);
    if (use->backend) basin_backend_close(use->backend);
}

void basin_graph_measures_json(basin_json *json, const basin_graphs_measures *measures,
                               basin_graphs_target target) {
    if (target == BASIN_GRAPHS_VALUES) {
        basin_json_number(json, "mae", measures->loss);
        basin_json_number(json, "rmse", measures->deviation);
    } else {
        basin_json_number(json, "accuracy", measures->accuracy);
        basin_json_number(json, "balanced_accuracy", measures->balanced);
        basin_json_number(json, "cross_entropy", measures->loss);
    }
}

void basin_graph_items_json(basin_json *json, const basin_graphs_measures *measures,
                            basin_graphs_target target) {
    basin_json_integer(json, target == BASIN_NODE_CLASSES ? "nodes" : "graphs", measures->items);
    basin_graph_measures_json(json, measures, target);
}

const char *basin_graph_units(const basin_graphs_model *model) {
    char text[8];
    bool values = basin_graphs_get_target(model) == BASIN_GRAPHS_VALUES;
    if (!values || basin_graphs_columns(model) < 2 ||
        basin_settings_get(text, sizeof text, basin_graphs_get_settings(model), "standardise",
                           NULL))
        return "";
    return strcmp(text, "on") ? ", all values pooled in their own units"
                              : ", each value in units of its deviation in training";
}

void basin_graph_measures_text(char *text, size_t size, const basin_graphs_measures *measures,
                               const basin_graphs_model *model) {
    if (basin_graphs_get_target(model) == BASIN_GRAPHS_VALUES)
        snprintf(text, size, "mean absolute error %.4f, root mean square error %.4f%s",
                 measures->loss, measures->deviation, basin_graph_units(model));
    else
        snprintf(text, size, "accuracy %.2f %%, class-averaged %.2f %%, cross entropy %.4f",
                 measures->accuracy, measures->balanced, measures->loss);
}

const char *basin_graph_score_name(basin_graphs_target target) {
    if (target == BASIN_GRAPHS_VALUES) return "mean absolute error";
    return target == BASIN_NODE_CLASSES ? "class-averaged accuracy, percent" : "accuracy, percent";
}
