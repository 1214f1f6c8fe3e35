/* Crops that a backend cuts: plans find its table, refuse backends without one, and count an input
 * that was cropped into as written. The crops here are numbers, cut by the host. */
#include "plan/plan.h"

#include "backend/kernel.h"
#include "support/lab.h"

enum { COUNT = 2, SIZE = 2, VALUES = COUNT * SIZE * SIZE };

static void number(basin_backend *backend, float *values, const basin_crop_batch *batch) {
    (void)backend;
    for (int64_t i = 0; i < batch->count * batch->size * batch->size; i++)
        values[i] = (float)i * batch->factor[0];
}

static const basin_crop_table numbers = {.crop = number};

static void refuse(basin_plan *plan, basin_expr input, const basin_crop_batch *batch,
                   basin_status status, const char *text) {
    basin_error error = {0};
    assert_int_equal(basin_plan_crop(plan, input, batch, &error), status);
    assert_string_equal(error.text, text);
}

TEST(test_crop) {
    BASIN_AT_EXIT(lab_close) lab l = lab_new("cpu", 1);
    basin_expr x = basin_input(l.graph, "x", BASIN_SHAPE(COUNT, SIZE * SIZE));
    basin_expr index = basin_index(l.graph, "index", BASIN_SHAPE(VALUES));
    basin_expr sum = basin_sum_all(x);
    basin_plan *plan = lab_plan(&l, &sum, 1);
    basin_crop_batch batch = {.count = COUNT, .size = SIZE, .channels = 1, .factor = {0.5}};
    assert_null(basin_backend_crops(l.backend));
    refuse(plan, x, &batch, BASIN_UNSUPPORTED, "backend cpu does not cut crops");

    const basin_backend_table *before = l.backend->table;
    basin_backend_table table = *before;
    table.crops = &numbers;
    l.backend->table = &table;
    assert_ptr_equal(basin_backend_crops(l.backend), &numbers);
    refuse(plan, index, &batch, BASIN_BAD_VALUE, "only inputs of numbers can be written");
    batch.count++;
    refuse(plan, x, &batch, BASIN_BAD_SHAPE, "3 crops are 12 values, the input 'x' has 8");
    batch.count--;
    assert_int_equal(basin_plan_run(plan, NULL), BASIN_BAD_VALUE); /* never written */
    assert_int_equal(basin_plan_crop(plan, x, &batch, NULL), BASIN_OK);
    assert_int_equal(basin_plan_run(plan, NULL), BASIN_OK);
    assert_true(basin_plan_scalar(plan, sum) == 14);
    basin_plan_free(plan);
    l.backend->table = before;
}
