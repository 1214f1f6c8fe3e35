/* Momentum: fewer steps to the same rest, never a rise with the guard, a sample's own restarts. */
#include <math.h>
#include <string.h>

#include "engine/energy/trial.h"

enum { B = 2, D = 8 };

/* Springs of 1, 1/2, 1/4, .. along the axes; twice as stiff in the second sample. */
static basin_expr narrow_valley(const void *context, basin_expr g) {
    basin_graph *graph = basin_expr_graph(g);
    (void)context;
    basin_expr stiff = basin_exp(basin_scale(basin_arange(graph, D), -log(2)));
    basin_expr each = basin_offset(basin_expand_dims(basin_arange(graph, B), 1, 1), 1);
    return basin_scale(basin_sum(basin_mul(basin_mul(each, stiff), basin_square(g)), -1, 1), 0.5);
}

static const basin_energy valley = {BASIN_TERMS({"valley", narrow_valley, NULL})};

static basin_descent_result descend(lab *l, const basin_descent_spec *spec,
                                    const basin_stop *stop) {
    basin_descent *descent;
    basin_descent_result result = {0};
    basin_error error = {0};
    double number[B * D];
    for (int i = 0; i < B * D; i++) number[i] = 1 + 0.1 * i;
    basin_tensor start = basin_tensor_borrow(number, BASIN_F64, BASIN_SHAPE(B, D));
    if (basin_descent_new(&descent, l->store, &valley, l->graph, BASIN_SHAPE(B, D), spec, stop,
                          &error) ||
        basin_descent_run(descent, &result, &start, &error))
        fail_msg("%s", error.text);
    basin_descent_free(descent);
    return result;
}

TEST(fewer_steps) {
    int steps[2];
    for (int fast = 0; fast < 2; fast++) {
        lab l = lab_new("ref", 1);
        basin_descent_spec spec = {.steps = 5000, .alpha = 0.5};
        basin_stop stop = {.tolerance = 1e-9, .guard = true, .accelerate = fast};
        basin_descent_result r = descend(&l, &spec, &stop);
        assert_true(r.converged);
        for (int i = 0; i < B * D; i++) assert_true(fabs(basin_tensor_at(r.x, i)) < 1e-5);
        steps[fast] = r.steps;
        basin_descent_result_free(&r);
        lab_close(&l);
    }
    assert_true(3 * steps[1] < steps[0]);
}

/* The first steps are those of the textbook. */
TEST(as_written) {
    enum { STEPS = 4 };
    BASIN_AT_EXIT(lab_close) lab l = lab_new("ref", 1);
    basin_descent_spec spec = {.steps = STEPS, .alpha = 0.1};
    BASIN_AT_EXIT(basin_descent_result_free)
    basin_descent_result r = descend(&l, &spec, &(basin_stop){.accelerate = true});
    for (int i = 0; i < B * D; i++) {
        double x = 1 + 0.1 * i, last = x, k = (double)(i / D + 1) * pow(2, -(i % D));
        for (int t = 0; t < STEPS; t++) {
            double ahead = x + t / (t + 3.0) * (x - last);
            last = x;
            x = ahead - 0.1 * k * ahead;
        }
        assert_float_equal(basin_tensor_at(r.x, i), x, 1e-14);
    }
}

/* Blocks of all kinds, with steps that are too long by far. */
TEST(never_rises) {
    static const double alpha[] = {0.1, 1, 100};
    for (uint64_t seed = 0; seed < 60; seed++) {
        trial t;
        trial_open(&t, seed, seed % 2 ? "cpu" : "ref");
        basin_descent_spec spec = {.steps = 12, .alpha = alpha[seed % 3]};
        basin_stop stop = {.guard = true, .accelerate = true};
        basin_descent_result r = trial_run(&t, &spec, &stop);
        for (int step = 0; step < r.steps; step++)
            for (int64_t i = 0; i < r.samples; i++)
                if (!(trial_energy(&r, step + 1, i) <= trial_energy(&r, step, i)))
                    fail_msg("block %d: the energy of sample %d rises in step %d", (int)seed,
                             (int)i, step);
        basin_descent_result_free(&r);
        trial_close(&t);
    }
}

TEST(refuses_noise) {
    BASIN_AT_EXIT(lab_close) lab l;
    basin_descent *descent;
    lab_open(&l, "ref", 1);
    basin_descent_spec spec = {.steps = 1, .alpha = 1, .noise = 0.5};
    basin_stop stop = {.accelerate = true};
    assert_says(basin_descent_new(&descent, l.store, &valley, l.graph, BASIN_SHAPE(B, D), &spec,
                                  &stop, &failure),
                BASIN_BAD_VALUE, "noise 0.5 together with momentum, which would carry it along");
}
