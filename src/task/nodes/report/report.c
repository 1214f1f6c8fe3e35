/* A report on a detector and the nodes that it scores: gathers what the document says; see
 * include/basin/tasks/nodes.h. */
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/try.h"
#include "task/nodes/report/report.h"

/* ---- curves over all thresholds: precision by recall, and true by false alarms; equal scores
 * change sides together ---- */

typedef struct sample {
    double score;
    uint8_t label;
} sample;

static int by_score(const void *a, const void *b) {
    return BASIN_COMPARE(((const sample *)b)->score, ((const sample *)a)->score);
}

/* A point that is far enough from the one before, or the last. */
static void add(basin_nodes_curve *curve, double x, double y, bool last) {
    static const double apart = 1.5 / BASIN_CURVE_POINTS;
    int64_t n = curve->count;
    double far = n ? x - curve->x[n - 1] + (y > curve->y[n - 1] ? y - curve->y[n - 1] : 0) : 1;
    if (!last && (far < apart || n > BASIN_CURVE_POINTS)) return;
    curve->x[n] = x;
    curve->y[n] = y;
    curve->count++;
}

static basin_status draw_curves(basin_nodes_findings *f, basin_error *error) {
    const basin_nodes_samples *s = &f->samples;
    double normal = (double)(f->figures.nodes - f->figures.anomalous), found[2] = {0, 0};
    BASIN_FREE_AT_EXIT sample *list = NULL;
    BASIN_TRY(BASIN_NEW_RAW(&list, s->count, "curves", error));
    for (int64_t i = 0; i < s->count; i++) list[i] = (sample){s->score[i], s->label[i]};
    qsort(list, (size_t)s->count, sizeof *list, by_score);
    add(&f->roc, 0, 0, false);
    for (int64_t i = 0; i < s->count; i++) {
        bool last = i + 1 == s->count;
        found[list[i].label]++;
        if (!last && list[i].score == list[i + 1].score) continue;
        double recall = found[1] / (double)f->figures.anomalous;
        add(&f->precision, recall, found[1] / (found[0] + found[1]), last);
        add(&f->roc, found[0] / normal, recall, last);
    }
    return BASIN_OK;
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

static basin_status judge(basin_nodes_findings *f, const uint8_t *asked, basin_error *error) {
    const basin_network *n = f->network;
    BASIN_FREE_AT_EXIT uint8_t *part = choose(n, asked);
    if (!part) return basin_fail_memory(error, "a report");
    f->judged = has_both(n, part);
    if (!f->judged) return BASIN_OK;
    BASIN_TRY(basin_nodes_backtest(&f->figures, f->model, n, f->probability, part, BASIN_PART_TEST,
                                   basin_nodes_get_info(f->model)->threshold, error));
    BASIN_TRY(
        basin_nodes_samples_take(&f->samples, f->probability, n, part, BASIN_PART_TEST, error));
    return draw_curves(f, error);
}

/* ---- reasons ---- */

typedef struct place {
    double probability;
    int64_t node;
} place;

static int higher_first(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->probability != y->probability) return BASIN_COMPARE(y->probability, x->probability);
    return BASIN_COMPARE(x->node, y->node);
}

static basin_status explain(basin_nodes_findings *f, const basin_nodes_work *work,
                            basin_error *error) {
    int64_t N = f->network->nodes;
    basin_nodes_work how = work ? *work : (basin_nodes_work){0};
    how.probability = f->probability, how.brief = true;
    BASIN_FREE_AT_EXIT place *list = NULL;
    BASIN_FREE_AT_EXIT int64_t *node = NULL;
    BASIN_TRY(BASIN_NEW_RAW(&list, N, "a report", error));
    BASIN_TRY(BASIN_NEW_RAW(&node, f->alerts, "a report", error));
    BASIN_TRY(BASIN_NEW(&f->why, f->alerts + 1, "a report", error));
    for (int64_t i = 0; i < N; i++) list[i] = (place){f->probability[i], i};
    qsort(list, (size_t)N, sizeof *list, higher_first);
    for (int64_t i = 0; i < f->alerts; i++) node[i] = list[i].node;
    return basin_nodes_explain(f->why, f->model, f->network, node, f->alerts, &how, error);
}

/* ---- all of it ---- */

static basin_status gather(basin_nodes_findings *f, const basin_nodes_reporting *r,
                           basin_error *error) {
    BASIN_TRY(BASIN_NEW_RAW(&f->probability, f->network->nodes, "a report", error));
    BASIN_TRY(basin_nodes_score(f->probability, f->model, f->network, r->work, error));
    BASIN_TRY(judge(f, r->part, error));
    BASIN_TRY(explain(f, r->work, error));
    basin_status status = basin_nodes_drift_measure(&f->drift, f->model, f->network, 0, error);
    return status == BASIN_UNSUPPORTED ? BASIN_OK : status;
}

static void findings_free(basin_nodes_findings *f) {
    for (int64_t i = 0; i < f->alerts && f->why; i++) basin_nodes_explanation_free(f->why[i]);
    free(f->why);
    basin_nodes_drift_free(&f->drift);
    basin_nodes_samples_free(&f->samples);
    free(f->probability);
}

basin_status basin_nodes_report(const char *path, const basin_nodes_model *model,
                                const basin_network *network,
                                const basin_nodes_reporting *reporting, basin_error *error) {
    basin_nodes_findings f = {.model = model,
                              .network = network,
                              .name = reporting->model ? reporting->model : "detector",
                              .alerts = reporting->alerts > 0 ? reporting->alerts : 20,
                              .reasons = reporting->reasons > 0 ? reporting->reasons : 6};
    if (model->settings.classes)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "a report on a model of several classes; "
                          "needs a detector of anomalies");
    if (f.alerts > network->nodes) f.alerts = network->nodes;
    basin_status status = gather(&f, reporting, error);
    if (!status) status = basin_nodes_document_write(path, &f, error);
    findings_free(&f);
    return status;
}
