/* Training with settings that leave nothing open but the sampling: what fit.c works on, and
 * prepare.c prepares. */
#ifndef BASIN_TASK_NODES_FIT_H
#define BASIN_TASK_NODES_FIT_H

#include "task/nodes/batch.h"
#include "task/nodes/nodes.h"
#include "task/nodes/parts.h"
#include "task/nodes/scorer.h"
#include "train/run/run.h"
#include "train/shards/shards.h"

/* What is trained on, and how. */
typedef struct basin_nodes_job {
    const basin_task_settings *task;
    const basin_network *network;
    const uint8_t *part; /* [N] */
    const basin_nodes_settings *settings;
    bool least;         /* see basin_nodes_resources */
    bool probe;         /* only the outcome is wanted: no threshold, no scores */
    basin_parts *parts; /* of the graph, whose face `network` is; NULL: it is whole */
} basin_nodes_job;

/* Trains in an opened run. The model is there after an interrupt, too. */
basin_status basin_nodes_fit(basin_nodes_model **model, basin_outcome *outcome, basin_run *run,
                             const basin_nodes_job *job, basin_error *error);

/* The same in a run of its own, which writes nothing and tells its watcher nothing. */
basin_status basin_nodes_fit_quietly(basin_nodes_model **model, basin_outcome *outcome,
                                     const basin_nodes_job *job, const basin_nodes_resources *work,
                                     basin_error *error);

/* ---- resume.c: settings that come from files ---- */

/* What `settings` leave open (scaling, hops, members, smoothing) becomes that of a checkpoint or
 * model. */
basin_status basin_nodes_settle(basin_nodes_settings *settings, const basin_task_settings *task,
                                const basin_bundle *bundle, basin_error *error);
/* The same for sampling and batch, of a checkpoint, whose other settings must match. */
basin_status basin_nodes_resume(basin_nodes_settings *settings, const basin_task_settings *task,
                                const basin_bundle *checkpoint, const basin_watch *watch,
                                basin_error *error);
/* Into a checkpoint's metadata. */
basin_status basin_nodes_describe(basin_bundle *checkpoint, const basin_task_settings *task,
                                  const basin_nodes_settings *settings, basin_error *error);

/* ---- what fit.c, prepare.c and parts/sampled.c share ---- */

typedef struct basin_nodes_fitting {
    const basin_network *network;
    const uint8_t *part;
    basin_run *run;
    basin_nodes_settings settings; /* sampling decided */
    basin_nodes_resources work;
    basin_nodes_model *model;
    basin_node_inputs inputs;
    basin_store *store;
    basin_nodes_net net;
    basin_trainer trainer;
    basin_shards shards;         /* of batches that are sampled */
    basin_parted_inputs parted;  /* of a graph in parts, in place of `inputs`, */
    basin_parted_trainer *joint; /* and of the trainer */
    basin_nodes_shape planned;   /* what the trainer's plan is made for */
    bool probe;                  /* see the job */
    bool shrink;                 /* sampling was left open: batches are halved until they fit */
    size_t bytes;                /* that training takes */
    int64_t member;              /* that is trained */
    basin_nodes_scorer *scorer;
    int64_t *train; /* [train_count] nodes */
    int64_t train_count, validation_count;
    float *label, *weight; /* [N], of classes [N, C]; [N] */
    int32_t *class_of;     /* [N] the node's class, -1: none that is trained on; NULL: a detector */
    double *probability;   /* [N], of classes [N, C] */
    double *tree_logit;    /* [BASIN_TREE_VIEWS, N] of the ensemble's trees; NULL: none */
} basin_nodes_fitting;

/* Nodes, labels, weights; then inputs. */
basin_status basin_nodes_list_nodes(basin_nodes_fitting *fit, basin_error *error);
basin_status basin_nodes_prepare(basin_nodes_fitting *fit, basin_error *error);
/* Boosted trees, where the settings have any. */
basin_status basin_nodes_grow_trees(basin_nodes_fitting *fit, basin_error *error);
/* Full where it fits, neighbours where it does not; then how much an epoch takes of it. */
basin_status basin_nodes_choose_sampling(basin_nodes_fitting *fit, basin_error *error);
void basin_nodes_choose_pace(basin_nodes_fitting *fit);
/* The same three for a graph in parts: inputs, the trainer's plans, its scorer. */
basin_status basin_nodes_prepare_parts(basin_nodes_fitting *fit, basin_error *error);
basin_status basin_nodes_make_parts(basin_nodes_fitting *fit, const basin_trainer_spec *spec,
                                    basin_error *error);
/* A trainer for this shape, in place of the one before. */
basin_status basin_nodes_make_trainer(basin_nodes_fitting *fit, const basin_nodes_shape *shape,
                                      basin_error *error);
basin_nodes_source basin_nodes_source_of(const basin_nodes_fitting *fit);
/* Samples: the first plan, for batches that are halved until they fit where they are left to us;
 * and a step, of this rank's shards of a batch. */
basin_status basin_nodes_make_samples(basin_nodes_fitting *fit, basin_error *error);
basin_status basin_nodes_step_samples(basin_nodes_fitting *fit, double *loss,
                                      const basin_run_place *place, uint64_t member_seed,
                                      uint64_t seed, basin_error *error);
/* An error where the trainer's plan of samples, or scoring streamed, would take more beside the
 * graph than is allowed. */
basin_status basin_nodes_hold_samples(basin_nodes_fitting *fit, basin_error *error);
basin_status basin_nodes_hold_stream(const basin_nodes_fitting *fit, basin_error *error);

/* ---- Inputs that settings leave open. */

/* Settles scaling and hops: by quick probes on validation, or, where there is none or `ask` is
 * false, by rule. *stopped: the watcher stopped a probe, and nothing is settled. */
basin_status basin_nodes_choose_inputs(basin_nodes_settings *settings,
                                       const basin_task_settings *task, bool *stopped,
                                       const basin_network *network, const uint8_t *part /* [N] */,
                                       bool ask, const basin_nodes_resources *work,
                                       basin_error *error);

#endif
