/* The inside of a plan: plan.c makes it, run.c writes its inputs, runs it and reads its outputs. */
#ifndef BASIN_PLAN_PLAN_H
#define BASIN_PLAN_PLAN_H

#include "basin/plan.h"
#include "plan/bounds.h"
#include "plan/ir.h"
#include "plan/iterate.h"
#include "plan/passes/simplify.h"

/* Blocks of a plan's calls. */
enum { BASIN_BLOCK_ARENA, BASIN_BLOCK_INPUTS, BASIN_BLOCK_STATES };

typedef struct basin_plan_input {
    basin_expr expr;
    size_t offset;
    size_t value; /* of the ir */
    basin_bounds bounds;
    bool missing; /* some call reads it, and it was never written */
} basin_plan_input;

typedef struct basin_plan_output {
    basin_expr expr;
    basin_operand where;
} basin_plan_output;

struct basin_plan {
    basin_store *store;
    basin_call *call;
    size_t calls;
    basin_plan_input *input;
    size_t inputs, missing; /* missing: how many of them are */
    basin_plan_output *output;
    int outputs;
    void **block;
    size_t blocks;
    bool shares;   /* computes in the store's arena */
    bool updates;  /* changes states */
    bool inner;    /* of an iteration: the arena is another's */
    bool stops;    /* exchanges rows with other plans */
    void *staging; /* rows on their way where the backend's memory is not the host's; NULL: it is */
    uint64_t made; /* the store's count of changes when hoisted calls ran last; 0: they never did
                    */
    basin_plan_iterations iterations; /* that run before it, in its arena */
    const basin_plan **last; /* an arena of several: the plan that ran last in it; NULL: its own */
    basin_plan_stats stats;
    basin_simple simple; /* what was planned */
    basin_ir ir;         /* keeps the programs and values that calls were made of */
};

/* ---- plan.c ---- */

/* A plan of an iteration, which takes the ends of others as they are and has no arena of its own.
 */
basin_status basin_plan_new_inner(basin_plan **plan, basin_store *store,
                                  const basin_plan_spec *spec, basin_error *error);

/* ---- run.c: a run in pieces ---- */

/* All that comes before the first call of a plan that runs alone. */
basin_status basin_plan_enter(basin_plan *plan, basin_error *error);
/* Up to the first call that is not hoisted; and what follows the last one. */
basin_status basin_plan_begin(basin_plan *plan, basin_error *error);
basin_status basin_plan_end(basin_plan *plan, basin_error *error);

/* ---- together.c ---- */

/* Finds out whether the plan stops, and makes room for rows on their way. */
basin_status basin_plan_find_stops(basin_plan *plan, basin_error *error);

#endif
