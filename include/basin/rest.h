/* Rest points: descents that run until nothing moves, and gradients there.
 *
 * At rest x = step(x), whatever the start was and however many steps it took. So a loss of x is
 * differentiated without going back through the steps:
 *
 *     dloss/dp = direct part + a . d step(x) / dp,    a - a . d step(x) / dx = dloss/dx
 *
 * The linear system is solved by products with the step's reverse alone: by conjugate residuals
 * where the step follows the gradient of an energy of x, whose Hessian is symmetric, and by
 * repetition otherwise, which converges as the descent did. Memory is that of one step, whatever
 * the number of steps.
 *
 *     basin_rest_new(&rest, store, &energy, graph, BASIN_SHAPE(N, D), &spec, &error);
 *     basin_expr loss = of(basin_rest_tokens(rest));
 *     basin_rest_gradients(gradient, rest, loss, parameter, count, &error);
 *     basin_adamw_from(&adamw, &params, gradient, &config, &error);   and a plan of its updates
 *     ..
 *     basin_rest_find(rest, &report, &start, &error);     for every batch
 *     basin_rest_solve(rest, &report, &error);
 *     basin_plan_run(plan, &error);
 *
 * The tokens and the solution are states of the store ("rest.x", "rest.a", ..), so that the plan
 * needs nothing written for them. */
#ifndef BASIN_REST_H
#define BASIN_REST_H

#include "basin/energy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct basin_rest_spec {
    /* steps: at most so many; tolerance: at rest when no element of x moves by more. Turns see the
     * step number 0. Neither noise nor guard nor momentum. */
    basin_descent_spec descent;
    int products;     /* at most so many for the linear system; 0: as many as there may be steps */
    double accuracy;  /* of its solution, relative; 0: 1e-6 */
    const char *name; /* of the states, before their dot; NULL: "rest" */
} basin_rest_spec;

/* What happened; filled on failure, too. */
typedef struct basin_rest_report {
    int steps;       /* of the descent */
    double change;   /* the largest of an element in the last one */
    int products;    /* with the step's reverse */
    double residual; /* of the linear system, relative */
} basin_rest_report;

typedef struct basin_rest basin_rest;
BASIN_API basin_status basin_rest_new(basin_rest **rest, basin_store *store,
                                      const basin_energy *energy, basin_graph *graph,
                                      basin_shape shape, const basin_rest_spec *spec,
                                      basin_error *error);
BASIN_API void basin_rest_free(basin_rest *rest);
/* The tokens at rest, a state. */
BASIN_API basin_expr basin_rest_tokens(const basin_rest *rest);
/* The gradients of a loss, a scalar of those tokens, with respect to parameters or inputs; they
 * hold after basin_rest_solve. For one loss. */
BASIN_API basin_status basin_rest_gradients(basin_expr *gradient, basin_rest *rest, basin_expr loss,
                                            const basin_expr *parameter, int count,
                                            basin_error *error);
/* For writing other inputs, such as pair lists and targets: into each of these plans. The last two
 * are NULL before basin_rest_gradients. */
enum { BASIN_REST_PLANS = 3 };
BASIN_API basin_plan *basin_rest_plan(basin_rest *rest, int i);
/* Descends from `start` to rest; an error where that takes more steps than allowed. */
BASIN_API basin_status basin_rest_find(basin_rest *rest, basin_rest_report *report,
                                       const basin_tensor *start, basin_error *error);
/* Solves the linear system there; an error where that takes more products than allowed. */
BASIN_API basin_status basin_rest_solve(basin_rest *rest, basin_rest_report *report,
                                        basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
