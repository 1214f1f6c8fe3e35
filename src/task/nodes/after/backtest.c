/* A back-test: what a model's probabilities reach on labels, without training; see
 * include/basin/tasks/nodes.h. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/nodes/nodes.h"

/* ---- who took part in training ---- */

/* Marks the nodes that `known` names with `mark`. */
static basin_status mark(uint8_t *seen, const basin_known_labels *known,
                         const basin_network *network, uint8_t as, basin_error *error) {
    int8_t *label = basin_array_new((size_t)network->nodes, 1);
    if (!label) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for known nodes");
    basin_known_labels_find(label, known, network);
    for (int64_t i = 0; i < network->nodes; i++)
        if (label[i] >= 0) seen[i] = as;
    free(label);
    return BASIN_OK;
}

basin_status basin_nodes_seen(uint8_t *seen, const basin_nodes_model *model,
                              const basin_network *network, basin_error *error) {
    const basin_known_labels *known = &model->ensemble.known;
    if (!known->count) known = &model->memory.trained;
    memset(seen, BASIN_PART_NONE, (size_t)network->nodes);
    if (!known->count)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "the model does not say which nodes it was trained on; wanted one "
                          "trained by this version");
    if (!basin_known_labels_fit(known, network))
        return basin_fail(
            error, BASIN_UNSUPPORTED,
            "%s: which of its nodes took part in training cannot be told; wanted ids, "
            "in training and here, or the network of training",
            network->path);
    basin_status status = mark(seen, &model->memory.validated, network, BASIN_PART_VAL, error);
    return status ? status : mark(seen, known, network, BASIN_PART_TRAIN, error);
}

/* ---- figures ---- */

static basin_status count_seen(basin_nodes_figures *f, const basin_nodes_model *model,
                               const basin_network *network, const uint8_t *part, int which,
                               basin_error *error) {
    uint8_t *seen = basin_array_new((size_t)network->nodes, 1);
    if (!seen) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for known nodes");
    basin_status status = basin_nodes_seen(seen, model, network, error);
    f->trained_on = f->validated_on = status ? -1 : 0;
    for (int64_t i = 0; i < network->nodes && !status; i++) {
        if (part[i] != which) continue;
        f->trained_on += seen[i] == BASIN_PART_TRAIN;
        f->validated_on += seen[i] == BASIN_PART_VAL;
    }
    free(seen);
    return status == BASIN_UNSUPPORTED ? BASIN_OK : status;
}

/* 10, 30, 100, 300, .. alerts, as long as there are so many nodes. */
static basin_status try_budgets(basin_nodes_figures *f, const basin_nodes_samples *s,
                                basin_error *error) {
    basin_status status = BASIN_OK;
    for (int64_t k = 10; k < s->count && f->budgets < BASIN_NODES_BUDGETS && !status;) {
        basin_ranking r;
        status = basin_ranking_measure(&r, s->score, s->label, s->count, k, error);
        double found = status ? 0 : r.recall_k * (double)r.positives;
        f->budget[f->budgets++] = (basin_nodes_budget){k, found / (double)k, r.recall_k};
        k = k % 3 ? 3 * k : k / 3 * 10;
    }
    return status;
}

static basin_status judge(basin_nodes_figures *f, const basin_nodes_samples *s, bool probable,
                          const char *path, basin_error *error) {
    basin_ranking ranking;
    f->nodes = s->count;
    for (int64_t i = 0; i < s->count; i++) f->anomalous += s->label[i];
    if (!f->anomalous || f->anomalous == f->nodes)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: %lld labelled nodes, %lld of them anomalous; wanted some of both",
                          path, (long long)f->nodes, (long long)f->anomalous);
    basin_confusion c = basin_confusion_count(s->score, s->label, s->count, f->threshold);
    f->alerts = c.true_positive + c.false_positive;
    f->precision = basin_confusion_precision(&c);
    f->recall = basin_confusion_recall(&c);
    double both = f->precision + f->recall;
    f->f1 = both > 0 ? 2 * f->precision * f->recall / both : 0;
    f->macro_f1 = basin_confusion_macro_f1(&c);
    if (probable) f->reliability = basin_reliability_measure(s->score, s->label, s->count);
    basin_status status = basin_ranking_measure(&ranking, s->score, s->label, s->count, 0, error);
    if (status) return status;
    f->auroc = ranking.auroc;
    f->auprc = ranking.auprc;
    f->recall_at_k = ranking.recall_k;
    return try_budgets(f, s, error);
}

/* All labelled nodes, where the caller does not say which. */
static uint8_t *labelled(const basin_network *network) {
    uint8_t *part = basin_array_new((size_t)network->nodes, 1);
    for (int64_t i = 0; part && i < network->nodes; i++)
        part[i] = network->label && network->label[i] >= 0 ? BASIN_PART_TEST : BASIN_PART_NONE;
    return part;
}

static basin_status check_labels(const basin_network *network, basin_error *error) {
    if (!network->label)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no labels to compare with", network->path);
    int32_t most = basin_network_greatest_label(network);
    if (most <= 1) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "%s: label %d; wanted 0 (normal) and 1 (anomalous)",
                      network->path, (int)most);
}

basin_status basin_nodes_backtest(basin_nodes_figures *figures, const basin_nodes_model *model,
                                  const basin_network *network, const double *probability,
                                  const uint8_t *part, int which, double threshold,
                                  basin_error *error) {
    basin_nodes_samples s = {0};
    uint8_t *all = NULL;
    *figures = (basin_nodes_figures){.threshold = threshold};
    basin_status status = check_labels(network, error);
    if (!status && !part) {
        part = all = labelled(network);
        which = BASIN_PART_TEST;
        if (!all) status = basin_fail(error, BASIN_NO_MEMORY, "out of memory for a back-test");
    }
    if (!status) status = basin_nodes_samples_take(&s, probability, network, part, which, error);
    if (!status) status = judge(figures, &s, model != NULL, network->path, error);
    figures->trained_on = figures->validated_on = -1;
    if (!status && model) status = count_seen(figures, model, network, part, which, error);
    basin_nodes_samples_free(&s);
    free(all);
    return status;
}
