/* Golden case "lagrangians": every Lagrangian, its activation and its energy, at a mild and at a
 * large state. */
#include "basin/lagrangian.h"
#include "verify/verify.h"

#include <stdio.h>

static void add_outputs(basin_case *c, const basin_lagrangian *l, basin_expr x, const char *size) {
    const char *name = l->name;
    char energy[96], value[96];
    snprintf(energy, sizeof energy, "out.%s.%s.E", size, name);
    snprintf(value, sizeof value, "out.%s.%s.L", size, name);
    basin_case_output_add(c, basin_lagrangian_value(l, x, 0), "%s", value);
    basin_case_output_add(c, basin_lagrangian_activation(l, x), "out.%s.%s.g", size, name);
    /* the oracle's energy is <x, g> - L, the library's a closed form without that cancellation */
    basin_case_difference_add(c, basin_lagrangian_energy(l, x, 0), energy, value);
}

void basin_case_build_lagrangians(basin_case *c) {
    /* the oracle's ghostmax has no temperature, and its repu the power 4 */
    static const char *const names[] = {"identity", "relu",      "repu4",    "exp",
                                        "rexp",     "tanh",      "sigmoid",  "softmax",
                                        "ghostmax", "layernorm", "spherical"};
    basin_expr beta = basin_const(c->graph, basin_case_number(c, "beta"));
    basin_expr gamma = basin_const(c->graph, basin_case_number(c, "gamma"));
    basin_expr delta = basin_case_input_add(c, "delta", 1);
    basin_expr mild = basin_case_input_add(c, "mild", 1);
    basin_expr large = basin_case_input_add(c, "large", 1);
    double epsilon = basin_case_number(c, "eps");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        basin_lagrangian l = {.name = names[i],
                              .beta = i == 8 ? NULL : beta,
                              .gamma = gamma,
                              .delta = delta,
                              .epsilon = epsilon};
        add_outputs(c, &l, mild, "mild");
        add_outputs(c, &l, large, "large");
    }
    basin_case_output_add(c, basin_const(c->graph, 0), "out.loss");
}
