/* Probabilities of all nodes of a graph in parts, by one plan a part; see parts.h. */
#include <stdlib.h>

#include "base/memory.h"
#include "task/anomaly/parts/parts.h"

struct basin_parted_scorer {
    basin_parts *parts;
    const basin_anomaly_settings *settings;
    const basin_anomaly_net *net;
    basin_plan **plan; /* [parts of this rank] */
    double **row;      /* [parts of this rank] probabilities */
};

static basin_status no_memory(basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "no memory to score parts");
}

static basin_status make_part(basin_parted_scorer *s, const basin_parted_inputs *inputs, int64_t k,
                              basin_store *store, basin_error *error) {
    basin_expr output = s->net->probability;
    basin_plan_spec spec = {.output = &output, .outputs = 1};
    s->row[k] = basin_array_new((size_t)inputs->shape.nodes, sizeof **s->row);
    if (!s->row[k]) return no_memory(error);
    basin_status status = basin_plan_new(&s->plan[k], store, &spec, error);
    if (status) return status;
    return basin_parted_inputs_write(inputs, k, s->net, s->plan[k], NULL, NULL, error);
}

basin_status basin_parted_scorer_new(basin_parted_scorer **scorer,
                                     const basin_parted_inputs *inputs,
                                     const basin_anomaly_net *net, basin_store *store,
                                     basin_error *error) {
    basin_parts *p = inputs->parts;
    *scorer = NULL;
    basin_parted_scorer *s = calloc(1, sizeof *s);
    basin_status status = s ? BASIN_OK : no_memory(error);
    if (s) {
        *s = (basin_parted_scorer){.parts = p, .settings = inputs->part[0].settings, .net = net};
        s->plan = calloc((size_t)p->count, sizeof(basin_plan *));
        s->row = calloc((size_t)p->count, sizeof(double *));
        if (!s->plan || !s->row) status = no_memory(error);
    }
    for (int64_t k = 0; k < p->count && !status; k++)
        status = make_part(s, inputs, k, store, error);
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
        if (s->row) free(s->row[k]);
    }
    free(s->plan), free(s->row);
    free(s);
}

basin_status basin_parted_scorer_run(basin_parted_scorer *s, double *probability, int64_t member,
                                     basin_error *error) {
    basin_exchange_way way = {basin_parts_move, s->parts};
    basin_status status = BASIN_OK;
    for (int64_t k = 0; k < s->parts->count && !status; k++)
        status = basin_anomaly_mask_write(s->plan[k], s->net->mask, s->settings, member, error);
    if (!status) status = basin_plans_run(s->plan, (int)s->parts->count, &way, error);
    for (int64_t k = 0; k < s->parts->count && !status; k++) {
        basin_shape shape = basin_expr_shape(s->net->probability);
        basin_tensor out = basin_tensor_borrow(s->row[k], BASIN_F64, shape);
        status = basin_plan_read(s->plan[k], s->net->probability, &out, error);
    }
    for (int64_t k = 0; k < s->parts->count; k++) basin_plan_rest(s->plan[k]);
    if (status) return status;
    return basin_parts_gather(probability, s->parts, (const void *const *)s->row, NULL,
                              sizeof *probability, error);
}
