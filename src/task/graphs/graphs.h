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

typedef struct basin_graph_settings {
    /* what nodes and edges look like */
    int64_t vectors, walks; /* positions: Laplacian eigenvectors, random walks */
    int64_t edge_walks;     /* features of edges: walks along them */
    bool cls_laplacian;     /* of the graph with its CLS node, as published */
    bool raw;               /* labels as plain numbers, as published for ZINC */
    bool standardise;       /* attributes and targets to mean 0 and deviation 1 */
    bool edge_sums;
    int64_t degrees;
    /* the model */
    int64_t dim, heads, head_dim, memories; /* D, H, Y, M */
    int64_t couplings;                      /* heads of couplings; 0: none */
    int64_t blocks, steps;                  /* S, T */
    double alpha, noise;
    bool attention, hopfield, mix, learn_beta;
    const char *adjacency; /* conv, bilinear, edges, none */
    const char *readout;   /* cls, mean, sum, sized and sums of these; auto: cls+sum for values,
                              cls+mean+sized for classes */
    int64_t hidden;
    bool norm_head;
    double drop;
    bool reconstruct;
    double query_deviation, memory_deviation; /* of first weights; 0: 1 / sqrt(D) */
    int64_t outputs;                          /* at least so many; the published TU heads have 10 */
    /* training */
    int64_t epochs; /* 0: as many as a set of its size wants, 30 to 100 (basin_graph_epochs) */
    int64_t warmup, batch;
    double rate, rate_first, rate_last, decay, beta2, clip, smoothing;
    bool centralise, weight_classes, recompute;
    int64_t seed;
} basin_graph_settings;

/* What is trained by default, chosen by inner validation: docs/graphs.md. */
#define BASIN_GRAPH_HONEST                                                                         \
    {                                                                                              \
        .walks = 16, .edge_walks = 6, .standardise = true, .edge_sums = true, .degrees = 8,        \
        .dim = 64, .heads = 4, .head_dim = 16, .memories = 128, .blocks = 4, .steps = 1,           \
        .alpha = 0.5, .noise = 0.02, .attention = true, .hopfield = true, .learn_beta = true,      \
        .adjacency = "bilinear", .readout = "auto", .hidden = 64, .norm_head = true, .drop = 0.2,  \
        .epochs = 0, .warmup = 5, .batch = 32, .rate = 1e-3, .rate_last = 1e-5, .decay = 0.05,     \
        .beta2 = 0.99, .clip = 1, .smoothing = 0.05, .weight_classes = true                        \
    }

extern const basin_setting basin_graph_settings_table[];
#define BASIN_GRAPH_PRESETS                                                                        \
    "honest|tu|zinc|pattern|cluster|mnist|cifar10|zinc-honest|sbm|communities|superpixels"
bool basin_graph_preset(basin_graph_settings *settings, const char *name);
/* The epochs of training on the given graphs: those of the settings, or by the size of the set. */
int64_t basin_graph_epochs(const basin_graph_settings *settings, const basin_graphset *set,
                           const int64_t *graph, int64_t count);
basin_status basin_graph_settings_check(const basin_graph_settings *settings, basin_error *error);

/* ---- a model in memory ---- */

typedef struct basin_graph_session {
    basin_graph_settings settings;
    basin_graph_task task;
    int64_t outputs; /* C */
    int64_t classes, *class_value;
    double *target_mean, *target_scale; /* [C] of values: outputs * scale + mean */
    basin_graph_encoding encoding;
    basin_backend *backend; /* the caller's */
    basin_store *store;
} basin_graph_session;

/* Whether a set has something to learn: values, or two classes at least. */
basin_status basin_graph_check_labels(const basin_graphset *set, const char *path,
                                      basin_error *error);
/* A new model for a set, its encoding learnt from the given graphs. */
basin_status basin_graph_session_new(basin_graph_session *session,
                                     const basin_graph_settings *settings,
                                     const basin_graphset *set, const int64_t *graph, int64_t count,
                                     basin_backend *backend, basin_error *error);
basin_status basin_graph_session_open(basin_graph_session *session, const char *path,
                                      basin_backend *backend, basin_error *error);
/* The same without weights, from a checkpoint or a model file. */
basin_status basin_graph_session_read(basin_graph_session *session, const basin_bundle *bundle,
                                      basin_backend *backend, basin_error *error);
void basin_graph_session_close(basin_graph_session *session);
basin_status basin_graph_session_write(const char *path, basin_graph_session *session,
                                       basin_error *error);
int64_t basin_graph_session_parameters(const basin_graph_session *session);
/* The metadata of files: kind, configuration, encoding. Free both texts with cJSON_free. */
basin_status basin_graph_session_meta(basin_meta meta[3], const basin_graph_session *session,
                                      basin_error *error);
void basin_graph_session_meta_free(basin_meta meta[3]);
/* Positions as the settings want them, cached in `cache` (NULL: not). */
basin_status basin_graph_session_positions(basin_positions *positions,
                                           const basin_graph_settings *settings,
                                           const basin_graphset *set, const char *cache,
                                           basin_error *error);
/* Of graphs first .. first + count - 1 alone, where only these are used. */
basin_status basin_graph_session_positions_part(basin_positions *positions,
                                                const basin_graph_settings *settings,
                                                const basin_graphset *set, int64_t first,
                                                int64_t count, const char *cache,
                                                basin_error *error);

/* ---- plans ---- */

/* A model for so many graphs, tokens and pairs; batches that need less are padded up to it. */
typedef struct basin_graph_room {
    int64_t graphs, tokens, pairs;
} basin_graph_room;

typedef struct basin_graph_plan {
    basin_graph_room room;
    int64_t used; /* when it was used last */
    basin_graph *graph;
    basin_params params;
    basin_graphs model;
    basin_graphs_batch batch;
    basin_expr seed, target, weight, pair_weight, output, loss;
    basin_plan *plan;      /* for scores */
    basin_trainer trainer; /* for training */
} basin_graph_plan;

/* Plans beyond the second are kept as long as all fit: a device that must make them again and again
 * does little else. */
enum { BASIN_GRAPH_PLANS = 8 };
#define BASIN_GRAPH_INPUT_BYTES ((size_t)1 << 28)  /* of inputs, where results share one place */
#define BASIN_GRAPH_DEVICE_BYTES ((size_t)1 << 32) /* of inputs and results, where they do not */

/* The few plans that batches of differing sizes run on. Which room a batch gets is a function of
 * the batch and of the sizes of graphs it was opened for, so that runs repeat bit for bit. */
typedef struct basin_graph_plans {
    basin_graph_session *session;
    bool training;
    basin_schedule schedule;
    double tokens_mean, tokens_step, pairs_mean, pairs_step;
    int64_t batch; /* graphs at most */
    int64_t clock, step;
    basin_graph_plan *plan[BASIN_GRAPH_PLANS];
    basin_graph_plan *running; /* whose loss is still to be read */
    int64_t running_graphs;
    basin_graph_batch data;
    float *target, *weight, *pair_weight;
    int32_t *node_class;
    void *scratch; /* for padding */
    size_t scratch_bytes;
} basin_graph_plans;

/* For batches of the given graphs; with a schedule for training, without (NULL) for scores. */
void basin_graph_plans_begin(basin_graph_plans *plans, basin_graph_session *session,
                             const basin_graphset *set, const int64_t *graph, int64_t count,
                             const basin_schedule *schedule);
void basin_graph_plans_free(basin_graph_plans *plans);
/* Outputs [count, C] of graphs, or [nodes of them, C] with classes of nodes; values in the units of
 * the targets. count may exceed the batch. */
basin_status basin_graph_plans_score(basin_graph_plans *plans, float *output,
                                     const basin_graphset *set, const basin_positions *positions,
                                     const int64_t *graph, int64_t count, basin_error *error);
/* Begins a step of training on count <= batch graphs: while a GPU is busy with it, the next batch
 * is made. To `loss` is added that of the step before, times its graphs, where it was not waited
 * for yet; basin_graph_plans_settle waits for the last. */
basin_status basin_graph_plans_step(basin_graph_plans *plans, double *loss,
                                    const basin_graphset *set, const basin_positions *positions,
                                    const int64_t *graph, int64_t count, uint64_t epoch,
                                    basin_error *error);
basin_status basin_graph_plans_settle(basin_graph_plans *plans, double *loss, basin_error *error);
/* Bytes of arenas and inputs of the largest plan there is. */
size_t basin_graph_plans_bytes(const basin_graph_plans *plans);

/* ---- scores ---- */

typedef struct basin_graph_score {
    int64_t items;    /* graphs, or nodes */
    double accuracy;  /* percent of items */
    double balanced;  /* percent, mean over the classes */
    double loss;      /* cross entropy, or mean absolute error */
    double deviation; /* root mean square error of values */
} basin_graph_score;

basin_status basin_graph_evaluate(basin_graph_score *score, basin_graph_plans *plans,
                                  const basin_graphset *set, const basin_positions *positions,
                                  const int64_t *graph, int64_t count, basin_error *error);
/* The rows of outputs: graphs, or their nodes. */
int64_t basin_graph_rows(const basin_graphset *set, const int64_t *graph, int64_t count);
/* From outputs that are there already. */
void basin_graph_measure(basin_graph_score *score, const float *output, const basin_graphset *set,
                         const int64_t *graph, int64_t count, int64_t outputs);
/* The number that chooses epochs, more is better: accuracy, class-averaged accuracy of nodes, or
 * minus the mean absolute error. */
double basin_graph_merit(const basin_graph_score *score, basin_graph_task task);

/* ---- training ---- */

typedef struct basin_graph_run {
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
    void (*epoch)(void *context, int64_t epoch, double loss, const basin_graph_score *validation);
    void *context;
} basin_graph_run;

typedef struct basin_graph_outcome {
    int64_t epochs, best_epoch; /* run; whose weights were kept (counted from 1) */
    double loss;                /* mean training loss of the last epoch */
    basin_graph_score validation;
    double seconds, epoch_seconds; /* of training; of the median epoch, scores left out */
    size_t bytes;                  /* of the plan */
    bool stopped;
} basin_graph_outcome;

/* Trains; afterwards the session has the weights of the best epoch by validation. */
basin_status basin_graph_train(basin_graph_outcome *outcome, basin_graph_session *session,
                               const basin_graph_run *run, basin_error *error);

/* ---- cross-validation ---- */

typedef struct basin_graph_cv_spec {
    const basin_graph_settings *settings;
    basin_graphset *set; /* walks along its edges are added, where the settings want them */
    const basin_folds *folds;
    int64_t only;    /* the one fold to run, from 0; -1: all */
    int64_t members; /* models a fold, of different seeds, whose outputs are averaged */
    int64_t jobs;    /* folds at once, each in a process of its own; 1: one after the other, here */
    int threads;     /* of each process; 0: cores / jobs */
    const char *backend, *cache;
    basin_products products;
    const basin_watch *watch;
} basin_graph_cv_spec;

typedef struct basin_graph_cv_fold {
    bool done;
    int64_t trains, validations, tests;
    int64_t epochs, best_epoch; /* of the first member */
    basin_graph_score validation, test;
    double seconds, epoch_seconds;
    int64_t bytes;
} basin_graph_cv_fold;

/* How many of `folds` run at once: as many as asked for, or, of 0, one a core; with cuda 10 at
 * most, which share a device and its memory. */
int64_t basin_graph_cv_jobs(int64_t asked, int64_t folds, int64_t cores, const char *backend);
/* A new model for each fold: trained on its training graphs, its epoch chosen by its validation
 * graphs alone, tested once. `result` has a place for every fold. */
basin_status basin_graph_cv(basin_graph_cv_fold *result, const basin_graph_cv_spec *spec,
                            basin_error *error);

/* 0 .. count - 1, from `first` on; free it. */
int64_t *basin_graph_range(int64_t first, int64_t count);

#endif
