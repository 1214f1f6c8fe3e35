/* The loop of energy-based transformers around a small network: E(p) = w2 . gelu(w1 [context ; e p]
 * + b1) of probabilities p at every position; logits are p - alpha dE/dp. */
#include "energy/zoo/zoo.h"

static basin_expr energy(const void *context, basin_expr p, int part) {
    const basin_zoo_ebt *m = context;
    (void)part;
    basin_expr seen = basin_zoo_linear(p, m->e, NULL);
    basin_expr both = basin_concat((basin_expr[]){m->context, seen}, 2, -1);
    basin_expr hidden = basin_zoo_gelu(basin_zoo_linear(both, m->w1, m->b1));
    return basin_sum(basin_mul(hidden, m->w2), -1, 1);
}

basin_energy basin_zoo_ebt_energy(const basin_zoo_ebt *model) {
    return (basin_energy){.parts = 1, .name = {"network"}, .part = energy, .context = model};
}

static basin_expr move(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    (void)x, (void)t;
    return basin_mul(((const basin_zoo_ebt *)context)->alpha, force);
}

basin_turn basin_zoo_ebt_turn(const basin_zoo_ebt *model) {
    return (basin_turn){.move = move, .context = model};
}
