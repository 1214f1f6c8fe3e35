/* Inside stores and plans: plan.c makes a plan, run.c writes inputs, runs it, reads outputs. */
#ifndef BASIN_PLAN_PLAN_H
#define BASIN_PLAN_PLAN_H

#include "basin/plan.h"
#include "engine/backend/device.h"
#include "engine/plan/ir.h"

typedef struct basin_store_entry {
    char *name;
    basin_shape shape;
    void *memory;
} basin_store_entry;

struct basin_store {
    basin_backend *backend;
    basin_store_entry *entry;
    size_t entries, capacity;
    uint64_t changes; /* of states so far, by plans and by the host, counted from 1 */
    bool share;       /* results of plans lie in one arena: */
    void *arena;      /* it moves when it grows, and then has lost what it held */
    size_t arena_bytes;
    const void *last;              /* the plan that ran last in it */
    basin_convergence convergence; /* of all plans, since they were taken */
};

/* Makes the shared arena at least so large. */
basin_status basin_store_reserve(basin_store *store, size_t bytes, basin_error *error);

/* Finds a state, or creates it filled with zeros. Its memory never moves. */
basin_status basin_store_demand(int *entry, basin_store *store, const char *name, basin_shape shape,
                                basin_error *error);

basin_shape basin_store_shape(const basin_store *store, int i);
/* Copies between host tensors and device memory that holds `count` elements of the backend's REAL
 * type (or int32_t for INDEX), converting where the types differ. */
basin_status basin_device_write(basin_backend *backend, void *device, basin_kind kind,
                                const basin_tensor *from, basin_error *error);
basin_status basin_device_read(basin_backend *backend, basin_tensor *to, const void *device,
                               basin_kind kind, basin_error *error);

/* Bounds of index inputs and constants; offsets must start at 0 and not decrease. */

typedef struct basin_bounds {
    int64_t low, high;
    bool ascending;
} basin_bounds;

/* The bounds of all root values, by the instructions that read them; [values]. */
void basin_bounds_find(basin_bounds *bounds, const basin_ir *ir);
/* Fails with the first number that is not within them; `name` is the input's, NULL a constant's. */
basin_status basin_bounds_check(const basin_bounds *bounds, const char *name,
                                const basin_tensor *tensor, basin_error *error);

/* Iterations that a plan runs before its own calls: rest points and linear systems of their
 * reverse, each two plans over states (first values, a step) in its arena. */

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
/* Plan number i of them, NULL past the last. */
basin_plan *basin_iterations_plan(const basin_plan_iterations *iterations, int i);
/* State number i of those that the plan itself does not read, NULL past the last. */
basin_expr basin_iterations_state(const basin_plan_iterations *iterations, int i);
basin_status basin_iterations_run(basin_plan_iterations *iterations, basin_convergence *convergence,
                                  basin_error *error);

/* The inside of a plan: plan.c makes it, run.c writes its inputs, runs it and reads its outputs. */

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

/* A plan of an iteration, which takes the ends of others as they are and has no arena. */
basin_status basin_plan_new_inner(basin_plan **plan, basin_store *store,
                                  const basin_plan_spec *spec, basin_error *error);

/* ---- run.c: a run in pieces ---- */

/* Finds out whether the plan stops, and makes room for rows on their way. */
basin_status basin_plan_find_stops(basin_plan *plan, basin_error *error);

/* ---- Kernel calls as text ---- */

void basin_call_describe(char *text, size_t size, const basin_call *call);

#endif
