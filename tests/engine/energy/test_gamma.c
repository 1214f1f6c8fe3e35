/* gamma of the layer norm: where training pushes it below 0 the descent climbs; positive_gamma
 * keeps it above. */
#include "basin/train.h"
#include "engine/energy/energy.h"
#include "support/test.h"

enum { STEPS = 20 };

/* gamma after steps that all want it smaller. */
static double pushed_down(bool positive) {
    basin_block_config config = {.dim = 4, .heads = 1, .head_dim = 2, .memories = 3};
    basin_trainer_spec spec = {
        .optimizer = BASIN_OPTIMIZER_DEFAULT,
        .schedule = {.total = STEPS, .first = 0.1, .peak = 0.1, .last = 0.1}};
    basin_graph *graph = basin_graph_new();
    basin_backend *backend;
    basin_store *store;
    basin_params params;
    basin_block block;
    basin_trainer *trainer;
    basin_tensor gamma;
    config.positive_gamma = positive;
    basin_params_begin(&params, graph);
    assert_ok(basin_block_declare(&block, &params, "", &config));
    assert_ok(basin_backend_open(&backend, &(basin_compute){.threads = 1}, &failure));
    assert_ok(basin_store_new(&store, backend, &failure));
    assert_ok(basin_params_init(&params, store, 1, &failure));
    assert_ok(basin_trainer_new(&trainer, store, &params, block.gamma, &spec, &failure));
    for (int i = 0; i < STEPS; i++) assert_ok(basin_trainer_step(NULL, trainer, &failure));
    assert_ok(basin_store_get(&gamma, store, "gamma", &failure));
    double found = basin_tensor_at(&gamma, 0);
    basin_tensor_free(&gamma);
    basin_trainer_free(trainer);
    basin_params_free(&params);
    basin_graph_free(graph);
    basin_store_free(store);
    basin_backend_close(backend);
    return found;
}

TEST(an_option_keeps_it_positive) {
    assert_true(pushed_down(false) < -0.5);
    double kept = pushed_down(true);
    assert_true(kept > 0 && kept < 0.01);
}
