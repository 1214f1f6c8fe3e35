/* The expressions of a plan, rewritten; see simplify.c. */
#ifndef BASIN_PLAN_PASSES_SIMPLIFY_H
#define BASIN_PLAN_PASSES_SIMPLIFY_H

#include "basin/plan.h"
#include "expr/graph.h"

typedef struct basin_simple {
    basin_graph *graph; /* holds the rewritten expressions; its leaves know their origin */
    basin_plan_spec spec;
    basin_expr *output;
    basin_update *update;
} basin_simple;

/* Rewrites what the outputs and updates of `spec` need. With `plain` nothing is simplified. Free
 * the result in any case. */
basin_status basin_simplify(basin_simple *simple, const basin_graph *from,
                            const basin_plan_spec *spec, bool plain, basin_error *error);
void basin_simple_free(basin_simple *simple);

#endif
