/* Tokens at a fixed point, as an expression: descents that plans run to their end, and gradients
 * there.
 *
 * Tokens x are held by where they began, u, as the neurons of a Hopfield network are by their
 * input:
 *
 *     x' = u - x - dE/dg,  g = activation(x);   at the fixed point  x = u - dE/dg = f(x)
 *
 * The activation is the gradient of a Lagrangian, so J = dg/dx is symmetric, as is H = d2E/dg2. A
 * loss has the gradient a . df/dp where a = v - J H a, v = dloss/dx. With a = v + J c this becomes
 *
 *     (J + J H J) c = -J H v
 *
 * whose matrix is symmetric: it is the Hessian, by x, of (x - u) . g - L(x) + E(g), the energy that
 * the tokens descend. Conjugate residuals solve it, by one product with H and two with J per step;
 * the residual never grows, also where the fixed point is not a minimum. */
#include <math.h>
#include <stdio.h>

#include "base/shape.h"
#include "engine/energy/energy.h"
#include "engine/expr/graph.h"

enum { X, G, FORCE }; /* what the reverse holds */

/* A state "rest.what[shape]", one per shape for all iterations of all plans of a store. */
static basin_expr state(basin_graph *graph, const char *what, basin_shape shape) {
    char name[BASIN_SHAPE_TEXT + 64];
    snprintf(name, sizeof name, "rest.%s%s", what, basin_shape_text(shape));
    return basin_state(graph, name, shape);
}

/* What an iteration comes to, "rest.NUMBER[shape]": it lasts until the plan has run. */
static basin_expr end_state(basin_graph *graph, basin_shape shape) {
    char name[32];
    snprintf(name, sizeof name, "%zu", graph->iterations);
    return state(graph, name, shape);
}

static basin_expr product(basin_expr of, basin_expr a, basin_expr by) {
    basin_expr result;
    basin_vjp(&result, of, a, &by, 1);
    return result;
}

/* ---- the linear system ---- */

/* J a, and -H a. */
static basin_expr by_norm(const basin_iteration *rest, basin_expr a) {
    return rest->held[G] == rest->held[X] ? a : product(rest->held[G], a, rest->held[X]);
}
static basin_expr by_force(const basin_iteration *rest, basin_expr a) {
    return product(rest->held[FORCE], a, rest->held[G]);
}
/* (J + J H J) a */
static basin_expr by_system(const basin_iteration *rest, basin_expr a) {
    basin_expr b = by_norm(rest, a);
    return by_norm(rest, basin_sub(a, by_force(rest, b)));
}

static basin_expr dot(basin_expr a, basin_expr b) { return basin_sum_all(basin_mul(a, b)); }

/* a / b, and 0 where b is: a system that is solved stays so. */
static basin_expr share(basin_expr a, basin_expr b) {
    basin_expr one = basin_scalar(basin_expr_graph(b), 1);
    basin_expr none = basin_scalar(basin_expr_graph(b), 0);
    return basin_where(b, basin_div(a, basin_where(b, b, one)), none);
}

/* Conjugate residuals from 0: solution c, residual r, direction p, its product q, rho = r . (matrix
 * r). The residual never grows, also where the matrix is not definite. */
static basin_iteration solve(const basin_iteration *rest, basin_expr right) {
    basin_graph *graph = basin_expr_graph(right);
    basin_shape shape = basin_expr_shape(right);
    basin_expr c = end_state(graph, shape), r = state(graph, "r", shape);
    basin_expr p = state(graph, "p", shape), q = state(graph, "q", shape);
    basin_expr rho = state(graph, "rho", BASIN_SCALAR), first_q = by_system(rest, right);
    basin_expr along = share(rho, dot(q, q)), next_r = basin_sub(r, basin_mul(along, q));
    basin_expr next_product = by_system(rest, next_r), next_rho = dot(next_r, next_product);
    basin_expr turn = share(next_rho, rho);
    return (basin_iteration){
        .carry = {{c, basin_full(graph, shape, 0), basin_add(c, basin_mul(along, p))},
                  {r, right, next_r},
                  {p, right, basin_add(next_r, basin_mul(turn, p))},
                  {q, first_q, basin_add(next_product, basin_mul(turn, q))},
                  {rho, dot(right, first_q), next_rho}},
        .carries = 5,
        .size = dot(right, right),
        .left = dot(next_r, next_r),
        .accuracy = rest->precision,
        .max = rest->products,
        .solves = true};
}

/* a = v + J c */
static basin_expr reverse(basin_expr end, const basin_iteration *rest, basin_expr v) {
    basin_expr right = by_norm(rest, by_force(rest, v));
    if (!right) return NULL;
    basin_iteration system = solve(rest, right);
    return basin_add(v, by_norm(rest, basin_iterated(&system, right, end)));
}

/* ---- the descent ---- */

static basin_expr squares(basin_expr a) { return basin_sum(basin_square(a), -1, 1); }

/* The largest length of a row of a, in shares of that row's length in x, which counts as at most
 * 100 times what it and its force were at first: tokens that only go further away do not
 * converge. */
static basin_expr largest(basin_expr a, basin_expr x, basin_expr first) {
    basin_expr length = basin_minimum(squares(x), basin_scale(first, 1e4));
    return basin_sqrt(basin_max_all(basin_div(squares(a), basin_offset(length, 1e-30))));
}

static basin_expr check(const basin_descent_spec *spec, basin_expr x, const basin_expr *trace) {
    basin_graph *graph = basin_expr_graph(x);
    const basin_implicit *i = &spec->implicit;
    const char *with = trace                ? "a trace of its energies"
                       : spec->noise > 0    ? "noise"
                       : spec->substeps > 0 ? "turns"
                       : spec->schedule     ? "a schedule of its steps"
                                            : NULL;
    if (with)
        return basin_graph_fail(graph, BASIN_UNSUPPORTED, "an implicit descent with %s", with);
    if (basin_expr_shape(x).rank < 1)
        return basin_graph_fail(graph, BASIN_BAD_SHAPE, "an implicit descent of a number");
    if (spec->steps < 1 || !(spec->alpha > 0) || !isfinite(spec->alpha) || i->products < 0 ||
        !(i->until >= 0) || !(i->accuracy >= 0))
        return basin_graph_fail(graph, BASIN_BAD_VALUE,
                                "an implicit descent by %d steps of size %g until %g, %d products "
                                "to within %g; expected steps and a size above 0, nothing below",
                                spec->steps, spec->alpha, i->until, i->products, i->accuracy);
    return x;
}

/* Steps with Nesterov's momentum: from y, ahead of the tokens by k / (k + 3) of their last move.
 * Where it leads against the force it is dropped, and k begins anew. */
static basin_iteration stepper(const basin_energy *energy, basin_expr u, double alpha) {
    basin_graph *graph = basin_expr_graph(u);
    basin_shape shape = basin_expr_shape(u);
    basin_expr x = end_state(graph, shape), held = state(graph, "r", shape);
    basin_expr before = state(graph, "p", shape), k = state(graph, "rho", BASIN_SCALAR);
    basin_expr length = state(graph, "q", basin_expr_shape(squares(u)));
    basin_expr lead = basin_div(k, basin_offset(k, 3));
    basin_expr y = basin_add(x, basin_mul(lead, basin_sub(x, before)));
    basin_expr force = basin_energy_force(energy, basin_energy_activation(energy, y));
    basin_expr move = basin_add(force, basin_sub(held, y));
    basin_expr next = basin_add(y, basin_scale(move, alpha));
    basin_expr along = basin_greater(dot(move, basin_sub(next, x)), basin_scalar(graph, 0));
    basin_expr first = basin_where(length, length, basin_add(squares(y), squares(move)));
    return (basin_iteration){
        .carry = {{x, u, next},
                  {held, u, NULL},
                  {before, u, x},
                  {k, basin_scalar(graph, 0), basin_mul(along, basin_offset(k, 1))},
                  {length, basin_scale(squares(u), 0), first}},
        .carries = 5,
        .left = largest(move, y, first)};
}

basin_expr basin_descend_implicit(const basin_energy *energy, basin_expr u,
                                  const basin_descent_spec *spec, const basin_expr *trace) {
    if (!u || !check(spec, u, trace)) return NULL;
    basin_iteration rest = stepper(energy, u, spec->alpha);
    basin_expr x = rest.carry[0].state;
    basin_expr g = basin_energy_activation(energy, x), force = basin_energy_force(energy, g);
    if (!force) return NULL;
    rest.accuracy = spec->implicit.until > 0 ? spec->implicit.until : 1e-4;
    rest.max = spec->steps;
    rest.reverse = reverse;
    rest.held[X] = x, rest.held[G] = g, rest.held[FORCE] = force;
    rest.products = spec->implicit.products > 0 ? spec->implicit.products : spec->steps;
    rest.precision = spec->implicit.accuracy > 0 ? spec->implicit.accuracy : 1e-3;
    return basin_iterated(&rest, basin_add(u, force), NULL);
}
