/* Training with settings that leave nothing open but the sampling. */
#ifndef BASIN_TASK_NODES_FIT_H
#define BASIN_TASK_NODES_FIT_H

#include "task/nodes/nodes.h"
#include "task/nodes/parts.h"
#include "train/run/run.h"
#include "train/shards/shards.h"

/* What is trained on, and how. */
typedef struct basin_nodes_job {
    const basin_task_settings *task;
    const basin_network *network;
    const uint8_t *part; /* [N] */
    const basin_nodes_settings *settings;
    bool least;         /* see basin_nodes_resources */
    bool probe;         /* only the outcome is needed: no threshold, no scores */
    basin_parts *parts; /* of the graph, whose face `network` is; NULL: it is whole */
} basin_nodes_job;

/* Trains in an opened run. The model is there after an interrupt, too. */
basin_status basin_nodes_fit(basin_nodes_model **model, basin_outcome *outcome, basin_run *run,
                             const basin_nodes_job *job, basin_error *error);

/* The same in a run of its own, which writes nothing and tells its watcher nothing. */
basin_status basin_nodes_fit_quietly(basin_nodes_model **model, basin_outcome *outcome,
                                     const basin_nodes_job *job, const basin_nodes_resources *work,
                                     basin_error *error);

/* ---- settings that come from files (model.c) ---- */

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

/* ---- what fit.c and classes.c share ---- */

typedef struct basin_nodes_fitting {
    const basin_network *network;
    const uint8_t *part;
    basin_run *run;
    basin_nodes_settings settings; /* sampling decided */
    basin_nodes_resources work;
    basin_nodes_model *model;
    basin_parted_inputs inputs;
    basin_store *store;
    basin_nodes_net net;
    basin_trainer trainer;
    basin_shards shards;         /* of batches that are sampled */
    basin_parted_trainer *joint; /* of a graph in parts, in place of the trainer */
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

/* ---- Several classes of nodes: which there are, what they are called, what is learned of them and
 * how well. A detector of anomalies has none of this. ---- */

/* Whether a task tells classes apart; else it is the detector's. */
bool basin_classes_several(const basin_task_settings *task);

/* The classes of the training nodes become the model's, by the order of their labels; every node's
 * class. */
basin_status basin_classes_take(basin_nodes_fitting *fit, basin_error *error);
/* Fills labels and weights: a node counts by the setting `balance`. */
void basin_classes_weigh(basin_nodes_fitting *fit);
/* Names, to and from a model file's metadata. */
basin_status basin_classes_store(basin_bundle *bundle, const basin_nodes_model *model,
                                 basin_error *error);
basin_status basin_classes_load(basin_nodes_model *model, const basin_bundle *bundle,
                                basin_error *error);

#endif
