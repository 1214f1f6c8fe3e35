/* Plain models by the same run; validation chooses weight decay and scaling, of two each. */
#include "task/nodes/net.h"

static basin_status settings_of(basin_nodes_settings *s, int which, int64_t seed,
                                basin_error *error) {
    BASIN_TRY(basin_settings_preset(s, &basin_anomaly_task, "default", error));
    s->form = which % 2 ? "mlp" : "linear";
    s->hops = which < 2 ? 0 : 2;
    s->degree = false; /* that is of the graph, too: only the means are needed */
    s->facts = s->position = s->calibrate = "none";
    s->hidden = 64;
    s->dropout = which % 2 ? 0.2 : 0;
    s->epochs = 300, s->patience = 50, s->evaluate = 2;
    s->rate = which % 2 ? 3e-3 : 3e-2;
    s->average = 0;
    s->sampling = "full", s->threshold = "all";
    s->members = 1, s->trees = 0;
    s->seed = seed;
    return BASIN_OK;
}

static double auprc_of(const basin_nodes_model *model) {
    const basin_score *reached =
        model ? basin_nodes_get_info(model)->reached[BASIN_PART_VAL] : NULL;
    return reached ? basin_score_get(reached, "auprc") : -1;
}

static basin_status train_plain(basin_nodes_model **model, basin_outcome *outcome, int which,
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

/* ---- XGBoost alone on the inputs of an ensemble's trees, stopped by validation AUPRC ---- */

static basin_status run(double *probability, int64_t *rounds, basin_nodes_ensemble *e, int64_t seed,
                        const basin_network *network, const uint8_t *part,
                        const basin_training *training, basin_error *error) {
    BASIN_AT_EXIT(basin_tree_tables_close) basin_tree_tables tables = {0};
    BASIN_AT_EXIT(basin_tree_rows_free) basin_tree_rows rows = {0};
    basin_trees_spec spec = BASIN_TREES_DEFAULT;
    BASIN_TRY(basin_trees_available(error));
    BASIN_TRY(basin_nodes_ensemble_name(e, network, error));
    BASIN_TRY(basin_tree_tables_open(&tables, network, NULL, e, training->memory, error));
    BASIN_TRY(basin_tree_rows_take(&rows, &tables, part, INFINITY, error));
    if (!rows.data.validations)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no nodes for validation", network->path);
    spec.stop = BASIN_TREES_BY_AUPRC;
    spec.leaves = 0;
    spec.bins = 256;
    spec.seed = (uint64_t)seed;
    BASIN_TRY(BASIN_NEW(&e->trees, 1, "trees", error));
    e->fits = e->seeing[BASIN_VIEW_HOPS] = 1;
    e->weight[BASIN_VIEW_HOPS] = 1;
    BASIN_TRY(basin_trees_fit(&e->trees[0], &rows.data, &spec, training->watch, error));
    *rounds = basin_trees_rounds(e->trees[0]);
    BASIN_TRY(basin_nodes_ensemble_logits(probability, e, &tables, false, error));
    basin_nodes_ensemble_mix(probability, e, probability, probability, network->nodes);
    return BASIN_OK;
}

basin_status basin_nodes_train_rival(double *probability, basin_nodes_rival *rival, int which,
                                     int64_t seed, const basin_network *network,
                                     const uint8_t *part, const basin_training *training,
                                     basin_error *error) {
    static const char *const name[] = {"logistic regression", "MLP",
                                       "logistic regression, 2-hop means", "MLP, 2-hop means",
                                       "xgboost"};
    basin_outcome outcome = {0};
    basin_nodes_model *model = NULL;
    *rival = (basin_nodes_rival){.name = name[which]};
    if (!probability) return BASIN_OK;
    if (which == BASIN_NODES_XGBOOST) {
        BASIN_AT_EXIT(basin_nodes_ensemble_free)
        basin_nodes_ensemble e = {.degree = true, .facts = network->facts.count > 0};
        BASIN_TRY(run(probability, &rival->epoch, &e, seed, network, part, training, error));
        return basin_nodes_choose_threshold(&rival->threshold, probability, network, part, "smooth",
                                            error);
    }
    BASIN_TRY(train_plain(&model, &outcome, which, seed, network, part, training, error));
    rival->stopped = outcome.stopped || !model || !model->score;
    rival->epoch = outcome.best_epoch;
    if (model) rival->threshold = model->threshold;
    if (!rival->stopped)
        memcpy(probability, model->score, (size_t)network->nodes * sizeof *probability);
    basin_nodes_close(model);
    return BASIN_OK;
}
