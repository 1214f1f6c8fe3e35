/* Why nodes score as they do; see explain.h, and include/basin/tasks/anomaly.h for what callers
 * get. */
#include "task/anomaly/explain/explain.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Energies and attention want the whole graph in a plan. */
static basin_status look(basin_explainer *x, bool *fits, basin_error *error) {
    const basin_anomaly_settings *settings = &x->model->settings;
    size_t bytes = 0;
    *fits = true;
    if (!x->inputs.table || !basin_anomaly_descends(settings)) return BASIN_OK;
    basin_status status =
        basin_anomaly_net_memory(&bytes, settings, &x->inputs.shape, true, x->work.backend, error);
    *fits = bytes <= basin_anomaly_memory_limit(&x->work);
    return status || !*fits ? status : basin_explain_look(x, error);
}

static basin_status explain(basin_anomaly_explanation **list, const basin_anomaly_model *model,
                            const basin_network *network, const int64_t *node, int64_t count,
                            const double *probability, bool brief,
                            const basin_anomaly_resources *work, basin_error *error) {
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

basin_status basin_anomaly_explain_nodes(basin_anomaly_explanation **list,
                                         const basin_anomaly_model *model,
                                         const basin_network *network, const int64_t *node,
                                         int64_t count, const double *probability, bool brief,
                                         const basin_anomaly_work *work, basin_error *error) {
    basin_anomaly_resources with;
    double *scored = NULL;
    for (int64_t i = 0; i < count; i++) list[i] = NULL;
    basin_status status = check_nodes(network, node, count, error);
    if (!status) status = basin_anomaly_resources_take(&with, work, model->backend, error);
    if (!status) status = basin_anomaly_check_network(model, network, error);
    if (!status && !probability) {
        probability = scored = basin_array_new((size_t)network->nodes, sizeof *scored);
        status = scored ? basin_anomaly_score(scored, model, network, work, error)
                        : basin_fail(error, BASIN_NO_MEMORY, "out of memory for scores");
    }
    if (!status)
        status = explain(list, model, network, node, count, probability, brief, &with, error);
    for (int64_t i = 0; i < count && status; i++) {
        basin_anomaly_explanation_free(list[i]);
        list[i] = NULL;
    }
    free(scored);
    return status;
}

basin_status basin_anomaly_explain(basin_anomaly_explanation **explanation,
                                   const basin_anomaly_model *model, const basin_network *network,
                                   int64_t node, const basin_anomaly_work *work,
                                   basin_error *error) {
    return basin_anomaly_explain_nodes(explanation, model, network, &node, 1, NULL, false, work,
                                       error);
}

void basin_anomaly_explanation_free(basin_anomaly_explanation *explanation) {
    if (!explanation) return;
    free(explanation->neighbour);
    free(explanation->feature);
    free(explanation);
}
