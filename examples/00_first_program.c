#include <basin/basin.h>
#include <stdio.h>

// Two basins: E(g) = height sum of (g^2 - 1)^2 is lowest at -1 and at 1.
static basin_expr wells(const void *height, basin_expr g) {
    basin_expr each = basin_square(basin_offset(basin_square(g), -1));
    return basin_scale(basin_sum_all(each), *(const double *)height);
}

int main(void) {
    double start[4] = {-1.5, -0.2, 0.1, 2}, height = 0.25;
    basin_tensor tokens = basin_tensor_borrow(start, BASIN_F64, BASIN_SHAPE(4));
    basin_term term = {"wells", wells, &height};
    basin_energy energy = {.term = &term, .terms = 1};
    basin_descent_spec spec = {.steps = 200, .alpha = 0.1};
    basin_stop stop = {.tolerance = 1e-4};
    basin_engine engine;
    basin_descent_result result;
    basin_error error;
    if (basin_engine_open(&engine, NULL, &error) ||
        basin_engine_descend(&engine, &result, &energy, &tokens, &spec, &stop, &error))
        return fprintf(stderr, "%s\n", error.text), 1;
    for (int i = 0; i < 4; i++)
        printf("%4.1f falls to %5.2f\n", start[i], basin_tensor_at(result.x, i));
    printf("energy %.3f, then %.3f\n", basin_descent_total(&result, 0),
           basin_descent_total(&result, result.steps));
    basin_descent_result_free(&result);
    basin_engine_close(&engine);
    return 0;
}
