/* The plain models beside which a detector is judged, trained by the same run; validation chooses
 * among two strengths of weight decay and two scalings. */
#include <string.h>

#include "task/anomaly/fit.h"

const char *basin_anomaly_baseline_name(int which) {
    static const char *const name[BASIN_ANOMALY_BASELINES] = {
        "logistic regression", "MLP", "logistic regression, 2-hop means", "MLP, 2-hop means"};
    return which >= 0 && which < BASIN_ANOMALY_BASELINES ? name[which] : NULL;
}

static basin_anomaly_settings settings_of(int which, int64_t seed) {
    basin_anomaly_settings s;
    basin_anomaly_task.fill(&s, "default");
    s.form = which % 2 ? "mlp" : "linear";
    s.hops = which < 2 ? 0 : 2;
    s.degree = false; /* that is of the graph, too: only the means are asked for */
    s.position = "none";
    s.hidden = 64;
    s.dropout = which % 2 ? 0.2 : 0;
    s.epochs = 300;
    s.patience = 50;
    s.rate = which % 2 ? 3e-3 : 3e-2;
    s.average = 0;
    s.sampling = "full";
    s.members = 1;
    s.seed = seed;
    return s;
}

/* Whether its AUPRC on validation is above *best, which it then becomes. */
static basin_status is_better(bool *better, double *best, const basin_anomaly_model *model,
                              const basin_network *network, basin_error *error) {
    const basin_score *reached = basin_anomaly_reached(model, BASIN_PART_VAL);
    if (!reached)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no validation nodes, or stopped",
                          network->path);
    double value = basin_score_get(reached, "auprc");
    *better = value > *best;
    if (*better) *best = value;
    return BASIN_OK;
}

basin_status basin_anomaly_baseline(double *probability, int64_t *epoch, int which,
                                    const basin_network *network, const uint8_t *part, int64_t seed,
                                    basin_backend *backend, const basin_anomaly_work *work,
                                    basin_error *error) {
    static const struct {
        double decay;
        const char *scaling;
    } trials[] = {{1e-3, "standard"}, {1e-1, "standard"}, {1e-3, "quantile"}, {1e-1, "quantile"}};
    basin_anomaly_resources with = basin_anomaly_resources_of(work, backend);
    double best = -1;
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < sizeof trials / sizeof *trials && !status; i++) {
        basin_anomaly_settings settings = settings_of(which, seed);
        basin_anomaly_model *model = NULL;
        basin_outcome outcome;
        bool better = false;
        settings.decay = trials[i].decay;
        settings.scaling = trials[i].scaling;
        basin_anomaly_job job = {.network = network, .part = part, .settings = &settings};
        status = basin_anomaly_fit_quietly(&model, &outcome, &job, &with, error);
        if (!status) status = is_better(&better, &best, model, network, error);
        if (!status && better) {
            *epoch = outcome.best_epoch;
            memcpy(probability, model->score, (size_t)network->nodes * sizeof *probability);
        }
        basin_anomaly_close(model);
    }
    return status;
}
