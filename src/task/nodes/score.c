/* Scoring all nodes with given weights: one plan over the whole graph where it fits the memory,
 * else the stream of stream.c. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/device.h"
#include "base/try.h"
#include "data/network/schema/schema.h"
#include "task/nodes/scorer.h"
#include "task/nodes/stream.h"
#include "train/run/rests.h"

struct basin_nodes_scorer {
    const basin_node_inputs *inputs;
    basin_store *store;
    basin_nodes_net net;
    basin_plan *plan;           /* of the whole graph, */
    basin_nodes_stream *stream; /* or the stream, */
    basin_parted_scorer *joint; /* or those of the parts */
    const basin_watch *watch;
};

static basin_status plan_whole(basin_nodes_scorer *s, basin_error *error) {
    const basin_node_inputs *inputs = s->inputs;
    basin_pairs pairs[BASIN_ANOMALY_RELATIONS];
    basin_status status =
        basin_nodes_net_new(&s->net, inputs->settings, &inputs->shape, false, error);
    if (!status) {
        basin_plan_spec spec = {.output = &s->net.probability, .outputs = 1};
        status = basin_plan_new(&s->plan, s->store, &spec, error);
    }
    bool graph = basin_nodes_on_graph(inputs->settings);
    if (!status && graph) status = basin_node_inputs_pairs(pairs, inputs, inputs->network, error);
    if (status) return status;
    basin_nodes_net_data data = basin_node_inputs_data(inputs, pairs);
    status = basin_nodes_net_write(&s->net, s->plan, &data, error);
    for (int r = 0; r < inputs->shape.relations && graph; r++) basin_pairs_free(&pairs[r]);
    return status;
}

basin_status basin_nodes_scorer_new(basin_nodes_scorer **scorer, const basin_node_inputs *inputs,
                                    size_t memory, const basin_nodes_resources *work,
                                    basin_error *error) {
    size_t bytes = 0;
    *scorer = NULL;
    basin_nodes_scorer *s = calloc(1, sizeof *s);
    if (!s) return basin_fail_memory(error, "scoring");
    s->inputs = inputs;
    s->watch = work->watch;
    basin_status status = basin_store_new(&s->store, work->backend, error);
    if (!status)
        status = basin_nodes_net_memory(&bytes, inputs->settings, &inputs->shape, false,
                                        work->backend, error);
    if (!status) {
        if (bytes <= memory)
            status = plan_whole(s, error);
        else
            status = basin_nodes_stream_new(&s->stream, inputs, 0, s->store, work, error);
    }
    if (status)
        basin_nodes_scorer_free(s);
    else
        *scorer = s;
    return status;
}

/* Parts stream where the plans of a rank are more than a limit that was asked for. All or none. */
static basin_status must_stream(bool *stream, const basin_parted_inputs *inputs,
                                const basin_nodes_resources *work, basin_error *error) {
    size_t bytes = 0;
    BASIN_TRY(basin_nodes_net_memory(&bytes, inputs->whole.settings, &inputs->shape, false,
                                     work->backend, error));
    bytes = bytes * (size_t)inputs->parts->count + basin_parted_inputs_bytes(inputs);
    *stream = work->least || (work->memory && bytes > work->memory);
    return basin_ranks_any(inputs->parts->ranks, stream, error);
}

basin_status basin_nodes_scorer_join(basin_nodes_scorer **scorer, const basin_parted_inputs *inputs,
                                     const basin_nodes_resources *work, basin_error *error) {
    *scorer = NULL;
    basin_nodes_scorer *s = calloc(1, sizeof *s);
    if (!s) return basin_fail_memory(error, "scoring");
    s->inputs = &inputs->whole;
    bool stream = false;
    basin_status status = basin_store_new(&s->store, work->backend, error);
    if (!status)
        status = basin_nodes_net_new(&s->net, s->inputs->settings, &inputs->shape, false, error);
    if (!status) status = must_stream(&stream, inputs, work, error);
    if (!status)
        status = basin_parted_scorer_new(&s->joint, inputs, &s->net, s->store, stream ? work : NULL,
                                         error);
    if (status)
        basin_nodes_scorer_free(s);
    else
        *scorer = s;
    return status;
}

bool basin_nodes_scorer_streams(const basin_nodes_scorer *scorer) {
    return scorer->stream || (scorer->joint && basin_parted_scorer_streams(scorer->joint));
}

size_t basin_nodes_scorer_bytes(const basin_nodes_scorer *scorer) {
    if (scorer->joint) return basin_parted_scorer_bytes(scorer->joint);
    return scorer->stream ? basin_nodes_stream_bytes(scorer->stream) : 0;
}

void basin_nodes_scorer_free(basin_nodes_scorer *scorer) {
    if (!scorer) return;
    basin_nodes_stream_free(scorer->stream);
    basin_parted_scorer_free(scorer->joint);
    basin_plan_free(scorer->plan);
    basin_nodes_net_free(&scorer->net);
    basin_store_free(scorer->store);
    free(scorer);
}

static const basin_params *params_of(const basin_nodes_scorer *s) {
    return s->stream ? basin_nodes_stream_params(s->stream) : &s->net.params;
}

/* The weights become the scorer's. */
static basin_status take_weights(basin_nodes_scorer *s, basin_store *weights, const char *prefix,
                                 basin_error *error) {
    const basin_params *params = params_of(s);
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < params->count && !status; i++) {
        char name[300];
        basin_tensor tensor;
        const char *plain = basin_expr_name(params->param[i].state);
        snprintf(name, sizeof name, "%s%s", prefix, plain);
        BASIN_TRY(basin_store_read(weights, name, &tensor, error));
        status = basin_store_write(s->store, plain, &tensor, error);
        basin_tensor_free(&tensor);
    }
    return status;
}

/* With the weights that the scorer has. */
static basin_status run(basin_nodes_scorer *s, double *probability, int64_t member,
                        basin_error *error) {
    if (s->stream) return basin_nodes_stream_run(s->stream, probability, member, error);
    if (s->joint) return basin_parted_scorer_run(s->joint, probability, member, error);
    basin_status status =
        basin_nodes_mask_write(s->plan, s->net.mask, s->inputs->settings, member, error);
    if (!status) status = basin_plan_run(s->plan, error);
    if (status) return status;
    basin_convergence rests = basin_store_take_convergence(s->store);
    basin_convergence_note(s->watch, "scoring", &rests);
    basin_tensor out =
        basin_tensor_borrow(probability, BASIN_F64, basin_expr_shape(s->net.probability));
    return basin_plan_read(s->plan, s->net.probability, &out, error);
}

basin_status basin_nodes_scorer_run(basin_nodes_scorer *scorer, double *probability, int64_t member,
                                    basin_store *weights, const char *prefix, basin_error *error) {
    BASIN_TRY(take_weights(scorer, weights, prefix, error));
    return run(scorer, probability, member, error);
}

static double same(double p) { return p; }

static basin_status mean_of(basin_nodes_scorer *scorer, double *mean, double (*of)(double),
                            const basin_nodes_model *model, basin_error *error) {
    int64_t count = scorer->inputs->shape.nodes * basin_nodes_width(scorer->inputs->settings);
    basin_status status = BASIN_OK;
    double *one = basin_array_new((size_t)count, sizeof *one);
    if (!one) return basin_fail_memory(error, "scores");
    for (int64_t i = 0; i < count; i++) mean[i] = 0;
    for (int64_t m = 0; m < model->members && !status; m++) {
        status = basin_params_read(params_of(scorer), scorer->store, model->member[m], error);
        if (!status) status = run(scorer, one, m, error);
        for (int64_t i = 0; i < count && !status; i++)
            mean[i] += of(one[i]) / (double)model->members;
    }
    free(one);
    return status;
}

basin_status basin_nodes_scorer_mean(basin_nodes_scorer *scorer, double *probability,
                                     const basin_nodes_model *model, basin_error *error) {
    return mean_of(scorer, probability, same, model, error);
}

basin_status basin_nodes_scorer_logits(basin_nodes_scorer *scorer, double *logit,
                                       const basin_nodes_model *model, basin_error *error) {
    return mean_of(scorer, logit, basin_nodes_logit, model, error);
}

/* ---- Probabilities of all nodes of a network. */

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
    if (!trees) return basin_fail_memory(error, "scores");
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
