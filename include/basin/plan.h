/* Plans: expressions compiled once for a backend, then run as often as needed.
 *
 *     basin_backend *backend;  basin_store *store;  basin_plan *plan;
 *     basin_backend_open(&backend, NULL, &error);
 *     basin_store_new(&store, backend, &error);
 *     basin_plan_new(&plan, store, &(basin_plan_spec){.output = &force, .outputs = 1}, &error);
 *     basin_plan_write(plan, x, &tokens, &error);
 *     basin_plan_run(plan, &error);
 *     basin_plan_read(&result, plan, force, &error);
 *
 * Making a plan removes what no output needs, fuses pointwise chains with each other and into the
 * matrix products they follow, and lays all intermediate results into one arena by their lifetimes.
 * The memory it will take is known then (basin_plan_stats); running allocates nothing. */
#ifndef BASIN_PLAN_H
#define BASIN_PLAN_H

#include "basin/backend.h"
#include "basin/expr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A store holds the states of expressions, by name, in the backend's memory: parameters, the
 * optimizer's moments, the tokens of a descent. Plans made on one store share them. A
 * store and its plans belong to the thread of its backend. */
typedef struct basin_store basin_store;
BASIN_API basin_status basin_store_new(basin_store **store, basin_backend *backend,
                                       basin_error *error);
BASIN_API void basin_store_free(basin_store *store);
/* Creates or overwrites a state. Its shape cannot change once it is there. */
BASIN_API basin_status basin_store_write(basin_store *store, const char *name,
                                         const basin_tensor *tensor, basin_error *error);
/* A new tensor of the backend's type, which the caller frees. */
BASIN_API basin_status basin_store_get(basin_tensor *tensor, basin_store *store, const char *name,
                                       basin_error *error);
/* The name of state i; NULL beyond the last. */
BASIN_API const char *basin_store_name(const basin_store *store, int i);

/* Where the state lies in the backend's memory, to be read or (`change`) written; or NULL. */
BASIN_API void *basin_store_memory(basin_store *store, const char *name, bool change);
/* Plans made from now on compute in one arena, as large as the largest of them needs: for several
 * plans that run in turn, each read before the next runs. Reading a plan after another ran is an
 * error. Where runs are queued on a device, each plan keeps its own arena, and it returns false. */
BASIN_API bool basin_store_share_results(basin_store *store);

/* After a run, the state (a basin_state expression) holds the value. Every update reads what was
 * there before the run, whatever the order. */
typedef struct basin_update {
    basin_expr state, value;
} basin_update;

/* Fusion: the backend's default, always, or never (one call per operation, nothing in place: for
 * comparing). */
typedef enum basin_fusion { BASIN_FUSE_AUTO, BASIN_FUSE_ON, BASIN_FUSE_OFF } basin_fusion;

typedef struct basin_plan_spec {
    size_t size;              /* sizeof this struct; 0: as in version 1.0 */
    const basin_expr *output; /* [outputs], readable after a run */
    int outputs;
    const basin_update *update; /* [updates] */
    int updates;
    basin_fusion fusion;
} basin_plan_spec;

typedef struct basin_plan_stats {
    size_t size;           /* sizeof(basin_plan_stats), set by the caller */
    size_t arena_bytes;    /* intermediate results and scratch, at their peak */
    size_t input_bytes;    /* inputs */
    size_t state_bytes;    /* states of the store that the plan touches */
    size_t unshared_bytes; /* what the arena would be without reuse by lifetime */
    int nodes;             /* operations asked for, dead ones gone */
    int calls;             /* kernel calls left after fusion */
    int recomputed;        /* operations that run a second time */
    int hoisted; /* how many calls, the first ones, depend only on constants and on states that the
                     plan does not update, and run again only after a state has changed */
} basin_plan_stats;

/* Belongs to the thread of its store. */
typedef struct basin_plan basin_plan;
/* States that the store lacks are created, filled with zeros. */
BASIN_API basin_status basin_plan_new(basin_plan **plan, basin_store *store,
                                      const basin_plan_spec *spec, basin_error *error);
BASIN_API void basin_plan_free(basin_plan *plan);
BASIN_API void basin_plan_get_stats(basin_plan_stats *stats, const basin_plan *plan);
/* Kernel call number `call` of `stats.calls` as a line of text, cut to `size` bytes: operation,
 * results, operands, and the formula of what was fused. For people to read, not for programs to
 * parse. */
BASIN_API void basin_plan_describe(const basin_plan *plan, int call, char *text, size_t size);
/* Writes the values of an input, converted to the backend's type. Index tensors are checked against
 * the sizes of what they index. An input that no output needs may also be written. */
BASIN_API basin_status basin_plan_write(basin_plan *plan, basin_expr input,
                                        const basin_tensor *tensor, basin_error *error);
/* Every input that the plan reads must have been written; it keeps its numbers from run to run. On
 * cuda this returns before all is done; what fails then is reported by the next call that waits. */
BASIN_API basin_status basin_plan_run(basin_plan *plan, basin_error *error);
/* Copies an output into a tensor of equal shape, of any type. An error where the plan has not run
 * yet, or its last run failed, or it was released since. */
BASIN_API basin_status basin_plan_read(basin_tensor *tensor, basin_plan *plan, basin_expr output,
                                       basin_error *error);
/* Returns the memory of a plan's results to the system until it runs again, where that is the
 * host's: for plans that run now and then. What was not read is lost. */
BASIN_API void basin_plan_release(basin_plan *plan);
typedef struct basin_feed {
    basin_expr input;
    const basin_tensor *tensor;
} basin_feed;

/* Writes inputs, runs, and reads output[i] into result[i], as the three above. */
BASIN_API basin_status basin_plan_call(basin_plan *plan, const basin_feed *given, int count,
                                       const basin_expr *output, basin_tensor *result, int outputs,
                                       basin_error *error);
/* An output of one element. */
BASIN_API basin_status basin_plan_read_scalar(double *value, basin_plan *plan, basin_expr output,
                                              basin_error *error);

/* ---- fixed points ---- */

/* A plan with implicit descents (basin_implicit) finds their fixed points first in every run, and
 * solves the linear systems of their gradients. Those that do not converge within the allowed steps
 * are counted here, and the run continues with the result so far. */
typedef struct basin_convergence {
    size_t size;                 /* sizeof(basin_convergence), set by the caller */
    int64_t points, steps;       /* fixed points sought, and steps taken for all of them */
    int64_t max_steps;           /* of one point */
    int64_t not_converged;       /* points that still moved by more than `until` at the end, */
    double change;               /* and the largest such move, of all points */
    int64_t solutions, products; /* systems solved, products with the Hessian for all of them */
    int64_t unsolved;            /* systems off by more than `accuracy`, */
    double residual;             /* and the largest of all systems, relative */
} basin_convergence;
/* Convergence statistics of all plans of a store since the last call. */
BASIN_API void basin_store_take_convergence(basin_convergence *convergence, basin_store *store);

/* ---- plans of parts ---- */

/* The rows that one plan sends and receives in an exchange (basin_exchange). Forward: `from` has
 * `own` rows, and `to` receives those followed by `halo` rows of other plans. Reverse: `from` has
 * own + halo rows, and `to` receives the own rows plus what the other plans computed for them. Both
 * are in the host's memory. */
typedef struct basin_exchange_rows {
    const void *from;
    void *to;
    int64_t own, halo, width; /* rows, and numbers of a row */
    basin_dtype dtype;        /* F32 or F64 */
    bool back;
} basin_exchange_rows;

/* The callback that moves the rows between the plans at hand, and to and from other processes. It
 * is called in the same order in all processes. */
typedef struct basin_exchange_callback {
    basin_status (*move)(void *context, const basin_exchange_rows *rows /* [plans] */, int plans,
                         basin_error *error);
    void *context;
} basin_exchange_callback;

/* Runs plans that differ only in their inputs, one per partition, together: all stop where rows are
 * exchanged. basin_plan_run refuses such plans. */
BASIN_API basin_status basin_plans_run(basin_plan *const *plan, int plans,
                                       const basin_exchange_callback *way, basin_error *error);

/* ---- all of it together, for small programs ----
 *
 *     basin_engine engine;
 *     basin_engine_open(&engine, NULL, &error);
 *     basin_expr x = basin_input(engine.graph, "x", BASIN_SHAPE(2, 3)), y = ..;
 *     basin_engine_compute(&engine, &result, &y, 1, &(basin_feed){x, &tokens}, 1, &error);
 *     basin_engine_close(&engine);
 */
typedef struct basin_engine {
    basin_backend *backend;
    basin_store *store;
    basin_graph *graph;
} basin_engine;

BASIN_API basin_status basin_engine_open(basin_engine *engine, const basin_compute *compute,
                                         basin_error *error);
/* Plans made on its store are freed before. */
BASIN_API void basin_engine_close(basin_engine *engine);

/* Makes a plan, runs it once and frees it: result[outputs] are new tensors (F64) that the caller
 * frees; none on failure. */
BASIN_API basin_status basin_engine_compute(basin_engine *engine, basin_tensor *result,
                                            const basin_expr *output, int outputs,
                                            const basin_feed *given, int count, basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
