/* The items of `basin bench` for graphs: energy attention along the edges of a random graph, its
 * reverse, and the anomaly detector on the full graph: the scores of all nodes, a training step. */
#include "basin/random.h"
#include "program/bench/bench.h"

/* Half as many undirected edges between random nodes, each way; few are drawn twice. */
static basin_status draw_graph(basin_bench *bench, basin_error *error) {
    const basin_bench_shape *s = &bench->shape;
    size_t ends = (size_t)s->edges / 2 * 2;
    BASIN_SCRATCH_RAW(int32_t, edge, ends, "edges", error);
    basin_random random = basin_random_start(bench->seed, 7, 0);
    for (size_t i = 0; i < ends; i++)
        edge[i] = (int32_t)basin_random_below(&random, (uint64_t)s->nodes);
    return basin_pairs_new(&bench->pairs, s->nodes, s->nodes, edge, s->edges / 2,
                           BASIN_PAIRS_BOTH_WAYS | BASIN_PAIRS_DROP_SELF, error);
}

/* The attention energy's force on g, and the gradient of a projection of it (second order). */
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
    const basin_plan_spec spec[2] = {{.output = &force, .outputs = 1},
                                     {.output = gradient, .outputs = 4}};
    static const char *const key[2] = {"attention", "reverse"};
    static const char *const name[2] = {"edge attention force", "the force and its reverse"};
    for (int i = 0; i < 2; i++) {
        basin_plan *plan;
        BASIN_TRY(basin_bench_plan(&plan, bench, key[i], name[i], &spec[i], 0, error));
        BASIN_TRY(basin_bench_write(bench, plan, g, 0, error));
        BASIN_TRY(basin_bench_write(bench, plan, along, 0, error));
        BASIN_TRY(basin_pairs_write(plan, pattern, &bench->pairs, error));
    }
    return BASIN_OK;
}

basin_status basin_bench_graph(basin_bench *bench, basin_error *error) {
    const basin_bench_shape *s = &bench->shape;
    basin_anomaly model;
    basin_anomaly_config config = {
        .nodes = s->nodes,
        .features = s->features,
        .block = basin_bench_block(s),
        .descent = {.steps = (int)s->steps, .alpha = 1, .recompute = bench->recompute}};
    basin_plan *plan;
    BASIN_TRY(draw_graph(bench, error));
    basin_pattern pattern =
        basin_pairs_declare(bench->graph, "pairs", s->nodes, s->nodes, bench->pairs.pairs);
    basin_anomaly_declare(&model, &bench->params, &config);
    BASIN_TRY(basin_graph_check(bench->graph, error));
    BASIN_TRY(basin_params_init(&bench->params, bench->store, bench->seed, error));
    if (!bench->whole) BASIN_TRY(add_attention(bench, &model.block, &pattern, error));
    basin_expr features = basin_input(bench->graph, "features", BASIN_SHAPE(s->nodes, s->features));
    basin_expr label = basin_input(bench->graph, "label", BASIN_SHAPE(s->nodes));
    basin_expr logits = basin_anomaly_logits(
        &model, &(basin_anomaly_inputs){.features = features, .neighbours = &pattern});
    basin_expr weight = basin_offset(basin_scale(label, 12), 1);
    basin_expr loss = basin_weighted_cross_entropy(logits, label, weight);
    basin_plan_spec spec = {.output = &logits, .outputs = 1};
    BASIN_TRY(basin_bench_plan(&plan, bench, "forward", "scores of all nodes", &spec, 0, error));
    BASIN_TRY(basin_bench_write(bench, plan, features, 0, error));
    BASIN_TRY(basin_pairs_write(plan, &pattern, &bench->pairs, error));
    BASIN_TRY(basin_bench_training(&plan, bench, loss, 0, error));
    BASIN_TRY(basin_bench_write(bench, plan, features, 0, error));
    BASIN_TRY(basin_bench_write(bench, plan, label, 0.07, error));
    return basin_pairs_write(plan, &pattern, &bench->pairs, error);
}
