/* Thousands of random blocks: the energy falls in small steps, never rises under the guard, and
 * both backends take the same steps. `test_descent_slow FIRST COUNT` tries other blocks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/energy/trial.h"

static uint64_t first = 1000, count = 2000;

static void check_falls(const basin_descent_result *r, double slack, uint64_t seed) {
    for (int step = 0; step < r->steps; step++)
        for (int64_t i = 0; i < r->samples; i++) {
            double before = trial_energy(r, step, i), after = trial_energy(r, step + 1, i);
            /* an energy near 0 is the sum of larger numbers */
            if (!(after <= before + slack * (fabs(before) + 0.01)))
                fail_msg("block %llu: the energy of sample %d rises from %.17g to %.17g in step %d",
                         (unsigned long long)seed, (int)i, before, after, step);
        }
}

static basin_descent_result run(uint64_t seed, const char *backend, basin_descent_spec spec,
                                const basin_stop *stop) {
    trial t;
    trial_open(&t, seed, backend);
    basin_descent_result r = trial_run(&t, &spec, stop);
    trial_close(&t);
    return r;
}

TEST(small_steps) {
    for (uint64_t seed = first; seed < first + count; seed++) {
        trial t;
        trial_open(&t, seed, "ref");
        double alpha = 1e-3 / (1 + trial_force(&t));
        trial_close(&t);
        basin_descent_spec spec = {.steps = 30, .alpha = alpha};
        basin_descent_result exact = run(seed, "ref", spec, NULL);
        basin_descent_result fast = run(seed, "cpu", spec, NULL);
        check_falls(&exact, 1e-13, seed);
        check_falls(&fast, 1e-6, seed);
        lab_assert_near(fast.x, exact.x, 1e-5, "cpu");
        basin_descent_result_free(&exact);
        basin_descent_result_free(&fast);
    }
}

TEST(guarded) {
    static const double alpha[] = {0.03, 0.3, 3, 30, 300, 1000};
    for (uint64_t seed = first; seed < first + count; seed++)
        for (int i = 0; i < 2; i++) {
            basin_descent_spec spec = {.steps = 12, .alpha = alpha[(seed + (uint64_t)i) % 6]};
            basin_stop stop = {.guard = true};
            basin_descent_result r = run(seed, i ? "cpu" : "ref", spec, &stop);
            check_falls(&r, 0, seed);
            assert_int_equal(basin_tensor_first_bad(r.x), -1);
            assert_int_equal(basin_tensor_first_bad(r.g), -1);
            basin_descent_result_free(&r);
        }
}

int main(int argc, char **argv) {
    if (argc > 2) first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    return tests_run(NULL, NULL);
}
