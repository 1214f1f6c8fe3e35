/* gamma of the layer norm: where training pushes it below 0 the descent climbs; positive_gamma
 * keeps it above, and files of weights tell. */
#include "basin/train.h"
#include "energy/energy.h"
#include "support/test.h"

enum { STEPS = 20 };

/* gamma after steps that all want it smaller. */
static double pushed_down(bool positive) {
    basin_block_config config = {.dim = 4, .heads = 1, .head_dim = 2, .memories = 3};
    basin_trainer_spec spec = {
        .adamw = BASIN_ADAMW_DEFAULT,
        .schedule = {.total = STEPS, .first = 0.1, .peak = 0.1, .last = 0.1}};
    basin_graph *graph = basin_graph_new();
    basin_backend *backend;
    basin_store *store;
    basin_params params;
    basin_block block;
    basin_trainer trainer;
    basin_tensor gamma;
    basin_error error;
    config.positive_gamma = positive;
    basin_params_begin(&params, graph);
    must(basin_block_declare(&block, &params, "", &config), &error);
    must(basin_backend_open(&backend, &(basin_compute){.threads = 1}, &error), &error);
    must(basin_store_new(&store, backend, &error), &error);
    must(basin_params_init(&params, store, 1, &error), &error);
    must(basin_trainer_new(&trainer, store, &params, block.gamma, &spec, &error), &error);
    for (int i = 0; i < STEPS; i++) must(basin_trainer_step(&trainer, NULL, &error), &error);
    must(basin_store_read(store, "gamma", &gamma, &error), &error);
    double found = basin_tensor_at(&gamma, 0);
    basin_tensor_free(&gamma);
    basin_trainer_free(&trainer);
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

static void add(basin_bundle *bundle, const char *name, double *value) {
    basin_tensor tensor = basin_tensor_borrow(value, BASIN_F64, BASIN_SCALAR);
    assert_ok(basin_bundle_add(bundle, name, &tensor, &failure));
}

/* The head's layer norm takes no part in the descent, nor do moments. */
TEST(files_tell) {
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle;
    double least, value[] = {0.5, -1, -1, -0.25, -1.5, -0.125};
    assert_ok(basin_bundle_new(&bundle, &failure));
    add(bundle, "block0.gamma", &value[0]);
    add(bundle, "head_gamma", &value[1]);
    add(bundle, "gamma.m", &value[2]);
    assert_int_equal(basin_negative_gammas(&least, bundle), 0);
    add(bundle, "gamma", &value[3]);
    add(bundle, "member1.block2.gamma", &value[4]);
    add(bundle, "LNORM_gamma", &value[5]);
    assert_int_equal(basin_negative_gammas(&least, bundle), 3);
    assert_true(least == -1.5);
    assert_int_equal(basin_negative_gammas(NULL, bundle), 3);
}
