/* Logits of trees and of a network become one probability; validation says how; see ensemble.h. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "task/anomaly/anomaly.h"
#include "task/anomaly/ensemble/ensemble.h"

double basin_anomaly_logit(double p) {
    double cut = fmin(fmax(p, 1e-9), 1 - 1e-9);
    return log(cut / (1 - cut));
}

static double sigmoid(double z) { return z >= 0 ? 1 / (1 + exp(-z)) : exp(z) / (1 + exp(z)); }

void basin_anomaly_ensemble_mix(double *probability, const basin_anomaly_ensemble *e,
                                const double *trees, const double *network_logit, int64_t nodes) {
    for (int64_t i = 0; i < nodes; i++) {
        double z = e->share > 0 ? e->share * (e->scale * network_logit[i] + e->shift) : 0;
        if (e->share < 1) z += (1 - e->share) * trees[i];
        probability[i] = sigmoid(z);
    }
}

/* Mean and deviation over the validation nodes. */
static void spread(double *mean, double *deviation, const double *logit, const uint8_t *part,
                   int64_t nodes) {
    double sum = 0, squares = 0, count = 0;
    for (int64_t i = 0; i < nodes; i++) {
        if (part[i] != BASIN_PART_VAL) continue;
        sum += logit[i];
        squares += logit[i] * logit[i];
        count++;
    }
    *mean = sum / count;
    *deviation = sqrt(fmax(squares / count - *mean * *mean, 1e-12));
}

/* The network's logits come to the trees' mean and deviation. */
static void align(basin_anomaly_ensemble *e, const double *trees, const double *network_logit,
                  const uint8_t *part, int64_t nodes) {
    double mean[2], deviation[2];
    spread(&mean[0], &deviation[0], trees, part, nodes);
    spread(&mean[1], &deviation[1], network_logit, part, nodes);
    e->scale = deviation[0] / deviation[1];
    e->shift = mean[0] - e->scale * mean[1];
}

typedef struct trial {
    basin_anomaly_ensemble *ensemble;
    const double *trees, *network_logit;
    const basin_network *network;
    const uint8_t *part;
    const char *scan;
    double *probability; /* [N] */
} trial;

/* What a share reaches on a part of the nodes, with the threshold that validation then chooses. */
static basin_status try(basin_score *score, trial *t, double share, int part, basin_error *error) {
    double threshold;
    t->ensemble->share = share;
    basin_anomaly_ensemble_mix(t->probability, t->ensemble, t->trees, t->network_logit,
                               t->network->nodes);
    basin_status status = basin_anomaly_choose_threshold(&threshold, t->probability, t->network,
                                                         t->part, t->scan, error);
    return status ? status
                  : basin_anomaly_measure(score, t->probability, t->network, t->part, part,
                                          threshold, error);
}

/* Of equals the one nearest the middle. */
static basin_status choose_share(trial *t, const char *select, basin_error *error) {
    static const double shares[] = {0.5, 0.25, 0.75, 0, 1};
    double best = -1, share = 0.5;
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < sizeof shares / sizeof *shares && !status; i++) {
        basin_score score;
        status = try(&score, t, shares[i], BASIN_PART_VAL, error);
        double value = status ? -1 : basin_score_get(&score, select);
        if (value <= best) continue;
        best = value;
        share = shares[i];
    }
    t->ensemble->share = share;
    return status;
}

static basin_status measure_alone(trial *t, basin_error *error) {
    basin_anomaly_ensemble *e = t->ensemble;
    double share = e->share;
    basin_status status = BASIN_OK;
    for (int which = 0; which < 2; which++)
        for (int p = BASIN_PART_VAL; p <= BASIN_PART_TEST && !status; p++)
            if (basin_split_nodes(NULL, t->part, t->network->nodes, p))
                status = try(&e->alone[which][p], t, which, p, error);
    e->share = share;
    return status;
}

basin_status basin_anomaly_ensemble_choose(basin_anomaly_ensemble *ensemble, const double *trees,
                                           const double *network_logit,
                                           const basin_network *network, const uint8_t *part,
                                           const char *select, const char *scan,
                                           basin_error *error) {
    trial t = {ensemble, trees, network_logit, network, part, scan, NULL};
    t.probability = basin_array_new((size_t)network->nodes, sizeof *t.probability);
    if (!t.probability) return basin_fail(error, BASIN_NO_MEMORY, "no memory for scores");
    align(ensemble, trees, network_logit, part, network->nodes);
    basin_status status = choose_share(&t, select, error);
    if (!status) status = measure_alone(&t, error);
    free(t.probability);
    return status;
}
