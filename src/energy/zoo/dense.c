/* Classical and dense associative memories: E = -sum over memories of F(xi . x). */
#include "energy/zoo/zoo.h"

static basin_expr energy(const void *context, basin_expr x, int part) {
    const basin_zoo_dense *m = context;
    (void)part;
    basin_expr overlap = basin_zoo_linear(x, m->xi, NULL);
    if (m->power == 0 || m->power == 2) return basin_neg(basin_zoo_half_square(overlap));
    basin_expr sum = basin_sum(basin_pow(basin_relu(overlap), m->power), -1, 1);
    return basin_scale(sum, -1 / m->power);
}

basin_energy basin_zoo_dense_energy(const basin_zoo_dense *model) {
    return (basin_energy){.parts = 1, .name = {"memories"}, .part = energy, .context = model};
}
