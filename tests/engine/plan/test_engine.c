/* An engine: opened, asked for a result, closed; mistakes leave nothing behind. */
#include <math.h>
#include <stdlib.h>

#include "basin/plan.h"
#include "support/test.h"

TEST(test_compute) {
    basin_engine engine;
    basin_tensor result[2];
    double number[3] = {1, 2, 3};
    basin_tensor tokens = basin_tensor_borrow(number, BASIN_F64, BASIN_SHAPE(3));
    assert_ok(basin_engine_open(&engine, &(basin_compute){.threads = 1}, &failure));
    basin_expr x = basin_input(engine.graph, "x", BASIN_SHAPE(3));
    basin_expr output[2] = {basin_square(x), basin_sum_all(x)};
    const basin_feed given = {x, &tokens};
    assert_ok(basin_engine_compute(&engine, result, output, 2, &given, 1, &failure));
    for (int i = 0; i < 3; i++)
        assert_float_equal(basin_tensor_at(&result[0], i), (i + 1) * (i + 1), 0);
    assert_float_equal(basin_tensor_at(&result[1], 0), 6, 0);
    basin_tensor_free(&result[0]);
    basin_tensor_free(&result[1]);
    basin_engine_close(&engine);
}

TEST(test_mistakes) {
    basin_engine engine;
    basin_error error = {0};
    basin_tensor result;
    assert_int_not_equal(
        basin_engine_open(&engine, &(basin_compute){.backend = "abacus", .threads = 1}, &error),
        BASIN_OK);
    assert_null(engine.backend);
    basin_engine_close(&engine);
    assert_int_not_equal(basin_engine_open(&engine, &(basin_compute){.backend = ""}, &error),
                         BASIN_OK);
    assert_string_equal(error.text, "unknown backend ''; expected ref, cpu or cuda");
    basin_engine_close(&engine);
    assert_says(basin_engine_open(&engine, &(basin_compute){.threads = 100000}, &failure),
                BASIN_BAD_VALUE, "threads is 100000; expected 0 (all cores) to 4096");
    setenv("BASIN_ISA", "foo", 1);
    assert_int_equal(basin_engine_open(&engine, NULL, &error), BASIN_BAD_VALUE);
    unsetenv("BASIN_ISA");
    assert_string_equal(error.text, "BASIN_ISA is 'foo'; expected portable, neon, avx2 or avx512");
    assert_ok(
        basin_engine_open(&engine, &(basin_compute){.backend = "ref", .threads = 1}, &failure));
    basin_expr x = basin_input(engine.graph, "x", BASIN_SHAPE(3)), y = basin_exp(x);
    assert_says(basin_engine_compute(&engine, &result, &y, 1, NULL, 0, &failure), BASIN_BAD_VALUE,
                "the input 'x' [3] was never written");
    assert_null(result.data);
    y = basin_add(x, basin_input(engine.graph, "z", BASIN_SHAPE(2)));
    assert_says(basin_engine_compute(&engine, &result, &y, 1, NULL, 0, &failure), BASIN_BAD_SHAPE,
                "add: 'x' [3] and 'z' [2] do not broadcast");
    basin_engine_close(&engine);
}

/* A row of nothing but NaN is not one without elements. */
TEST(test_not_a_number) {
    static const char *const backends[] = {"ref", "cpu"};
    double number[] = {NAN, NAN, -INFINITY, -INFINITY};
    basin_tensor rows = basin_tensor_borrow(number, BASIN_F64, BASIN_SHAPE(2, 2)), result;
    for (int i = 0; i < 2; i++) {
        basin_engine engine;
        assert_ok(basin_engine_open(&engine, &(basin_compute){.backend = backends[i], .threads = 1},
                                    &failure));
        basin_expr x = basin_input(engine.graph, "x", rows.shape), y = basin_logsumexp(x, -1);
        basin_feed given = {x, &rows};
        assert_int_equal(basin_engine_compute(&engine, &result, &y, 1, &given, 1, NULL), BASIN_OK);
        assert_true(isnan(basin_tensor_at(&result, 0)));
        assert_true(basin_tensor_at(&result, 1) == -INFINITY);
        basin_tensor_free(&result);
        basin_engine_close(&engine);
    }
}
