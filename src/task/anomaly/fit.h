/* A training run of a detector: what it works on and where it stands. Internal to anomaly_fit.c,
 * which trains, and anomaly_prepare.c, which decides before what is trained on. */
#ifndef BASIN_TASK_ANOMALY_FIT_H
#define BASIN_TASK_ANOMALY_FIT_H

#include "task/anomaly/file.h"
#include "train/run/log.h"

typedef struct basin_fit {
    const basin_network *network;
    const uint8_t *part;
    basin_anomaly_settings settings; /* sampling decided */
    const basin_anomaly_work *work;
    basin_anomaly_detector *detector;
    basin_node_inputs inputs;
    basin_store *store;
    basin_anomaly_net net;
    basin_trainer trainer;
    basin_anomaly_shape planned; /* what the trainer's plan is made for */
    bool shrink;  /* sampling was left open: so are smaller batches where it must be */
    size_t bytes; /* that the full graph takes in training */
    basin_anomaly_scorer *scorer;
    int64_t *train, *val; /* nodes */
    int64_t train_count, val_count;
    float *label, *weight; /* [N] */
    double *probability;   /* [N] */
    bool scored_best;      /* they are those of the best weights so far */
    double *val_score;
    uint8_t *val_label;
    basin_bundle *resumed; /* the checkpoint that the run goes on from; NULL: a new run */
    basin_fit_state at;
    basin_run_log log;
    double began, saved; /* clock: of the run, of the last checkpoint */
} basin_fit;

/* Nodes, labels, weights, inputs (validation may choose them), the inputs. */
basin_status basin_fit_prepare(basin_fit *fit, basin_error *error);
/* Full where it fits, neighbours where it does not. */
basin_status basin_fit_choose_sampling(basin_fit *fit, basin_error *error);
/* An error where the trainer's plan of samples, or scoring streamed, would take more beside the
 * graph than is allowed. */
basin_status basin_fit_hold_samples(const basin_fit *fit, basin_error *error);
basin_status basin_fit_hold_stream(const basin_fit *fit, basin_error *error);

#endif
