/* The items of `basin bench` for images: the block's parts, forward pass, training step. */
#include "program/bench/bench.h"
#include "tasks/pictures/net.h"

typedef struct items {
    basin_bench *bench;
    basin_image_net model;
    basin_expr x; /* tokens [B, N, D] */
    basin_expr patches, replaced, occluded;
    double project, pairs, hopfield; /* operations of the products of a step: projections of Q and
                                        K, attention between them, memories */
} items;

static basin_status add_part(items *t, const char *key, const char *name, const basin_expr *output,
                             int outputs, double flops, basin_error *error) {
    basin_plan_spec spec = {.output = output, .outputs = outputs};
    basin_plan *plan;
    BASIN_TRY(basin_bench_plan(&plan, t->bench, key, name, &spec, flops, error));
    return basin_bench_write(t->bench, plan, t->x, 0, error);
}

/* Layer norm, projections, the forces of both terms, and one whole step. */
static basin_status add_parts(items *t, basin_error *error) {
    const basin_block *b = &t->model.block;
    basin_pattern pattern = BASIN_OTHER_PAIRS;
    basin_expr norm = basin_block_norm(b, t->x);
    basin_expr qk[2] = {basin_einsum("bnd,hyd->bnhy", t->x, b->wq),
                        basin_einsum("bnd,hyd->bnhy", t->x, b->wk)};
    basin_expr attention =
        basin_energy_attention(t->x, b->wk, b->wq, b->beta, NULL, NULL, &pattern);
    basin_expr memories = basin_energy_hopfield(t->x, b->xi, BASIN_HOPFIELD_RELU, 0);
    basin_expr force = basin_neg(basin_grad(attention, t->x));
    basin_expr pull = basin_neg(basin_grad(memories, t->x));
    basin_block_bound bound = {.block = b, .pattern = &pattern};
    basin_energy energy = basin_block_energy(&bound);
    basin_expr step =
        basin_descend(&energy, t->x, &(basin_descent_spec){.steps = 1, .alpha = 0.1}, NULL);
    double both_ways = 2 * t->project + t->pairs;
    BASIN_TRY(add_part(t, "norm", "layer norm", &norm, 1, 0, error));
    t->bench->item[t->bench->items - 1].bytes =
        2.0 * sizeof(float) * (double)basin_shape_count(basin_expr_shape(t->x));
    BASIN_TRY(add_part(t, "projections", "projections Q, K", qk, 2, t->project, error));
    BASIN_TRY(add_part(t, "attention", "attention force, projections both ways", &force, 1,
                       both_ways, error));
    BASIN_TRY(add_part(t, "hopfield", "Hopfield force", &pull, 1, t->hopfield, error));
    return add_part(t, "step", "one step of the descent", &step, 1, both_ways + t->hopfield, error);
}

static basin_status write_images(items *t, basin_plan *plan, basin_error *error) {
    BASIN_TRY(basin_bench_write(t->bench, plan, t->patches, 0, error));
    BASIN_TRY(basin_bench_write(t->bench, plan, t->replaced, 0.45, error));
    return basin_bench_write(t->bench, plan, t->occluded, 0.5, error);
}

/* In training each product A B = C is followed by its two reverses. */
static basin_status add_whole(items *t, double flops, basin_error *error) {
    basin_plan *plan;
    basin_expr output = basin_image_net_forward(&t->model, t->patches, t->replaced, NULL);
    basin_expr loss = basin_image_net_loss(output, t->patches, t->occluded);
    basin_plan_spec spec = {.output = &output, .outputs = 1};
    BASIN_TRY(basin_bench_plan(&plan, t->bench, "forward", "forward pass", &spec, flops, error));
    BASIN_TRY(write_images(t, plan, error));
    BASIN_TRY(basin_bench_training(&plan, t->bench, loss, 3 * flops, error));
    return write_images(t, plan, error);
}

basin_status basin_bench_image(basin_bench *bench, basin_error *error) {
    const basin_bench_shape *s = &bench->shape;
    basin_graph *graph = bench->graph;
    double rows = (double)(s->batch * s->tokens), wide = (double)(s->heads * s->head_dim);
    items t = {.bench = bench,
               .project = 4 * rows * (double)s->dim * wide,
               .pairs = 6 * rows * (double)s->tokens * wide,
               .hopfield = 4 * rows * (double)(s->dim * s->memories)};
    double flops = (double)s->steps * (2 * t.project + t.pairs + t.hopfield) +
                   4 * rows * (double)(s->dim * s->patch); /* encoder and decoder */
    basin_image_net_config config = {
        .tokens = s->tokens,
        .patch = s->patch,
        .block = basin_bench_block(s),
        .descent = {.steps = (int)s->steps, .alpha = 0.1, .recompute = bench->recompute}};
    t.x = basin_input(graph, "x", BASIN_SHAPE(s->batch, s->tokens, s->dim));
    t.patches = basin_input(graph, "patches", BASIN_SHAPE(s->batch, s->tokens, s->patch));
    t.replaced = basin_input(graph, "replaced", BASIN_SHAPE(s->batch, s->tokens));
    t.occluded = basin_input(graph, "occluded", BASIN_SHAPE(s->batch, s->tokens));
    basin_image_net_declare(&t.model, &bench->params, &config);
    BASIN_TRY(basin_graph_check(graph, error));
    if (!bench->whole) BASIN_TRY(add_parts(&t, error));
    BASIN_TRY(
        add_whole(&t, flops, error)); /* a plan that is too large fails before numbers are drawn */
    return basin_params_init(&bench->params, bench->store, bench->seed, error);
}
