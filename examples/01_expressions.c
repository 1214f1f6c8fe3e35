/* Expressions: write a formula, differentiate it twice, run it on two backends.
 *
 * L(x) = sum of log(1 + e^x). Its gradient is the logistic function s(x), and the gradient of that
 * is s (1 - s). Nobody tells Basin so: differentiation rewrites the graph, as often as asked. */
#include "must.h"

enum { N = 5 };

static void run_on(const char *name, basin_expr x, const basin_expr output[3]) {
    basin_backend *backend;
    basin_store *store; /* holds states; this formula has none */
    basin_plan *plan;
    must(basin_backend_open(&backend, &(basin_compute){.backend = name}, &error));
    must(basin_store_new(&store, backend, &error));
    must(basin_plan_new(&plan, store, &(basin_plan_spec){.output = output, .outputs = 3}, &error));

    double number[N] = {-2, -1, 0, 1, 2}, first[N], second[N];
    basin_tensor in = basin_tensor_borrow(number, BASIN_F64, BASIN_SHAPE(N));
    basin_tensor out1 = basin_tensor_borrow(first, BASIN_F64, BASIN_SHAPE(N));
    basin_tensor out2 = basin_tensor_borrow(second, BASIN_F64, BASIN_SHAPE(N));
    must(basin_plan_write(plan, x, &in, &error));
    must(basin_plan_run(plan, &error));
    must(basin_plan_read(&out1, plan, output[1], &error));
    must(basin_plan_read(&out2, plan, output[2], &error));

    double total;
    must(basin_plan_read_scalar(&total, plan, output[0], &error));
    basin_backend_info info = {.size = sizeof info};
    basin_backend_get_info(&info, backend);
    printf("%s computes in %s: L = %.4f\n", info.name, basin_dtype_name(info.dtype), total);
    for (int i = 0; i < N; i++)
        printf("  x %4.1f   L' %.4f   L'' %.4f\n", number[i], first[i], second[i]);

    basin_plan_free(plan);
    basin_store_free(store);
    basin_backend_close(backend);
}

int main(void) {
    basin_graph *graph = basin_graph_new();
    if (!graph) return 1;
    basin_expr x = basin_input(graph, "x", BASIN_SHAPE(N));
    basin_expr value = basin_sum_all(basin_softplus(x));
    basin_expr first = basin_grad(value, x);
    basin_expr second = basin_grad(first, x); /* of the sum of the first: each x[i] meets itself */
    basin_expr output[3] = {value, first, second};
    run_on("ref", x, output);
    run_on("cpu", x, output);

    /* Shapes are checked while building. The error stays in the graph until someone asks. */
    basin_add(x, basin_input(graph, "y", BASIN_SHAPE(4)));
    printf("error: %s\n", basin_graph_error(graph)->text);
    basin_graph_free(graph);
    return 0;
}
