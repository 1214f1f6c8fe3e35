/* Scans: descents of many steps, differentiated without being unrolled.
 *
 * basin_descend writes every step into the graph, and a plan of all of them. A scan makes a plan of
 * one step, which runs as often as there are steps, and another of its reverse. It gives the very
 * gradients of the unrolled descent; it keeps the tokens of every k-th step, in the host's memory,
 * and computes the others again. Plans are as small, and as quickly made, for 1,000 steps as for
 * one.
 *
 *     basin_scan_new(&scan, store, &energy, graph, BASIN_SHAPE(N, D), &spec, &error);
 *     basin_expr loss = of(basin_scan_tokens(scan));
 *     basin_scan_gradients(gradient, scan, loss, parameter, count, &error);
 *     basin_adamw_from(&adamw, &params, gradient, &config, &error);   and a plan of its updates
 *     ..
 *     basin_scan_run(scan, &start, &error);     for every batch
 *     basin_scan_reverse(scan, &error);
 *     basin_plan_run(plan, &error);
 *
 * The tokens at the end, and what the steps add to the gradients, are states of the store
 * ("scan.x", "scan.sum.PARAMETER", ..). */
#ifndef BASIN_SCAN_H
#define BASIN_SCAN_H

#include "basin/energy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct basin_scan_spec {
    basin_descent_spec descent; /* steps, alpha, turns; nothing else */
    int every;                  /* keep the tokens of every so many steps; 0: about sqrt(steps) */
    const char *name;           /* of the states, before their dot; NULL: "scan" */
} basin_scan_spec;

typedef struct basin_scan basin_scan;
BASIN_API basin_status basin_scan_new(basin_scan **scan, basin_store *store,
                                      const basin_energy *energy, basin_graph *graph,
                                      basin_shape shape, const basin_scan_spec *spec,
                                      basin_error *error);
BASIN_API void basin_scan_free(basin_scan *scan);
/* The tokens after all steps, a state. */
BASIN_API basin_expr basin_scan_tokens(const basin_scan *scan);
/* The gradient with respect to the tokens at the start, a state that basin_scan_reverse fills. NULL
 * before basin_scan_gradients. */
BASIN_API basin_expr basin_scan_start_gradient(const basin_scan *scan);
/* The gradients of a loss, a scalar of those tokens, with respect to parameters; they hold after
 * basin_scan_reverse. For one loss. */
BASIN_API basin_status basin_scan_gradients(basin_expr *gradient, basin_scan *scan, basin_expr loss,
                                            const basin_expr *parameter, int count,
                                            basin_error *error);
/* For writing other inputs, such as pair lists and targets: into each of these plans. The last two
 * are NULL before basin_scan_gradients. */
enum { BASIN_SCAN_PLANS = 3 };
BASIN_API basin_plan *basin_scan_plan(basin_scan *scan, int i);
BASIN_API basin_status basin_scan_run(basin_scan *scan, const basin_tensor *start,
                                      basin_error *error);
BASIN_API basin_status basin_scan_reverse(basin_scan *scan, basin_error *error);
/* How many token tensors it keeps in the host's memory, at most. */
BASIN_API int basin_scan_kept(const basin_scan *scan);

#ifdef __cplusplus
}
#endif
#endif
