/* The items of `basin bench` for graphs: energy attention along the edges of a random graph, its
 * reverse, and the anomaly detector on the full graph: the scores of all nodes, a training step. */
#include <stdlib.h>

#include "base/memory.h"
#include "basin/random.h"
#include "bench/bench.h"

/* Half as many undirected edges between random nodes, each way; few are drawn twice. */
static basin_status draw_graph(basin_bench *bench, basin_error *error) {
    const basin_bench_shape *s = &bench->shape;
    size_t count = (size_t)s->edges / 2;
    int32_t *edge = basin_array_new(count, 2 * sizeof *edge);
    if (!edge) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for %zu edges", count);
    basin_random random = basin_random_start(bench->seed, 7, 0);
    for (size_t i = 0; i < 2 * count; i++)
        edge[i] = (int32_t)basin_random_below(&random, (uint64_t)s->nodes);
    basin_status status = basin_pairs_new(&bench->pairs, s->nodes, s->nodes, edge, (int64_t)count,
                                          BASIN_PAIRS_BOTH_WAYS | BASIN_PAIRS_DROP_SELF, error);
    free(edge);
    return status;
}

/* The attention energy's force on g, and the gradient of a projection of it: the second order that
 * training needs. */
static basin_status add_attention(basin_bench *bench, const basin_block *block,
                                  const basin_pattern *pattern, basin_error *error) {
    const basin_bench_shape *s = &bench->shape;
    basin_expr g = basin_input(bench->graph, "g", BASIN_SHAPE(s->nodes, s->dim));
    basin_expr along = basin_input(bench->graph, "along", BASIN_SHAPE(s->nodes, s->dim));
    basin_expr energy =
        basin_energy_attention(g, block->wk, block->wq, block->beta, NULL, NULL, pattern);
    basin_expr force = basin_neg(basin_grad(energy, g));
    basin_expr from[4] = {g, block->wk, block->wq, block->beta}, gradient[4];
    basin_vjp(gradient, force, along, from, 4);
    basin_plan_spec first = {.output = &force, .outputs = 1};
    basin_plan_spec second = {.output = gradient, .outputs = 4};
    basin_plan *plan[2] = {
        basin_bench_plan(bench, "attention", "edge attention force", &first, 0, error), NULL};
    if (plan[0])
        plan[1] =
            basin_bench_plan(bench, "reverse", "the force and its reverse", &second, 0, error);
    if (!plan[1]) return error->status;
    basin_status status = BASIN_OK;
    for (int i = 0; i < 2 && !status; i++) {
        status = basin_bench_normal(bench, plan[i], g, 1, error);
        if (!status) status = basin_bench_normal(bench, plan[i], along, 1, error);
        if (!status) status = basin_pairs_write(plan[i], pattern, &bench->pairs, error);
    }
    return status;
}

static basin_status add_forward(basin_bench *bench, basin_expr logits, basin_expr features,
                                const basin_pattern *pattern, basin_error *error) {
    basin_plan_spec spec = {.output = &logits, .outputs = 1};
    basin_plan *plan = basin_bench_plan(bench, "forward", "scores of all nodes", &spec, 0, error);
    if (!plan) return error->status;
    basin_status status = basin_bench_normal(bench, plan, features, 1, error);
    return status ? status : basin_pairs_write(plan, pattern, &bench->pairs, error);
}

static basin_status add_training(basin_bench *bench, basin_expr logits, basin_expr features,
                                 const basin_pattern *pattern, basin_error *error) {
    const basin_bench_shape *s = &bench->shape;
    basin_expr label = basin_input(bench->graph, "label", BASIN_SHAPE(s->nodes));
    basin_expr weight = basin_offset(basin_scale(label, 12), 1);
    basin_expr loss = basin_weighted_cross_entropy(logits, label, weight);
    basin_adamw_config config = BASIN_ADAMW_DEFAULT;
    basin_status status = basin_adamw_new(&bench->adamw, &bench->params, loss, &config, error);
    if (status) return status;
    basin_plan_spec spec = {.output = &loss,
                            .outputs = 1,
                            .update = bench->adamw.update,
                            .updates = bench->adamw.updates};
    basin_plan *plan =
        basin_bench_plan(bench, "training", "training step with AdamW", &spec, 0, error);
    if (!plan) return error->status;
    bench->training = basin_plan_get_stats(plan);
    status = basin_bench_normal(bench, plan, features, 1, error);
    if (!status) status = basin_bench_bits(bench, plan, label, 0.07, error);
    if (!status) status = basin_pairs_write(plan, pattern, &bench->pairs, error);
    return status ? status : basin_adamw_write(&bench->adamw, plan, 1, 1e-5, error);
}

basin_status basin_bench_graph(basin_bench *bench, basin_error *error) {
    const basin_bench_shape *s = &bench->shape;
    basin_anomaly model;
    basin_anomaly_config config = {
        .nodes = s->nodes,
        .features = s->features,
        .block = basin_bench_block(s),
        .descent = {.steps = (int)s->steps, .alpha = 1, .recompute = bench->recompute}};
    basin_status status = draw_graph(bench, error);
    if (status) return status;
    basin_pattern pattern =
        basin_pairs_declare(bench->graph, "pairs", s->nodes, s->nodes, bench->pairs.pairs);
    if (basin_anomaly_declare(&model, &bench->params, &config)) {
        *error = *basin_graph_error(bench->graph);
        return error->status;
    }
    status = basin_params_init(&bench->params, bench->store, bench->seed, error);
    if (!status && !bench->whole) status = add_attention(bench, &model.block, &pattern, error);
    basin_expr features = basin_input(bench->graph, "features", BASIN_SHAPE(s->nodes, s->features));
    basin_expr logits = basin_anomaly_logits(
        &model, &(basin_anomaly_inputs){.features = features, .neighbours = &pattern});
    if (!status) status = add_forward(bench, logits, features, &pattern, error);
    return status ? status : add_training(bench, logits, features, &pattern, error);
}
