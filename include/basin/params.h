/* Parameters: states with a recipe for their first values, listed so that a model can be
 * initialized, counted, trained and saved without naming each one again. */
#ifndef BASIN_PARAMS_H
#define BASIN_PARAMS_H

#include "basin/expr.h"
#include "basin/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum basin_init_kind {
    BASIN_INIT_CONSTANT, /* all equal to `scale` */
    BASIN_INIT_NORMAL,   /* N(0, scale^2) */
    BASIN_INIT_LECUN, /* N(0, 1 / fan_in) cut at two deviations, variance kept; fan_in = `scale` */
    BASIN_INIT_UNIFORM, /* uniform in (-scale, scale) */
} basin_init_kind;

typedef struct basin_init {
    basin_init_kind kind;
    double scale;
} basin_init;

typedef struct basin_param {
    basin_expr state;
    basin_init init;
    double minimum;  /* optimizers keep every element at this or above; 0: no limit */
    bool statistic;  /* a statistic, not trained: for example the running mean of a batch norm */
    basin_expr next; /* a statistic's value after a training step; NULL: unchanged */
} basin_param;

typedef struct basin_params {
    basin_graph *graph;
    basin_param *param; /* [count] in the order of declaration */
    size_t count, capacity;
    /* Where not NULL, an optimizer passes each parameter's gradient through it before anything
     * else sees it: gradient centralisation, for example. */
    basin_expr (*adjust)(void *context, basin_expr state, basin_expr gradient);
    void *adjust_context;
} basin_params;

BASIN_API void basin_params_begin(basin_params *params, basin_graph *graph);
BASIN_API void basin_params_free(basin_params *params);
/* The state `prefix` + `name`, entered into the list, where no other may have that name. NULL on
 * failure, with the graph's error set. */
BASIN_API basin_expr basin_param_add(basin_params *params, const char *prefix, const char *name,
                                     basin_shape shape, basin_init init);
/* Sets the `minimum` of a parameter of the list. */
BASIN_API void basin_param_set_minimum(basin_params *params, basin_expr state, double minimum);
/* Makes a parameter of the list a statistic, which is initialized, copied and saved with the
 * parameters, but not trained: a step of training sets it to `next` (NULL: leaves it). */
BASIN_API void basin_param_set_statistic(basin_params *params, basin_expr state, basin_expr next);
/* How many numbers all parameters hold, without statistics. */
BASIN_API int64_t basin_params_total(const basin_params *params);
/* Draws first values for every parameter; parameter i uses stream i of the seed. */
BASIN_API basin_status basin_params_init(const basin_params *params, basin_store *store,
                                         uint64_t seed, basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
