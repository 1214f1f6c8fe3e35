/* Averages of weights over steps, on every backend that is here. */
#include "support/lab.h"
#include "support/test.h"
#include "tasks/common/run/run.h"

static void set(lab *l, const char *name, double a, double b) {
    double value[] = {a, b};
    basin_tensor tensor = basin_tensor_borrow(value, BASIN_F64, BASIN_SHAPE(2));
    assert_ok(basin_store_write(l->store, name, &tensor, &failure));
}

static double read_second(lab *l, const char *name) {
    basin_tensor tensor;
    assert_ok(basin_store_get(&tensor, l->store, name, &failure));
    double value = basin_tensor_at(&tensor, 1);
    basin_tensor_free(&tensor);
    return value;
}

TEST(averages_follow_the_weights) {
    static const char *const backend[] = {"ref", "cpu"};
    for (int i = 0; i < 2; i++) {
        lab l;
        lab_open(&l, backend[i], 1);
        basin_param_add(&l.params, "", "w", BASIN_SHAPE(2), (basin_init){0});
        set(&l, "w", 0, 5);
        set(&l, "average.w", 0, 5);
        double wanted = 5;
        for (int t = 1; t < 5; t++) { /* 1 / 11, then 0.12: 2 / 12 is more */
            double keep = t < 2 ? 1.0 / 11 : 0.12;
            set(&l, "w", 1, t * t);
            assert_ok(basin_run_average(l.store, &l.params, 0.12, t, &failure));
            wanted = keep * wanted + (1 - keep) * t * t;
            assert_true(read_second(&l, "w") == t * t);
            assert_float_equal(read_second(&l, "average.w"), wanted, 1e-5);
        }
        lab_close(&l);
    }
}
