/* Trainers and checkpoints: a run cut in two ends with the bits of a whole one; files that do not
 * fit are refused with a line that says why. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/training.h"
#include "basin/train.h"
#include "support/folder.h"
#include "support/lab.h"
#include "support/test.h"

enum { ROWS = 6, WIDTH = 5, STEPS = 9, CUT = 4 };

typedef struct run {
    lab lab;
    basin_expr x;
    basin_trainer *trainer;
} run;

/* loss = mean (x w + b)^2, on another x every step */
static void run_open(run *r, const char *backend, double peak) {
    lab *l = &r->lab;
    lab_open(l, backend, 1);
    basin_expr w = lab_state(l, "w", BASIN_SHAPE(WIDTH, 3)), b = lab_state(l, "b", BASIN_SHAPE(3));
    lab_fill(l, 5, 1);
    r->x = basin_input(l->graph, "x", BASIN_SHAPE(ROWS, WIDTH));
    basin_expr loss =
        basin_mean_all(basin_square(basin_offset(basin_add(basin_matmul(r->x, w), b), -1)));
    basin_trainer_spec spec = {.optimizer = BASIN_OPTIMIZER_DEFAULT,
                               .schedule = {3, STEPS, 0, peak, 0.001}};
    assert_ok(basin_trainer_new(&r->trainer, l->store, &l->params, loss, &spec, &failure));
}

static void run_close(run *r) {
    basin_trainer_free(r->trainer);
    lab_close(&r->lab);
}

static int64_t steps(const run *r) { return basin_trainer_info_of(r->trainer).step; }

static double run_to(run *r, int64_t step) {
    double loss = NAN;
    while (steps(r) < step) {
        float x[ROWS * WIDTH];
        basin_random_fill_normal(x, 11, (uint64_t)steps(r), 0, ROWS * WIDTH);
        basin_tensor tensor = basin_tensor_borrow(x, BASIN_F32, BASIN_SHAPE(ROWS, WIDTH));
        assert_ok(basin_plan_write(basin_trainer_plan(r->trainer), r->x, &tensor, &failure));
        assert_ok(basin_trainer_step(&loss, r->trainer, &failure));
    }
    return loss;
}

static void same_bits(run *a, run *b) {
    const char *name;
    assert_int_equal(lab_states(&a->lab), lab_states(&b->lab));
    for (int i = 0; (name = basin_store_name(a->lab.store, i)); i++) {
        basin_tensor x, y;
        assert_ok(basin_store_get(&x, a->lab.store, name, &failure));
        assert_ok(basin_store_get(&y, b->lab.store, name, &failure));
        assert_memory_equal(x.data, y.data, basin_tensor_bytes(&x));
        basin_tensor_free(&x);
        basin_tensor_free(&y);
    }
}

TEST(resumed_run_equals_a_whole_one) {
    const char *backends[] = {"ref", "cpu"};
    for (int i = 0; i < 2; i++) {
        basin_bundle *bundle;
        run whole, first, second;
        char *path = folder_path(state, "half.safetensors");
        run_open(&whole, backends[i], 0.02);
        double end = run_to(&whole, STEPS);
        run_open(&first, backends[i], 0.02);
        run_to(&first, CUT);
        basin_meta meta = {"basin.config", "{}"};
        assert_ok(basin_checkpoint_write(path, first.lab.store, steps(&first), &meta, 1, &failure));
        run_open(&second, backends[i], 0.02);
        run_to(&second, 1);
        assert_ok(basin_bundle_read(&bundle, path, &failure));
        assert_string_equal(basin_bundle_meta(bundle, "basin.config"), "{}");
        int64_t step;
        assert_ok(basin_checkpoint_read(&step, second.lab.store, bundle, &failure));
        basin_bundle_free(bundle);
        assert_int_equal(step, CUT);
        basin_trainer_set_step(second.trainer, step);
        assert_true(run_to(&second, STEPS) == end);
        same_bits(&whole, &second);
        run_close(&whole);
        run_close(&first);
        run_close(&second);
    }
}

TEST(training_lowers_the_loss) {
    run r;
    run_open(&r, "cpu", 0.05);
    double first = run_to(&r, 1), last = run_to(&r, STEPS);
    assert_true(last < first);
    run_close(&r);
}

TEST(a_loss_that_explodes_is_an_error) {
    run r;
    double loss;
    float x[ROWS * WIDTH] = {INFINITY};
    basin_tensor tensor = basin_tensor_borrow(x, BASIN_F32, BASIN_SHAPE(ROWS, WIDTH));
    run_open(&r, "cpu", 0.05);
    assert_ok(basin_plan_write(basin_trainer_plan(r.trainer), r.x, &tensor, &failure));
    assert_failure(basin_trainer_step(&loss, r.trainer, &failure), BASIN_BAD_VALUE, "at step 1");
    run_close(&r);
}

static basin_bundle *open_bundle(const char *path) {
    basin_bundle *bundle;
    assert_ok(basin_bundle_read(&bundle, path, &failure));
    return bundle;
}

TEST(files_that_do_not_fit_are_refused) {
    int64_t step;
    run r;
    run_open(&r, "cpu", 0.05);
    char *path = folder_path(state, "model.safetensors");
    assert_ok(basin_params_write(path, &r.lab.params, r.lab.store, NULL, 0, &failure));
    basin_bundle *model = open_bundle(path);
    assert_int_equal(basin_bundle_count(model), 2);
    assert_ok(basin_params_read(&r.lab.params, r.lab.store, model, &failure));
    assert_failure(basin_checkpoint_read(&step, r.lab.store, model, &failure), BASIN_BAD_FILE,
                   "model.safetensors: the step is 'absent'");
    basin_bundle_free(model);

    basin_bundle *other;
    basin_tensor w, b;
    assert_ok(basin_bundle_new(&other, NULL, &failure));
    assert_ok(basin_tensor_new(&w, BASIN_F32, BASIN_SHAPE(WIDTH, 4), &failure));
    assert_ok(basin_bundle_add(other, "w", &w, &failure));
    assert_failure(basin_params_read(&r.lab.params, r.lab.store, other, &failure), BASIN_BAD_SHAPE,
                   "'w' has shape [5, 4], expected [5, 3]");
    basin_bundle_free(other);

    assert_ok(basin_bundle_new(&other, NULL, &failure));
    assert_ok(basin_tensor_new(&w, BASIN_F32, BASIN_SHAPE(WIDTH, 3), &failure));
    assert_ok(basin_tensor_new(&b, BASIN_F32, BASIN_SHAPE(3), &failure));
    ((float *)b.data)[2] = NAN;
    assert_ok(basin_bundle_add(other, "w", &w, &failure));
    assert_ok(basin_bundle_add(other, "b", &b, &failure));
    assert_failure(basin_params_read(&r.lab.params, r.lab.store, other, &failure), BASIN_BAD_FILE,
                   "'b' has nan at element 2");
    basin_bundle_free(other);
    run_close(&r);
}

int main(void) { return tests_run(folder_new, folder_remove); }
