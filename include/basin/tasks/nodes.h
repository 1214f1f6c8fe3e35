/* Nodes of a graph: a model learns from the labelled nodes of a network, predicts probabilities for
 * every node of this network or of another with the same features, and explains them. The task
 * "anomaly" has two classes and one probability per node, that of being anomalous, with boosted
 * trees beside the Energy Transformer, calibration and a threshold; "node" has any number of
 * classes.
 *
 *     basin_nodes_model *model;
 *     if (basin_nodes_open(&model, "anomaly", "model.safetensors", backend, &error) ||
 *         basin_nodes_predict(probability, model, network, NULL, &error))
 *         return fprintf(stderr, "%s\n", error.text), 1;
 *     double threshold = basin_nodes_get_info(model)->threshold;
 *     for (int64_t i = 0; i < nodes; i++)
 *         if (probability[i] > threshold) ... node i is anomalous ...
 *     basin_nodes_close(model);
 *
 * Training takes settings (basin/tasks/settings.h), data and options (basin/tasks/run.h):
 *
 *     basin_settings_new(&settings, "anomaly", NULL, &error);
 *     basin_nodes_data data = {.network = network};
 *     basin_training_options training = {.backend = backend, .output = "model.safetensors"};
 *     basin_training_result result = {.size = sizeof result};
 *     basin_nodes_train(NULL, &result, settings, &data, &training, &error);
 *
 * A network comes from files (basin_network_open) or from arrays (basin_network_from_arrays).
 * examples/10_score_nodes.c is a complete program.
 *
 * Threads: one thread at a time may use a model; basin_nodes_live has its own rule. */
#ifndef BASIN_TASKS_NODES_H
#define BASIN_TASKS_NODES_H

#include "basin/tasks/calibration.h"
#include "basin/tasks/network.h"
#include "basin/tasks/run.h"
#include "basin/tasks/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct basin_nodes_model basin_nodes_model;

/* ---- models ---- */

/* Reads a model file of a task, "anomaly" or "node"; NULL: either. `backend` must stay open as long
 * as the model. */
BASIN_API basin_status basin_nodes_open(basin_nodes_model **model, const char *task,
                                        const char *path, basin_backend *backend,
                                        basin_error *error);
BASIN_API void basin_nodes_close(basin_nodes_model *model);
BASIN_API basin_status basin_nodes_write(const char *path, const basin_nodes_model *model,
                                         basin_error *error);

/* A record of a model's training. Made by the library; fields may be added at the end. */
typedef struct basin_nodes_card {
    const char *date;                 /* the day training began, UTC: "2026-11-15" */
    const char *version;              /* of Basin */
    const char *data;                 /* the training data, as messages name it */
    int64_t nodes, edges;             /* of that network; edges of its largest relation */
    int64_t trained_on, validated_on; /* labelled nodes */
    double base_rate;                 /* share of anomalies among the training nodes */
    basin_score validation;           /* no measures: there was no validation */
    /* One entry per line, as the file has them (docs/formats.md); NULL: not known. */
    const char *files;   /* every file of the training data, as sha256sum prints it */
    const char *cuts;    /* names and values: until, time, split_time, split, ratio, seed, .. */
    const char *parents; /* id, date, version and data of the model that it was trained from, then
                            of that model's parent, ..; NULL: it has none */
    const char *digest;  /* of the network: features, labels, edges; NULL: not known */
} basin_nodes_card;

typedef enum basin_nodes_member { BASIN_NODES_TREES, BASIN_NODES_NETWORK } basin_nodes_member;
enum { BASIN_SPLIT_PARTS = BASIN_SPLIT_TEST + 1 };

/* Describes a model. Made by the library; fields may be added at the end. */
typedef struct basin_nodes_info {
    const basin_settings *settings; /* with everything that training chose */
    /* The meaning of the training data's columns: in basin_network_options it makes other data be
     * read the same way. */
    const basin_schema *schema;
    int64_t parameters;                 /* of one member */
    int64_t members;                    /* whose probabilities are averaged */
    int64_t nodes;                      /* of the training network */
    int64_t classes;                    /* 0: a detector */
    double threshold;                   /* a node with a higher probability is anomalous */
    double share;                       /* of the Energy Transformers; the rest is that of trees */
    basin_calibration_kind calibration; /* of its probabilities */
    const basin_nodes_card *card;       /* NULL: the file is of an earlier version */
    const char *id; /* the first 16 digits of the SHA-256 of its file; "": it has none yet */
    /* For a model that was just trained, not read from a file; else NULL. */
    const double *scores; /* [N], or [N, classes]: probabilities of the training network's nodes */
    const basin_score *reached[BASIN_SPLIT_PARTS]; /* by part of the split: basin_nodes_evaluate */
    const basin_reliability *reliability[BASIN_SPLIT_PARTS];
    const char *trained_on; /* a sentence: "the full graph in 0.21 GiB of 5.8 allowed" */
    /* Trees and network by themselves, by basin_nodes_member, each with its threshold; NULL: there
     * are no trees. From a file: AUROC and AUPRC on validation. */
    const basin_score *alone[2][BASIN_SPLIT_PARTS];
} basin_nodes_info;
/* Valid until the model changes or is closed. */
BASIN_API const basin_nodes_info *basin_nodes_get_info(const basin_nodes_model *model);
/* The name of a class, from the labels of training; NULL: no such class. */
BASIN_API const char *basin_nodes_class(const basin_nodes_model *model, int64_t number);
/* A new threshold, which basin_nodes_write also writes. */
BASIN_API void basin_nodes_set_threshold(basin_nodes_model *model, double threshold);

/* A threshold, and the expected effect on new nodes: median, and the bounds of a 95 % interval, of
 * bootstrap samples of the validation nodes that the model keeps, each judged by the nodes that the
 * sample leaves out; NaN where the model keeps none. */
typedef struct basin_nodes_threshold_result {
    size_t size; /* set by the caller */
    double threshold;
    double precision[3], recall[3];
    double fpr[3];    /* false positive rate: alerts among normal nodes */
    double alerts[3]; /* share of all nodes */
} basin_nodes_threshold_result;
/* The threshold for a goal. "precision=0.9": the largest number of alerts of which nine in ten are
 * right, by the lower bound of a 90 % interval where a threshold reaches that, else by the
 * estimate; "recall=0.8": the smallest number of alerts that finds four in five anomalies;
 * "fpr=0.01": the largest number of alerts with one in a hundred normal nodes; all by the
 * validation nodes. "cost=1:20": minimal cost, where a false alert costs 1 and a missed anomaly 20,
 * by calibrated probabilities. "alerts=100": at most 100 of these probabilities are higher. Without
 * a model (NULL) only the goal is checked. */
BASIN_API basin_status basin_nodes_threshold_for(basin_nodes_threshold_result *result,
                                                 const basin_nodes_model *model, const char *goal,
                                                 const double *probability /* [nodes] */,
                                                 int64_t nodes, basin_error *error);

/* ---- training ---- */

/* How the labelled nodes are split into training, validation and test. */
typedef enum basin_nodes_split {
    BASIN_NODES_SPLIT_DEFAULT,  /* the first split of the network's masks; without masks HOLD_OUT of
                                   0.2 */
    BASIN_NODES_SPLIT_MASKS,    /* split `number` of the network's masks */
    BASIN_NODES_SPLIT_RATIO,    /* `ratio` of them train, the others validate and test, 1:2 */
    BASIN_NODES_SPLIT_HOLD_OUT, /* `ratio` of them validate, the others train */
    BASIN_NODES_SPLIT_NONE,     /* all train */
} basin_nodes_split;

typedef struct basin_nodes_data {
    size_t size; /* sizeof(basin_nodes_data), or 0 */
    const basin_network *network;
    /* Without a network: files for basin_network_open. */
    const char *const *path; /* [paths] */
    int paths;
    const basin_network_options *options; /* or NULL */
    basin_nodes_split split;
    int64_t number;
    double ratio;
    const uint8_t *part; /* [N] basin_split_part, in place of `split`; or NULL */
} basin_nodes_data;

/* Trains a model of the settings' task; validation chooses epoch and threshold. Classes are those
 * of the training nodes, in the order of their labels. `model` NULL: only the file is requested.
 * After an interrupt the model is the result of the steps so far, with the threshold 0.5, and NULL
 * before the first step. */
BASIN_API basin_status basin_nodes_train(basin_nodes_model **model, basin_training_result *result,
                                         const basin_settings *settings,
                                         const basin_nodes_data *data,
                                         const basin_training_options *training,
                                         basin_error *error);

/* ---- prediction ---- */

/* All zeros, or NULL in place of it, are the defaults; so it is with all options below. */
typedef struct basin_nodes_predict_options {
    size_t size;              /* sizeof(basin_nodes_predict_options), or 0 */
    const basin_watch *watch; /* or NULL */
    size_t memory;            /* limit in bytes; 0: three quarters of what is free */
    bool stream;              /* use little memory, even if more is free */
} basin_nodes_predict_options;

/* The probability of every node to be anomalous, or of each class. All neighbours of a node count;
 * a graph that exceeds the memory limit is streamed. */
BASIN_API basin_status basin_nodes_predict(double *probability /* [N], or [N, classes] */,
                                           const basin_nodes_model *model,
                                           const basin_network *network,
                                           const basin_nodes_predict_options *options,
                                           basin_error *error);

/* Measures predictions over the nodes in part `which` of a split. For a detector (also model NULL):
 * "macro_f1" at the threshold, "auroc", "auprc", "recall_at_k" (k: the number of anomalies) and
 * "ece" (expected calibration error, basin/tasks/calibration.h), 0 to 1. For classes: "accuracy",
 * "macro_f1", "auroc" (mean over classes, one against the others) and "loss" (mean of -log p);
 * labels are compared by the classes' names, and a class that the model does not know is an error
 * of the model. */
BASIN_API basin_status basin_nodes_evaluate(basin_score *score,
                                            const double *probability /* [N], or [N, classes] */,
                                            const basin_nodes_model *model,
                                            const basin_network *network,
                                            const uint8_t *part /* [N] */, basin_split_part which,
                                            double threshold, basin_error *error);

/* ---- explanations ----
 * The difference between a node's logit and that of a typical node: one whose features are the
 * medians over the graph, in this node's place, with typical neighbours. */

typedef struct basin_nodes_neighbour {
    int64_t node;
    double share;    /* of the node's attention, mean over heads, blocks and relations */
    double returned; /* of this neighbour's attention, that goes to the node */
    double push;     /* part of the difference that comes through this neighbour */
    double probability;
} basin_nodes_neighbour;

typedef struct basin_nodes_feature {
    int64_t column; /* of the network's features; beyond them the number of neighbours in a
                       relation; -1: the share of anomalies among neighbours of the training set */
    int64_t hop;  /* 0: the node, 1: its neighbours, ..; the last one includes all further nodes */
    double value; /* of the node, or the mean over neighbours, as in the table; NaN: not known */
    double typical; /* the median over the graph */
    double share;   /* of the difference: integrated gradients of the network, Shapley values of
                       trees, weighted */
    int64_t fact;   /* which total of edge columns it is; -1: none */
    int64_t known, anomalous; /* for column -1: training nodes at that hop, and anomalous ones */
} basin_nodes_feature;

/* Made by the library; fields may be added at the end. Both lists add up:
 *
 *     logit - typical_logit = sum of feature[].share + rest + missed
 *                           = own + sum of neighbour[].push + rest + missed
 *
 * `missed` is less than 2 % of the difference where the integral converges. */
typedef struct basin_nodes_explanation {
    int64_t node;
    double probability, threshold;
    int64_t rank; /* 1: the highest of all nodes */
    double logit; /* of the probability before calibration */
    double typical_logit;
    bool has_energy;                    /* the model has form energy */
    double energy, attention, hopfield; /* at the end of the descent */
    double energy_mean, energy_deviation;
    double energy_below; /* share of nodes with a lower energy */
    int64_t neighbours, features;
    basin_nodes_neighbour *neighbour; /* [neighbours] by falling size of their push */
    basin_nodes_feature *feature;     /* [features] by falling size of their share */
    bool nearby;        /* the graph exceeds the memory limit: no energies, no attention */
    bool has_attention; /* shares of attention are known */
    double own;         /* part of the difference that comes from the node itself */
    double rest;        /* from nodes beyond those that were examined */
    double missed;      /* error of the integral */
} basin_nodes_explanation;

typedef struct basin_nodes_explain_options {
    size_t size;               /* sizeof(basin_nodes_explain_options), or 0 */
    const basin_watch *watch;  /* or NULL */
    size_t memory;             /* limit in bytes; 0: three quarters of what is free */
    bool stream;               /* use little memory: predict streamed, examine nearby nodes only */
    bool brief;                /* without energies and attention */
    int64_t number;            /* of the class to explain: its odds against all others */
    const double *probability; /* [N] from basin_nodes_predict of a detector; NULL: computed here */
} basin_nodes_explain_options;

/* Several nodes in one pass; free each result. */
BASIN_API basin_status basin_nodes_explain(basin_nodes_explanation **explanation /* [count] */,
                                           const basin_nodes_model *model,
                                           const basin_network *network,
                                           const int64_t *node /* [count] */, int64_t count,
                                           const basin_nodes_explain_options *options,
                                           basin_error *error);
BASIN_API void basin_nodes_explanation_free(basin_nodes_explanation *explanation);

/* The name of a feature of an explanation: "amount", "amount, mean 1 hop away", "number of
 * neighbours", "known anomalies, 2 of 3 known neighbours". */
enum { BASIN_MAX_REASON = 300 };
BASIN_API const char *basin_nodes_reason_name(char text[BASIN_MAX_REASON],
                                              const basin_network *network,
                                              const basin_nodes_feature *feature);

/* ---- single nodes ----
 * A model and a network, the base, ready to score single nodes in milliseconds, and to add nodes
 * and edges. A score computes only the node's neighbourhood within the reach of its energy, up to a
 * cap, nearest nodes first; below the cap it equals basin_nodes_predict on the network with all
 * additions. Threads: any number may call the functions at the same time. */
typedef struct basin_nodes_live basin_nodes_live;

/* What nodes beyond the cap count as. */
typedef enum basin_nodes_states {
    BASIN_NODES_STATES_KEPT,   /* their states in the base, found by one pass when it is opened */
    BASIN_NODES_STATES_ABSENT, /* nothing */
} basin_nodes_states;

typedef struct basin_nodes_live_options {
    size_t size;                  /* sizeof(basin_nodes_live_options), or 0 */
    int64_t cap_nodes, cap_edges; /* of a neighbourhood; 0: 1024 and 32768 */
    basin_nodes_states states;
    size_t memory;            /* limit in bytes; 0: three quarters of what is free */
    const basin_watch *watch; /* of opening; or NULL */
} basin_nodes_live_options;

typedef struct basin_nodes_live_score {
    int64_t node;         /* its number; -1: no such node, and the rest is 0 */
    double probability;   /* calibrated, as from basin_nodes_predict */
    bool anomalous;       /* higher than the model's threshold */
    int64_t nodes, edges; /* of the neighbourhood that was computed */
    bool capped;          /* the neighbourhood exceeds the cap */
} basin_nodes_live_score;

/* Model and network must stay open as long. */
BASIN_API basin_status basin_nodes_live_open(basin_nodes_live **live,
                                             const basin_nodes_model *model,
                                             const basin_network *network,
                                             const basin_nodes_live_options *options,
                                             basin_error *error);
BASIN_API void basin_nodes_live_close(basin_nodes_live *live);
/* Nodes by their ids, as basin_network_id prints them. */
BASIN_API basin_status basin_nodes_live_predict(basin_nodes_live_score *score /* [count] */,
                                                basin_nodes_live *live,
                                                const char *const *id /* [count] */, int64_t count,
                                                basin_error *error);
/* From the node's neighbourhood, brief and with rank 0; NULL: no such node. */
BASIN_API basin_status basin_nodes_live_explain(basin_nodes_explanation **explanation,
                                                basin_nodes_live *live, const char *id,
                                                basin_error *error);
/* Rows of tables as CSV with a header, in the columns of the base's (docs/tables.md); NULL: none.
 * Numbers without quotes have a decimal point, whatever the base's tables have.
 * Ends of edges must be nodes of base or additions, or rows of `nodes`. After an error nothing is
 * added. */
BASIN_API basin_status basin_nodes_live_add(basin_nodes_live *live, const char *nodes,
                                            const char *edges, basin_error *error);

/* ---- drift ---- */

/* How much a column has changed since training. */
typedef struct basin_nodes_drift_column {
    const char *name;
    bool category, date; /* its kind; else a number */
    double index;        /* population stability index: below 0.1 little, above 0.25 large */
    int level;        /* 0: little, or within chance for the number of nodes; 1: some; 2: large */
    double then, now; /* medians; for a category the share of nodes with none of its values */
} basin_nodes_drift_column;

/* Made by the library; fields may be added at the end. */
typedef struct basin_nodes_drift {
    int64_t nodes; /* that were compared */
    bool few;      /* too few nodes: no column has a level */
    int64_t some, large;
    int64_t columns;
    basin_nodes_drift_column *column; /* [columns] by falling index */
} basin_nodes_drift;

/* Compares columns of the table, and the number of neighbours, of the nodes from `first` on with
 * all nodes of the training network. BASIN_UNSUPPORTED: the model's file is of an earlier
 * version. */
BASIN_API basin_status basin_nodes_drift_new(basin_nodes_drift **drift,
                                             const basin_nodes_model *model,
                                             const basin_network *network, int64_t first,
                                             basin_error *error);
BASIN_API void basin_nodes_drift_free(basin_nodes_drift *drift);

#ifdef __cplusplus
}
#endif
#endif
