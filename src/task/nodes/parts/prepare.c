/* Before training on a graph in parts: inputs, plans and what they take; see fit.h. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "task/nodes/fit.h"

basin_status basin_nodes_prepare_parts(basin_nodes_fitting *f, basin_error *error) {
    f->work.parts->threads = basin_backend_threads(f->work.backend);
    basin_status status = basin_parted_inputs_open(&f->parted, f->work.parts, &f->settings, error);
    if (!status) f->settings.sampling = "full";
    if (!status) status = basin_parted_inputs_fit(&f->model->scale, &f->parted, f->part, error);
    if (!status) status = basin_parted_inputs_scale(&f->parted, &f->model->scale, error);
    /* What asks for sizes alone finds those of the whole. */
    if (!status) f->inputs = f->parted.whole;
    return status;
}

/* Weights that make up 1 over all training nodes. */
static float *share_weights(const basin_nodes_fitting *f) {
    int64_t N = f->network->nodes;
    float *share = basin_array_new((size_t)N, sizeof *share);
    double sum = 0;
    for (int64_t i = 0; i < N; i++) sum += (double)f->weight[i];
    for (int64_t i = 0; i < N && share; i++) share[i] = (float)((double)f->weight[i] / sum);
    return share;
}

static void describe(basin_nodes_fitting *f) {
    const basin_parts *p = f->work.parts;
    f->bytes = basin_parted_trainer_bytes(f->joint) + basin_parted_inputs_bytes(&f->parted);
    snprintf(f->model->trained_on, sizeof f->model->trained_on,
             "the full graph in %lld parts on %lld rank%s, %.2f GiB on the first",
             (long long)p->parts, (long long)basin_ranks_count(p->ranks),
             basin_ranks_count(p->ranks) > 1 ? "s" : "", (double)f->bytes / (1 << 30));
}

basin_status basin_nodes_make_parts(basin_nodes_fitting *f, const basin_trainer_spec *spec,
                                    basin_error *error) {
    float *weight = share_weights(f);
    if (!weight) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for weights");
    basin_status status = basin_nodes_net_new(&f->net, &f->settings, &f->parted.shape, true, error);
    if (!status)
        status = basin_parted_trainer_new(&f->joint, &f->parted, &f->net, f->store, spec, f->label,
                                          weight, error);
    free(weight);
    if (!status) describe(f);
    return status;
}
