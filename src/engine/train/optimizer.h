/* AdamW, Lion and SGD as updates of a plan. */
#ifndef BASIN_TRAIN_OPTIMIZER_H
#define BASIN_TRAIN_OPTIMIZER_H

#include "basin/train.h"

/* The optimizer over a list of parameters: moments "NAME.m" and, for AdamW, "NAME.v" per parameter,
 * in the store. Write `rate` and call basin_optimizer_write before each run. */
typedef struct basin_optimizer {
    basin_optimizer_config config;
    basin_expr rate;               /* input [], the learning rate */
    basin_expr correct1, correct2; /* inputs [], 1 - beta^t */
    basin_expr norm;               /* of the gradient before clipping; an output if requested */
    basin_update *update;          /* [updates] for the plan */
    int updates;
} basin_optimizer;

/* Differentiates `loss`, a scalar, with respect to every parameter and builds the updates. `config`
 * may be NULL: BASIN_OPTIMIZER_DEFAULT. */
basin_status basin_optimizer_new(basin_optimizer *optimizer, const basin_params *params,
                                 basin_expr loss, const basin_optimizer_config *config,
                                 basin_error *error);
void basin_optimizer_free(basin_optimizer *optimizer);
/* The learning rate and the bias corrections of step t = 1, 2, ... */
basin_status basin_optimizer_write(const basin_optimizer *optimizer, basin_plan *plan, int64_t t,
                                   double rate, basin_error *error);

#endif
