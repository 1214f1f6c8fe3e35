#include <basin/basin.h>
#include <stdio.h>

// Two basins: E(g) = 1/4 sum of (g^2 - 1)^2 is lowest at -1 and at 1.
static basin_expr wells(const void *context, basin_expr g, int part) {
    (void)context, (void)part;
    return basin_scale(basin_sum_all(basin_square(basin_offset(basin_square(g), -1))), 0.25);
}

int main(void) {
    double start[4] = {-1.5, -0.2, 0.1, 2};
    basin_tensor tokens = basin_tensor_borrow(start, BASIN_F64, BASIN_SHAPE(4));
    basin_energy energy = {.parts = 1, .name = {"wells"}, .part = wells};
    basin_descent_spec spec = {.steps = 200, .alpha = 0.1, .tolerance = 1e-4};

    basin_error error;
    basin_backend *backend = NULL;
    basin_store *store = NULL;
    basin_descent *descent = NULL;
    basin_descent_result result = {0};
    basin_graph *graph = basin_graph_new();
    basin_expr x = basin_input(graph, "x", BASIN_SHAPE(4));
    basin_status status = basin_backend_open(&backend, NULL, &error);
    if (!status) status = basin_store_new(&store, backend, &error);
    if (!status) status = basin_descent_new(&descent, store, &energy, x, &spec, &error);
    if (!status) status = basin_descent_run(descent, &result, &tokens, &error);
    for (int i = 0; i < 4 && !status; i++)
        printf("%4.1f falls to %5.2f\n", start[i], basin_tensor_at(&result.x, i));
    if (status)
        fprintf(stderr, "%s\n", error.text);
    else
        printf("energy %.3f, then %.3f\n", basin_descent_total(&result, 0),
               basin_descent_total(&result, result.steps));

    basin_descent_result_free(&result);
    basin_descent_free(descent);
    basin_graph_free(graph);
    basin_store_free(store);
    basin_backend_close(backend);
    return status ? 1 : 0;
}
