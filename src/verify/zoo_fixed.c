/* Golden cases of the zoo at fixed points: the gradient of an Energy Transformer held by an input,
 * and equilibrium propagation. */
#include "verify/zoo.h"

/* The fixed point of u - x - dE/dg, to what the backend's numbers can give. */
static basin_expr fixed_point(basin_case *c, const basin_energy *energy, basin_expr u) {
    bool twice = basin_backend_dtype(c->backend) == BASIN_F64;
    basin_descent_spec spec = {
        .steps = 20000,
        .alpha = 0.3,
        .implicit = {.on = true, .until = twice ? 1e-14 : 4e-6, .accuracy = twice ? 1e-13 : 1e-5}};
    return u ? basin_descend(energy, u, &spec, NULL) : NULL;
}

/* ---- an Energy Transformer held by an input ---- */

typedef struct held {
    basin_block block;
    basin_energy inner; /* of activations */
} held;

/* E(norm(x)), by x: with the pull of the input, x is a minimum of |x - u|^2 / 2 + E. */
static basin_expr by_tokens(const void *context, basin_expr x) {
    const held *h = context;
    return basin_energy_total(&h->inner, basin_block_norm(&h->block, x));
}

void basin_case_build_implicit(basin_case *c) {
    held h;
    basin_expr u = basin_zoo_parameter(c, "u"), target = basin_case_input_add(c, "target", 2);
    basin_block_config config = basin_case_block(c, "");
    if (!u || !target || basin_block_declare(&h.block, &c->params, "", &config)) return;
    basin_block_bound bound = {.block = &h.block, .pattern = &BASIN_OTHER_PAIRS};
    h.inner = basin_block_energy(&bound);
    const basin_energy whole = {BASIN_TERMS({"held", by_tokens, &h})};
    const basin_energy *energy = basin_case_flag(c, "minimum") ? &whole : &h.inner;
    basin_expr x = fixed_point(c, energy, u);
    basin_expr loss = basin_scale(basin_sum_all(basin_square(basin_sub(x, target))), 0.5);
    if (!x || !loss) return;
    basin_expr at = basin_variable(x);
    basin_expr force = basin_energy_force(energy, basin_energy_activation(energy, at));
    basin_expr residual = basin_sub(basin_sub(at, u), force);
    basin_case_output_add(c, x, "out.x");
    basin_case_output_add(c, basin_reshape(by_tokens(&h, x), BASIN_SHAPE(1)), "out.energy");
    basin_case_output_add(c, loss, "out.loss");
    basin_case_output_add(c, basin_jacobian(residual, at), "out.jacobian");
    basin_case_difference_add(c, basin_maximum_all(basin_abs(residual)), "out.residual", "out.x");
    basin_case_gradients(c, loss, NULL);
}

/* ---- equilibrium propagation ---- */

/* The energy without |s|^2 / 2, which is the pull of zero. */
static basin_expr without_pull(const void *context, basin_expr s) {
    basin_energy energy = basin_zoo_layers_energy(context);
    basin_expr half = basin_scale(basin_sum(basin_square(s), -1, 1), 0.5);
    return basin_sub(basin_energy_total(&energy, s), half);
}

static basin_expr rest_of(basin_case *c, const basin_zoo_layers *m, basin_shape shape) {
    basin_energy energy = {BASIN_TERMS({"layers", without_pull, m})};
    return fixed_point(c, &energy, basin_fill(c->graph, shape, 0));
}

/* (dE/dp at one state - dE/dp at the other) / by, the mean over the batch; the states are held. */
static void add_estimates(basin_case *c, const basin_zoo_layers *m, basin_expr one,
                          basin_expr other, double by, const char *name) {
    basin_energy energy = basin_zoo_layers_energy(m);
    basin_expr a = basin_energy_total(&energy, basin_stop_gradient(one));
    basin_expr b = basin_energy_total(&energy, basin_stop_gradient(other));
    basin_expr gap = basin_sub(basin_mean_all(a), basin_mean_all(b));
    for (size_t i = 0; i < c->params.count; i++) {
        basin_expr p = c->params.param[i].state;
        basin_case_output_add(c, basin_scale(basin_grad(gap, p), 1 / by), "out.%s.%s", name,
                              basin_expr_name(p));
    }
}

void basin_case_build_eqprop(basin_case *c) {
    basin_zoo_layers m = {.layers = 2, .x = basin_case_input_add(c, "x", 2)};
    m.w[0] = basin_zoo_parameter(c, "w0"), m.b[0] = basin_zoo_parameter(c, "b0");
    m.w[1] = basin_zoo_parameter(c, "w1"), m.b[1] = basin_zoo_parameter(c, "b1");
    m.target = basin_case_input_add(c, "target", 2);
    double nudge = basin_case_number(c, "nudge");
    if (basin_graph_error(c->graph)) return;
    int64_t hidden = basin_expr_shape(m.b[0]).dim[0], last = basin_expr_shape(m.b[1]).dim[0];
    basin_shape shape = BASIN_SHAPE(basin_expr_shape(m.x).dim[0], hidden + last);
    basin_zoo_layers plus = m, minus = m;
    plus.nudge = nudge, minus.nudge = -nudge;
    basin_expr up = rest_of(c, &plus, shape), down = rest_of(c, &minus, shape);
    basin_expr s = rest_of(c, &m, shape);
    if (!up || !down || !s) return;
    basin_energy energy = basin_zoo_layers_energy(&m);
    basin_expr gap = basin_sub(basin_slice(s, 1, hidden, last), m.target);
    basin_expr cost = basin_scale(basin_sum(basin_square(gap), 1, 1), 0.5);
    basin_case_output_add(c, s, "out.free");
    basin_case_output_add(c, up, "out.nudged");
    basin_case_output_add(c, down, "out.nudged_minus");
    basin_case_output_add(c, basin_energy_total(&energy, s), "out.energy");
    basin_case_output_add(c, basin_mean_all(cost), "out.loss");
    add_estimates(c, &m, up, s, nudge, "ep");
    add_estimates(c, &m, up, down, 2 * nudge, "ep2");
    basin_case_gradients(c, basin_mean_all(cost), NULL);
}
