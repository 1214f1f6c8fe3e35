/* Anomaly detection as a task: from a network and a split to a trained detector, scores, figures
 * and reasons. Nothing here prints; commands do.
 *
 *     basin_anomaly_settings settings;
 *     basin_anomaly_task.fill(&settings, "default");
 *     basin_anomaly_fit(&detector, network, part, &settings, &work, &error);
 *     basin_anomaly_score(probability, detector, network, &work, &error);
 */
#ifndef BASIN_TASK_ANOMALY_ANOMALY_H
#define BASIN_TASK_ANOMALY_ANOMALY_H

#include "basin/metrics.h"
#include "basin/model.h"
#include "basin/tasks/network.h"
#include "basin/train.h"
#include "train/run/settings.h"
#include "train/run/watch.h"

/* Scalings of features, each with the three others joined, and how to list either. Beside these a
 * settings may have "none", or "auto" for those that validation prefers. Of equals, the first. */
#define BASIN_ANOMALY_SCALINGS(X)                                                                  \
    X("both", "standard+quantile+bins")                                                            \
    X("standard", "both+quantile+bins")                                                            \
    X("quantile", "both+standard+bins")                                                            \
    X("bins", "both+standard+quantile")
#define BASIN_SCALING_ALONE(name, others) name,
#define BASIN_SCALING_OTHERS(name, others) others,

#define BASIN_ANOMALY_INPUT_SETTINGS(X)                                                            \
    X(CHOICE, scaling,                                                                             \
      BASIN_CHOICES("auto", "none",                                                                \
                    BASIN_ANOMALY_SCALINGS(BASIN_SCALING_ALONE)                                    \
                        BASIN_ANOMALY_SCALINGS(BASIN_SCALING_OTHERS) NULL),                        \
      "Scaling of features, fitted on the training nodes; joined ones are seen by members in "     \
      "turn; auto: those that do well on validation.")                                             \
    X(INTEGER, hops, "N", -1, 8,                                                                   \
      "Means of the features over N hops stand beside them; -1: 0 or 2, whichever validation "     \
      "prefers.")                                                                                  \
    X(SWITCH, degree, "The logarithm of the number of neighbours stands beside the features.")     \
    X(CHOICE, relations, BASIN_CHOICES("one", "max", "concat"),                                    \
      "one: the graph as a whole; max, concat: each relation by itself, results merged so.")       \
    X(CHOICE, self_loops, BASIN_CHOICES("keep", "drop", "add"),                                    \
      "Whether nodes are neighbours of themselves.")
#define BASIN_ANOMALY_MODEL_SETTINGS(X)                                                            \
    X(CHOICE, form, BASIN_CHOICES("energy", "published", "linear", "mlp"),                         \
      "energy: descent as the paper has it; published: as its code does; linear, mlp: without "    \
      "descent.")                                                                                  \
    BASIN_BLOCK_SETTINGS(X)                                                                        \
    X(INTEGER, blocks, "S", 1, BASIN_ANOMALY_BLOCKS, "Blocks, one after the other.")               \
    X(CHOICE, position, BASIN_CHOICES("none", "learned", "laplacian"),                             \
      "Positions of nodes. With learned ones only the nodes of the training graph can be scored.") \
    X(INTEGER, eigenvectors, "K", 1, 1024, "Eigenvectors of laplacian positions.")                 \
    X(INTEGER, embedding, "N", 0, 65536, "Units of a hidden layer before the embedding; 0: none.") \
    X(INTEGER, hidden, "N", 0, 65536, "Units of the hidden layer of the head; 0: none.")           \
    X(SWITCH, concat, "First activations beside the last.")                                        \
    X(REAL, degree_power, "X", 0, 4, "A node's attention energy weighs its degree to this power.") \
    X(REAL, query_deviation, "X", 0, 100, "Deviation of first attention weights.",                 \
      .was = "query_init")                                                                         \
    X(REAL, dropout, "X", 0, 0.99, "Dropout.")
#define BASIN_ANOMALY_TRAINING_SETTINGS(X)                                                         \
    BASIN_RUN_SETTINGS(X)                                                                          \
    X(INTEGER, evaluate, "EPOCHS", 1, 1e9, "Epochs between looks at validation.")                  \
    X(REAL, average, "X", 0, 0.99999,                                                              \
      "Averaging of weights over steps: w' = X w' + (1 - X) w; 0: none.")                          \
    X(CHOICE, select, BASIN_CHOICES("macro_f1", "auroc", "auprc"),                                 \
      "What on validation chooses the epoch.")                                                     \
    X(CHOICE, threshold, BASIN_CHOICES("all", "grid", "smooth"),                                   \
      "Thresholds that validation may choose: all, 0.05 to 0.95, or all, each judged together "    \
      "with those around it.")                                                                     \
    X(CHOICE, balance, BASIN_CHOICES("full", "root", "none"),                                      \
      "Weight of anomalies in the loss: the classes' ratio, its root, or 1.")                      \
    X(CHOICE, sampling, BASIN_CHOICES("auto", "full", "subgraph", "neighbours"),                   \
      "What an epoch runs over; auto: the full graph where it fits, else neighbours.")             \
    X(REAL, fraction, "X", 0, 1, "The part of the nodes that a sampled epoch takes.")              \
    X(INTEGER, fanout, "N", 1, 1e6, "Neighbours of a node that sampling takes.")                   \
    X(INTEGER, members, "N", 0, 64,                                                                \
      "Detectors trained from different seeds and averaged; 0: 6 up to 2 million edges, 3 up to "  \
      "20 million, else 1.")

/* Everything that decides what is trained and how; a model file carries it. */
typedef struct basin_anomaly_settings {
    BASIN_ANOMALY_INPUT_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_ANOMALY_MODEL_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_ANOMALY_TRAINING_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_LOOSE_SETTINGS(BASIN_SETTING_FIELD)
} basin_anomaly_settings;

extern const basin_task_settings basin_anomaly_task;
basin_status basin_anomaly_check(const basin_anomaly_settings *settings, basin_error *error);

/* What the work is done with and who watches. */
typedef struct basin_anomaly_work {
    basin_backend *backend;
    const basin_watch *watch;
    size_t memory;          /* bytes that may be used; 0: three quarters of what is free */
    bool least;             /* instead: nothing whole that can be sampled or streamed, any limit */
    const char *checkpoint; /* file to go on from later; NULL: none */
    double save_every;      /* seconds between checkpoints; one is written when stopped, too */
    bool resume;            /* go on from the checkpoint; start where there is none */
    const char *log;        /* one JSON line an epoch; NULL: none */
} basin_anomaly_work;

/* One trained member: its parameters by name. */
typedef struct basin_anomaly_member {
    basin_bundle *weights;
    int64_t epoch; /* that validation chose, */
    int64_t last;  /* of so many */
    double chosen; /* its measure there */
} basin_anomaly_member;

typedef struct basin_anomaly_detector {
    basin_anomaly_settings settings;
    int64_t nodes, features; /* of the network it was trained on */
    int relations;           /* the model runs on */
    char **relation;         /* [relations] their names */
    basin_scaler scale;      /* of features and degrees */
    double threshold;
    int64_t members;
    basin_anomaly_member *member; /* [members] */
    double *score; /* [nodes] probabilities of the training network's nodes; NULL: not known */
    /* how training went */
    int64_t parameters, epochs;
    double seconds; /* of training */
    char how[200];  /* "full graph, 1.2 GiB" */
    bool stopped;   /* the watcher asked for it; a checkpoint was written if one is kept */
} basin_anomaly_detector;

/* Trains on the nodes of part TRAIN; VAL chooses epoch and threshold. */
basin_status basin_anomaly_fit(basin_anomaly_detector **detector, const basin_network *network,
                               const uint8_t *part /* [N] */,
                               const basin_anomaly_settings *settings,
                               const basin_anomaly_work *work, basin_error *error);
void basin_anomaly_free(basin_anomaly_detector *detector);
/* Probabilities of all nodes of a network, the one it was trained on or another with such features.
 */
basin_status basin_anomaly_score(double *probability /* [N] */,
                                 const basin_anomaly_detector *detector,
                                 const basin_network *network, const basin_anomaly_work *work,
                                 basin_error *error);
basin_status basin_anomaly_write(const char *path, const basin_anomaly_detector *detector,
                                 basin_error *error);
basin_status basin_anomaly_read(basin_anomaly_detector **detector, const char *path,
                                basin_error *error);

/* ---- the protocol ---- */

/* What one model reached on one split's test nodes. */
typedef struct basin_anomaly_figures {
    double macro_f1, auroc, auprc, recall_k;
    double val_macro_f1, val_auroc, val_auprc;
    double threshold, seconds;
    int64_t epoch;
} basin_anomaly_figures;

/* From probabilities of all nodes: the threshold from validation, the rest from test. */
basin_status basin_anomaly_measure(basin_anomaly_figures *figures, const double *probability,
                                   const basin_network *network, const uint8_t *part,
                                   const char *threshold, basin_error *error);

/* Validation alone, where there are no test nodes. */
basin_status basin_anomaly_measure_val(basin_anomaly_figures *figures, const double *probability,
                                       const basin_network *network, const uint8_t *part,
                                       const char *threshold, basin_error *error);

/* The plain models beside which a detector is judged: logistic regression and an MLP on the
 * features, and the same with one- and two-hop means. Each is a settings; of several strengths of
 * weight decay and ways of scaling validation chooses. */
enum { BASIN_BASELINES = 4 };
extern const char *const basin_baseline_name[BASIN_BASELINES];
basin_status basin_baseline_fit(double *probability /* [N] */, int64_t *epoch, int which,
                                const basin_network *network, const uint8_t *part, int64_t seed,
                                const basin_anomaly_work *work, basin_error *error);

#endif
