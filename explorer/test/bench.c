/* How fast products and the block of the Fashion-MNIST model are in WebAssembly, under node:
 * processor time, which other work on the machine changes little. */
#include <emscripten.h>

#include "../../examples/must.h"

EM_JS(double, processor_ms, (void), {
    const used = process.cpuUsage();
    return (used.user + used.system) / 1000;
});

/* The fastest of several runs, in milliseconds. */
static double fastest(basin_engine *engine, basin_expr *output, int outputs, basin_expr input) {
    basin_plan *plan;
    basin_tensor t;
    must(basin_tensor_new(&t, BASIN_F32, basin_expr_shape(input), &error));
    basin_random_fill_normal(t.data, 1, 1, 0, (size_t)basin_shape_count(t.shape));
    basin_plan_spec spec = {.output = output, .outputs = outputs};
    double best = 1e9;
    must(basin_plan_new(&plan, engine->store, &spec, &error));
    for (int i = 0; i < 12; i++) {
        must(basin_plan_write(plan, input, &t, &error));
        double begin = processor_ms();
        must(basin_plan_run(plan, &error));
        double ms = processor_ms() - begin;
        if (ms < best) best = ms;
    }
    basin_plan_free(plan);
    basin_tensor_free(&t);
    return best;
}

static basin_expr drawn(basin_engine *engine, const char *name, basin_shape shape) {
    basin_tensor t;
    must(basin_tensor_new(&t, BASIN_F32, shape, &error));
    basin_random_fill_normal(t.data, 1, 1, 0, (size_t)basin_shape_count(shape));
    must(basin_store_write(engine->store, name, &t, &error));
    basin_tensor_free(&t);
    return basin_state(engine->graph, name, shape);
}

int main(void) {
    basin_engine engine;
    must(basin_engine_open(&engine, &(basin_compute){.backend = "cpu", .threads = 1}, &error));
    basin_expr a = basin_input(engine.graph, "a", BASIN_SHAPE(384, 384));
    basin_expr c = basin_matmul(a, drawn(&engine, "b", BASIN_SHAPE(384, 384)));
    double ms = fastest(&engine, &c, 1, a);
    printf("product 384 x 384 x 384   %.2f ms  %.2f GFLOP/s\n", ms, 2e-6 * 384 * 384 * 384 / ms);
    basin_params params;
    basin_params_begin(&params, engine.graph);
    basin_block block;
    basin_block_config config = {.dim = 128, .heads = 4, .head_dim = 32, .memories = 512};
    must(basin_block_declare(&block, &params, "", &config));
    must(basin_params_init(&params, engine.store, 1, &error));
    basin_pattern pattern = {.exclude_self = true};
    basin_block_bound bound = {.block = &block, .pattern = &pattern};
    basin_energy energy = basin_block_energy(&bound);
    basin_descent_spec spec = {.steps = 8, .alpha = 0.1};
    basin_expr x = basin_input(engine.graph, "x", BASIN_SHAPE(1, 49, 128));
    basin_expr end = basin_descend(&energy, x, &spec, NULL);
    printf("a step of the Fashion-MNIST block  %.2f ms\n", fastest(&engine, &end, 1, x) / 8);
    basin_expr q = basin_input(engine.graph, "q", BASIN_SHAPE(1, 196, 12, 64));
    basin_expr k = drawn(&engine, "k", BASIN_SHAPE(1, 196, 12, 64));
    basin_expr beta = basin_full(engine.graph, BASIN_SHAPE(12), 0.125);
    basin_expr lse = basin_attention_lse(q, k, beta, &pattern, NULL);
    basin_expr both[2] = {lse, basin_grad(lse, q)};
    printf("attention and its force, 12 heads, 196 tokens  %.2f ms\n",
           fastest(&engine, both, 2, q));
    basin_engine_close(&engine);
    return 0;
}
