/* Input-driven plasticity: g = tanh(x), E = <x, g> - L(x) - g . W(u) g / 2, descended in g. */
#include "energy/zoo/zoo.h"

static basin_expr activation(const void *context, basin_expr x) {
    (void)context;
    return basin_tanh(x);
}

/* <x, g> - L(x) with x = artanh g and L = log cosh: (1 + g) log(1 + g) / 2 + (1 - g) log(1 - g) / 2
 */
static basin_expr neurons(basin_expr g) {
    basin_expr up = basin_mul(basin_offset(g, 1), basin_log1p(g));
    basin_expr down = basin_mul(basin_offset(basin_neg(g), 1), basin_log1p(basin_neg(g)));
    return basin_scale(basin_sum(basin_add(up, down), -1, 1), 0.5);
}

/* -sum over memories of (xi . u / D) (xi . g)^2 / 2 D */
static basin_expr energy(const void *context, basin_expr g, int part) {
    const basin_zoo_plastic *m = context;
    if (part == 0) return neurons(g);
    double width = (double)basin_expr_shape(m->xi).dim[1];
    basin_expr salience = basin_zoo_linear(m->u, m->xi, NULL);
    basin_expr overlap = basin_square(basin_zoo_linear(g, m->xi, NULL));
    return basin_scale(basin_sum(basin_mul(salience, overlap), -1, 1), -0.5 / (width * width));
}

basin_energy basin_zoo_plastic_energy(const basin_zoo_plastic *model) {
    return (basin_energy){.parts = 2,
                          .name = {"neurons", "synapse"},
                          .part = energy,
                          .activation = activation,
                          .context = model};
}

/* The neurons' force is -x, taken as it is: artanh of a tanh loses digits. */
static basin_expr leak(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    (void)context, (void)t;
    return basin_sub(force, x);
}

basin_turn basin_zoo_plastic_turn(const basin_zoo_plastic *model) {
    return (basin_turn){.parts = 2, .move = leak, .context = model};
}
