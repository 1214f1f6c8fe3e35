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
/* For decay_of: 1 for matrices and higher, 0 for numbers and vectors (biases, norms). */
BASIN_API double basin_decay_matrices(void *context, basin_expr parameter);

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
BASIN_API basin_status basin_optimizer_new(basin_optimizer *adamw, const basin_params *params,
                                           basin_expr loss, const basin_optimizer_config *config,
                                           basin_error *error);
BASIN_API void basin_optimizer_free(basin_optimizer *adamw);
/* The learning rate and the bias corrections of step t = 1, 2, ... */
BASIN_API basin_status basin_optimizer_write(const basin_optimizer *adamw, basin_plan *plan,
                                             int64_t t, double rate, basin_error *error);

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
    basin_optimizer_config adamw;
    basin_schedule schedule;
    const basin_expr *output; /* [outputs], readable from the plan besides the loss */
    int outputs;
    const basin_reduction *reduction; /* NULL: one process; gradients and update are one plan */
} basin_trainer_spec;

typedef struct basin_trainer {
    basin_store *store;
    basin_expr loss;
    basin_optimizer adamw;
    basin_schedule schedule;
    basin_plan *plan; /* write a batch to it, then step */
    int64_t step;     /* steps taken so far, over all runs */
    /* With a reduction: `plan` leaves gradients "gradient.NAME" in the store, this one updates. */
    basin_reduction reduction;
    basin_plan *update;
    basin_params gradients;
} basin_trainer;

BASIN_API basin_status basin_trainer_new(basin_trainer *trainer, basin_store *store,
                                         const basin_params *params, basin_expr loss,
                                         const basin_trainer_spec *spec, basin_error *error);
BASIN_API void basin_trainer_free(basin_trainer *trainer);
/* One step on what was written to the plan, at the schedule's rate. The loss is that before the
 * update; a loss that is not a finite number is an error. With `loss` NULL the call does not
 * wait. */
BASIN_API basin_status basin_trainer_step(double *loss, basin_trainer *trainer, basin_error *error);
/* Waits for the last step and returns its loss: for callers that prepared the next batch
 * meanwhile. */
BASIN_API basin_status basin_trainer_loss(double *loss, const basin_trainer *trainer,
                                          basin_error *error);

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

/* ---- training in pieces, for a caller that sums gradients over batches or processes ---- */

/* The gradients of `loss`, one per parameter, passed through params->adjust. */
BASIN_API basin_status basin_gradients(basin_expr *gradient, const basin_params *params,
                                       basin_expr loss, basin_error *error);

/* For a trainer with a reduction, whose plan computes the gradients of the written batch and leaves
 * them in the store (trainer->gradients): applies one update with the gradients in the store, at
 * the schedule's rate. */
BASIN_API basin_status basin_trainer_apply(basin_trainer *trainer, basin_error *error);

/* Only the update, for callers that compute gradients themselves: turns a zeroed struct into a
 * trainer without a plan, whose states `gradients` the caller fills. Call basin_trainer_free in any
 * case, also after an error. */
BASIN_API basin_status basin_trainer_new_update(basin_trainer *trainer, basin_store *store,
                                                const basin_params *params,
                                                const basin_trainer_spec *spec, basin_error *error);
/* The learning rate of a step. */
BASIN_API double basin_schedule_rate(const basin_schedule *schedule, int64_t step);

#ifdef __cplusplus
}
#endif
#endif
