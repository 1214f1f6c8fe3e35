/* Probabilities of all nodes of a network; see include/basin/tasks/nodes.h. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/network/schema/schema.h"
#include "task/nodes/scorer.h"

basin_nodes_resources basin_nodes_resources_of(const basin_nodes_work *work,
                                               basin_backend *backend) {
    static const basin_nodes_work none = {0};
    if (!work) work = &none;
    return (basin_nodes_resources){backend, work->watch, work->memory, work->least, work->parts};
}

size_t basin_nodes_memory_limit(const basin_nodes_resources *work) {
    if (work->least) return 0;
    return work->memory ? work->memory : basin_memory_share();
}

basin_status basin_nodes_check_network(const basin_nodes_model *model, const basin_network *network,
                                       basin_error *error) {
    int64_t features = network->feature ? network->features : 0;
    if (features != model->features)
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "%s: %lld features a node; the detector was trained on %lld",
                          network->path, (long long)features, (long long)model->features);
    bool facts = !basin_choice_is(model->settings.facts, "none");
    basin_status status = BASIN_OK;
    if (model->schema)
        status = facts ? basin_network_check_schema(network, model->schema, error)
                       : basin_network_check_columns(network, model->schema, error);
    if (status) return status;
    if (basin_choice_is(model->settings.position, "learned") && network->nodes != model->nodes)
        return basin_fail(
            error, BASIN_BAD_SHAPE,
            "%s: %lld nodes; the detector has learned positions of %lld nodes and can "
            "score no other (wanted one trained with position none)",
            network->path, (long long)network->nodes, (long long)model->nodes);
    return BASIN_OK;
}

/* What the network leaves of the memory allowed. */
static size_t left(const basin_node_inputs *inputs, const basin_nodes_resources *work) {
    size_t limit = basin_nodes_memory_limit(work), taken = basin_node_inputs_bytes(inputs);
    return limit > taken ? limit - taken : 0;
}

/* Where not even the stream stays within the memory that was asked for. */
static basin_status hold(const basin_nodes_scorer *scorer, size_t graph, const char *path,
                         const basin_nodes_resources *work, basin_error *error) {
    const double gib = 1 << 30;
    size_t stream = basin_nodes_scorer_bytes(scorer);
    if (!work->memory || work->least || graph + stream <= work->memory) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY,
                      "%s: scoring takes %.3g GiB even where it streams (the graph and its inputs "
                      "%.3g, the stream %.3g) of %.3g allowed; wanted more memory",
                      path, (double)(graph + stream) / gib, (double)graph / gib,
                      (double)stream / gib, (double)work->memory / gib);
}

/* Their logits where there are trees. */
static basin_status score_members(double *probability, const basin_nodes_model *model,
                                  basin_nodes_scorer *scorer, basin_error *error) {
    return model->ensemble.fits ? basin_nodes_scorer_logits(scorer, probability, model, error)
                                : basin_nodes_scorer_mean(scorer, probability, model, error);
}

/* All ranks together. */
static basin_status score_parts(double *probability, const basin_nodes_model *model,
                                const basin_nodes_resources *with, basin_error *error) {
    basin_parted_inputs inputs = {0};
    basin_nodes_scorer *scorer = NULL;
    with->parts->threads = basin_backend_threads(with->backend);
    basin_status status = basin_parted_inputs_open(&inputs, with->parts, &model->settings, error);
    if (!status) status = basin_parted_inputs_scale(&inputs, &model->scale, error);
    if (!status) status = basin_nodes_scorer_join(&scorer, &inputs, with, error);
    if (!status) {
        status =
            hold(scorer, basin_parted_inputs_bytes(&inputs), with->parts->face->path, with, error);
        status = basin_ranks_agree(with->parts->ranks, status, error);
    }
    if (!status) status = score_members(probability, model, scorer, error);
    basin_nodes_scorer_free(scorer);
    if (inputs.parts) basin_parted_inputs_close(&inputs);
    return status;
}

static basin_status score_whole(double *probability, const basin_nodes_model *model,
                                const basin_network *network, const basin_nodes_resources *with,
                                basin_error *error) {
    basin_node_inputs inputs = {0};
    basin_nodes_scorer *scorer = NULL;
    basin_status status = basin_node_inputs_open(&inputs, network, &model->settings, error);
    if (!status)
        status = basin_node_inputs_scale(&inputs, &model->scale, &model->edge_scale, error);
    if (!status)
        status = basin_nodes_scorer_new(&scorer, &inputs, left(&inputs, with), with, error);
    if (!status)
        status = hold(scorer, basin_node_inputs_bytes(&inputs), network->path, with, error);
    if (!status) status = score_members(probability, model, scorer, error);
    basin_nodes_scorer_free(scorer);
    basin_node_inputs_close(&inputs);
    return status;
}

static basin_status score_network(double *probability, const basin_nodes_model *model,
                                  const basin_network *network, const basin_nodes_resources *with,
                                  basin_error *error) {
    return with->parts ? score_parts(probability, model, with, error)
                       : score_whole(probability, model, network, with, error);
}

static basin_status score_trees(double *logit, const basin_nodes_model *model,
                                const basin_network *network, const basin_nodes_resources *with,
                                basin_error *error) {
    const basin_nodes_ensemble *e = &model->ensemble;
    return with->parts
               ? basin_parted_trees_score(logit, e, with->parts, with->memory, with->watch, error)
               : basin_nodes_ensemble_score(logit, e, network, with->memory, with->watch, error);
}

/* Trees first: their inputs are gone before the network's are made. A part without a share is not
 * asked. */
static basin_status score_both(double *probability, const basin_nodes_model *model,
                               const basin_network *network, const basin_nodes_resources *with,
                               basin_error *error) {
    const basin_nodes_ensemble *e = &model->ensemble;
    double *trees = basin_array_new((size_t)network->nodes, sizeof *trees);
    if (!trees) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for scores");
    basin_status status = BASIN_OK;
    if (e->share < 1) status = score_trees(trees, model, network, with, error);
    if (!status && e->share > 0) status = score_network(probability, model, network, with, error);
    if (!status) basin_nodes_ensemble_mix(probability, e, trees, probability, network->nodes);
    free(trees);
    return status;
}

basin_status basin_nodes_score(double *probability, const basin_nodes_model *model,
                               const basin_network *network, const basin_nodes_work *work,
                               basin_error *error) {
    basin_nodes_resources with = basin_nodes_resources_of(work, model->backend);
    basin_status status = basin_nodes_check_network(
        model, with.parts ? with.parts->part[0]->network : network, error);
    if (!status && model->ensemble.fits)
        status = score_both(probability, model, network, &with, error);
    else if (!status)
        status = score_network(probability, model, network, &with, error);
    for (int64_t i = 0; i < network->nodes && !status; i++)
        probability[i] = basin_nodes_calibrated(model, probability[i]);
    return status;
}
