/* Training as expressions: AdamW with gradient clipping, as updates of a plan, so that a step
 * (forward, reverse, optimiser) is one run. */
#ifndef BASIN_TRAIN_H
#define BASIN_TRAIN_H

#include "basin/params.h"
#include "basin/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct basin_adamw_config {
    double beta1, beta2, epsilon, weight_decay;
    double clip; /* largest global norm of the gradient; 0: none */
} basin_adamw_config;
#define BASIN_ADAMW_DEFAULT ((basin_adamw_config){0.9, 0.99, 1e-8, 0.05, 1.0})

/* The optimiser over a list of parameters: two moments "NAME.m", "NAME.v" a parameter, in the
 * store. Write `rate` and call basin_adamw_write before each run. */
typedef struct basin_adamw {
    basin_adamw_config config;
    basin_expr rate;               /* input [], the learning rate */
    basin_expr correct1, correct2; /* inputs [], 1 - beta^t */
    basin_expr norm;               /* of the gradient before clipping; an output if wanted */
    basin_update *update;          /* [updates] for the plan */
    int updates;
} basin_adamw;

/* Differentiates `loss` with respect to every parameter and builds the updates. */
BASIN_API basin_status basin_adamw_new(basin_adamw *adamw, const basin_params *params,
                                       basin_expr loss, const basin_adamw_config *config,
                                       basin_error *error);
BASIN_API void basin_adamw_free(basin_adamw *adamw);
/* The learning rate and the bias corrections of step t = 1, 2, ... */
BASIN_API basin_status basin_adamw_write(const basin_adamw *adamw, basin_plan *plan, int64_t t,
                                         double rate, basin_error *error);

/* Linear from `first` at step 0 to `peak` at step `warmup`, then a cosine to `last` at step
 * `total`, where it stays. */
BASIN_API double basin_rate_cosine(int64_t step, int64_t warmup, int64_t total, double first,
                                   double peak, double last);

#ifdef __cplusplus
}
#endif
#endif
