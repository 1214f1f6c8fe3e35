/* Probabilities of all nodes of a graph in parts, by one plan a part, or where these do not fit by
 * streams that go on in step; see parts.h. */
#include <stdlib.h>

#include "base/memory.h"
#include "task/nodes/parts/parts.h"
#include "task/nodes/stream/stream.h"

struct basin_parted_scorer {
    basin_parts *parts;
    const basin_nodes_settings *settings;
    const basin_nodes_net *net;
    double **row;                /* [parts of this rank] probabilities */
    basin_plan **plan;           /* [parts of this rank], */
    basin_nodes_stream **stream; /* or these; NULL: plans */
    int relations;
};

static basin_status no_memory(basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory to score parts");
}

/* Bytes that a node's probabilities take. */
static size_t width_of(const basin_parted_scorer *s) {
    return (size_t)basin_nodes_width(s->settings) * sizeof **s->row;
}

/* ---- making ---- */

static basin_status make_plan(basin_parted_scorer *s, const basin_parted_inputs *inputs, int64_t k,
                              basin_store *store, basin_error *error) {
    basin_expr output = s->net->probability;
    basin_plan_spec spec = {.output = &output, .outputs = 1};
    basin_status status = basin_plan_new(&s->plan[k], store, &spec, error);
    if (status) return status;
    return basin_parted_inputs_write(inputs, k, s->net, s->plan[k], NULL, NULL, error);
}

static basin_status make_part(basin_parted_scorer *s, const basin_parted_inputs *inputs, int64_t k,
                              basin_store *store, const basin_nodes_resources *stream,
                              basin_error *error) {
    s->row[k] = basin_array_new((size_t)inputs->shape.nodes, width_of(s));
    if (!s->row[k]) return no_memory(error);
    if (stream && s->settings->smoothing > 0)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "smoothing %lld of parts that are streamed, as their plans do not fit; "
                          "wanted more memory, more ranks, or a model with smoothing 0",
                          (long long)s->settings->smoothing);
    if (!stream) return make_plan(s, inputs, k, store, error);
    return basin_nodes_stream_new(&s->stream[k], &inputs->part[k], s->parts->part[k]->halo, store,
                                  stream, error);
}

basin_status basin_parted_scorer_new(basin_parted_scorer **scorer,
                                     const basin_parted_inputs *inputs, const basin_nodes_net *net,
                                     basin_store *store, const basin_nodes_resources *stream,
                                     basin_error *error) {
    basin_parts *p = inputs->parts;
    *scorer = NULL;
    basin_parted_scorer *s = calloc(1, sizeof *s);
    basin_status status = s ? BASIN_OK : no_memory(error);
    if (s) {
        *s = (basin_parted_scorer){.parts = p, .settings = inputs->part[0].settings, .net = net};
        s->relations = inputs->shape.relations;
        s->plan = calloc((size_t)p->count, sizeof(basin_plan *));
        s->row = calloc((size_t)p->count, sizeof(double *));
        if (stream) s->stream = calloc((size_t)p->count, sizeof(basin_nodes_stream *));
        if (!s->plan || !s->row || (stream && !s->stream)) status = no_memory(error);
    }
    for (int64_t k = 0; k < p->count && !status; k++)
        status = make_part(s, inputs, k, store, stream, error);
    status = basin_ranks_agree(p->ranks, status, error);
    if (status)
        basin_parted_scorer_free(s);
    else
        *scorer = s;
    return status;
}

void basin_parted_scorer_free(basin_parted_scorer *s) {
    if (!s) return;
    for (int64_t k = 0; k < s->parts->count; k++) {
        if (s->plan) basin_plan_free(s->plan[k]);
        if (s->stream) basin_nodes_stream_free(s->stream[k]);
        if (s->row) free(s->row[k]);
    }
    free(s->plan), free(s->stream), free(s->row);
    free(s);
}

bool basin_parted_scorer_streams(const basin_parted_scorer *s) { return s->stream != NULL; }

size_t basin_parted_scorer_bytes(const basin_parted_scorer *s) {
    size_t bytes = 0;
    for (int64_t k = 0; s->stream && k < s->parts->count; k++)
        bytes += basin_nodes_stream_bytes(s->stream[k]);
    return bytes;
}

/* ---- plans ---- */

static basin_status run_plans(basin_parted_scorer *s, int64_t member, basin_error *error) {
    basin_exchange_way way = {basin_parts_move, s->parts};
    basin_status status = BASIN_OK;
    for (int64_t k = 0; k < s->parts->count && !status; k++)
        status = basin_nodes_mask_write(s->plan[k], s->net->mask, s->settings, member, error);
    if (!status) status = basin_plans_run(s->plan, (int)s->parts->count, &way, error);
    for (int64_t k = 0; k < s->parts->count && !status; k++) {
        basin_shape shape = basin_expr_shape(s->net->probability);
        basin_tensor out = basin_tensor_borrow(s->row[k], BASIN_F64, shape);
        status = basin_plan_read(s->plan[k], s->net->probability, &out, error);
    }
    for (int64_t k = 0; k < s->parts->count; k++) basin_plan_release(s->plan[k]);
    return status;
}

/* ---- streams ---- */

static basin_status exchange(basin_parted_scorer *s, basin_stream_phase phase, int relation,
                             basin_error *error) {
    basin_exchange_rows *rows = basin_array_new((size_t)s->parts->count, sizeof *rows);
    if (!rows) return no_memory(error);
    for (int64_t k = 0; k < s->parts->count; k++)
        rows[k] = basin_nodes_stream_rows(s->stream[k], phase, relation);
    basin_status status = basin_parts_move(s->parts, rows, (int)s->parts->count, error);
    free(rows);
    return status;
}

/* A step over one relation: all parts do each phase, then their halos hear of it. */
static basin_status step(basin_parted_scorer *s, int block, int relation, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int i = 0; i < BASIN_STREAM_PHASES && !status; i++) {
        basin_stream_phase phase = (basin_stream_phase)i;
        for (int64_t k = 0; k < s->parts->count && !status; k++)
            status = basin_nodes_stream_phase(s->stream[k], phase, block, relation, error);
        if (!status && phase != BASIN_STREAM_KEY && s->settings->attention)
            status = exchange(s, phase, relation, error);
    }
    return status;
}

static basin_status descend(basin_parted_scorer *s, basin_error *error) {
    basin_status status = BASIN_OK;
    int done = 0;
    for (int r = 0; r < s->relations && !status; r++) {
        if (s->settings->degree_power > 0) status = exchange(s, BASIN_STREAM_KEY, r, error);
        for (int64_t b = 0; b < s->settings->blocks; b++)
            for (int64_t t = 0; t < s->settings->steps && !status; t++) {
                basin_nodes_stream_show(s->stream[0], done++);
                status = step(s, (int)b, r, error);
            }
    }
    return status;
}

static basin_status run_streams(basin_parted_scorer *s, int64_t member, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int64_t k = 0; k < s->parts->count && !status; k++)
        status = basin_nodes_stream_begin(s->stream[k], member, error);
    status = basin_ranks_agree(s->parts->ranks, status, error);
    if (!status) status = descend(s, error);
    for (int64_t k = 0; k < s->parts->count; k++) {
        basin_status ended = basin_nodes_stream_end(s->stream[k], status ? NULL : s->row[k], error);
        status = status ? status : ended;
    }
    return status;
}

basin_status basin_parted_scorer_run(basin_parted_scorer *s, double *probability, int64_t member,
                                     basin_error *error) {
    basin_status status = s->stream ? run_streams(s, member, error) : run_plans(s, member, error);
    if (status) return status;
    return basin_parts_gather(probability, s->parts, (const void *const *)s->row, NULL, width_of(s),
                              error);
}
