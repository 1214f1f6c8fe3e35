/* Graph classification, node classification and graph regression as a task: settings and presets,
 * model files, plans for batches of any size, training, scores, cross-validation. */
#ifndef BASIN_TASK_GRAPHS_GRAPHS_H
#define BASIN_TASK_GRAPHS_GRAPHS_H

#include "basin/model.h"
#include "basin/tasks/graphset.h"
#include "basin/train.h"
#include "train/run/log.h"
#include "train/run/settings.h"
#include "train/run/watch.h"

/* ---- settings ---- */

#define BASIN_GRAPHS_INPUT_SETTINGS(X)                                                             \
    X(INTEGER, eigenvectors, "K", 0, 1024, "Positions: so many Laplacian eigenvectors.",           \
      .was = "vectors")                                                                            \
    X(INTEGER, walks, "K", 0, 1024, "Positions: return probabilities of walks of 1 to K steps.")   \
    X(INTEGER, edge_walks, "K", 0, 1024,                                                           \
      "Features of edges: walks of 2 to K + 1 steps from end to end.", .absent = "0")              \
    X(SWITCH, cls_laplacian, "Eigenvectors of the graph with its CLS node, as published.")         \
    X(SWITCH, raw, "Labels as plain numbers, not one-hot.")                                        \
    X(SWITCH, standardise, "Attributes and targets to mean 0 and deviation 1.")                    \
    X(SWITCH, edge_sums, "Sums of edge features at their nodes.")                                  \
    X(INTEGER, degrees, "N", -1, 4096,                                                             \
      "One-hot degrees below N, or 32 where nodes have nothing else; -1: only there.")
#define BASIN_GRAPHS_MODEL_SETTINGS(X)                                                             \
    BASIN_BLOCK_SETTINGS(X)                                                                        \
    X(INTEGER, couplings, "N", 0, 4096,                                                            \
      "Heads of couplings between the nodes of an edge; 0: none.", .absent = "0")                  \
    X(INTEGER, blocks, "S", 1, BASIN_MAX_BLOCKS, "Blocks, each with weights of its own.")          \
    X(REAL, noise, "X", 0, 1e3, "Noise of the descent in training.")                               \
    X(SWITCH, mix, "Mixing of heads, as in the published code.")                                   \
    X(CHOICE, adjacency, BASIN_CHOICES("conv", "bilinear", "edges", "none"),                       \
      "The factor of an edge's scores: the paper's convolution, which depends on the order of "    \
      "nodes; a bilinear form; edge features alone; none.")                                        \
    X(CHOICE, readout,                                                                             \
      BASIN_CHOICES("auto", "cls", "mean", "sum", "cls+mean", "cls+sum", "cls+sized",              \
                    "cls+mean+sized"),                                                             \
      "What the head reads. auto: cls+sum for values, cls+mean+sized for classes.")                \
    X(INTEGER, hidden, "N", 0, 65536, "Hidden units of the head; 0: it is linear.")                \
    X(SWITCH, norm_head, "A layer norm before the head.")                                          \
    X(REAL, dropout, "X", 0, 0.99, "Dropout in the head.", .was = "drop")                          \
    X(SWITCH, reconstruct, "Also reconstruct the edge features.")                                  \
    X(REAL, query_deviation, "X", 0, 100, "Deviation of first attention weights; 0: 1 / sqrt(D).") \
    X(REAL, memory_deviation, "X", 0, 100, "Deviation of first memories; 0: 1 / sqrt(D).")         \
    X(INTEGER, outputs, "C", 0, 1 << 20,                                                           \
      "At least so many outputs; the published TU heads have "                                     \
      "10.")
#define BASIN_GRAPHS_TRAINING_SETTINGS(X)                                                          \
    BASIN_RUN_SETTINGS(X)                                                                          \
    X(REAL, smoothing, "X", 0, 0.99, "Label smoothing.")                                           \
    X(SWITCH, centralise, "Gradient centralisation.")                                              \
    X(SWITCH, weight_classes, "Classes of nodes: rare ones count more.")

/* epochs 0: as many as a set of its size wants, 30 to 100 (basin_graphs_epochs). */
typedef struct basin_graphs_settings {
    BASIN_GRAPHS_INPUT_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_GRAPHS_MODEL_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_GRAPHS_TRAINING_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_LOOSE_SETTINGS(BASIN_SETTING_FIELD)
} basin_graphs_settings;

extern const basin_task_settings basin_graphs_task;
/* The epochs of training on the given graphs: those of the settings, or by the size of the set. */
int64_t basin_graphs_epochs(const basin_graphs_settings *settings, const basin_graphset *set,
                            const int64_t *graph, int64_t count);
basin_status basin_graphs_settings_check(const basin_graphs_settings *settings, basin_error *error);

/* ---- a model in memory ---- */

typedef struct basin_graphs_session {
    basin_graphs_settings settings;
    basin_graphs_target task;
    int64_t outputs; /* C */
    int64_t classes, *class_value;
    double *target_mean, *target_scale; /* [C] of values: outputs * scale + mean */
    basin_graphset_encoding encoding;
    basin_backend *backend; /* the caller's */
    basin_store *store;
} basin_graphs_session;

/* Whether a set has something to learn: values, or two classes at least. */
basin_status basin_graphs_check_labels(const basin_graphset *set, const char *path,
                                       basin_error *error);
/* A new model for a set, its encoding learnt from the given graphs. */
basin_status basin_graphs_session_new(basin_graphs_session *session,
                                      const basin_graphs_settings *settings,
                                      const basin_graphset *set, const int64_t *graph,
                                      int64_t count, basin_backend *backend, basin_error *error);
basin_status basin_graphs_session_open(basin_graphs_session *session, const char *path,
                                       basin_backend *backend, basin_error *error);
/* The same without weights, from a checkpoint or a model file. */
basin_status basin_graphs_session_read(basin_graphs_session *session, const basin_bundle *bundle,
                                       basin_backend *backend, basin_error *error);
void basin_graphs_session_close(basin_graphs_session *session);
basin_status basin_graphs_session_write(const char *path, basin_graphs_session *session,
                                        basin_error *error);
int64_t basin_graphs_session_parameters(const basin_graphs_session *session);
/* The metadata of files: kind, configuration, encoding. Free both texts with cJSON_free. */
basin_status basin_graphs_session_meta(basin_meta meta[3], const basin_graphs_session *session,
                                       basin_error *error);
void basin_graphs_session_meta_free(basin_meta meta[3]);
/* Positions as the settings want them, cached in `cache` (NULL: not). */
basin_status basin_graphs_session_positions(basin_positions *positions,
                                            const basin_graphs_settings *settings,
                                            const basin_graphset *set, const char *cache,
                                            basin_error *error);
/* Of graphs first .. first + count - 1 alone, where only these are used. */
basin_status basin_graphs_session_positions_part(basin_positions *positions,
                                                 const basin_graphs_settings *settings,
                                                 const basin_graphset *set, int64_t first,
                                                 int64_t count, const char *cache,
                                                 basin_error *error);

/* ---- plans ---- */

/* A model for so many graphs, tokens and pairs; batches that need less are padded up to it. */
typedef struct basin_graphs_capacity {
    int64_t graphs, tokens, pairs;
} basin_graphs_capacity;

typedef struct basin_graphs_plan {
    basin_graphs_capacity room;
    int64_t used; /* when it was used last */
    basin_graph *graph;
    basin_params params;
    basin_graphs model;
    basin_graphs_batch batch;
    basin_expr seed, target, weight, pair_weight, output, loss;
    basin_plan *plan;      /* for scores */
    basin_trainer trainer; /* for training */
} basin_graphs_plan;

/* Plans beyond the second are kept as long as all fit: a device that must make them again and again
 * does little else. */
enum { BASIN_GRAPHS_PLANS = 8 };
#define BASIN_GRAPHS_INPUT_BYTES ((size_t)1 << 28)  /* of inputs, where results share one place */
#define BASIN_GRAPHS_DEVICE_BYTES ((size_t)1 << 32) /* of inputs and results, where they do not */

/* The few plans that batches of differing sizes run on. Which room a batch gets is a function of
 * the batch and of the sizes of graphs it was opened for, so that runs repeat bit for bit. */
typedef struct basin_graphs_plans {
    basin_graphs_session *session;
    bool training;
    basin_schedule schedule;
    double tokens_mean, tokens_step, pairs_mean, pairs_step;
    int64_t batch; /* graphs at most */
    int64_t clock, step;
    basin_graphs_plan *plan[BASIN_GRAPHS_PLANS];
    basin_graphs_plan *running; /* whose loss is still to be read */
    int64_t running_graphs;
    basin_graphset_batch data;
    float *target, *weight, *pair_weight;
    int32_t *node_class;
    void *scratch; /* for padding */
    size_t scratch_bytes;
} basin_graphs_plans;

/* For batches of the given graphs; with a schedule for training, without (NULL) for scores. */
void basin_graphs_plans_begin(basin_graphs_plans *plans, basin_graphs_session *session,
                              const basin_graphset *set, const int64_t *graph, int64_t count,
                              const basin_schedule *schedule);
void basin_graphs_plans_free(basin_graphs_plans *plans);
/* Outputs [count, C] of graphs, or [nodes of them, C] with classes of nodes; values in the units of
 * the targets. count may exceed the batch. */
basin_status basin_graphs_plans_score(basin_graphs_plans *plans, float *output,
                                      const basin_graphset *set, const basin_positions *positions,
                                      const int64_t *graph, int64_t count, basin_error *error);
/* Begins a step of training on count <= batch graphs: while a GPU is busy with it, the next batch
 * is made. To `loss` is added that of the step before, times its graphs, where it was not waited
 * for yet; basin_graphs_plans_settle waits for the last. */
basin_status basin_graphs_plans_step(basin_graphs_plans *plans, double *loss,
                                     const basin_graphset *set, const basin_positions *positions,
                                     const int64_t *graph, int64_t count, uint64_t epoch,
                                     basin_error *error);
basin_status basin_graphs_plans_settle(basin_graphs_plans *plans, double *loss, basin_error *error);
/* Bytes of arenas and inputs of the largest plan there is. */
size_t basin_graphs_plans_bytes(const basin_graphs_plans *plans);

/* ---- scores ---- */

typedef struct basin_graphs_score {
    int64_t items;    /* graphs, or nodes */
    double accuracy;  /* percent of items */
    double balanced;  /* percent, mean over the classes */
    double loss;      /* cross entropy, or mean absolute error */
    double deviation; /* root mean square error of values */
} basin_graphs_score;

basin_status basin_graphs_evaluate(basin_graphs_score *score, basin_graphs_plans *plans,
                                   const basin_graphset *set, const basin_positions *positions,
                                   const int64_t *graph, int64_t count, basin_error *error);
/* The rows of outputs: graphs, or their nodes. */
int64_t basin_graphs_rows(const basin_graphset *set, const int64_t *graph, int64_t count);
/* From outputs that are there already. */
void basin_graphs_measure(basin_graphs_score *score, const float *output, const basin_graphset *set,
                          const int64_t *graph, int64_t count, int64_t outputs);
/* The number that chooses epochs, more is better: accuracy, class-averaged accuracy of nodes, or
 * minus the mean absolute error. */
double basin_graphs_merit(const basin_graphs_score *score, basin_graphs_target task);

/* ---- training ---- */

typedef struct basin_graphs_run {
    const basin_graphset *set;
    const basin_positions *positions;
    const int64_t *train, *validation;
    int64_t trains, validations; /* without validation the last epoch is kept */
    const char *checkpoint, *log;
    double checkpoint_seconds; /* between checkpoints; also at the end and when stopped */
    int64_t patience;          /* epochs without a better validation score; 0: all epochs */
    bool resume;
    const basin_watch *watch;
    const char *protocol; /* a word for the log */
    /* Called after each epoch; NULL: nobody listens. */
    void (*epoch)(void *context, int64_t epoch, double loss, const basin_graphs_score *validation);
    void *context;
} basin_graphs_run;

typedef struct basin_graphs_outcome {
    int64_t epochs, best_epoch; /* run; whose weights were kept (counted from 1) */
    double loss;                /* mean training loss of the last epoch */
    basin_graphs_score validation;
    double seconds, epoch_seconds; /* of training; of the median epoch, scores left out */
    size_t bytes;                  /* of the plan */
    bool stopped;
} basin_graphs_outcome;

/* Trains; afterwards the session has the weights of the best epoch by validation. */
basin_status basin_graphs_train(basin_graphs_outcome *outcome, basin_graphs_session *session,
                                const basin_graphs_run *run, basin_error *error);

/* ---- cross-validation ---- */

typedef struct basin_graphs_cv_spec {
    const basin_graphs_settings *settings;
    basin_graphset *set; /* walks along its edges are added, where the settings want them */
    const basin_folds *folds;
    int64_t only;    /* the one fold to run, from 0; -1: all */
    int64_t members; /* models a fold, of different seeds, whose outputs are averaged */
    int64_t jobs;    /* folds at once, each in a process of its own; 1: one after the other, here */
    int threads;     /* of each process; 0: cores / jobs */
    const char *backend, *cache;
    basin_products products;
    const basin_watch *watch;
} basin_graphs_cv_spec;

typedef struct basin_graphs_cv_fold {
    bool done;
    int64_t trains, validations, tests;
    int64_t epochs, best_epoch; /* of the first member */
    basin_graphs_score validation, test;
    double seconds, epoch_seconds;
    int64_t bytes;
} basin_graphs_cv_fold;

/* How many of `folds` run at once: as many as asked for, or, of 0, one a core; with cuda 10 at
 * most, which share a device and its memory. */
int64_t basin_graphs_cv_jobs(int64_t asked, int64_t folds, int64_t cores, const char *backend);
/* A new model for each fold: trained on its training graphs, its epoch chosen by its validation
 * graphs alone, tested once. `result` has a place for every fold. */
basin_status basin_graphs_cv(basin_graphs_cv_fold *result, const basin_graphs_cv_spec *spec,
                             basin_error *error);

/* 0 .. count - 1, from `first` on; free it. */
int64_t *basin_graphs_range(int64_t first, int64_t count);

#endif
