/* The protocol: figures of one split, and the plain models on the same split. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/anomaly/net.h"

const char *const basin_baseline_name[BASIN_BASELINES] = {
    "logistic regression", "MLP", "logistic regression, 2-hop means", "MLP, 2-hop means"};

/* Scores and labels of one part; free both. */
static basin_status take_part(double **score, uint8_t **label, int64_t *count,
                              const double *probability, const basin_network *network,
                              const uint8_t *part, int which, basin_error *error) {
    *count = basin_split_nodes(NULL, part, network->nodes, which);
    *score = basin_array_new((size_t)*count, sizeof **score);
    *label = basin_array_new((size_t)*count, sizeof **label);
    if (!*score || !*label) return basin_fail(error, BASIN_NO_MEMORY, "no memory for figures");
    for (int64_t i = 0, n = 0; i < network->nodes; i++) {
        if (part[i] != which) continue;
        (*score)[n] = probability[i];
        (*label)[n++] = network->label[i] == 1;
    }
    return BASIN_OK;
}

static basin_status measure_val(basin_anomaly_figures *f, const double *score, const uint8_t *label,
                                int64_t count, const char *threshold, basin_error *error) {
    basin_ranking ranking;
    basin_threshold_scan scan = basin_anomaly_scan(threshold);
    basin_status status =
        basin_threshold_best(&f->threshold, &f->val_macro_f1, score, label, count, scan, error);
    if (!status) status = basin_ranking_measure(&ranking, score, label, count, 0, error);
    if (!status) f->val_auroc = ranking.auroc, f->val_auprc = ranking.auprc;
    return status;
}

static basin_status measure_test(basin_anomaly_figures *f, const double *score,
                                 const uint8_t *label, int64_t count, basin_error *error) {
    basin_ranking ranking;
    basin_confusion c = basin_confusion_count(score, label, count, f->threshold);
    basin_status status = basin_ranking_measure(&ranking, score, label, count, 0, error);
    f->macro_f1 = basin_confusion_macro_f1(&c);
    f->auroc = ranking.auroc, f->auprc = ranking.auprc, f->recall_k = ranking.recall_k;
    return status;
}

static basin_status measure_part(basin_anomaly_figures *figures, const double *probability,
                                 const basin_network *network, const uint8_t *part, int which,
                                 const char *threshold, basin_error *error) {
    double *score = NULL;
    uint8_t *label = NULL;
    int64_t count;
    basin_status status =
        take_part(&score, &label, &count, probability, network, part, which, error);
    if (!status)
        status = which == BASIN_PART_VAL
                     ? measure_val(figures, score, label, count, threshold, error)
                     : measure_test(figures, score, label, count, error);
    free(score);
    free(label);
    return status;
}

basin_status basin_anomaly_measure_val(basin_anomaly_figures *figures, const double *probability,
                                       const basin_network *network, const uint8_t *part,
                                       const char *threshold, basin_error *error) {
    *figures = (basin_anomaly_figures){.threshold = 0.5};
    return measure_part(figures, probability, network, part, BASIN_PART_VAL, threshold, error);
}

basin_status basin_anomaly_measure(basin_anomaly_figures *figures, const double *probability,
                                   const basin_network *network, const uint8_t *part,
                                   const char *threshold, basin_error *error) {
    basin_status status =
        basin_anomaly_measure_val(figures, probability, network, part, threshold, error);
    return status ? status
                  : measure_part(figures, probability, network, part, BASIN_PART_TEST, threshold,
                                 error);
}

/* ---- baselines ---- */

static basin_anomaly_settings baseline_settings(int which, int64_t seed) {
    basin_anomaly_settings r;
    basin_anomaly_task.fill(&r, "default");
    r.form = which % 2 ? "mlp" : "linear";
    r.hops = which < 2 ? 0 : 2;
    r.degree = false; /* of the graph, too: only the means are asked for */
    r.position = "none";
    r.hidden = 64;
    r.dropout = which % 2 ? 0.2 : 0;
    r.epochs = 300;
    r.patience = 50;
    r.rate = which % 2 ? 3e-3 : 3e-2;
    r.average = 0;
    r.sampling = "full";
    r.members = 1;
    r.seed = seed;
    return r;
}

basin_status basin_baseline_fit(double *probability, int64_t *epoch, int which,
                                const basin_network *network, const uint8_t *part, int64_t seed,
                                const basin_anomaly_work *work, basin_error *error) {
    static const struct {
        double decay;
        const char *scaling;
    } trials[] = {{1e-3, "standard"}, {1e-1, "standard"}, {1e-3, "quantile"}, {1e-1, "quantile"}};
    double best = -1;
    basin_anomaly_work quiet = {.backend = work->backend, .memory = work->memory};
    basin_watch stop = {.stop = work->watch ? work->watch->stop : NULL};
    quiet.watch = &stop;
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < sizeof trials / sizeof *trials && !status; i++) {
        basin_anomaly_settings settings = baseline_settings(which, seed);
        basin_anomaly_detector *detector;
        basin_anomaly_figures figures;
        settings.decay = trials[i].decay;
        settings.scaling = trials[i].scaling;
        status = basin_anomaly_fit(&detector, network, part, &settings, &quiet, error);
        if (status) break;
        if (!detector->score)
            status = basin_fail(error, BASIN_BAD_VALUE, "%s: no validation nodes, or stopped",
                                network->path);
        if (!status)
            status = basin_anomaly_measure(&figures, detector->score, network, part, "all", error);
        if (!status && figures.val_auprc > best) {
            best = figures.val_auprc;
            *epoch = detector->member[0].epoch;
            memcpy(probability, detector->score, (size_t)network->nodes * sizeof *probability);
        }
        basin_anomaly_free(detector);
    }
    return status;
}
