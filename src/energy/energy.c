/* Any energy: activation, total and force from its parts. */
#include "basin/energy.h"

basin_expr basin_energy_activation(const basin_energy *energy, basin_expr x) {
    return energy->activation ? energy->activation(energy->context, x) : x;
}

basin_expr basin_energy_total(const basin_energy *energy, basin_expr g) {
    basin_expr total = NULL;
    for (int i = 0; i < energy->parts; i++) {
        basin_expr part = energy->part(energy->context, g, i);
        total = total ? basin_add(total, part) : part;
        if (!part) return NULL;
    }
    return total ? total : basin_const(basin_expr_graph(g), 0);
}

basin_expr basin_energy_force(const basin_energy *energy, basin_expr g) {
    g = basin_variable(g); /* g may be anything, a constant too */
    return basin_grad(basin_neg(basin_energy_total(energy, g)), g);
}
