/* Scoring all nodes with given weights: one plan over the whole graph where it fits the memory,
 * else the stream of anomaly_stream.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/anomaly/inputs.h"
#include "task/anomaly/stream.h"

struct basin_scorer {
    const basin_view *view;
    basin_store *store;
    basin_net net;
    basin_plan *plan;     /* of the whole graph, */
    basin_stream *stream; /* or the stream */
};

size_t basin_memory_limit(const basin_anomaly_work *work) {
    if (work->least) return 0;
    return work->memory ? work->memory : basin_memory_share();
}

static basin_status plan_whole(basin_scorer *s, basin_error *error) {
    const basin_view *view = s->view;
    basin_pairs pairs[BASIN_ANOMALY_RELATIONS];
    basin_status status = basin_net_new(&s->net, view->recipe, &view->shape, false, error);
    if (!status) {
        basin_plan_spec spec = {.output = &s->net.probability, .outputs = 1};
        status = basin_plan_new(&s->plan, s->store, &spec, error);
    }
    bool graph = basin_recipe_on_graph(view->recipe);
    if (!status && graph) status = basin_view_pairs(pairs, view, view->network, error);
    if (status) return status;
    basin_net_data data = {.table = view->table,
                           .eigenvectors = view->eigenvectors,
                           .pairs = pairs,
                           .nodes = view->shape.nodes};
    for (int r = 0; r < view->shape.relations; r++) data.node_weight[r] = view->node_weight[r];
    status = basin_net_write(&s->net, s->plan, &data, error);
    for (int r = 0; r < view->shape.relations && graph; r++) basin_pairs_free(&pairs[r]);
    return status;
}

basin_status basin_scorer_new(basin_scorer **scorer, const basin_view *view, size_t memory,
                              const basin_anomaly_work *work, basin_error *error) {
    size_t bytes = 0;
    *scorer = NULL;
    basin_scorer *s = calloc(1, sizeof *s);
    if (!s) return basin_fail(error, BASIN_NO_MEMORY, "no memory for scoring");
    s->view = view;
    basin_status status = basin_store_new(&s->store, work->backend, error);
    if (!status)
        status = basin_net_memory(&bytes, view->recipe, &view->shape, false, work->backend, error);
    if (!status) {
        if (bytes <= memory)
            status = plan_whole(s, error);
        else
            status = basin_stream_new(&s->stream, view, s->store, work, error);
    }
    if (status)
        basin_scorer_free(s);
    else
        *scorer = s;
    return status;
}

bool basin_scorer_streams(const basin_scorer *scorer) { return scorer->stream != NULL; }

size_t basin_scorer_bytes(const basin_scorer *scorer) {
    return scorer->stream ? basin_stream_bytes(scorer->stream) : 0;
}

void basin_scorer_free(basin_scorer *scorer) {
    if (!scorer) return;
    basin_stream_free(scorer->stream);
    basin_plan_free(scorer->plan);
    basin_net_free(&scorer->net);
    basin_store_free(scorer->store);
    free(scorer);
}

/* The weights become the scorer's. */
static basin_status take_weights(basin_scorer *s, basin_store *weights, const char *prefix,
                                 basin_error *error) {
    const basin_params *params = s->stream ? basin_stream_params(s->stream) : &s->net.params;
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < params->count && !status; i++) {
        char name[300];
        basin_tensor tensor;
        const char *plain = basin_expr_name(params->param[i].state);
        snprintf(name, sizeof name, "%s%s", prefix, plain);
        status = basin_store_read(weights, name, &tensor, error);
        if (status) return status;
        status = basin_store_write(s->store, plain, &tensor, error);
        basin_tensor_free(&tensor);
    }
    return status;
}

basin_status basin_scorer_run(basin_scorer *scorer, double *probability, int64_t member,
                              basin_store *weights, const char *prefix, basin_error *error) {
    basin_status status = take_weights(scorer, weights, prefix, error);
    if (status) return status;
    if (scorer->stream) return basin_stream_run(scorer->stream, probability, member, error);
    status = basin_mask_write(scorer->plan, scorer->net.mask, scorer->view->recipe, member, error);
    if (!status) status = basin_plan_run(scorer->plan, error);
    if (status) return status;
    basin_tensor out =
        basin_tensor_borrow(probability, BASIN_F64, BASIN_SHAPE(scorer->view->shape.nodes));
    return basin_plan_read(scorer->plan, scorer->net.probability, &out, error);
}
