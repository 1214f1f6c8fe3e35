/* The plain models beside which a detector is judged, trained by the same run; validation chooses
 * among two strengths of weight decay and two scalings. */
#include "base/try.h"
#include "task/nodes/fit.h"

const char *basin_nodes_baseline_name(int which) {
    static const char *const name[BASIN_NODES_BASELINES] = {
        "logistic regression", "MLP", "logistic regression, 2-hop means", "MLP, 2-hop means"};
    return which >= 0 && which < BASIN_NODES_BASELINES ? name[which] : NULL;
}

static basin_status settings_of(basin_nodes_settings *settings, int which, int64_t seed,
                                basin_error *error) {
    basin_nodes_settings s;
    BASIN_TRY(basin_settings_preset(&s, &basin_anomaly_task, "default", error));
    s.form = which % 2 ? "mlp" : "linear";
    s.hops = which < 2 ? 0 : 2;
    s.degree = false; /* that is of the graph, too: only the means are asked for */
    s.facts = "none";
    s.position = "none";
    s.hidden = 64;
    s.dropout = which % 2 ? 0.2 : 0;
    s.epochs = 300;
    s.patience = 50;
    s.evaluate = 2;
    s.rate = which % 2 ? 3e-3 : 3e-2;
    s.average = 0;
    s.sampling = "full";
    s.members = 1;
    s.trees = 0;
    s.calibrate = "none";
    s.threshold = "all";
    s.seed = seed;
    *settings = s;
    return BASIN_OK;
}

static double auprc_of(const basin_nodes_model *model) {
    const basin_score *reached =
        model ? basin_nodes_get_info(model)->reached[BASIN_PART_VAL] : NULL;
    return reached ? basin_score_get(reached, "auprc") : -1;
}

basin_status basin_nodes_baseline(basin_nodes_model **model, basin_outcome *outcome, int which,
                                  int64_t seed, const basin_network *network, const uint8_t *part,
                                  const basin_training *training, basin_error *error) {
    static const struct {
        double decay;
        const char *scaling;
    } trials[] = {{1e-3, "standard"}, {1e-1, "standard"}, {1e-3, "quantile"}, {1e-1, "quantile"}};
    basin_nodes_resources with = {training->backend, training->watch, training->memory, false,
                                  NULL};
    basin_status status = BASIN_OK;
    *model = NULL;
    *outcome = (basin_outcome){0};
    for (size_t i = 0; i < sizeof trials / sizeof *trials && !status && !outcome->stopped; i++) {
        basin_nodes_settings settings;
        basin_nodes_model *next = NULL;
        basin_outcome how = {0};
        status = settings_of(&settings, which, seed, error);
        if (status) break;
        settings.decay = trials[i].decay;
        settings.scaling = trials[i].scaling;
        basin_nodes_job job = {&basin_anomaly_task, network, part, &settings, .least = false};
        status = basin_nodes_fit_quietly(&next, &how, &job, &with, error);
        bool better = !*model || auprc_of(next) > auprc_of(*model);
        if (better || how.stopped) *outcome = how;
        basin_nodes_close(better ? *model : next);
        if (better) *model = next;
    }
    return status;
}
