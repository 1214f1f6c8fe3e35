/* Log-sum-ReLU memories: E = -log(eps + sum relu(1 - beta/2 |x - xi|^2)) / beta + decay |x|^2. */
#include "energy/zoo/zoo.h"

/* relu(1 - beta/2 |x - xi|^2), [N, M] */
static basin_expr kernels(const basin_zoo_lsr *m, basin_expr x) {
    basin_expr rows = basin_axes_insert(basin_zoo_half_square(x), -1, 1);
    basin_expr half =
        basin_sub(basin_add(rows, basin_zoo_half_square(m->xi)), basin_zoo_linear(x, m->xi, NULL));
    return basin_relu(basin_offset(basin_neg(basin_mul(m->beta, half)), 1));
}

basin_expr basin_zoo_lsr_support(const basin_zoo_lsr *model, basin_expr x) {
    return basin_sum(basin_heaviside(kernels(model, x)), -1, 1);
}

static basin_expr energy(const void *context, basin_expr x, int part) {
    const basin_zoo_lsr *m = context;
    (void)part;
    basin_expr sum = basin_offset(basin_sum(kernels(m, x), -1, 1), m->epsilon);
    return basin_sub(basin_scale(basin_zoo_half_square(x), 2 * m->decay),
                     basin_div(basin_log(sum), m->beta));
}

basin_energy basin_zoo_lsr_energy(const basin_zoo_lsr *model) {
    return (basin_energy){.parts = 1, .name = {"memories"}, .part = energy, .context = model};
}
