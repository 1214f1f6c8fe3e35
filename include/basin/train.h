/* Training as expressions: AdamW, Lion or SGD with gradient clipping, as updates of a plan, so that
 * a step (forward, reverse, optimizer) is one run; a trainer, which keeps plan, optimizer and
 * schedule together; and checkpoints, from which a run goes on to the same bits. */
#ifndef BASIN_TRAIN_H
#define BASIN_TRAIN_H

#include "basin/io.h"
#include "basin/params.h"
#include "basin/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a parameter p moves along its gradient g; `decay` is weight_decay. */
typedef enum basin_optimizer_kind {
    BASIN_OPTIMIZER_ADAMW, /* p -= rate (m / c1 / (sqrt(v / c2) + epsilon) + decay p), moments m, v
                            */
    BASIN_OPTIMIZER_LION, /* p -= rate (sign(beta1 m + (1 - beta1) g) + decay p), then m by beta2 */
    BASIN_OPTIMIZER_SGD,  /* m = beta1 m + g, p -= rate (m + decay p): momentum beta1 */
} basin_optimizer_kind;

/* A group of parameters: those whose names match the pattern, in which * stands for any characters
 * ("layer*.wq", "*norm*"). What the rate and weight_decay are multiplied by for them. */
typedef struct basin_optimizer_group {
    const char *pattern;
    double rate, decay;
} basin_optimizer_group;

typedef struct basin_optimizer_config {
    size_t size; /* sizeof this struct; 0: as in version 1.0 */
    double beta1, beta2, epsilon, weight_decay;
    double clip; /* largest global norm of the gradient; 0: none */
    basin_optimizer_kind kind;
    /* Groups of parameters: what weight_decay and the rate are multiplied by for one of them; NULL:
     * 1 for all. A parameter of rate 0 stays as it is and counts in no norm. */
    bool decay_matrices_only; /* no decay for numbers and vectors (biases, norms) */
    double (*decay_of)(void *context, basin_expr parameter);
    double (*rate_of)(void *context, basin_expr parameter);
    void *context; /* for both */
    /* The same by name, on top of these: the first group that a name matches counts. A group that
     * no name matches is an error. */
    const basin_optimizer_group *group; /* [groups] */
    int groups;
} basin_optimizer_config;
/* AdamW with beta1 0.9, beta2 0.99, epsilon 1e-8, weight_decay 0.05 and clip 1, to initialize from.
 */
#ifndef __cplusplus
#define BASIN_OPTIMIZER_DEFAULT                                                                    \
    {                                                                                              \
        .size = sizeof(basin_optimizer_config), .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8,      \
        .weight_decay = 0.05, .clip = 1                                                            \
    }
#else
#define BASIN_OPTIMIZER_DEFAULT                                                                    \
    { sizeof(basin_optimizer_config), 0.9, 0.99, 1e-8, 0.05, 1 }
#endif

/* Linear from `first` at step 0 to `peak` at step `warmup`, then a cosine to `last` at step
 * `total`, where it stays. */
typedef struct basin_schedule {
    int64_t warmup, total; /* steps */
    double first, peak, last;
} basin_schedule;

/* Synchronises several processes that train one model, after the gradients and before the update.
 * The gradients of this process are the states `name` of the store; they become the sums over
 * all. */
typedef struct basin_reduction {
    basin_status (*sum)(void *context, basin_store *store, const char *const *name, int count,
                        basin_error *error);
    void *context;
} basin_reduction;

typedef struct basin_trainer_spec {
    size_t size; /* sizeof this struct; 0: as in version 1.0 */
    basin_optimizer_config optimizer;
    basin_schedule schedule;
    const basin_expr *output; /* [outputs], readable from the plan besides the loss */
    int outputs;
    const basin_reduction *reduction; /* NULL: one process; gradients and update are one plan */
} basin_trainer_spec;

/* Plan, optimizer and schedule of one loss. The optimizer's moments are the states "NAME.m" and,
 * for AdamW, "NAME.v" of each parameter in the store. Belongs to the thread of its store. */
typedef struct basin_trainer basin_trainer;
/* Differentiates `loss`, a scalar, with respect to every parameter. Without a loss (NULL) there is
 * no plan: the caller computes the gradients, writes them to the store and calls
 * basin_trainer_apply. */
BASIN_API basin_status basin_trainer_new(basin_trainer **trainer, basin_store *store,
                                         const basin_params *params, basin_expr loss,
                                         const basin_trainer_spec *spec, basin_error *error);
BASIN_API void basin_trainer_free(basin_trainer *trainer);
/* Write a batch to it, then step. NULL without a loss. */
BASIN_API basin_plan *basin_trainer_plan(const basin_trainer *trainer);
typedef struct basin_trainer_info {
    size_t size; /* sizeof(basin_trainer_info), set by the caller */
    basin_store *store;
    int64_t step; /* steps taken so far, over all runs */
    /* With a reduction, or without a loss: the states "gradient.NAME", one per parameter, that the
     * update reads; empty otherwise. */
    const basin_params *gradients;
} basin_trainer_info;
BASIN_API void basin_trainer_get_info(basin_trainer_info *info, const basin_trainer *trainer);
/* Continues as if `step` steps had been taken: for the rate and the optimizer's corrections. */
BASIN_API void basin_trainer_set_step(basin_trainer *trainer, int64_t step);
/* One step on what was written to the plan, at the schedule's rate. The loss is that before the
 * update; a loss that is not a finite number is an error. With `loss` NULL the call does not
 * wait. */
BASIN_API basin_status basin_trainer_step(double *loss, basin_trainer *trainer, basin_error *error);
/* Waits for the last step and returns its loss: for callers that prepared the next batch
 * meanwhile. */
BASIN_API basin_status basin_trainer_loss(double *loss, const basin_trainer *trainer,
                                          basin_error *error);

/* For a trainer with a reduction or without a loss: one update with the gradients in the store, at
 * the schedule's rate. */
BASIN_API basin_status basin_trainer_apply(basin_trainer *trainer, basin_error *error);

/* ---- files ---- */

typedef struct basin_meta {
    const char *key, *value;
} basin_meta;

/* Everything needed to resume a run: all states of the store, moments included, and the metadata
 * with "step" among them. Written aside and renamed, so that a kill at any moment leaves the old
 * checkpoint or the new one, whole. */
BASIN_API basin_status basin_checkpoint_write(const char *path, basin_store *store, int64_t step,
                                              const basin_meta *meta, int metas,
                                              basin_error *error);
/* Fills every state of the store (the trainer's plans have been made) from the file, and finds the
 * step. A state that the file lacks or has in another shape is an error. */
BASIN_API basin_status basin_checkpoint_read(int64_t *step, basin_store *store,
                                             const basin_bundle *bundle, basin_error *error);

/* Only the parameters, without optimizer state: a model for inference. */
BASIN_API basin_status basin_params_write(const char *path, const basin_params *params,
                                          basin_store *store, const basin_meta *meta, int metas,
                                          basin_error *error);
BASIN_API basin_status basin_params_read(const basin_params *params, basin_store *store,
                                         const basin_bundle *bundle, basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
