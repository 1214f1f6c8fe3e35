/* Models of nodes inside the library: settings, the model, and what is handed from file to file. A
 * detector of anomalies is the case of two classes with one logit per node; any number of classes
 * goes the same way with one logit each. Callers see include/basin/tasks/nodes.h. From the top
 * down:
 *
 *     train.c      a run from data to a model; inputs that validation prefers, by quick probes
 *     fit.c        trains with settings that leave nothing open
 *     score.c      scores of all nodes: as one plan, or streamed (stream.c)
 *     parts.c      the same for a graph that is cut, over ranks
 *     batch.c, inputs.c, net.c   what a step reads, and the expressions
 *     model.c      settings, the model and its file; card.c, drift.c   what it remembers of its
 *                  training
 *     classes.c    several classes: their names, inputs and figures
 *     table.c, forest.c, mix.c   boosted trees beside the network, calibration, thresholds
 *     explain.c, explain_network.c   why nodes score as they do
 *     rivals.c     plain models and XGBoost to compare with
 *     completion.c unusual nodes without labels; report.c   a page on a detector
 */
#ifndef BASIN_TASK_NODES_NODES_H
#define BASIN_TASK_NODES_NODES_H

#include "basin/metrics.h"
#include "basin/tasks/nodes.h"
#include "basin/train.h"
#include "data/network/network.h"
#include "model/model.h"
#include "task/nodes/ensemble.h"
#include "train/run/run.h"
#include "train/run/settings.h"

/* Scalings of features, each with the three others joined, and how to list either. Beside these a
 * scaling may be "none", or "auto" for those that validation prefers. Of equals, the first. */
#define BASIN_NODES_SCALINGS(X)                                                                    \
    X("both", "standard+quantile+bins")                                                            \
    X("standard", "both+quantile+bins")                                                            \
    X("quantile", "both+standard+bins")                                                            \
    X("bins", "both+standard+quantile")
#define BASIN_SCALING_ALONE(name, others) name,
#define BASIN_SCALING_OTHERS(name, others) others,

#define BASIN_NODES_INPUT_SETTINGS(X)                                                              \
    X(CHOICE, scaling,                                                                             \
      BASIN_CHOICES("auto", "none", "rows",                                                        \
                    BASIN_NODES_SCALINGS(BASIN_SCALING_ALONE)                                      \
                        BASIN_NODES_SCALINGS(BASIN_SCALING_OTHERS) NULL),                          \
      "Scaling of features, fitted on the training nodes; joined ones are seen by members in "     \
      "turn; auto: those that do well on validation.")                                             \
    X(INTEGER, hops, "N", -1, 8,                                                                   \
      "Means of the features over N hops stand beside them; -1: 0 or 2, whichever validation "     \
      "prefers.")                                                                                  \
    X(SWITCH, degree, "The logarithm of the number of neighbours stands beside the features.")     \
    X(CHOICE, facts, BASIN_CHOICES("auto", "none", "features", "energy", "both"),                  \
      "What edges carry (amounts, counts, times, kinds). features: totals of a node's edges "      \
      "stand "                                                                                     \
      "beside its features; energy: they bias the score of a pair; auto: both, where edges carry " \
      "something.",                                                                                \
      .absent = "none")                                                                            \
    X(CHOICE, relations, BASIN_CHOICES("one", "max", "concat"),                                    \
      "one: the graph as a whole; max, concat: each relation by itself, results merged so.")       \
    X(CHOICE, self_loops, BASIN_CHOICES("keep", "drop", "add"),                                    \
      "Whether nodes are neighbours of themselves.",                                               \
      .needs = "attention=on,smoothing!=0 form=energy|published,smoothing!=0")
#define BASIN_NODES_MODEL_SETTINGS(X)                                                              \
    X(CHOICE, form, BASIN_CHOICES("energy", "published", "linear", "mlp"),                         \
      "energy: descent as the paper has it; published: as its code does; linear, mlp: without "    \
      "descent.")                                                                                  \
    BASIN_BLOCK_SETTINGS(X)                                                                        \
    X(INTEGER, blocks, "S", 1, BASIN_ANOMALY_BLOCKS, "Blocks, one after the other.",               \
      .needs = "form=energy|published")                                                            \
    X(CHOICE, position, BASIN_CHOICES("none", "learned", "laplacian"),                             \
      "Positions of nodes. With learned ones only the nodes of the training graph can be scored.", \
      .needs = "form=energy|published")                                                            \
    X(INTEGER, eigenvectors, "K", 1, 1024, "Eigenvectors of laplacian positions.",                 \
      .needs = "position=laplacian")                                                               \
    X(INTEGER, embedding, "N", 0, 65536, "Units of a hidden layer before the embedding; 0: none.", \
      .needs = BASIN_NEEDS_DESCENT)                                                                \
    X(INTEGER, hidden, "N", 0, 65536, "Units of the hidden layer of the head; 0: none.",           \
      .needs = "form=energy|mlp")                                                                  \
    X(SWITCH, concat, "First activations beside the last.", .needs = "form=energy|published")      \
    X(REAL, query_deviation, "X", 0, 100, "Deviation of first attention weights.",                 \
      .needs = BASIN_NEEDS_ATTENTION)                                                              \
    X(REAL, dropout, "X", 0, 0.99, "Dropout.", .needs = "form!=linear")
/* What detectors and models of classes share of training. */
#define BASIN_NODE_PACE_SETTINGS(X)                                                                \
    BASIN_RUN_SETTINGS(X)                                                                          \
    X(INTEGER, evaluate, "EPOCHS", 0, 1e9,                                                         \
      "Epochs between looks at validation; 0: 4, or a fifth of all where epochs are samples.")     \
    X(REAL, average, "X", 0, 0.99999,                                                              \
      "Averaging of weights over steps: w' = X w' + (1 - X) w; 0: none.")
#define BASIN_NODE_SAMPLING_SETTINGS(X)                                                            \
    X(CHOICE, sampling, BASIN_CHOICES("auto", "full", "subgraph", "neighbours"),                   \
      "What an epoch runs over; auto: the full graph where it fits, else neighbours.")             \
    X(REAL, fraction, "X", 0, 1,                                                                   \
      "The part of the nodes that a sampled epoch takes; 0: 0.05, of neighbours at most 4 "        \
      "batches.",                                                                                  \
      .needs = "sampling!=full")                                                                   \
    X(INTEGER, fanout, "N", 1, 1e6, "Neighbours of a node that sampling takes.",                   \
      .needs = "sampling=auto|neighbours")                                                         \
    X(INTEGER, parts, "N", 0, 1024,                                                                \
      "Parts that the graph is cut into, which ranks share: the weights do not depend on how "     \
      "many these are. 0: 1, or with mpirun 8, or as many as there are ranks.",                    \
      .absent = "1")                                                                               \
    BASIN_SHARD_SETTINGS(X)
#define BASIN_NODE_MEMBER_SETTINGS(X)                                                              \
    X(INTEGER, members, "N", 0, 64,                                                                \
      "Networks trained from different seeds and averaged; 0: 2 up to 2 million edges, else 1.")
#define BASIN_NODES_TRAINING_SETTINGS(X)                                                           \
    BASIN_NODE_PACE_SETTINGS(X)                                                                    \
    X(CHOICE, select, BASIN_CHOICES("macro_f1", "auroc", "auprc"),                                 \
      "What on validation chooses the epoch.")                                                     \
    X(CHOICE, threshold, BASIN_CHOICES("all", "grid", "smooth"),                                   \
      "Thresholds that validation may choose: all, 0.05 to 0.95, or all, each judged together "    \
      "with those around it.")                                                                     \
    X(CHOICE, balance, BASIN_CHOICES("full", "root", "none"),                                      \
      "Weight of anomalies in the loss: the classes' ratio, its root, or 1.")                      \
    BASIN_NODE_SAMPLING_SETTINGS(X)                                                                \
    X(INTEGER, trees, "N", 0, 64,                                                                  \
      "Fits of boosted trees, on features and their means over neighbours, that stand beside the " \
      "network; 0: none. Validation chooses the share of each.",                                   \
      .absent = "0")                                                                               \
    X(SWITCH, labels,                                                                              \
      "A quarter of the trees looks at how many of a node's neighbours that were trained on are "  \
      "anomalous.",                                                                                \
      .absent = "off", .needs = "trees!=0")                                                        \
    X(CHOICE, calibrate, BASIN_CHOICES("auto", "none", "platt", "isotonic"),                       \
      "What makes frequencies of probabilities, by validation; auto: platt or isotonic.",          \
      .absent = "none")                                                                            \
    BASIN_NODE_MEMBER_SETTINGS(X)

/* What models of classes have beyond. */
#define BASIN_NODE_OWN_SETTINGS(X)                                                                 \
    X(INTEGER, smoothing, "N", -1, 1000,                                                           \
      "Steps in which logits descend the energy of agreement between neighbours; 0: none; -1: 0 "  \
      "or 10, whichever validation prefers.",                                                      \
      .absent = "0")                                                                               \
    X(REAL, anchor, "X", 0, 1, "How much each node holds to its own logits in these steps.",       \
      .absent = "0.1", .needs = "smoothing!=0")                                                    \
    X(REAL, input_dropout, "X", 0, 0.99, "Dropout of the inputs.", .absent = "0")                  \
    X(REAL, penalty, "X", 0, 1e3,                                                                  \
      "Half the sum of squared weights, times this, joins the loss: rare inputs then weigh less, " \
      "as decay alone does not make them.",                                                        \
      .absent = "0")

/* What means another thing than for a detector, or offers other choices. */
#define BASIN_NODE_JUDGE_SETTINGS(X)                                                               \
    X(CHOICE, select, BASIN_CHOICES("accuracy", "macro_f1", "auroc"),                              \
      "What on validation chooses the epoch; of equals the one with the smaller loss.",            \
      .absent = "accuracy")                                                                        \
    X(CHOICE, balance, BASIN_CHOICES("full", "root", "none"),                                      \
      "Weight of a class in the loss: one over its share of the nodes, the root of that, or 1.",   \
      .absent = "none")
/* Everything that decides what is trained and how; a model file carries what its task's table has
 * of it. */
typedef struct basin_nodes_settings {
    BASIN_NODES_INPUT_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_NODES_MODEL_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_NODES_TRAINING_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_NODE_OWN_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_LOOSE_SETTINGS(BASIN_SETTING_FIELD)
    /* No settings, but what the labels say: */
    int64_t classes; /* that the model tells apart; 0: a detector, with one logit a node */
    int64_t focus;   /* 1 + the class whose odds stand for all, for explanations; 0: none */
} basin_nodes_settings;

extern const basin_task_settings basin_anomaly_task, basin_node_task;

/* What computes, and how it may go about it. */
typedef struct basin_nodes_resources {
    basin_backend *backend;
    const basin_watch *watch;
    size_t memory;      /* bytes that may be used; 0: three quarters of what is free */
    bool least;         /* force sampling and streaming, and hold to no limit */
    basin_parts *parts; /* of the graph, where it is in parts; NULL: it is not */
} basin_nodes_resources;

basin_nodes_resources basin_nodes_resources_of(const basin_nodes_work *work,
                                               basin_backend *backend);
/* Bytes that may be used; none where `least` is set. */
size_t basin_nodes_memory_limit(const basin_nodes_resources *work);

/* Probabilities and labels of some nodes. */
typedef struct basin_nodes_samples {
    double *score;  /* [count] */
    uint8_t *label; /* [count] */
    int64_t count;
} basin_nodes_samples;

/* Those of one part; to be freed even after an error. */
basin_status basin_nodes_samples_take(basin_nodes_samples *samples, const double *probability,
                                      const basin_network *network, const uint8_t *part, int which,
                                      basin_error *error);
void basin_nodes_samples_free(basin_nodes_samples *samples);

struct basin_nodes_model {
    basin_nodes_info info; /* filled when it is asked for */
    basin_backend *backend;
    const basin_task_settings *task;   /* a detector's, or that of classes */
    basin_nodes_settings settings;     /* as asked for, with what training chose */
    basin_settings face;               /* the same for callers; points to `settings` */
    int64_t nodes, features;           /* of the network it was trained on */
    basin_schema *schema;              /* of the network it was trained on; NULL: a file of 0.1 */
    char relations[BASIN_NODES_LINES]; /* that the model runs on, one per line */
    basin_scaler scale;                /* of features and degrees */
    basin_scaler edge_scale;           /* of what edges carry; none where they do not bias scores */
    basin_names class_name;            /* [settings.classes] */
    double threshold;                  /* of calibrated probabilities */
    basin_nodes_ensemble ensemble;     /* without trees: none */
    basin_calibration calibration;
    basin_nodes_samples judged; /* validation nodes by rising probability; thinned where many */
    basin_nodes_memory memory;  /* of its training */
    basin_nodes_reference reference; /* what its columns looked like */
    int64_t members;                 /* trained so far, of settings.members */
    basin_bundle **member;           /* [settings.members] parameters by name; NULL: not trained */
    /* of one that was trained just now */
    double *score;                            /* [nodes], of classes [nodes, classes]; or NULL */
    basin_score reached[BASIN_PART_TEST + 1]; /* by part */
    basin_reliability reliability[BASIN_PART_TEST + 1];
    char trained_on[200];
    bool sampled; /* it was trained on samples, not on the full graph */
};

/* A number into a model file's metadata. */
basin_status basin_nodes_set_number(basin_bundle *bundle, const char *key, double value,
                                    basin_error *error);

/* A model without members; `network` (or NULL) tells its sizes. */
basin_status basin_nodes_model_new(basin_nodes_model **model, const basin_task_settings *task,
                                   const basin_nodes_settings *settings,
                                   const basin_network *network, basin_backend *backend,
                                   basin_error *error);
/* The parameters of one member of a model file, by name, as a new bundle. */
basin_status basin_nodes_member_read(basin_bundle **member, const basin_bundle *file,
                                     int64_t number, basin_error *error);
/* ---- calibration (mix.c) ---- */

/* Scores and labels of validation nodes become the model's calibration and what it keeps of them;
 * `probability` and the threshold become calibrated. */
basin_status basin_nodes_calibrate(basin_nodes_model *model, double *probability /* [N] */,
                                   const basin_network *network, const uint8_t *part,
                                   basin_error *error);
/* The share of anomalies among the training nodes. */
double basin_nodes_base_rate(const basin_network *network, const uint8_t *part /* [N] */);
/* Strictly rising in the probability, so that ranks stay. */
double basin_nodes_calibrated(const basin_nodes_model *model, double probability);
/* Calibration and validation nodes, to and from a model file. */
basin_status basin_nodes_judged_store(basin_bundle *bundle, const basin_nodes_model *model,
                                      basin_error *error);
basin_status basin_nodes_judged_load(basin_nodes_model *model, const basin_bundle *bundle,
                                     basin_error *error);

/* An error where the model cannot score these nodes. */
basin_status basin_nodes_check_network(const basin_nodes_model *model, const basin_network *network,
                                       basin_error *error);

/* What a node has: one number of a detector, else one a class. */
static inline int64_t basin_nodes_width(const basin_nodes_settings *settings) {
    return settings->classes && !settings->focus ? settings->classes : 1;
}

/* basin_nodes_train with settings of a task as they are, and `least` as in the resources. */
basin_status basin_nodes_train_with(basin_nodes_model **model, basin_outcome *outcome,
                                    const basin_task_settings *task,
                                    const basin_nodes_settings *settings,
                                    const basin_nodes_data *data, const basin_training *training,
                                    bool least, basin_error *error);

/* In words: "amount mean of edges", of a directed network "amount mean of edges that come" or "that
 * go". */
enum { BASIN_FACT_TEXT = 220 };
void basin_nodes_fact_name(char text[BASIN_FACT_TEXT], const basin_network *network, int64_t fact);

#endif
