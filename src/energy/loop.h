/* Loops that run a plan again and again on states of a store: what rest points and scans share. */
#ifndef BASIN_ENERGY_LOOP_H
#define BASIN_ENERGY_LOOP_H

#include "basin/plan.h"

typedef struct basin_loop {
    basin_store *store;
    basin_graph *graph;
    char name[64]; /* of its states, before their dot */
} basin_loop;

/* The state "NAME.what". */
basin_expr basin_loop_state(const basin_loop *loop, const char *what, basin_shape shape);
/* A plan in the place of *plan, or the graph's error. `output` NULL: none. */
basin_status basin_loop_plan(basin_plan **plan, const basin_loop *loop, basin_expr output,
                             const basin_update *update, int updates, basin_error *error);
/* Runs a plan and reads a scalar output of it. */
basin_status basin_loop_run(double *value, basin_plan *plan, basin_expr output, basin_error *error);
/* An error where the start of a loop has another shape than its tokens. */
basin_status basin_loop_check_start(const basin_tensor *start, basin_expr x, basin_error *error);
/* And where a loss is no scalar. */
basin_status basin_loop_check_loss(basin_expr loss, basin_error *error);

#endif
