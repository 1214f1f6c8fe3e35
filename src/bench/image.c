/* The items of `basin bench` for images: the block's parts, the whole forward pass, a training
 * step, and the same matrix products alone. */
#include <string.h>

#include "backend/device.h"
#include "bench/bench.h"

typedef struct items {
    basin_bench *bench;
    basin_image_et model;
    basin_expr x; /* tokens [B, N, D] */
    basin_expr patches, replaced, occluded;
    double products; /* operations of all products of a forward pass */
} items;

static double rows_of(const basin_bench_shape *s) { return (double)(s->batch * s->tokens); }

static basin_status add_part(items *t, const char *key, const char *name, const basin_expr *output,
                             int outputs, double flops, basin_error *error) {
    basin_plan_spec spec = {.output = output, .outputs = outputs};
    basin_plan *plan = basin_bench_plan(t->bench, key, name, &spec, flops, error);
    return plan ? basin_bench_normal(t->bench, plan, t->x, 1, error) : error->status;
}

/* Layer norm, projections, the forces of both parts, and one whole step. */
static basin_status add_parts(items *t, basin_error *error) {
    const basin_bench_shape *s = &t->bench->shape;
    const basin_block *b = &t->model.block;
    double rows = rows_of(s), wide = (double)(s->heads * s->head_dim), D = (double)s->dim;
    double project = 4 * rows * D * wide, pairs = 6 * rows * (double)s->tokens * wide;
    double hopfield = 4 * rows * D * (double)s->memories;
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
    basin_status status = add_part(t, "norm", "layer norm", &norm, 1, 0, error);
    if (!status) status = add_part(t, "projections", "projections Q, K", qk, 2, project, error);
    if (!status)
        status = add_part(t, "attention", "attention force, projections both ways", &force, 1,
                          2 * project + pairs, error);
    if (!status) status = add_part(t, "hopfield", "Hopfield force", &pull, 1, hopfield, error);
    if (!status)
        status = add_part(t, "step", "one step of the descent", &step, 1,
                          2 * project + pairs + hopfield, error);
    return status;
}

static basin_status write_images(items *t, basin_plan *plan, basin_error *error) {
    basin_status status = basin_bench_normal(t->bench, plan, t->patches, 1, error);
    if (!status) status = basin_bench_bits(t->bench, plan, t->replaced, 0.45, error);
    if (!status) status = basin_bench_bits(t->bench, plan, t->occluded, 0.5, error);
    return status;
}

static basin_status add_whole(items *t, basin_error *error) {
    basin_bench *bench = t->bench;
    basin_expr output = basin_image_et_forward(&t->model, t->patches, t->replaced, NULL);
    basin_expr loss = basin_image_net_loss(output, t->patches, t->occluded);
    basin_adamw_config config = BASIN_ADAMW_DEFAULT;
    basin_plan_spec forward = {.output = &output, .outputs = 1};
    basin_plan *plan =
        basin_bench_plan(bench, "forward", "forward pass", &forward, t->products, error);
    if (!plan) return error->status;
    basin_status status = write_images(t, plan, error);
    if (!status) status = basin_adamw_new(&bench->adamw, &bench->params, loss, &config, error);
    if (status) return status;
    basin_plan_spec training = {.output = &loss,
                                .outputs = 1,
                                .update = bench->adamw.update,
                                .updates = bench->adamw.updates};
    plan = basin_bench_plan(bench, "training", "training step with AdamW", &training,
                            3 * t->products, error);
    if (!plan) return error->status;
    bench->training = basin_plan_get_stats(plan);
    status = write_images(t, plan, error);
    return status ? status : basin_adamw_write(&bench->adamw, plan, 1, 1e-5, error);
}

static void add_products(basin_bench *bench, double flops) {
    basin_yardstick *products = bench->products;
    bool blas = basin_blas_open();
    if (blas)
        basin_bench_add(bench, "blas_forward", "products of the forward pass, BLAS",
                        basin_yardstick_blas, products, flops);
    basin_bench_add(bench, "own_forward", "products of the forward pass, Basin",
                    basin_yardstick_own, products, flops);
    if (blas)
        basin_bench_add(bench, "blas_training", "products of training, BLAS",
                        basin_yardstick_blas_training, products, 3 * flops);
    basin_bench_add(bench, "own_training", "products of training, Basin",
                    basin_yardstick_own_training, products, 3 * flops);
}

basin_status basin_bench_image(basin_bench *bench, basin_error *error) {
    const basin_bench_shape *s = &bench->shape;
    items t = {.bench = bench};
    basin_graph *graph = bench->graph;
    basin_image_et_config config = {
        .tokens = s->tokens,
        .patch = s->patch,
        .block = basin_bench_block(s),
        .descent = {.steps = (int)s->steps, .alpha = 0.1, .recompute = bench->recompute}};
    t.x = basin_input(graph, "x", BASIN_SHAPE(s->batch, s->tokens, s->dim));
    t.patches = basin_input(graph, "patches", BASIN_SHAPE(s->batch, s->tokens, s->patch));
    t.replaced = basin_input(graph, "replaced", BASIN_SHAPE(s->batch, s->tokens));
    t.occluded = basin_input(graph, "occluded", BASIN_SHAPE(s->batch, s->tokens));
    if (basin_image_et_declare(&t.model, &bench->params, &config)) {
        *error = *basin_graph_error(graph);
        return error->status;
    }
    basin_status status = basin_params_init(&bench->params, bench->store, bench->seed, error);
    bool beside = !bench->whole && strcmp(basin_backend_name(bench->backend), "cuda") != 0;
    if (!status && beside)
        status =
            basin_yardstick_new(&bench->products, s, basin_backend_threads(bench->backend), error);
    if (status) return status;
    t.products = basin_yardstick_flops(s);
    if (!bench->whole) status = add_parts(&t, error);
    if (!status) status = add_whole(&t, error);
    if (!status && beside) add_products(bench, t.products);
    return status;
}
