/* Layered Hopfield network with a clamped input (equilibrium propagation): E = sum |u_i|^2 / 2 -
 * sum r(u_{i + 1}) . (W_i r(u_i) + b_i), r = sigmoid; a nudge k |u_L - target|^2 / 2 pulls at the
 * end. */
#include "energy/zoo/zoo.h"

/* Layer i of the states side by side; 0 is the input. */
static basin_expr layer(const basin_zoo_layers *m, basin_expr s, int i) {
    int64_t first = 0;
    if (i == 0) return m->x;
    for (int k = 1; k < i; k++) first += basin_expr_shape(m->w[k - 1]).dim[0];
    return basin_slice(s, -1, first, basin_expr_shape(m->w[i - 1]).dim[0]);
}

static basin_expr energy(const void *context, basin_expr s, int part) {
    const basin_zoo_layers *m = context;
    basin_expr sum = basin_add(basin_zoo_half_square(m->x), basin_zoo_half_square(s));
    if (part == 1) {
        basin_expr gap = basin_sub(layer(m, s, m->layers), m->target);
        return basin_scale(basin_zoo_half_square(gap), m->nudge);
    }
    for (int i = 0; i < m->layers; i++) {
        basin_expr below = basin_sigmoid(layer(m, s, i)), above = layer(m, s, i + 1);
        basin_expr drive = basin_zoo_linear(below, m->w[i], m->b[i]);
        sum = basin_sub(sum, basin_sum(basin_mul(basin_sigmoid(above), drive), -1, 1));
    }
    return sum;
}

basin_energy basin_zoo_layers_energy(const basin_zoo_layers *model) {
    return (basin_energy){.parts = model->nudge != 0 ? 2 : 1,
                          .name = {"layers", "nudge"},
                          .part = energy,
                          .context = model};
}
