/* DrDAM: memories summed into random features, E = -log max(phi(x) . T, floor) / beta. */
#include "energy/zoo/zoo.h"

#include <math.h>

static basin_expr features(const basin_zoo_features *m, basin_expr x) {
    basin_expr h = basin_mul(basin_sqrt(m->beta), basin_zoo_linear(x, m->s, NULL));
    double count = (double)basin_expr_shape(m->s).dim[0];
    if (m->phase) return basin_scale(basin_cos(basin_add(h, m->phase)), sqrt(2 / count));
    basin_expr both = basin_concat((basin_expr[]){basin_cos(h), basin_sin(h)}, 2, -1);
    return basin_scale(both, 1 / sqrt(count));
}

basin_expr basin_zoo_features_sum(const basin_zoo_features *model, basin_expr xi) {
    return basin_sum(features(model, xi), 0, 1);
}

static basin_expr energy(const void *context, basin_expr x, int part) {
    const basin_zoo_features *m = context;
    (void)part;
    basin_expr near = basin_sum(basin_mul(features(m, x), m->sum), -1, 1);
    basin_expr least = basin_const(basin_expr_graph(x), m->floor);
    return basin_neg(basin_div(basin_log(basin_max(near, least)), m->beta));
}

basin_energy basin_zoo_features_energy(const basin_zoo_features *model) {
    return (basin_energy){.parts = 1, .name = {"memories"}, .part = energy, .context = model};
}
