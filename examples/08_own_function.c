/* A pointwise function of your own: asinh, which no operation of the library gives.
 *
 * You write its value in C and its derivative as an expression; all higher derivatives follow. The
 * Lagrangian L(x) = sum of x asinh(x) - sqrt(1 + x^2) then has the gradient asinh(x): an activation
 * that grows like a logarithm and never saturates. */
#include <math.h>

#include "must.h"

enum { N = 4 };

static double value(const double *x, const void *context) {
    (void)context;
    return asinh(x[0]);
}

/* 1 / sqrt(1 + x^2) */
static basin_expr slope(const basin_custom_op *own, const basin_expr *x, int i) {
    (void)own, (void)i;
    return basin_power_scalar(basin_offset(basin_square(x[0]), 1), -0.5);
}

/* With `cuda`, the body of the same function in CUDA C, it runs on that backend, too. */
static const basin_custom_op own_asinh = {
    .name = "asinh", .operands = 1, .value = value, .slope = slope, .cuda = "return asinhf(x[0]);"};

int main(void) {
    basin_engine engine;
    basin_tensor result[3];
    double number[N] = {-3, -0.5, 0.5, 3};
    must(basin_engine_open(&engine, NULL, &error));

    basin_expr x = basin_input(engine.graph, "x", BASIN_SHAPE(N));
    basin_expr root = basin_sqrt(basin_offset(basin_square(x), 1));
    basin_expr L = basin_sub(basin_mul(x, basin_custom_apply(&own_asinh, &x)), root);
    basin_expr g = basin_grad(L, x); /* asinh(x) */
    basin_expr output[] = {g, basin_grad(g, x), basin_grad(basin_grad(g, x), x)};

    basin_tensor in = basin_tensor_borrow(number, BASIN_F64, BASIN_SHAPE(N));
    must(basin_engine_compute(&engine, result, output, 3, &(basin_feed){x, &in}, 1, &error));
    for (int i = 0; i < N; i++)
        printf("x %4.1f   asinh %7.4f   L' %7.4f   L'' %.4f   L''' %7.4f\n", number[i],
               asinh(number[i]), basin_tensor_at(&result[0], i), basin_tensor_at(&result[1], i),
               basin_tensor_at(&result[2], i));
    for (int i = 0; i < 3; i++) basin_tensor_free(&result[i]);

    /* Without a derivative a function has a value, and nothing can be trained through it. */
    basin_custom_op bare = {.name = "bare", .operands = 1, .value = value};
    basin_grad(basin_custom_apply(&bare, &x), x);
    printf("error: %s\n", basin_graph_error(engine.graph)->text);
    basin_engine_close(&engine);
    return 0;
}
