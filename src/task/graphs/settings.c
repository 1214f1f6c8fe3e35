/* Settings of graph tasks: the table of their names, what is refused. Presets come in three
 * families: paper-*, the paper's tables; published-*, the released code; and ours. */
#include <string.h>

#include "task/graphs/graphs.h"

#define BASIN_SETTINGS_TYPE basin_graphs_settings
static const basin_setting table[] = {
    BASIN_GRAPHS_INPUT_SETTINGS(BASIN_SETTING_ENTRY)
        BASIN_GRAPHS_MODEL_SETTINGS(BASIN_SETTING_ENTRY)
            BASIN_GRAPHS_TRAINING_SETTINGS(BASIN_SETTING_ENTRY)
                BASIN_LOOSE_SETTINGS(BASIN_LOOSE_ENTRY) BASIN_SETTINGS_END,
};

/* 100 epochs; of large graphs fewer, 12 million tokens in all, but not below 30. */
int64_t basin_graphs_epochs(const basin_graphs_settings *settings, const basin_graphset *set,
                            const int64_t *graph, int64_t count) {
    if (settings->epochs) return settings->epochs;
    int64_t tokens = 1;
    for (int64_t i = 0; i < count; i++) tokens += basin_graphset_tokens(set, graph[i]);
    int64_t epochs = 12000000 / tokens;
    return epochs > 100 ? 100 : epochs < 30 ? 30 : epochs;
}

basin_status basin_graphs_settings_check(const basin_graphs_settings *s, basin_error *error) {
    if (!s->attention && !s->hopfield)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "neither attention nor Hopfield network: wanted at least one of them");
    if (s->reconstruct && !strcmp(s->adjacency, "none"))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "edges are reconstructed from the adjacency; wanted one other than none");
    return BASIN_OK;
}

static basin_status check(const void *values, basin_error *error) {
    return basin_graphs_settings_check(values, error);
}

basin_status basin_graphs_settings_take(const basin_graphs_settings **values,
                                        const basin_settings *settings, basin_error *error) {
    return basin_settings_take((const void **)values, settings, &basin_graphs_task, error);
}

const basin_task_settings basin_graphs_task = {"graphs", table, sizeof(basin_graphs_settings),
                                               check,    NULL,  NULL};
