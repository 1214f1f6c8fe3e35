/* Scoring all nodes: one plan of the whole graph or of each part, else streams (stream.c). */
#include "base/info.h"
#include "base/sized.h"
#include "base/states.h"
#include "basin/plan.h"
#include "tasks/nodes/net.h"

struct basin_nodes_scorer {
    const basin_parted_inputs *inputs;
    const basin_nodes_settings *settings;
    const basin_watch *watch;
    basin_store *store;
    basin_nodes_net net;         /* of the plans */
    basin_plan **plan;           /* [parts of this rank], */
    basin_nodes_stream **stream; /* or these; else NULL */
    double **row;                /* [parts of this rank] their probabilities */
};

/* Parts stream where the plans of a rank are more than a limit that was asked for. All or none. */
static basin_status must_stream(bool *stream, const basin_parted_inputs *inputs, size_t memory,
                                const basin_nodes_resources *work, basin_error *error) {
    size_t bytes = 0;
    BASIN_TRY(basin_nodes_net_memory(&bytes, inputs->whole->settings, &inputs->shape, false,
                                     work->backend, error));
    *stream = bytes > memory;
    if (!inputs->parts) return BASIN_OK;
    bytes = bytes * (size_t)inputs->count + basin_parted_inputs_bytes(inputs);
    *stream = work->minimal || (work->memory && bytes > work->memory);
    return basin_ranks_any(inputs->parts->ranks, stream, error);
}

static basin_status make_part(basin_nodes_scorer *s, int64_t k, const basin_nodes_resources *work,
                              basin_error *error) {
    const basin_parted_inputs *in = s->inputs;
    const basin_part *part = in->parts ? in->parts->part[k] : NULL;
    basin_plan_spec spec = {.output = &s->net.probability, .outputs = 1};
    int64_t cells = in->shape.nodes * basin_nodes_width(s->settings);
    if (part) BASIN_TRY(BASIN_NEW_RAW(&s->row[k], cells, "scoring", error));
    if (s->stream)
        return basin_nodes_stream_new(&s->stream[k], &in->part[k], part, s->store, work, error);
    BASIN_TRY(basin_plan_new(&s->plan[k], s->store, &spec, error));
    return basin_parted_inputs_write(in, k, &s->net, s->plan[k], NULL, NULL, error);
}

static basin_status make(basin_nodes_scorer *s, size_t memory, const basin_nodes_resources *work,
                         basin_error *error) {
    const basin_parted_inputs *in = s->inputs;
    bool stream = false;
    BASIN_TRY(basin_store_new(&s->store, work->backend, error));
    BASIN_TRY(must_stream(&stream, in, memory, work, error));
    if (!stream) BASIN_TRY(basin_nodes_net_new(&s->net, s->settings, &in->shape, false, error));
    basin_status status = stream ? BASIN_NEW(&s->stream, in->count, "scoring", error)
                                 : BASIN_NEW(&s->plan, in->count, "scoring", error);
    if (!status) status = BASIN_NEW(&s->row, in->count, "scoring", error);
    for (int64_t k = 0; k < in->count && !status; k++) status = make_part(s, k, work, error);
    return in->parts ? basin_ranks_agree(in->parts->ranks, status, error) : status;
}

basin_status basin_nodes_scorer_new(basin_nodes_scorer **scorer, const basin_parted_inputs *inputs,
                                    size_t memory, const basin_nodes_resources *work,
                                    basin_error *error) {
    BASIN_TRY(BASIN_NEW(scorer, 1, "scoring", error));
    **scorer = (basin_nodes_scorer){
        .inputs = inputs, .settings = inputs->whole->settings, .watch = work->watch};
    BASIN_TRY_OR(make(*scorer, memory, work, error),
                 (basin_nodes_scorer_free(*scorer), *scorer = NULL));
    return BASIN_OK;
}

bool basin_nodes_scorer_streams(const basin_nodes_scorer *scorer) { return scorer->stream; }

void basin_nodes_scorer_tap(basin_nodes_scorer *scorer, const basin_nodes_tap *tap) {
    basin_nodes_stream_tap(scorer->stream[0], tap);
}

size_t basin_nodes_scorer_bytes(const basin_nodes_scorer *scorer) {
    size_t bytes = 0;
    for (int64_t k = 0; k < scorer->inputs->count; k++) {
        if (scorer->stream) bytes += basin_nodes_stream_bytes(scorer->stream[k]);
        if (scorer->plan && scorer->plan[k]) bytes += basin_plan_work_bytes(scorer->plan[k]);
    }
    return bytes;
}

void basin_nodes_scorer_free(basin_nodes_scorer *s) {
    if (!s) return;
    for (int64_t k = 0; k < s->inputs->count; k++) {
        if (s->stream) basin_nodes_stream_free(s->stream[k]);
        if (s->plan) basin_plan_free(s->plan[k]);
        if (s->row) free(s->row[k]);
    }
    free(s->stream), free(s->plan), free(s->row);
    basin_nodes_net_free(&s->net);
    basin_store_free(s->store);
    free(s);
}

static const basin_params *params_of(const basin_nodes_scorer *s) {
    return s->stream ? basin_nodes_stream_params(s->stream[0]) : &s->net.params;
}

static basin_status run_plans(basin_nodes_scorer *s, double *const *row, basin_error *error) {
    basin_exchange_callback way = {basin_parts_move, s->inputs->parts};
    int64_t count = s->inputs->count;
    BASIN_TRY(way.context ? basin_plans_run(s->plan, (int)count, &way, error)
                          : basin_plan_run(s->plan[0], error));
    basin_convergence_note(s->watch, "scoring", s->store);
    for (int64_t k = 0; k < count; k++)
        BASIN_TRY(basin_values_read(s->plan[k], s->net.probability, row[k], BASIN_F64, error));
    return BASIN_OK;
}

/* With the weights that the scorer has. */
static basin_status run(basin_nodes_scorer *s, double *probability, basin_error *error) {
    basin_parts *parts = s->inputs->parts;
    double *const *row = parts ? s->row : &probability;
    if (s->stream)
        BASIN_TRY(basin_nodes_streams_run(s->stream, s->inputs->count, parts, row, error));
    else
        BASIN_TRY(run_plans(s, row, error));
    if (!parts) return BASIN_OK;
    for (int64_t k = 0; s->plan && k < parts->count; k++) basin_plan_release(s->plan[k]);
    size_t width = (size_t)basin_nodes_width(s->settings) * sizeof *probability;
    return basin_parts_gather(probability, parts, (const void *const *)s->row, NULL, width, error);
}

basin_status basin_nodes_scorer_run(basin_nodes_scorer *scorer, double *probability,
                                    basin_store *weights, const char *prefix, basin_error *error) {
    const basin_params *params = params_of(scorer);
    for (size_t i = 0; i < params->count; i++) {
        BASIN_AT_EXIT(basin_tensor_free) basin_tensor tensor = {0};
        const char *plain = basin_expr_name(params->param[i].state);
        char name[300];
        snprintf(name, sizeof name, "%s%s", prefix, plain);
        BASIN_TRY(basin_store_get(&tensor, weights, name, error));
        BASIN_TRY(basin_store_write(scorer->store, plain, &tensor, error));
    }
    return run(scorer, probability, error);
}

basin_status basin_nodes_scorer_mean(basin_nodes_scorer *scorer, double *mean, bool logits,
                                     const basin_nodes_model *model, basin_error *error) {
    int64_t count = scorer->inputs->whole->shape.nodes * basin_nodes_width(scorer->settings);
    BASIN_SCRATCH_RAW(double, one, count, "scores", error);
    for (int64_t i = 0; i < count; i++) mean[i] = 0;
    for (int64_t m = 0; m < model->members; m++) {
        BASIN_TRY(basin_params_read(params_of(scorer), scorer->store, model->member[m], error));
        BASIN_TRY(run(scorer, one, error));
        for (int64_t i = 0; i < count; i++)
            mean[i] += (logits ? basin_logit(one[i]) : one[i]) / (double)model->members;
    }
    return BASIN_OK;
}

/* ---- Probabilities of all nodes of a network. */

size_t basin_nodes_memory_limit(const basin_nodes_resources *work) {
    if (work->minimal) return 0;
    return work->memory ? work->memory : basin_memory_share();
}

basin_status basin_nodes_view(basin_network **copy, const basin_nodes_settings *settings,
                              const basin_network *network, basin_error *error) {
    bool both = network->directed && network->relations == 1 &&
                basin_choice_is(settings->directions, "both");
    if (both && network->parts)
        return basin_fail(
            error, BASIN_UNSUPPORTED,
            "%s: a directed graph in parts, and a detector that sees edges both ways; "
            "needs the whole graph, or one trained with directions come",
            network->path);
    return (both ? basin_network_both_ways : basin_network_ordered)(copy, network, error);
}

basin_status basin_nodes_check_network(const basin_nodes_model *model, const basin_network *network,
                                       basin_error *error) {
    int64_t features = network->feature ? network->features : 0;
    if (features != model->features)
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "%s: %lld features a node; the detector was trained on %lld",
                          network->path, (long long)features, (long long)model->features);
    bool facts = !basin_choice_is(model->settings.facts, "none");
    if (model->schema)
        BASIN_TRY(facts ? basin_network_check_schema(network, model->schema, error)
                        : basin_network_check_columns(network, model->schema, error));
    if (basin_choice_is(model->settings.position, "learned") && network->nodes != model->nodes)
        return basin_fail(
            error, BASIN_BAD_SHAPE,
            "%s: %lld nodes; the detector has learned positions of %lld nodes and can "
            "score no other (expected one trained with position none)",
            network->path, (long long)network->nodes, (long long)model->nodes);
    return BASIN_OK;
}

/* Where not even the stream stays within the memory that was asked for. */
static basin_status hold(const basin_nodes_scorer *scorer, size_t graph, const char *path,
                         const basin_nodes_resources *work, basin_error *error) {
    const double gib = 1 << 30;
    size_t stream = basin_nodes_scorer_bytes(scorer);
    if (!work->memory || work->minimal || graph + stream <= work->memory) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY,
                      "%s: scoring takes %.3g GiB even where it streams (the graph and its inputs "
                      "%.3g, the stream %.3g) of %.3g allowed; needs more memory",
                      path, (double)(graph + stream) / gib, (double)graph / gib,
                      (double)stream / gib, (double)work->memory / gib);
}

static void free_scorer(basin_nodes_scorer **scorer) { basin_nodes_scorer_free(*scorer); }

/* With parts, all ranks together; logits where there are trees. */
static basin_status score_network(double *probability, const basin_nodes_model *model,
                                  const basin_network *network, const basin_nodes_resources *with,
                                  basin_error *error) {
    BASIN_AT_EXIT(basin_parted_inputs_close) basin_parted_inputs inputs = {0};
    BASIN_AT_EXIT(free_scorer) basin_nodes_scorer *scorer = NULL;
    if (with->parts) with->parts->threads = basin_backend_info_of(with->backend).threads;
    BASIN_TRY(basin_parted_inputs_open(&inputs, network, with->parts, &model->settings, error));
    BASIN_TRY(basin_parted_inputs_scale(&inputs, &model->scale, &model->edge_scale, error));
    size_t limit = basin_nodes_memory_limit(with), graph = basin_parted_inputs_bytes(&inputs);
    BASIN_TRY(
        basin_nodes_scorer_new(&scorer, &inputs, limit > graph ? limit - graph : 0, with, error));
    basin_status status = hold(scorer, graph, inputs.whole->network->path, with, error);
    if (with->parts) status = basin_ranks_agree(with->parts->ranks, status, error);
    BASIN_TRY(status);
    return basin_nodes_scorer_mean(scorer, probability, model->ensemble.fits, model, error);
}

/* Trees first, so that their inputs are freed; a part without a share is not computed. */
static basin_status score_both(double *probability, const basin_nodes_model *model,
                               const basin_network *network, const basin_nodes_resources *with,
                               basin_error *error) {
    const basin_nodes_ensemble *e = &model->ensemble;
    BASIN_SCRATCH_RAW(double, trees, network->nodes, "scores", error);
    if (e->share < 1)
        BASIN_TRY(basin_nodes_ensemble_score(trees, e, network, with->parts, with->memory,
                                             with->watch, error));
    if (e->share > 0) BASIN_TRY(score_network(probability, model, network, with, error));
    basin_nodes_ensemble_mix(probability, e, trees, probability, network->nodes);
    return BASIN_OK;
}

basin_status basin_nodes_predict(double *probability, const basin_nodes_model *model,
                                 const basin_network *network,
                                 const basin_nodes_predict_options *options, basin_error *error) {
    static const basin_nodes_predict_options none = {0};
    const basin_nodes_predict_options *o = options ? options : &none;
    BASIN_NETWORK_AT_EXIT basin_network *ordered = NULL;
    BASIN_TRY(BASIN_SIZE_CHECK(o, "basin_nodes_predict_options", error));
    basin_nodes_resources with = {model->backend, o->watch, o->memory, o->stream, network->parts};
    BASIN_TRY(basin_nodes_check_network(model, with.parts ? with.parts->part[0]->network : network,
                                        error));
    BASIN_TRY(basin_nodes_view(&ordered, &model->settings, network, error));
    const basin_network *n = ordered ? ordered : network;
    if (model->ensemble.fits)
        BASIN_TRY(score_both(probability, model, n, &with, error));
    else
        BASIN_TRY(score_network(probability, model, n, &with, error));
    for (int64_t i = 0; i < n->nodes; i++)
        probability[i] = basin_nodes_calibrated(model, probability[i]);
    size_t width = (size_t)basin_nodes_width(&model->settings) * sizeof *probability;
    return basin_rows_reorder(probability, network->order, n->nodes, width, true, error);
}
