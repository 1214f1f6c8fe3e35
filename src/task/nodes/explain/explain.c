/* Why nodes score as they do; see explain.h, and include/basin/tasks/nodes.h for what callers
 * get. */
#include "task/nodes/explain/explain.h"

#include <stdlib.h>
#include <string.h>

#include "base/try.h"

/* Energies and attention want the whole graph in a plan. */
static basin_status look(basin_explainer *x, bool *fits, basin_error *error) {
    const basin_nodes_settings *settings = &x->model->settings;
    size_t bytes = 0;
    *fits = true;
    if (!x->inputs.table || !basin_nodes_descends(settings)) return BASIN_OK;
    basin_status status =
        basin_nodes_net_memory(&bytes, settings, &x->inputs.shape, true, x->work.backend, error);
    *fits = bytes <= basin_nodes_memory_limit(&x->work);
    return status || !*fits ? status : basin_explain_look(x, error);
}

static basin_status explain(basin_nodes_explanation **list, const basin_nodes_model *model,
                            const basin_network *network, const int64_t *node, int64_t count,
                            const double *probability, bool brief,
                            const basin_nodes_resources *work, basin_error *error) {
    basin_explainer x;
    bool fits = true;
    basin_status status = basin_explainer_open(&x, model, network, node, count, work, error);
    if (!status) status = basin_explain_trees(&x, error);
    if (!status) status = basin_explain_network(&x, error);
    if (!status && !brief) status = look(&x, &fits, error);
    for (int64_t i = 0; i < count && !status; i++) {
        status = basin_told_finish(&list[i], &x, &x.told[i], probability, error);
        if (!status) list[i]->nearby = !fits;
    }
    basin_explainer_close(&x);
    return status;
}

static basin_status check_nodes(const basin_network *network, const int64_t *node, int64_t count,
                                basin_error *error) {
    for (int64_t i = 0; i < count; i++)
        if (node[i] < 0 || node[i] >= network->nodes)
            return basin_fail(error, BASIN_BAD_VALUE, "%s: node %lld, wanted 0 to %lld",
                              network->path, (long long)node[i], (long long)network->nodes - 1);
    return BASIN_OK;
}

static basin_status explain_as(basin_nodes_explanation **list, const basin_nodes_model *model,
                               const basin_network *network, const int64_t *node, int64_t count,
                               const basin_nodes_work *work, basin_error *error) {
    basin_nodes_resources with = basin_nodes_resources_of(work, model->backend);
    const double *probability = work ? work->probability : NULL;
    BASIN_FREE_AT_EXIT double *scored = NULL;
    BASIN_TRY(check_nodes(network, node, count, error));
    BASIN_TRY(basin_nodes_check_network(model, network, error));
    if (!probability) {
        BASIN_TRY(BASIN_NEW_RAW(&scored, network->nodes, "scores", error));
        BASIN_TRY(basin_nodes_score(scored, model, network, work, error));
        probability = scored;
    }
    return explain(list, model, network, node, count, probability, work && work->brief, &with,
                   error);
}

basin_status basin_nodes_explain(basin_nodes_explanation **list, const basin_nodes_model *model,
                                 const basin_network *network, const int64_t *node, int64_t count,
                                 const basin_nodes_work *work, basin_error *error) {
    int64_t number = work ? work->number : 0;
    basin_nodes_model one = *model;
    for (int64_t i = 0; i < count; i++) list[i] = NULL;
    if (model->settings.classes && (number < 0 || number >= model->settings.classes))
        return basin_fail(error, BASIN_BAD_VALUE, "class %lld, wanted 0 to %lld", (long long)number,
                          (long long)model->settings.classes - 1);
    if (model->settings.classes) { /* a detector of that class: its odds against all others */
        one.settings.focus = number + 1;
        one.face.values = &one.settings;
    }
    basin_status status = explain_as(list, &one, network, node, count, work, error);
    for (int64_t i = 0; i < count && status; i++) {
        basin_nodes_explanation_free(list[i]);
        list[i] = NULL;
    }
    return status;
}

void basin_nodes_explanation_free(basin_nodes_explanation *explanation) {
    if (!explanation) return;
    free(explanation->neighbour);
    free(explanation->feature);
    free(explanation);
}
