/* The graph task inside the library: its settings, a model in memory, a set as a model sees it,
 * plans for batches of any size, one run, measures. See include/basin/tasks/graphs.h. */
#ifndef BASIN_TASK_GRAPHS_GRAPHS_H
#define BASIN_TASK_GRAPHS_GRAPHS_H

#include "basin/tasks/graphs.h"
#include "basin/train.h"
#include "tasks/common/layers.h"
#include "tasks/common/run/run.h"
#include "tasks/common/shards/shards.h"
#include "tasks/graphs/set/graphset.h"

/* ---- settings ---- */

#define BASIN_GRAPHS_INPUT_SETTINGS(X)                                                             \
    X(INTEGER, eigenvectors, "K", 0, 1024, "Positions: K Laplacian eigenvectors.")                 \
    X(INTEGER, walks, "K", 0, 1024, "Positions: return probabilities of walks of 1 to K steps.")   \
    X(INTEGER, edge_walks, "K", 0, 1024,                                                           \
      "Features of edges: walks of 2 to K + 1 steps from end to end.", .absent = "0")              \
    X(SWITCH, cls_laplacian, "Eigenvectors of the graph with its CLS node, as published.",         \
      .needs = "eigenvectors!=0")                                                                  \
    X(SWITCH, cls_self, "Whether the CLS node attends to itself; in the paper no token does.",     \
      .absent = "on", .needs = "attention=on")                                                     \
    X(INTEGER, max_nodes, "N", 0, 1 << 20,                                                         \
      "Use only the first N nodes of a graph, as the paper cuts at 500; 0: all.", .absent = "0")   \
    X(SWITCH, raw, "Labels as plain numbers, not one-hot.")                                        \
    X(SWITCH, stereo, "Tables of molecules: labels of stereochemistry.", .absent = "off")          \
    X(SWITCH, as_is,                                                                               \
      "Tables of molecules: leave salts, charges and isotopes as they are; off: the largest "      \
      "part, "                                                                                     \
      "neutral.",                                                                                  \
      .absent = "on")                                                                              \
    X(SWITCH, standardise, "Attributes and targets to mean 0 and deviation 1.")                    \
    X(SWITCH, edge_sums, "Sums of edge features at their nodes.")                                  \
    X(INTEGER, degrees, "N", -1, 4096,                                                             \
      "One-hot degrees below N, or 32 where nodes have nothing else; -1: only there.")
#define BASIN_GRAPHS_MODEL_SETTINGS(X)                                                             \
    BASIN_BLOCK_SETTINGS(X)                                                                        \
    X(INTEGER, couplings, "N", 0, 4096,                                                            \
      "Heads of couplings between the nodes of an edge; 0: none.", .absent = "0")                  \
    X(INTEGER, neighbour_heads, "N", 0, 4096,                                                      \
      "Heads of sums over a node's neighbours that memories see beside it; 0: none.",              \
      .absent = "0", .needs = "hopfield=on")                                                       \
    X(INTEGER, pair_hidden, "N", 0, 65536,                                                         \
      "Hidden units that see the features of an edge, beside these; 0: none.", .absent = "0")      \
    X(INTEGER, blocks, "S", 1, BASIN_MAX_BLOCKS, "Blocks, each with its own weights.")             \
    X(REAL, noise, "X", 0, 1e3, "Noise of the descent in training; with implicit none.",           \
      .needs = "implicit=off")                                                                     \
    X(CHOICE, norm, BASIN_CHOICES("layer", "graph"),                                               \
      "The norm of tokens in the energy: of each token, or of each feature over the nodes of a "   \
      "graph.",                                                                                    \
      .absent = "layer")                                                                           \
    X(SWITCH, mix, "Mixing of heads, as in the published code.", .needs = "attention=on")          \
    X(CHOICE, adjacency, BASIN_CHOICES("auto", "conv", "bilinear", "edges", "none", "bias"),       \
      "The factor of an edge's scores: the paper's convolution, which depends on the order of "    \
      "nodes; a bilinear form; only edge features; none; or none and edge features as an "         \
      "addend in each block. auto: bilinear; for molecules bias, with 4 couplings and 16 hidden "  \
      "units of pairs where there are none.",                                                      \
      .needs = "attention=on,reconstruct=on")                                                      \
    X(CHOICE, readout,                                                                             \
      BASIN_CHOICES("auto", "cls", "mean", "sum", "cls+mean", "cls+sum", "cls+sized",              \
                    "cls+mean+sized"),                                                             \
      "What the head reads. auto: cls+sum for values, cls+mean+sized for classes.")                \
    X(INTEGER, hidden, "N", 0, 65536, "Hidden units of the head; 0: it is linear.")                \
    X(SWITCH, norm_head, "A layer norm before the head.")                                          \
    X(REAL, dropout, "X", -1, 0.99, "Dropout in the head; -1: 0.2 for classes, 0 for values.")     \
    X(SWITCH, reconstruct, "Also reconstruct the edge features.")                                  \
    X(SWITCH, all_pairs, "Over all pairs, with 0 for those without an edge, as published.",        \
      .absent = "off", .needs = "reconstruct=on")                                                  \
    X(REAL, query_deviation, "X", 0, 100, "Deviation of first attention weights; 0: 1 / sqrt(D).", \
      .needs = "attention=on")                                                                     \
    X(REAL, memory_deviation, "X", 0, 100, "Deviation of first memories; 0: 1 / sqrt(D).",         \
      .needs = "hopfield=on")                                                                      \
    X(INTEGER, outputs, "C", 0, 1 << 20,                                                           \
      "At least C outputs; the published TU heads have "                                           \
      "10.")
#define BASIN_GRAPHS_TRAINING_SETTINGS(X)                                                          \
    BASIN_RUN_SETTINGS(X)                                                                          \
    BASIN_SHARD_SETTINGS(X)                                                                        \
    X(INTEGER, members, "N", 0, BASIN_MAX_MEMBERS,                                                 \
      "Models of other seeds and validation parts, whose outputs are averaged; 0: 5 for "          \
      "classes of molecules, 3 for their values, else 1.",                                         \
      .absent = "1")                                                                               \
    X(SWITCH, near,                                                                                \
      "For molecules, and for classes of graphs with node labels: remember "                       \
      "training graphs beside the network.",                                                       \
      .absent = "off")                                                                             \
    X(REAL, average, "X", 0, 0.999999,                                                             \
      "Score and keep moving averages of the weights over steps, with decay X; 0: none.",          \
      .absent = "0")                                                                               \
    X(REAL, edge_dropout, "X", 0, 0.99,                                                            \
      "Pairs of nodes left out of each step of training, others in each epoch.", .absent = "0",    \
      .needs = "attention=on,couplings!=0,neighbour_heads!=0 all_pairs=off")                       \
    X(REAL, smoothing, "X", 0, 0.99, "Label smoothing.")                                           \
    X(SWITCH, centralise, "Gradient centralisation.")                                              \
    X(SWITCH, weight_classes, "Classes of nodes: rare ones count more.")

/* epochs 0: 30 to 100 by the size of the set, of molecules 30 for classes, yes or no
 * (basin_graphs_epochs). */
typedef struct basin_graphs_settings {
    BASIN_GRAPHS_INPUT_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_GRAPHS_MODEL_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_GRAPHS_TRAINING_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_LOOSE_SETTINGS(BASIN_SETTING_FIELD)
} basin_graphs_settings;

extern const basin_task_settings basin_graphs_task;

/* ---- a model in memory ---- */

/* Fingerprints of graphs, ascending. */
typedef struct basin_graphs_seen_list {
    int64_t *print; /* [count] */
    int64_t count;
} basin_graphs_seen_list;

/* What near.c remembers of training molecules. */
typedef struct basin_graphs_holder {
    int32_t graph, times;
} basin_graphs_holder;

typedef struct basin_graphs_near {
    int64_t count;
    int64_t *start;   /* [count + 1] */
    int32_t *feature; /* [start[count]] neighbourhoods of atoms, ascending in each molecule */
    float *weight;    /* [count + 1, C]; the last row is added always */
    char *name;       /* their ids, or "line 7", each ends with a zero byte; NULL: an older file */
    int64_t names;    /* bytes */
    double width;     /* of probabilities the kernel is exp((similarity - 1) / width); 0: it is the
                         similarity, as in older files */
    double share;     /* in predictions; the network has the rest. Before a file's is read: the one
                         that it states, -1 where it does not */
    int64_t kinds;    /* of neighbourhoods: those of basin_graphs_near_index, not in files */
    int32_t *kind;    /* [kinds] ascending */
    int64_t *first;   /* [kinds + 1] */
    basin_graphs_holder *holder; /* [first[kinds]] the molecules that have it, and how many times */
} basin_graphs_near;

/* What calibrate.c fits to validation graphs. */
typedef struct basin_graphs_calibration {
    double temperature; /* that divides the members' logits; 0 is 1 */
    int64_t lists;      /* of how wrong predictions were: of values one per column, of classes one
                           per class, of yes or no two per column; 0: not known */
    int64_t *start;     /* [lists + 1] */
    float *score;       /* [start[lists]] */
    float *near;        /* [start[lists]] how near each graph was to the nearest training graph,
                           ascending in each list; NULL: not known, scores ascend */
} basin_graphs_calibration;

struct basin_graphs_model {
    basin_graphs_settings settings;
    basin_settings view;     /* the same, for callers */
    basin_graphs_info info;  /* set by basin_graphs_model_describe */
    char **column;           /* [columns] names; or NULL */
    const char **remembered; /* [near.count] names; or NULL */
    basin_graphs_target target;
    bool limited;    /* in training: some values are censored */
    bool binary;     /* values are yes or no: outputs are the logarithms of their odds */
    int64_t outputs; /* C; may be more than there are classes */
    int64_t classes, *class_value;
    double *target_mean, *target_scale; /* [C] of values: outputs * scale + mean */
    char *names; /* of molecules: columns of the table that it was trained on; else NULL */
    basin_graphset_encoding encoding;
    basin_graphs_seen_list seen[2];       /* in training, in validation; empty: not known */
    basin_graphs_near near;               /* zeros: nothing is remembered */
    basin_graphs_calibration calibration; /* zeros: nothing is known */
    basin_backend *backend;               /* the caller's */
    basin_store *store;
    basin_graph *graph; /* that the parameters are declared on */
    basin_params params;
    int64_t members;     /* their weights are states "member0.NAME", ..; 1: only states NAME */
    bool shares_results; /* plans compute in one arena */
    struct basin_graphs_plans *one; /* kept for calls with one graph; NULL: there was none yet */
};

/* Columns of predictions. */
static inline int64_t basin_graphs_columns(const basin_graphs_model *model) {
    return model->target == BASIN_GRAPHS_VALUES ? model->outputs : model->classes;
}
/* Fills in `info`, when a model is complete. */
basin_status basin_graphs_model_describe(basin_graphs_model *model, basin_error *error);
/* A model without weights for a set, its encoding learnt from the given graphs. */
basin_status basin_graphs_model_new(basin_graphs_model **model,
                                    const basin_graphs_settings *settings,
                                    const basin_graphset *set, const int64_t *graph, int64_t count,
                                    basin_backend *backend, basin_error *error);
/* A model without weights as a file describes it, with `settings` where these are not NULL. */
basin_status basin_graphs_model_read(basin_graphs_model **model, const basin_bundle *bundle,
                                     const basin_graphs_settings *settings, basin_backend *backend,
                                     basin_error *error);
/* The model's number of a class; -1: it has none. */
int32_t basin_graphs_class_number(const basin_graphs_model *model, int64_t value);
/* Takes the classes of a set instead of the model's, where these lack one of them. */
basin_status basin_graphs_model_take_classes(basin_graphs_model *model, const basin_graphset *set,
                                             basin_error *error);
/* The Energy Transformer of settings and encoding; without a seed it has no noise. */
basin_graph_net_config basin_graphs_model_config(const basin_graphs_model *model, basin_expr seed);

/* The weights of a member become those that plans compute with. */
basin_status basin_graphs_take_member(basin_graphs_model *model, int64_t member,
                                      basin_error *error);
/* How many members training gives: the settings', or what a set needs. */
int64_t basin_graphs_members(const basin_graphs_settings *settings, const basin_graphset *set);
/* The metadata of files: kind, settings, encoding. */
basin_status basin_graphs_describe(basin_bundle *bundle, const basin_graphs_model *model,
                                   basin_error *error);

/* Which graphs it has seen: adds those of a fold, or of a file. */
basin_status basin_graphs_seen_add(basin_graphs_model *model, const basin_graphset *set,
                                   const basin_fold *fold, basin_error *error);
basin_status basin_graphs_seen_read(basin_graphs_model *model, const basin_bundle *bundle,
                                    basin_error *error);
/* A digest of the graphs that a run trains and validates on, and of their targets; not 0. */
basin_status basin_graphs_digest(uint64_t *digest, const basin_graphset *set,
                                 const basin_fold *fold, basin_error *error);

/* ---- a set as a model sees it ---- */

/* The caller's set with what a model adds: walks along edges, positions, its own numbers of the
 * classes. The caller's arrays stay as they are. */
typedef struct basin_graphs_input {
    basin_graphset set;    /* borrows the caller's arrays but for these two */
    float *edge_attribute; /* own; NULL: the caller's */
    int32_t *class_of;     /* own; NULL: the caller's */
    basin_positions positions;
} basin_graphs_input;

/* Reports to the watcher what part of a set training will not use, or use in one direction only,
 * and which settings that were set by their names have no effect on it. */
void basin_graphs_note_unused(const basin_settings *settings, const basin_graphset *set,
                              const basin_watch *watch);
/* Reports how many graphs are copies, `copy` as of basin_graphset_copies, and how many of them lie
 * on both sides of folds. */
basin_status basin_graphs_note_copies(const basin_graphset *set, const int64_t *copy,
                                      const basin_fold *fold, int64_t folds,
                                      const basin_watch *watch, basin_error *error);
/* An error where the set at `path` has neither values nor two classes. */
basin_status basin_graphs_check_labels(const basin_graphset *set, const char *path,
                                       basin_error *error);
/* What messages call a set. */
static inline const char *basin_graphs_path(const char *path, const basin_graphset *set) {
    return path ? path : set && *set->name ? set->name : "the set";
}
/* With walks along the edges of graphs first .. first + count - 1. */
basin_status basin_graphs_input_begin(basin_graphs_input *input,
                                      const basin_graphs_settings *settings,
                                      const basin_graphset *set, int64_t first, int64_t count,
                                      basin_error *error);
/* Checks the set's columns against the model's and numbers its classes as the model does. Without
 * `labels` those of the set are not looked at. */
basin_status basin_graphs_input_match(basin_graphs_input *input, const basin_graphs_model *model,
                                      const char *path, bool labels, basin_error *error);
/* The positions of the same graphs as above. */
basin_status basin_graphs_input_place(basin_graphs_input *input,
                                      const basin_graphs_settings *settings, int64_t first,
                                      int64_t count, basin_error *error);
void basin_graphs_input_free(basin_graphs_input *input);

/* ---- near.c ---- */

/* What is true of column c, 0 or 1 of classes; NaN: it is not known. */
double basin_graphs_truth(const basin_graphset *set, int64_t graph, int64_t c);
/* Whether a set gets one: molecules, and classes of graphs with labels of nodes. */
bool basin_graphs_near_serves(const basin_graphs_settings *settings, const basin_graphset *set);
/* The default of its share in predictions. */
double basin_graphs_near_usual(const basin_graphs_model *model);
/* Fits it to the graphs of the first fold, including those for validation. `held` (may be NULL)
 * receives, for the validation graphs of each fold in turn, [graphs, C], the predictions of a
 * memory without those of their fold, and `nearest` (with it) [graphs] their similarity to the
 * nearest of that memory; NaN where the memory does not have the graph. */
basin_status basin_graphs_near_fit(basin_graphs_model *model, const basin_graphset *set,
                                   const basin_fold *fold, int64_t folds, float *held,
                                   float *nearest, basin_error *error);
/* Mixes it into outputs [count, C]. Unmixed outputs `own` [count, C], `nearest` [count], the
 * similarity to the nearest training molecule, and `at` [count], its place, may be NULL. */
basin_status basin_graphs_near_add(float *output, float *own, float *nearest, int64_t *at,
                                   const basin_graphs_model *model, const basin_graphset *set,
                                   const int64_t *graph, int64_t count, basin_error *error);
/* Lists which molecules have each neighbourhood, from start and feature. */
basin_status basin_graphs_near_index(basin_graphs_near *near, basin_error *error);
void basin_graphs_near_free(basin_graphs_near *near);

/* ---- calibrate.c ---- */

/* Chooses the temperature and the memory's share by validation graphs, and keeps how wrong
 * predictions of these are. `given` [members, count, C] are probabilities or values of members that
 * were not trained on them, `held` the memory's and `nearest` how near they are to it (NULL: there
 * is none); the predictions go to `given` [count, C]. */
basin_status basin_graphs_calibration_fit(basin_graphs_model *model, const basin_graphset *set,
                                          const int64_t *graph, int64_t count, float *given,
                                          int64_t members, const float *held, const float *nearest,
                                          basin_error *error);
/* Whether fewer than 5 of these graphs are of another class than the commonest (of yes or no in
 * several columns: cells): too few to choose anything by. */
bool basin_graphs_one_sided(const basin_graphs_model *model, const basin_graphset *set,
                            const int64_t *graph, int64_t count);
/* Divides logits of `rows` probabilities, or of outputs of classes where `logits`. */
void basin_graphs_temper(float *output, int64_t rows, const basin_graphs_model *model, bool logits);
/* Intervals or sets of predictions [rows, columns]; see basin_graphs_predict_result. `nearest`
 * [rows] is the similarity to the nearest training graph; NULL: not known. */
basin_status basin_graphs_calibration_bound(float *low, float *high, const float *predicted,
                                            const float *nearest, int64_t rows,
                                            const basin_graphs_model *model, double coverage,
                                            basin_error *error);
/* Coverage and width, into measures. */
basin_status basin_graphs_calibration_measure(basin_graphs_measures *measures,
                                              const float *predicted, const float *nearest,
                                              const basin_graphset *set, const int64_t *graph,
                                              int64_t count, const basin_graphs_model *model,
                                              double coverage, basin_error *error);
void basin_graphs_calibration_free(basin_graphs_calibration *calibration);

/* 0 .. count - 1, from `first` on; free it. */
int64_t *basin_graphs_range(int64_t first, int64_t count);

/* ---- plans ---- */

/* The maximum numbers of graphs, tokens and pairs of a plan; smaller batches are padded. */
typedef struct basin_graphs_capacity {
    int64_t graphs, tokens, pairs;
    int64_t all; /* pairs, where the reconstruction has these */
} basin_graphs_capacity;

typedef struct basin_graphs_plan {
    basin_graphs_capacity capacity;
    int64_t used; /* when it was used last */
    basin_graph *graph;
    basin_params params;
    basin_graph_net net;
    basin_graph_net_batch batch, judged; /* whose edges are reconstructed */
    basin_expr seed, target, weight, pair_weight, output, loss;
    basin_expr
        side; /* of censored values: half their weight, negative where they are above; or NULL */
    basin_expr known; /* of values, [rows, C]: 0 where one is missing, so scaled that means stay */
    basin_plan *plan; /* for scores */
    basin_trainer *trainer; /* for training */
} basin_graphs_plan;

/* Plans beyond the second are kept as long as all fit. */
enum { BASIN_GRAPHS_PLANS = 16, BASIN_GRAPHS_NEEDS = 3 };
#define BASIN_GRAPHS_INPUT_BYTES ((size_t)1 << 28)  /* of inputs, where results share one place */
#define BASIN_GRAPHS_DEVICE_BYTES ((size_t)1 << 32) /* of inputs and results, where they do not */

/* Memory for padding, which grows; free its data. */
typedef struct basin_graphs_scratch {
    void *data;
    size_t bytes;
} basin_graphs_scratch;

/* The few plans that batches of differing sizes run on. The capacity a batch gets is a function of
 * the batch and of the sizes of graphs it was opened for, so that runs repeat bit for bit. */
typedef struct basin_graphs_plans {
    basin_graphs_model *model;
    const basin_run *run; /* training: whose memory plans must fit into; NULL: any */
    bool training;
    basin_schedule schedule;
    struct {
        double mean, step;
    } need[BASIN_GRAPHS_NEEDS]; /* of a batch: tokens, pairs, all pairs */
    int64_t batch;              /* graphs at most */
    int64_t clock;
    int64_t step; /* of training, taken so far */
    basin_graphs_plan *plan[BASIN_GRAPHS_PLANS];
    size_t bytes;               /* of the largest plan so far */
    basin_graphs_plan *running; /* whose loss is still to be read */
    int64_t running_graphs;
    basin_graphset_batch data, all; /* with all pairs */
    basin_graphs_scratch scratch;
} basin_graphs_plans;

/* For batches of the given graphs; with a schedule for training, without (NULL) for scores. */
void basin_graphs_plans_begin(basin_graphs_plans *plans, basin_graphs_model *model,
                              const basin_graphset *set, const int64_t *graph, int64_t count,
                              const basin_schedule *schedule);
void basin_graphs_plans_free(basin_graphs_plans *plans);
/* Outputs [count, C] of graphs, or [nodes of them, C] with classes of nodes; values in the units of
 * the targets. count may exceed the batch. */
basin_status basin_graphs_plans_score(basin_graphs_plans *plans, float *output,
                                      const basin_graphs_input *input, const int64_t *graph,
                                      int64_t count, basin_error *error);
/* Begins a step of training on count <= batch graphs: while a GPU is busy with it, the next batch
 * is made. To `sum` is added the loss of the step before, where it was not waited for yet;
 * basin_graphs_plans_settle waits for the last. */
basin_status basin_graphs_plans_step(basin_graphs_plans *plans, basin_run_sum *sum,
                                     const basin_graphs_input *input, const int64_t *graph,
                                     int64_t count, uint64_t epoch, basin_error *error);
basin_status basin_graphs_plans_settle(basin_graphs_plans *plans, basin_run_sum *sum,
                                       basin_error *error);
/* For a shard of a batch: writes the graphs to the plan that takes them, whose trainer has yet to
 * be run. `weight` is what they weigh in the loss. Without graphs: any plan, nothing written. */
basin_status basin_graphs_plans_load(basin_graphs_plan **plan, double *weight,
                                     basin_graphs_plans *plans, const basin_graphs_input *input,
                                     const int64_t *graph, int64_t count, uint64_t epoch,
                                     basin_error *error);

/* ---- measures ---- */

/* Rows of outputs: graphs, or their nodes. */
int64_t basin_graphs_count_rows(const basin_graphset *set, basin_graphs_target target,
                                const int64_t *graph, int64_t count);
/* Outputs of graphs, [rows, C]; free them. */
basin_status basin_graphs_outputs(float **output, basin_graphs_plans *plans,
                                  const basin_graphs_input *input, const int64_t *graph,
                                  int64_t count, basin_error *error);
/* Probabilities of the first `count` classes, outputs beyond them left out; the likeliest. */
int64_t basin_graphs_softmax(float *to, const float *output, int64_t count);
/* Probabilities of classes, or values, of rows [rows, C]. */
void basin_graphs_likelihoods(float *to, const float *output, int64_t rows,
                              const basin_graphs_model *model);
/* An error where nothing is known of any of the graphs, called `what` in its message. */
basin_status basin_graphs_check_known(const basin_graphset *set, const char *path,
                                      const int64_t *graph, int64_t count, const char *what,
                                      basin_error *error);
/* Measures outputs [rows, outputs]. With several values, which may be in very different units, each
 * counts in units of its `scale` [outputs]; NULL: 1. */
basin_status basin_graphs_measure(basin_graphs_measures *measures, const float *output,
                                  const basin_graphset *set, const int64_t *graph, int64_t count,
                                  int64_t outputs, const double *scale, basin_error *error);

/* ---- one run ---- */

/* What an adjacency that is left open means for a set. */
void basin_graphs_choose_adjacency(basin_graphs_settings *settings, const basin_graphset *set);
/* The epochs of training on the given graphs: those of the settings, or by the size of the set. */
int64_t basin_graphs_epochs(const basin_graphs_settings *settings, const basin_graphset *set,
                            const int64_t *graph, int64_t count);
/* Trains on fold->item[0], item[1] choose the epoch; without these the last is kept. */
basin_status basin_graphs_run(basin_training_result *outcome, basin_graphs_model *model,
                              basin_run *run, const basin_graphs_input *input,
                              const basin_fold *fold, basin_error *error);

/* How many of `models` train at once: `asked`, or with 0 one per core; with cuda, where they share
 * a device, two per core and at most 32. */
int64_t basin_graphs_cv_jobs(int64_t asked, int64_t models, int64_t cores, const char *backend);

#endif
