/* Iterations that a plan runs before its own calls: rest points and the linear systems of their
 * reverse, each as two plans over states, one for the first values and one for a step. All of them
 * compute in the arena of the plan that they belong to. */
#ifndef BASIN_PLAN_ITERATE_H
#define BASIN_PLAN_ITERATE_H

#include "basin/plan.h"
#include "expr/graph.h"

typedef struct basin_plan_iteration {
    basin_iteration what;
    basin_plan *begin, *again;
} basin_plan_iteration;

typedef struct basin_plan_iterations {
    basin_plan_iteration *list; /* [count] in the order in which they run */
    int count;
    const basin_plan *last; /* the plan that ran last in the common arena */
} basin_plan_iterations;

/* Plans for every iteration that the outputs and updates need; they have no arena yet. */
basin_status basin_iterations_make(basin_plan_iterations *made, const basin_graph *graph,
                                   basin_store *store, const basin_plan_spec *spec,
                                   basin_error *error);
void basin_iterations_free(basin_plan_iterations *iterations);
/* Plan number i of them, NULL behind the last. */
basin_plan *basin_iterations_plan(const basin_plan_iterations *iterations, int i);
/* State number i of those that the plan itself does not read, NULL behind the last. */
basin_expr basin_iterations_state(const basin_plan_iterations *iterations, int i);
basin_status basin_iterations_run(basin_plan_iterations *iterations, basin_rests *rests,
                                  basin_error *error);

#endif
