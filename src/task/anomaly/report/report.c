/* A report on a detector and the nodes that it scores: gathers what the page shows; see
 * include/basin/tasks/anomaly.h. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/anomaly/report/page.h"

static basin_status no_memory(basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a report");
}

/* ---- figures ---- */

/* The nodes to judge by: the caller's, or all that have a label; free them. */
static uint8_t *choose(const basin_network *network, const uint8_t *part) {
    uint8_t *chosen = basin_array_new((size_t)network->nodes, 1);
    for (int64_t i = 0; chosen && i < network->nodes; i++) {
        bool labelled = network->label && network->label[i] >= 0;
        bool wanted = !part || part[i] == BASIN_PART_TEST;
        chosen[i] = labelled && wanted ? BASIN_PART_TEST : BASIN_PART_NONE;
    }
    return chosen;
}

static bool has_both(const basin_network *network, const uint8_t *part) {
    int64_t count[2] = {0, 0};
    for (int64_t i = 0; i < network->nodes; i++)
        if (part[i]) count[network->label[i] == 1]++;
    return count[0] && count[1];
}

static basin_status judge(basin_anomaly_findings *f, const uint8_t *asked, basin_error *error) {
    const basin_network *n = f->network;
    uint8_t *part = choose(n, asked);
    if (!part) return no_memory(error);
    basin_status status = BASIN_OK;
    f->judged = has_both(n, part);
    if (f->judged)
        status = basin_anomaly_backtest(&f->figures, f->model, n, f->probability, part,
                                        BASIN_PART_TEST, basin_anomaly_threshold(f->model), error);
    if (f->judged && !status)
        status = basin_anomaly_samples_take(&f->samples, f->probability, n, part, BASIN_PART_TEST,
                                            error);
    if (f->judged && !status) status = basin_anomaly_curves(f, error);
    free(part);
    return status;
}

/* ---- reasons ---- */

typedef struct place {
    double probability;
    int64_t node;
} place;

static int higher_first(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->probability != y->probability) return x->probability < y->probability ? 1 : -1;
    return (x->node > y->node) - (x->node < y->node);
}

static basin_status explain(basin_anomaly_findings *f, const basin_anomaly_work *work,
                            basin_error *error) {
    int64_t N = f->network->nodes;
    place *list = basin_array_new((size_t)N, sizeof *list);
    int64_t *node = basin_array_new((size_t)f->alerts, sizeof *node);
    f->why = calloc((size_t)f->alerts + 1, sizeof *f->why);
    basin_status status = list && node && f->why ? BASIN_OK : no_memory(error);
    for (int64_t i = 0; i < N && !status; i++) list[i] = (place){f->probability[i], i};
    if (!status) qsort(list, (size_t)N, sizeof *list, higher_first);
    for (int64_t i = 0; i < f->alerts && !status; i++) node[i] = list[i].node;
    if (!status)
        status = basin_anomaly_explain_nodes(f->why, f->model, f->network, node, f->alerts,
                                             f->probability, true, work, error);
    free(list);
    free(node);
    return status;
}

/* ---- all of it ---- */

static basin_status gather(basin_anomaly_findings *f, const basin_anomaly_reporting *r,
                           basin_error *error) {
    f->probability = basin_array_new((size_t)f->network->nodes, sizeof *f->probability);
    if (!f->probability) return no_memory(error);
    basin_status status = basin_anomaly_score(f->probability, f->model, f->network, r->work, error);
    if (!status) status = judge(f, r->part, error);
    if (!status) status = explain(f, r->work, error);
    if (status) return status;
    status = basin_anomaly_drift_measure(&f->drift, f->model, f->network, 0, error);
    return status == BASIN_UNSUPPORTED ? BASIN_OK : status;
}

static void findings_free(basin_anomaly_findings *f) {
    for (int64_t i = 0; i < f->alerts && f->why; i++) basin_anomaly_explanation_free(f->why[i]);
    free(f->why);
    basin_anomaly_drift_free(&f->drift);
    basin_anomaly_samples_free(&f->samples);
    free(f->probability);
}

basin_status basin_anomaly_report(const char *path, const basin_anomaly_model *model,
                                  const basin_network *network,
                                  const basin_anomaly_reporting *reporting, basin_error *error) {
    basin_anomaly_reporting r = {0};
    if (reporting->size < offsetof(basin_anomaly_reporting, work))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "the size of basin_anomaly_reporting is %zu, wanted "
                          "sizeof(basin_anomaly_reporting)",
                          reporting->size);
    memcpy(&r, reporting, reporting->size < sizeof r ? reporting->size : sizeof r);
    basin_anomaly_findings f = {.model = model,
                                .network = network,
                                .name = r.model ? r.model : "detector",
                                .alerts = r.alerts > 0 ? r.alerts : 20,
                                .reasons = r.reasons > 0 ? r.reasons : 6};
    if (f.alerts > network->nodes) f.alerts = network->nodes;
    basin_status status = gather(&f, &r, error);
    if (!status) status = basin_anomaly_page_write(path, &f, error);
    findings_free(&f);
    return status;
}
