/* Any energy: activation, total and force from its parts. */
#include "energy/energy.h"

#include <string.h>

basin_expr basin_energy_activation(const basin_energy *energy, basin_expr x) {
    if (!energy->activation) return x;
    basin_expr g = energy->activation(energy->context, x);
    if (!g)
        basin_graph_fail(basin_expr_graph(x), BASIN_BAD_VALUE, "an energy's activation is NULL");
    return g;
}

basin_expr basin_energy_part(const basin_energy *energy, basin_expr g, int part) {
    const char *name = energy->name[part] ? energy->name[part] : "";
    if (!energy->part)
        return basin_graph_fail(basin_expr_graph(g), BASIN_BAD_VALUE,
                                "an energy has no function that builds its parts (.part)");
    basin_expr made = energy->part(energy->context, g, part);
    if (!made)
        basin_graph_fail(basin_expr_graph(g), BASIN_BAD_VALUE,
                         "part %d of an energy ('%s') is NULL; wanted an expression", part, name);
    return made;
}

static basin_expr sum_parts(const basin_energy *energy, basin_expr g, unsigned parts) {
    basin_expr total = NULL;
    for (int i = 0; i < energy->parts; i++) {
        if (parts && !(parts >> i & 1)) continue;
        basin_expr part = basin_energy_part(energy, g, i);
        total = total ? basin_add(total, part) : part;
        if (!part) return NULL;
    }
    return total ? total : basin_const(basin_expr_graph(g), 0);
}

basin_expr basin_energy_total(const basin_energy *energy, basin_expr g) {
    return sum_parts(energy, g, 0);
}

basin_expr basin_energy_force_of(const basin_energy *energy, basin_expr g, unsigned parts) {
    g = basin_variable(g); /* g may be anything, a constant too */
    return basin_grad(basin_neg(sum_parts(energy, g, parts)), g);
}

basin_expr basin_energy_force(const basin_energy *energy, basin_expr g) {
    return basin_energy_force_of(energy, g, 0);
}

basin_hopfield basin_hopfield_named(const char *name) {
    if (!strcmp(name, "power")) return BASIN_HOPFIELD_POWER;
    return !strcmp(name, "softmax") ? BASIN_HOPFIELD_SOFTMAX : BASIN_HOPFIELD_RELU;
}
