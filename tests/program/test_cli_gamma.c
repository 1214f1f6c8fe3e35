/* Files of weights whose gamma is negative. */
#include "program/cli.h"
#include "support/test.h"

static void add(basin_bundle *bundle, const char *name, double *value) {
    basin_tensor tensor = basin_tensor_borrow(value, BASIN_F64, BASIN_SCALAR);
    assert_ok(basin_bundle_add(bundle, name, &tensor, &failure));
}

/* The head's layer norm takes no part in the descent, nor do moments. */
TEST(counts_negative_gammas) {
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle;
    double least, value[] = {0.5, -1, -1, -0.25, -1.5, -0.125};
    assert_ok(basin_bundle_new(&bundle, NULL, &failure));
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
