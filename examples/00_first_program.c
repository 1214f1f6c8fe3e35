#include <basin/basin.h>
#include <stdio.h>

static basin_expr wells(const void *height, basin_expr g) { // E = height sum of (g^2 - 1)^2
    basin_expr gap = basin_offset(basin_square(g), -1);
    return basin_scale(basin_sum_all(basin_square(gap)), *(const double *)height);
}

int main(void) {
    double at[4] = {-1.5, -0.2, 0.1, 2}, height = 0.25;
    basin_term term = {"wells", wells, &height};
    basin_energy well = {.term = &term, .terms = 1};
    basin_tensor x = basin_tensor_borrow(at, BASIN_F64, BASIN_SHAPE(4));
    basin_descent_spec how = {.steps = 200, .alpha = 0.1};
    basin_descent_result r;
    basin_error e;
    if (basin_engine_descend(NULL, &r, &well, &x, &how, NULL, &e)) return puts(e.text), 1;
    for (int i = 0; i < 4; i++) printf("%g falls to %.2f\n", at[i], basin_tensor_at(r.x, i));
    printf("energy %.3f, then %.3f\n", r.energy[0], r.energy[r.steps]);
    basin_descent_result_free(&r);
}
