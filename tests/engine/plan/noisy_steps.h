/* Two noisy steps of a block with their gradients, which the CUDA backend is tested on. */
#ifndef BASIN_TESTS_PLAN_NOISY_STEPS_H
#define BASIN_TESTS_PLAN_NOISY_STEPS_H

#include "support/lab.h"

enum { DIM = 8, HEAD = 6, MEMORIES = 16, OUTPUTS = 6 };
static const char *const output_name[OUTPUTS] = {"loss", "wq", "wk", "xi", "exp a", "exp b"};

static inline basin_expr noisy_tokens(lab *l, int64_t count) {
    double x[1000 * DIM];
    for (int64_t i = 0; i < count * DIM; i++)
        x[i] = basin_random_uniform_at(3, 1, (uint64_t)i) - 0.5;
    return lab_input(l, "x", BASIN_SHAPE(count, DIM), x);
}

/* Two noisy steps x <- x + 0.5 (Q Wq + K Wk + relu(x Xi') Xi) + noise, their squares, and the
 * gradients of these. */
static inline void write_steps(lab *l, basin_expr *output, int64_t count) {
    basin_expr wq = lab_state(l, "wq", BASIN_SHAPE(HEAD, DIM));
    basin_expr wk = lab_state(l, "wk", BASIN_SHAPE(HEAD, DIM));
    basin_expr xi = lab_state(l, "xi", BASIN_SHAPE(MEMORIES, DIM));
    basin_expr a = lab_input(l, "a", BASIN_SHAPE(4), (const double[]){0.1, 0.2, 0.3, 0.4});
    basin_expr b = lab_input(l, "b", BASIN_SHAPE(4), (const double[]){0.5, 0.6, 0.7, 0.8});
    basin_expr seed = lab_index(l, "seed", (const int32_t[]){5, 6}, 2), x = noisy_tokens(l, count);
    for (int step = 0; step < 2; step++) {
        basin_expr q = basin_matmul_t(x, false, wq, true), k = basin_matmul_t(x, false, wk, true);
        basin_expr h = basin_relu(basin_matmul_t(x, false, xi, true));
        basin_expr sum = basin_add(basin_matmul(q, wq), basin_matmul(k, wk));
        sum = basin_add(sum, basin_matmul(h, xi));
        basin_expr noise = basin_normal(seed, BASIN_SHAPE(count, DIM));
        x = basin_add(basin_add(x, basin_scale(noise, 0.01)), basin_scale(sum, 0.5));
    }
    basin_expr loss = basin_sum_all(basin_square(x));
    output[0] = loss;
    output[1] = basin_grad(loss, wq), output[2] = basin_grad(loss, wk);
    output[3] = basin_grad(loss, xi);
    output[4] = basin_exp(basin_scale(a, 2)), output[5] = basin_exp(basin_scale(b, 2));
}

/* Runs the plan three times: a device computes call by call, captures, and replays. */
static inline void compute_steps(basin_tensor *result, lab *l, int64_t count) {
    basin_expr output[OUTPUTS];
    write_steps(l, output, count);
    lab_fill(l, 11, 0.5);
    basin_plan *plan = lab_plan(l, output, OUTPUTS);
    for (int run = 0; run < 3; run++) lab_run(plan);
    for (int i = 0; i < OUTPUTS; i++) result[i] = lab_read(plan, output[i]);
    basin_plan_free(plan);
}

static inline void compare_steps(basin_tensor *found, basin_tensor *wanted, double tolerance) {
    for (int i = 0; i < OUTPUTS; i++) {
        lab_assert_near(&found[i], &wanted[i], tolerance, output_name[i]);
        basin_tensor_free(&found[i]);
        basin_tensor_free(&wanted[i]);
    }
}

#endif
