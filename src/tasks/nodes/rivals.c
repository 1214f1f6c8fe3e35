/* Only XGBoost, on the inputs of an ensemble's trees, stopped by validation AUPRC. */
#include "tasks/nodes/net.h"

static basin_status run(double *probability, int64_t *rounds, basin_nodes_ensemble *e, int64_t seed,
                        const basin_network *network, const uint8_t *part,
                        const basin_training_options *training, basin_error *error) {
    BASIN_AT_EXIT(basin_tree_tables_close) basin_tree_tables tables = {0};
    BASIN_AT_EXIT(basin_tree_rows_free) basin_tree_rows rows = {0};
    basin_trees_spec spec = BASIN_TREES_DEFAULT;
    BASIN_TRY(basin_trees_available(error));
    BASIN_TRY(basin_nodes_ensemble_name(e, network, error));
    BASIN_TRY(basin_tree_tables_open(&tables, network, NULL, e, training->memory, error));
    BASIN_TRY(basin_tree_rows_take(&rows, &tables, part, INFINITY, error));
    if (!rows.data.validations)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no nodes for validation", network->path);
    spec.stop = BASIN_TREES_BY_AUPRC, spec.leaves = 0, spec.bins = 256, spec.seed = (uint64_t)seed;
    BASIN_TRY(BASIN_NEW(&e->trees, 1, "trees", error));
    e->fits = e->seeing[BASIN_VIEW_HOPS] = 1;
    e->weight[BASIN_VIEW_HOPS] = 1;
    BASIN_TRY(basin_trees_fit(&e->trees[0], &rows.data, &spec, training->watch, error));
    *rounds = basin_trees_rounds(e->trees[0]);
    BASIN_TRY(basin_nodes_ensemble_logits(probability, e, &tables, false, error));
    basin_nodes_ensemble_mix(probability, e, probability, probability, network->nodes);
    return BASIN_OK;
}

basin_status basin_nodes_train_xgboost(double *probability, basin_nodes_rival *rival, int64_t seed,
                                       const basin_network *network, const uint8_t *part,
                                       const basin_training_options *training, basin_error *error) {
    BASIN_AT_EXIT(basin_nodes_ensemble_free)
    basin_nodes_ensemble e = {.degree = true, .facts = network->facts.count > 0};
    BASIN_NETWORK_AT_EXIT basin_network *ordered = NULL;
    BASIN_TRY((network->directed && network->relations == 1
                   ? basin_network_both_ways
                   : basin_network_ordered)(&ordered, network, error));
    const basin_network *n = ordered ? ordered : network;
    BASIN_SCRATCH_RAW(uint8_t, own, n->nodes, "a split", error);
    memcpy(own, part, (size_t)n->nodes);
    BASIN_TRY(basin_rows_reorder(own, network->order, n->nodes, 1, false, error));
    BASIN_TRY(run(probability, &rival->trees, &e, seed, n, own, training, error));
    BASIN_TRY(basin_rows_reorder(probability, network->order, n->nodes, sizeof *probability, true,
                                 error));
    return basin_nodes_choose_threshold(&rival->threshold, probability, network, part, "smooth",
                                        error);
}
