/* Nodes of a graph: a model learns from the labelled nodes of a network and gives every node of
 * this network, or of another with the same features, a probability, and says why. The task
 * "anomaly" has two classes and one probability per node, that of being anomalous, with boosted
 * trees beside the Energy Transformer, calibration and a threshold; "node" has any number of
 * classes.
 *
 *     basin_nodes_model *model;
 *     if (basin_nodes_open(&model, "anomaly", "model.safetensors", backend, &error) ||
 *         basin_nodes_score(probability, model, network, NULL, &error))
 *         return fprintf(stderr, "%s\n", error.text), 1;
 *     double threshold = basin_nodes_get_info(model)->threshold;
 *     for (int64_t i = 0; i < basin_network_get_view(network).nodes; i++)
 *         if (probability[i] > threshold) ... node i is anomalous ...
 *     basin_nodes_close(model);
 *
 * Training takes settings (basin/tasks/settings.h), data and a basin_training_options
 * (basin/tasks/run.h):
 *
 *     basin_settings_new(&settings, "anomaly", NULL, &error);
 *     basin_nodes_data data = {.network = network};
 *     basin_training_options training = {.backend = backend,
 *                                .output = "model.safetensors"};
 *     basin_nodes_train(NULL, &outcome, settings, &data, &training, &error);
 *
 * A network comes from files (basin_network_open) or from arrays (basin_network_from_arrays).
 * examples/10_score_nodes.c is a whole program. */
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

/* Reads a model file of a task, "anomaly" or "node"; NULL: of either. `backend` must stay open as
 * long as the model. */
BASIN_API basin_status basin_nodes_open(basin_nodes_model **model, const char *task,
                                        const char *path, basin_backend *backend,
                                        basin_error *error);
BASIN_API void basin_nodes_close(basin_nodes_model *model);
BASIN_API basin_status basin_nodes_write(const char *path, const basin_nodes_model *model,
                                         basin_error *error);

/* What a model knows of its training. The library makes these; fields may be added at the end. */
typedef struct basin_nodes_card {
    char date[16];        /* the day that training began, UTC: "2026-11-15" */
    char version[16];     /* of Basin */
    char data[256];       /* what it was trained on, as messages call it */
    int64_t nodes, edges; /* of that network; edges as the largest relation counts them */
    int64_t trained_on, validated_on; /* labelled nodes */
    double base_rate;                 /* of anomalies among those trained on */
    basin_score validation;           /* what was reached there; without measures: no validation */
    /* In lines (docs/formats.md); NULL: not known. */
    const char *files;   /* every file that it was trained on, as sha256sum prints it */
    const char *cuts;    /* names and values: until, time, split_time, split, ratio, seed, .. */
    const char *parents; /* id, date, version and data of the model whose weights it began with,
                            then of that one's, ..; NULL: it began with drawn ones */
    char digest[24];     /* of the network: features, labels, edges; "": not known */
} basin_nodes_card;
/* What a model is. The library fills it; fields may be added at the end. */
enum { BASIN_NODES_TREES, BASIN_NODES_NETWORK, BASIN_NODES_PARTS = 4 };
typedef struct basin_nodes_info {
    const basin_settings *settings; /* with everything that training chose */
    /* What the columns of its training meant: for basin_network_options, so that what is scored is
     * read the same way. */
    const basin_schema *schema;
    int64_t parameters;           /* numbers that one of its members learned */
    int64_t members;              /* how many are averaged */
    int64_t nodes;                /* of the network that it was trained on */
    int64_t classes;              /* that it tells apart; 0: a detector */
    double threshold;             /* probability above which a node counts as anomalous */
    double share;                 /* of the Energy Transformers; trees have the rest. 1: no trees */
    const char *calibration;      /* of its probabilities: "none", "platt", "isotonic" */
    const basin_nodes_card *card; /* NULL: the file is of an earlier version */
    /* Of a model that was trained just now, not read from a file; NULL: there is none. */
    const double *scores;                          /* [N], or [N, classes] of its network's nodes */
    const basin_score *reached[BASIN_NODES_PARTS]; /* by part of the nodes: basin_nodes_measure */
    const basin_reliability *reliability[BASIN_NODES_PARTS]; /* probabilities beside frequencies */
    const char *trained_on; /* in words: "the full graph in 0.21 GiB of 5.8 allowed" */
    /* What trees and network of an ensemble reach alone, each with a threshold of its own; NULL:
     * there are no trees. Of a file: AUROC and AUPRC on validation. */
    const basin_score *alone[2][BASIN_NODES_PARTS];
    /* The first 16 digits of the SHA-256 of its file, as sha256sum prints it, and as logs, scores
     * and reports name the model; "": it was in no file yet. */
    const char *id;
} basin_nodes_info;
/* Valid until the model changes or is closed. */
BASIN_API const basin_nodes_info *basin_nodes_get_info(const basin_nodes_model *model);
/* What a class is called, as the labels of training had it. NULL: there is none of that number. */
BASIN_API const char *basin_nodes_class(const basin_nodes_model *model, int64_t number);
/* Another threshold, which a file written afterwards has, too. */
BASIN_API void basin_nodes_set_threshold(basin_nodes_model *model, double threshold);
/* A threshold, and what to expect above it of accounts that are not known yet: the median, and the
 * bounds that hold 95 %, of draws from the validation nodes that the model keeps, each judged by
 * the nodes that it leaves out; NaN where the model keeps none. */
typedef struct basin_nodes_threshold {
    double threshold;
    double precision[3], recall[3];
    double fpr[3];    /* normal ones among the alerts, of all normal ones */
    double alerts[3]; /* of all */
} basin_nodes_threshold;
/* One for a goal. "precision=0.9": the most alerts of which nine in ten are right, by the lower
 * bound of an interval of 90 % where any threshold reaches that, else by the estimate;
 * "recall=0.8": the fewest that find four anomalies in five; "fpr=0.01": the most that take in one
 * normal account in a hundred; all by the validation nodes. "cost=1:20": where an alert for nothing
 * costs 1 and an anomaly that is missed 20, the least cost, by calibrated probabilities.
 * "alerts=100": at most so many of these probabilities lie above it. Without a model (NULL), before
 * one is trained: whether the goal is one. */
BASIN_API basin_status basin_nodes_threshold_for(basin_nodes_threshold *threshold,
                                                 const basin_nodes_model *model, const char *goal,
                                                 const double *probability /* [nodes] */,
                                                 int64_t nodes, basin_error *error);

/* ---- training ---- */

/* A network, given as it is or by files, and who trains and who validates. */
typedef struct basin_nodes_data {
    const basin_network *network;
    /* Where `network` is NULL: files that basin_network_open understands. */
    const char *const *path; /* [paths] */
    int paths;
    const basin_network_options *options; /* or NULL */
    /* Where `part` is NULL, the first of these that is set: split `split` of the network's masks;
     * `ratio` of the labelled nodes trains and the rest, one to two, validates and tests;
     * `validation` of them validates and the others train (below 0: none validates; 0: the first
     * split of the network's masks where it has any, else 0.2). */
    const uint8_t *part; /* [N] BASIN_PART_TRAIN, ..; or NULL */
    bool masks;
    int64_t split;
    double ratio, validation;
} basin_nodes_data;

/* Trains a model of the settings' task; validation chooses epoch and threshold. Classes are those
 * of the training nodes, by the order of their labels. `model` may be NULL where the file is all
 * that is needed. After an interrupt the model holds what was learnt, with 0.5 as its threshold,
 * and is NULL where there was no first step. */
BASIN_API basin_status basin_nodes_train(basin_nodes_model **model, basin_training_result *result,
                                         const basin_settings *settings,
                                         const basin_nodes_data *data,
                                         const basin_training_options *training,
                                         basin_error *error);

/* ---- use ---- */

/* How scoring and explaining may go about it. NULL in place of it: all zeros. */
typedef struct basin_nodes_work {
    const basin_watch *watch; /* or NULL */
    size_t memory;            /* bytes that may be used; 0: three quarters of what is free */
    bool least; /* take little memory in any case: scores streamed, reasons from nearby nodes */
    /* Explanations: */
    int64_t number;            /* of several classes: the one that is explained */
    const double *probability; /* [N] what a detector's basin_nodes_score gave; NULL: scored here */
    bool brief;                /* without energies and attention */
    /* Of nodes of this (see below), each from its neighbourhood, with the rank 0 and brief; model
     * and network are then not looked at. */
    struct basin_nodes_live *live;
    /* basin_nodes_unsupervised: where explanations of the nodes of the highest energies go, the
     * highest first (of equals, the first node); free each. `odds`: how many, at most N. */
    struct basin_nodes_explanation **odd;
    int64_t odds;
} basin_nodes_work;

/* The probability of every node to be anomalous, or of each class. Nodes are scored with all their
 * neighbours; a graph that does not fit into the memory allowed is streamed. */
BASIN_API basin_status basin_nodes_score(double *probability /* [N], or [N, classes] */,
                                         const basin_nodes_model *model,
                                         const basin_network *network, const basin_nodes_work *work,
                                         basin_error *error);

/* ---- one node at once ----
 * A model and a network, the base, ready to score single nodes in milliseconds, and to take nodes
 * and edges that come later. A score computes the node's neighbourhood alone, as far as its energy
 * sees, up to a cap, nearest nodes first; without a cap, or where it did not bite, it is the score
 * that basin_nodes_score gives for this node in a network of base and additions read as a whole. */
typedef struct basin_nodes_live basin_nodes_live;

/* All zeros, or NULL in place of it: the defaults. */
typedef struct basin_nodes_live_options {
    int64_t cap_nodes, cap_edges; /* of a neighbourhood; 0: 1024 and 32768 */
    /* Keep the states of all base nodes, found by one pass over the base when it is opened: what
     * lies beyond the cap then counts as it was in the base. 0: yes; -1: no, it does not count. */
    int states;
    size_t memory;            /* bytes that may be used; 0: three quarters of what is free */
    const basin_watch *watch; /* of opening; or NULL */
} basin_nodes_live_options;

typedef struct basin_nodes_live_score {
    int64_t node;         /* its number; -1: there is no such node, and the rest is 0 */
    double probability;   /* calibrated, as basin_nodes_score has it */
    bool anomalous;       /* above the model's threshold */
    int64_t nodes, edges; /* of the neighbourhood that was computed */
    bool
        capped; /* the neighbourhood went on: beyond it nodes count as in the base, or not at all */
} basin_nodes_live_score;

/* Model and network must stay open as long. Several threads may score and add at the same time. */
BASIN_API basin_status basin_nodes_live_open(basin_nodes_live **live,
                                             const basin_nodes_model *model,
                                             const basin_network *network,
                                             const basin_nodes_live_options *options,
                                             basin_error *error);
BASIN_API void basin_nodes_live_close(basin_nodes_live *live);
/* Nodes by their ids, as basin_network_id prints them. */
BASIN_API basin_status basin_nodes_live_get(basin_nodes_live_score *score /* [count] */,
                                            basin_nodes_live *live,
                                            const char *const *id /* [count] */, int64_t count,
                                            basin_error *error);
/* Rows of tables as CSV with a header, in the columns of the base's (docs/tables.md); NULL: none.
 * Ends of edges must be nodes of base or additions, or rows of `nodes`. All of it is taken, or
 * after an error nothing. */
BASIN_API basin_status basin_nodes_live_add(basin_nodes_live *live, const char *nodes,
                                            const char *edges, basin_error *error);

/* Why a node scores as it does, by its distance from a typical node: one whose features are the
 * medians over the graph, in this node's place, with neighbours that are typical, too. */
typedef struct basin_nodes_neighbour {
    int64_t node;
    double share;    /* of the node's attention, mean over heads, blocks and relations */
    double returned; /* of this neighbour's own attention that the node gets */
    double push;     /* what of the logit's distance comes through this neighbour */
    double probability;
} basin_nodes_neighbour;

typedef struct basin_nodes_feature {
    int64_t column; /* of the network's features; beyond them the number of neighbours in a
                       relation; -1: the share of anomalies among neighbours that were trained on */
    int64_t hop;    /* 0: its own, 1: of its neighbours, ..; the last one also means further away */
    double value;   /* its own, or the mean over neighbours, as the table has it; NaN: not known */
    double typical; /* the median over the graph */
    double share;   /* of the logit's distance: integrated gradients of the network, Shapley values
                       of trees, each with its weight */
    int64_t fact;   /* which total of what edges carry it is; -1: none */
    int64_t known,
        anomalous; /* of column -1: nodes at that hop that were trained on, and of these */
} basin_nodes_feature;

/* The library makes these; fields may be added at the end. Both lists tell the same distance:
 *
 *     logit - typical_logit = sum of feature[].share + rest + missed
 *                           = own + sum of neighbour[].push + rest + missed
 *
 * `missed` is within a fiftieth of the distance wherever steps of the integral that are fine enough
 * for that can be had. */
typedef struct basin_nodes_explanation {
    int64_t node;
    double probability, threshold;
    int64_t rank; /* 1: the highest of all nodes */
    double logit; /* of the score before calibration */
    double typical_logit;
    bool has_energy;                    /* the model has form energy */
    double energy, attention, hopfield; /* at the end of the descent */
    double energy_mean, energy_deviation;
    double energy_below; /* the part of all nodes with a lower energy */
    int64_t neighbours, features;
    basin_nodes_neighbour *neighbour; /* [neighbours] by falling size of their push */
    basin_nodes_feature *feature;     /* [features] by falling size of their share */
    bool nearby;        /* the graph does not fit a plan: energies and attention are not known */
    bool has_attention; /* shares of attention are known */
    double own;         /* what comes from the node's own features */
    double rest;        /* what comes from the graph further away than was looked at */
    double missed;      /* what the steps of the integral leave of the distance; small */
    bool completed;     /* without labels: shares are those of the energy, `typical` what was
                           completed from neighbours; there are no logits, and no neighbours */
} basin_nodes_explanation;

/* Of nodes in one pass; free each. Of several classes: the odds of class work->number against all
 * others, in the words of a detector of it. */
BASIN_API basin_status basin_nodes_explain(basin_nodes_explanation **explanation /* [count] */,
                                           const basin_nodes_model *model,
                                           const basin_network *network,
                                           const int64_t *node /* [count] */, int64_t count,
                                           const basin_nodes_work *work, basin_error *error);
BASIN_API void basin_nodes_explanation_free(basin_nodes_explanation *explanation);

/* What a feature of an explanation is called: "amount", "amount, mean 1 hop away", "number of
 * neighbours", "known anomalies, mean 1 hop away". */
enum { BASIN_REASON_TEXT = 300 };
BASIN_API const char *basin_nodes_reason_name(char text[BASIN_REASON_TEXT],
                                              const basin_network *network,
                                              const basin_nodes_feature *feature);
/* The n-th (from 0) of the features that raise the score: "amount 15200 (typical 320) +2.31"; ""
 * where there are fewer. `schema` is the model's. */
BASIN_API const char *basin_nodes_reason_print(char text[BASIN_REASON_TEXT],
                                               const basin_nodes_explanation *explanation,
                                               const basin_network *network,
                                               const basin_schema *schema, int n);

/* ---- without labels ---- */

/* How odd every node is, without labels and without a model: an Energy Transformer learns, on this
 * network, to complete nodes whose features are hidden from their neighbours by descent; the energy
 * of a node is what it is off by when it is hidden itself, half the squared distance, summed over
 * scaled features. *stopped: the watcher stopped it, and energies are not there, nor explanations
 * (work->odd). */
BASIN_API basin_status basin_nodes_unsupervised(double *energy /* [N] */, bool *stopped,
                                                const basin_network *network, uint64_t seed,
                                                basin_backend *backend,
                                                const basin_nodes_work *work, basin_error *error);

/* ---- a page ---- */

/* What a page on a model and the nodes that it scores has. Zero in place of numbers: the default.
 */
typedef struct basin_nodes_reporting {
    const char *model;   /* what the page calls the model */
    const uint8_t *part; /* [N] BASIN_PART_TEST for nodes to judge by; NULL: all labelled ones */
    int64_t alerts;      /* to list with their reasons; 0: 20 */
    int64_t reasons;     /* of each; 0: 6 */
    const basin_nodes_work *work;
} basin_nodes_reporting;

/* Writes one page of HTML that needs no other file, or the JSON document that it shows (path ends
 * in .json, or NULL: stdout; docs/reports.md has the schema): curves, probabilities beside
 * frequencies, scores, the highest of them with their reasons, columns and their drift, what the
 * model is. */
BASIN_API basin_status basin_nodes_report(const char *path, const basin_nodes_model *model,
                                          const basin_network *network,
                                          const basin_nodes_reporting *reporting,
                                          basin_error *error);

/* ---- figures ---- */

/* Of a detector's probabilities (model NULL, or a detector): "macro_f1" at the threshold, "auroc",
 * "auprc", "recall_at_k" (k: as many as there are anomalies) and "ece" (how far probabilities are
 * from frequencies, basin/tasks/calibration.h) over the nodes of part `which`, from 0 to 1. Of
 * several classes: "accuracy", "macro_f1", "auroc" (mean over classes of each against the others)
 * and "loss" (mean of -log p); labels are the model's classes by name, and a node of a class that
 * the model does not know counts as a mistake. */
BASIN_API basin_status basin_nodes_measure(basin_score *score,
                                           const double *probability /* [N], or [N, classes] */,
                                           const basin_nodes_model *model,
                                           const basin_network *network,
                                           const uint8_t *part /* [N] */, int which,
                                           double threshold, basin_error *error);
/* matrix[truth * C + prediction], counts of nodes; those of unknown class are left out. */
BASIN_API basin_status basin_nodes_confusion(int64_t *matrix /* [C, C] */,
                                             const double *probability /* [N, C] */,
                                             const basin_nodes_model *model,
                                             const basin_network *network,
                                             const uint8_t *part /* [N] */, int which,
                                             basin_error *error);

/* A back-test: what a model reaches on labels that came later. */
enum { BASIN_NODES_BUDGETS = 12 };
typedef struct basin_nodes_budget {
    int64_t alerts; /* so many of the highest probabilities; equal ones count by their share */
    double precision, recall;
} basin_nodes_budget;
typedef struct basin_nodes_figures {
    int64_t nodes, anomalous;         /* that were judged */
    int64_t trained_on, validated_on; /* of these; -1: the model does not say */
    double auroc, auprc, recall_at_k;
    double threshold; /* at which: */
    int64_t alerts;
    double precision, recall, f1, macro_f1;
    basin_reliability reliability;
    int budgets;
    basin_nodes_budget budget[BASIN_NODES_BUDGETS];
} basin_nodes_figures;

/* Over the nodes of part `which`; all labelled ones where `part` is NULL. Without a model the
 * scores may be any numbers, and reliability stays zero. */
BASIN_API basin_status basin_nodes_backtest(basin_nodes_figures *figures,
                                            const basin_nodes_model *model,
                                            const basin_network *network,
                                            const double *probability /* [N] */,
                                            const uint8_t *part /* [N] */, int which,
                                            double threshold, basin_error *error);
/* Which nodes took part in training: BASIN_PART_TRAIN, BASIN_PART_VAL or BASIN_PART_NONE of each.
 * They are known by their ids; without ids, in the network of training alone. BASIN_UNSUPPORTED:
 * the model does not say, or these nodes cannot be told. */
BASIN_API basin_status basin_nodes_seen(uint8_t *seen /* [N] */, const basin_nodes_model *model,
                                        const basin_network *network, basin_error *error);

/* How far a column has moved since training. */
typedef struct basin_nodes_drift_column {
    char name[128];
    bool category, date; /* its kind; else a number */
    double index;        /* population stability index: below 0.1 little, above 0.25 much */
    int level;           /* 0: little, or what chance gives so few nodes; 1: some; 2: much */
    double then, now;    /* medians; of a category the share of nodes with none of its values */
} basin_nodes_drift_column;

typedef struct basin_nodes_drift {
    int64_t nodes; /* that were looked at */
    bool few;      /* too few to tell: no column has a level */
    int64_t some, large;
    int64_t columns;
    basin_nodes_drift_column *column; /* [columns] by falling index */
} basin_nodes_drift;

/* Columns of the table, and the number of neighbours, of the nodes from `first` on, beside all
 * nodes of training's network. BASIN_UNSUPPORTED: the model's file is of an earlier version. */
BASIN_API basin_status basin_nodes_drift_measure(basin_nodes_drift *drift,
                                                 const basin_nodes_model *model,
                                                 const basin_network *network, int64_t first,
                                                 basin_error *error);
BASIN_API void basin_nodes_drift_free(basin_nodes_drift *drift);

/* XGBoost beside which a detector is judged, where its library (Debian's libxgboost0) is there, on
 * features, degrees and their means over two hops. */
typedef struct basin_nodes_rival {
    double threshold; /* of the best macro-F1 on validation */
    int64_t trees;    /* as many as validation AUPRC asks for */
} basin_nodes_rival;
/* Of `training` memory and the watcher count. */
BASIN_API basin_status basin_nodes_train_xgboost(double *probability /* [N] */,
                                                 basin_nodes_rival *rival, int64_t seed,
                                                 const basin_network *network,
                                                 const uint8_t *part /* [N] */,
                                                 const basin_training_options *training,
                                                 basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
