/* Golden cases of the zoo at rest points: the gradient of an Energy Transformer held by an input,
 * and equilibrium propagation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "verify/zoo.h"

/* ---- rest points of a case ---- */

static bool in_double(const basin_case *c) { return basin_backend_dtype(c->backend) == BASIN_F64; }

basin_expr basin_case_rest_add(basin_case *c, const basin_energy *energy, basin_shape shape,
                               const basin_descent_spec *descent, const char *name,
                               const char *start) {
    basin_error error = {0};
    basin_rest_spec spec = {
        .descent = *descent, .accuracy = in_double(c) ? 1e-13 : 1e-5, .name = name};
    spec.descent.tolerance = in_double(c) ? 1e-14 : 4e-6;
    spec.descent.steps = 20000;
    basin_case_rest *added = &c->rest[c->rests];
    if (c->rests == BASIN_CASE_RESTS || basin_graph_error(c->graph)) return NULL;
    snprintf(added->start, sizeof added->start, "%s", start ? start : "");
    if (basin_rest_new(&added->rest, c->store, energy, c->graph, shape, &spec, &error))
        return basin_graph_fail(c->graph, error.status, "%s", error.text);
    c->rests++;
    return basin_rest_tokens(added->rest);
}

void basin_case_rest_gradients(basin_case *c, basin_expr loss) {
    size_t count = c->params.count;
    basin_error error = {0};
    basin_case_rest *last = c->rests > 0 ? &c->rest[c->rests - 1] : NULL;
    basin_expr *gradient = basin_array_new(2 * count, sizeof(basin_expr));
    if (!last || !gradient) {
        basin_graph_fail(c->graph, BASIN_NO_MEMORY, "out of memory for gradients at rest");
        free((void *)gradient);
        return;
    }
    basin_expr *from = gradient + count;
    for (size_t i = 0; i < count; i++) from[i] = c->params.param[i].state;
    if (basin_rest_gradients(gradient, last->rest, loss, from, (int)count, &error))
        basin_graph_fail(c->graph, error.status, "%s", error.text);
    last->solve = true;
    for (size_t i = 0; i < count && !basin_graph_error(c->graph); i++)
        basin_case_output_add(c, gradient[i], "grad.%s", basin_expr_name(from[i]));
    free((void *)gradient);
}

basin_status basin_case_settle(basin_case *c, int i, basin_error *error) {
    basin_rest *rest = c->rest[i].rest;
    basin_rest_report report;
    basin_tensor zeros = {0};
    const basin_tensor *start = NULL;
    basin_status status = BASIN_OK;
    for (int p = 0; p < BASIN_REST_PLANS; p++)
        for (size_t k = 0; k < c->inputs && !status && basin_rest_plan(rest, p); k++)
            status = basin_plan_write(basin_rest_plan(rest, p), c->input[k].input,
                                      &c->input[k].tensor, error);
    if (*c->rest[i].start) start = basin_case_tensor(c, c->rest[i].start, -1);
    if (!status && !start) {
        status =
            basin_tensor_new(&zeros, BASIN_F64, basin_expr_shape(basin_rest_tokens(rest)), error);
        start = &zeros;
    }
    if (!status) status = basin_rest_find(rest, &report, start, error);
    if (!status && c->rest[i].solve) status = basin_rest_solve(rest, &report, error);
    basin_tensor_free(&zeros);
    return status;
}

/* ---- an Energy Transformer held by an input ---- */

typedef struct held {
    basin_block block;
    basin_energy inner; /* of activations */
    basin_expr u;       /* [N, D] */
} held;

/* |x - u|^2 / 2 + E(norm(x)), by x. */
static basin_expr minimum(const void *context, basin_expr x, int part) {
    const held *h = context;
    (void)part;
    basin_expr pull = basin_scale(basin_sum_all(basin_square(basin_sub(x, h->u))), 0.5);
    return basin_add(pull, basin_energy_total(&h->inner, basin_block_norm(&h->block, x)));
}

/* x' = -x - dE/dg + u */
static basin_expr leak(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    (void)t;
    return basin_add(force, basin_sub(((const held *)context)->u, x));
}

void basin_case_build_implicit(basin_case *c) {
    held h = {.u = basin_zoo_parameter(c, "u")};
    basin_block_config config = basin_case_block(c, "");
    if (!h.u || basin_block_declare(&h.block, &c->params, "", &config)) return;
    basin_block_bound bound = {.block = &h.block, .pattern = &BASIN_OTHER_PAIRS};
    h.inner = basin_block_energy(&bound);
    bool by_x = basin_case_flag(c, "minimum");
    const basin_energy whole = {.parts = 1, .name = {"held"}, .part = minimum, .context = &h};
    const basin_energy *energy = by_x ? &whole : &h.inner;
    const basin_turn turn = {.move = leak, .context = &h};
    basin_descent_spec spec = {.alpha = 0.3, .turn = &turn, .turns = by_x ? 0 : 1};
    basin_expr x = basin_case_rest_add(c, energy, basin_expr_shape(h.u), &spec, "rest", "u");
    basin_expr target = basin_case_input_add(c, "target", 2);
    basin_expr loss = basin_scale(basin_sum_all(basin_square(basin_sub(x, target))), 0.5);
    if (!x || !loss) return;
    basin_expr force = basin_energy_force(energy, basin_energy_activation(energy, x));
    basin_expr residual = basin_neg(by_x ? force : leak(&h, force, x, NULL));
    basin_expr total = basin_energy_total(&h.inner, basin_block_norm(&h.block, x));
    basin_case_output_add(c, x, "out.x");
    basin_case_output_add(c, basin_reshape(total, BASIN_SHAPE(1)), "out.energy");
    basin_case_output_add(c, loss, "out.loss");
    basin_case_output_add(c, basin_jacobian(residual, x), "out.jacobian");
    basin_case_difference_add(c, basin_maximum_all(basin_abs(residual)), "out.residual", "out.x");
    basin_case_rest_gradients(c, loss);
}

/* ---- equilibrium propagation ---- */

static basin_expr rest_of(basin_case *c, const basin_zoo_layers *m, basin_shape shape,
                          const char *name) {
    basin_energy energy = basin_zoo_layers_energy(m);
    basin_descent_spec spec = {.alpha = 0.3};
    return basin_case_rest_add(c, &energy, shape, &spec, name, NULL);
}

/* (dE/dp at one state - dE/dp at the other) / by, the mean over the batch. */
static void add_estimates(basin_case *c, const basin_zoo_layers *m, basin_expr one,
                          basin_expr other, double by, const char *name) {
    basin_energy energy = basin_zoo_layers_energy(m);
    basin_expr gap = basin_sub(basin_mean_all(basin_energy_total(&energy, one)),
                               basin_mean_all(basin_energy_total(&energy, other)));
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
    basin_expr up = rest_of(c, &plus, shape, "nudged"), down = rest_of(c, &minus, shape, "back");
    basin_expr s = rest_of(c, &m, shape, "free");
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
    basin_case_rest_gradients(c, basin_mean_all(cost));
}
