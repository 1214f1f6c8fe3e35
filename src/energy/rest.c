/* Rest points of descents, and the linear system of gradients there; see include/basin/rest.h. All
 * vectors are states of the store, and every iteration is one run of a plan that updates them. */
#include "basin/rest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "energy/energy.h"
#include "energy/loop.h"
#include "energy/solver.h"

enum { DESCEND, BEGIN, ITERATE };

struct basin_rest {
    basin_loop loop;
    basin_rest_spec spec;
    basin_plan *plan[BASIN_REST_PLANS];
    bool symmetric;
    basin_expr x, next, change; /* tokens at rest, the step from there, its largest change */
    basin_expr a, v;            /* solution, dloss/dx */
    basin_expr begin, off;      /* |v|^2, and what is left of it, squared */
};

static basin_status check_spec(const basin_rest_spec *spec, basin_error *error) {
    const basin_descent_spec *d = &spec->descent;
    if (d->noise > 0 || d->guard || d->accelerate)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a rest point with %s; a step must depend on the tokens alone",
                          d->guard        ? "the guard"
                          : d->accelerate ? "momentum"
                                          : "noise");
    if (d->steps < 1 || !(d->alpha > 0) || !isfinite(d->alpha) || !(d->tolerance > 0))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a rest point by %d steps of size %g to within %g; wanted all above 0",
                          d->steps, d->alpha, d->tolerance);
    if (spec->products < 0 || !(spec->accuracy >= 0))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a rest point solved by %d products to within %g; wanted none below 0",
                          spec->products, spec->accuracy);
    return BASIN_OK;
}

static basin_status build_descent(basin_rest *rest, const basin_energy *energy, basin_shape shape,
                                  basin_error *error) {
    rest->x = basin_loop_state(&rest->loop, "x", shape);
    rest->next =
        basin_descent_step(energy, rest->x, basin_const(rest->loop.graph, rest->spec.descent.alpha),
                           basin_const(rest->loop.graph, 0), &rest->spec.descent);
    rest->change = basin_maximum_all(basin_abs(basin_sub(rest->next, rest->x)));
    basin_update update = {rest->x, rest->next};
    return basin_loop_plan(&rest->plan[DESCEND], &rest->loop, rest->change, &update, 1, error);
}

basin_status basin_rest_new(basin_rest **rest, basin_store *store, const basin_energy *energy,
                            basin_graph *graph, basin_shape shape, const basin_rest_spec *spec,
                            basin_error *error) {
    *rest = NULL;
    basin_status status = check_spec(spec, error);
    if (status) return status;
    basin_rest *made = calloc(1, sizeof *made);
    if (!made) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a rest point");
    made->loop = (basin_loop){.store = store, .graph = graph};
    snprintf(made->loop.name, sizeof made->loop.name, "%s", spec->name ? spec->name : "rest");
    made->spec = *spec;
    made->symmetric = !energy->activation && spec->descent.turns == 0;
    status = build_descent(made, energy, shape, error);
    made->spec.descent.turn = NULL; /* the caller's; not needed any more */
    if (status)
        basin_rest_free(made);
    else
        *rest = made;
    return status;
}

void basin_rest_free(basin_rest *rest) {
    if (!rest) return;
    for (int i = 0; i < BASIN_REST_PLANS; i++) basin_plan_free(rest->plan[i]);
    free(rest);
}

basin_expr basin_rest_tokens(const basin_rest *rest) { return rest->x; }
basin_plan *basin_rest_plan(basin_rest *rest, int i) {
    return i >= 0 && i < BASIN_REST_PLANS ? rest->plan[i] : NULL;
}

/* ---- the linear system ---- */

/* a . d step(x) / dx */
static basin_expr reverse(const basin_rest *rest, basin_expr a) {
    basin_expr product;
    basin_vjp(&product, rest->next, a, &rest->x, 1);
    return product;
}

/* a <- v + a . d step / dx, until it stays. */
static basin_status build_repetition(basin_rest *rest, basin_expr slope, basin_error *error) {
    basin_shape shape = basin_expr_shape(rest->x);
    rest->v = basin_loop_state(&rest->loop, "v", shape);
    const basin_update begin[] = {{rest->v, slope}, {rest->a, slope}};
    basin_status status =
        basin_loop_plan(&rest->plan[BEGIN], &rest->loop, rest->begin, begin, 2, error);
    basin_expr next = basin_add(rest->v, reverse(rest, rest->a));
    basin_expr gap = basin_sub(next, rest->a);
    rest->off = basin_solver_dot(gap, gap);
    const basin_update update = {rest->a, next};
    return status
               ? status
               : basin_loop_plan(&rest->plan[ITERATE], &rest->loop, rest->off, &update, 1, error);
}

/* M p = p - p . d step / dx */
static basin_expr by_system(const void *context, basin_expr p) {
    return basin_sub(p, reverse(context, p));
}

/* M a = v, M symmetric. */
static basin_status build_solver(basin_rest *rest, basin_expr slope, basin_error *error) {
    basin_shape shape = basin_expr_shape(rest->x);
    const basin_loop *loop = &rest->loop;
    basin_update begin[BASIN_SOLVER_STATES], update[BASIN_SOLVER_STATES];
    basin_solver s = {
        .state = {rest->a, basin_loop_state(loop, "r", shape), basin_loop_state(loop, "p", shape),
                  basin_loop_state(loop, "q", shape), basin_loop_state(loop, "rho", BASIN_SCALAR)},
        .right = slope,
        .product = by_system,
        .context = rest};
    basin_solver_build(&s);
    for (int i = 0; i < BASIN_SOLVER_STATES; i++) {
        begin[i] = (basin_update){s.state[i], s.first[i]};
        update[i] = (basin_update){s.state[i], s.next[i]};
    }
    rest->off = s.left;
    basin_status status =
        basin_loop_plan(&rest->plan[BEGIN], loop, rest->begin, begin, BASIN_SOLVER_STATES, error);
    return status ? status
                  : basin_loop_plan(&rest->plan[ITERATE], loop, rest->off, update,
                                    BASIN_SOLVER_STATES, error);
}

basin_status basin_rest_gradients(basin_expr *gradient, basin_rest *rest, basin_expr loss,
                                  const basin_expr *parameter, int count, basin_error *error) {
    if (rest->a)
        return basin_fail(error, BASIN_BAD_VALUE, "a rest point has the gradients of one loss");
    basin_status status = basin_loop_check_loss(loss, error);
    if (status) return status;
    basin_expr slope = basin_grad(loss, rest->x);
    rest->a = basin_loop_state(&rest->loop, "a", basin_expr_shape(rest->x));
    rest->begin = basin_solver_dot(slope, slope);
    basin_expr through = basin_solver_dot(rest->a, rest->next);
    basin_grad_many(gradient, basin_add(loss, through), parameter, count);
    return rest->symmetric ? build_solver(rest, slope, error)
                           : build_repetition(rest, slope, error);
}

/* ---- running ---- */

basin_status basin_rest_find(basin_rest *rest, basin_rest_report *report, const basin_tensor *start,
                             basin_error *error) {
    const basin_descent_spec *d = &rest->spec.descent;
    *report = (basin_rest_report){.change = INFINITY};
    basin_status status = basin_loop_check_start(start, rest->x, error);
    if (!status)
        status = basin_store_write(rest->loop.store, basin_expr_name(rest->x), start, error);
    while (!status && report->change > d->tolerance && report->steps < d->steps) {
        status = basin_loop_run(&report->change, rest->plan[DESCEND], rest->change, error);
        report->steps++;
    }
    if (status || report->change <= d->tolerance) return status;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "no rest after %d steps: the last moved an element by %g, wanted %g; more "
                      "steps or a smaller alpha may help",
                      report->steps, report->change, d->tolerance);
}

basin_status basin_rest_solve(basin_rest *rest, basin_rest_report *report, basin_error *error) {
    int most = rest->spec.products > 0 ? rest->spec.products : rest->spec.descent.steps;
    double accuracy = rest->spec.accuracy > 0 ? rest->spec.accuracy : 1e-6, size, off;
    if (!rest->a)
        return basin_fail(error, BASIN_BAD_VALUE, "a rest point without a loss to solve for");
    report->products = 0;
    basin_status status = basin_loop_run(&size, rest->plan[BEGIN], rest->begin, error);
    report->residual = !status && size == 0 ? 0 : 1;
    while (!status && !(report->residual <= accuracy) && report->products < most) {
        status = basin_loop_run(&off, rest->plan[ITERATE], rest->off, error);
        if (!status) report->residual = sqrt(off / size);
        report->products++;
    }
    if (status || report->residual <= accuracy) return status;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "the gradient at rest is off by %g of its size after %d products, wanted %g",
                      report->residual, report->products, accuracy);
}
