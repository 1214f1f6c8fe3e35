/* Anomalous nodes of a graph: a detector learns from the labelled nodes of a network, gives every
 * node of this network, or of another with the same features, a probability, and says why.
 *
 *     basin_anomaly_model *model;
 *     if (basin_anomaly_open(&model, "model.safetensors", backend, &error) ||
 *         basin_anomaly_score(probability, model, network, NULL, &error))
 *         return fprintf(stderr, "%s\n", error.text), 1;
 *     for (int64_t i = 0; i < network->nodes; i++)
 *         if (probability[i] > basin_anomaly_threshold(model)) ... node i is anomalous ...
 *     basin_anomaly_close(model);
 *
 * Training takes settings (basin/tasks/settings.h), data and a basin_training (basin/tasks/run.h):
 *
 *     basin_settings_new(&settings, "anomaly", NULL, &error);
 *     basin_anomaly_data data = {.size = sizeof data, .network = network};
 *     basin_training training = {.size = sizeof training, .backend = backend,
 *                                .output = "model.safetensors"};
 *     basin_anomaly_train(NULL, &outcome, settings, &data, &training, &error);
 *
 * A network comes from files (basin_network_open) or from arrays (basin_network_from_arrays).
 * examples/10_score_nodes.c is a whole program. */
#ifndef BASIN_TASKS_ANOMALY_H
#define BASIN_TASKS_ANOMALY_H

#include "basin/calibration.h"
#include "basin/tasks/network.h"
#include "basin/tasks/run.h"
#include "basin/tasks/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct basin_anomaly_model basin_anomaly_model;

/* ---- models ---- */

/* Reads a model file. `backend` must stay open as long as the model. */
BASIN_API basin_status basin_anomaly_open(basin_anomaly_model **model, const char *path,
                                          basin_backend *backend, basin_error *error);
BASIN_API void basin_anomaly_close(basin_anomaly_model *model);
BASIN_API basin_status basin_anomaly_write(const char *path, const basin_anomaly_model *model,
                                           basin_error *error);
/* What it is: its settings, with everything that training chose. */
BASIN_API const basin_settings *basin_anomaly_get_settings(const basin_anomaly_model *model);
/* What the columns of its training meant: for basin_network_options, so that what is scored is read
 * the same way. NULL: a file of 0.1, which goes by the order of columns alone. */
BASIN_API const basin_schema *basin_anomaly_get_schema(const basin_anomaly_model *model);
/* Numbers that one of its members learned. */
BASIN_API int64_t basin_anomaly_parameters(const basin_anomaly_model *model);
/* How many members are averaged. */
BASIN_API int64_t basin_anomaly_members(const basin_anomaly_model *model);
/* Nodes of the network that it was trained on. */
BASIN_API int64_t basin_anomaly_nodes(const basin_anomaly_model *model);
/* The probability above which a node counts as anomalous; validation chose it. */
BASIN_API double basin_anomaly_threshold(const basin_anomaly_model *model);
/* Another one, which a file written afterwards has, too. */
BASIN_API void basin_anomaly_set_threshold(basin_anomaly_model *model, double threshold);
/* A threshold for a goal. "precision=0.9": the most alerts of which nine in ten are right,
 * "recall=0.8": the fewest that find four anomalies in five, both by the validation nodes that the
 * model keeps; "alerts=100": at most so many of these probabilities lie above it. Without a model
 * (NULL), before one is trained: whether the goal is one. */
BASIN_API basin_status basin_anomaly_threshold_for(double *threshold,
                                                   const basin_anomaly_model *model,
                                                   const char *goal,
                                                   const double *probability /* [nodes] */,
                                                   int64_t nodes, basin_error *error);
/* The share of the network's logit in the detector's, which trees have the rest of; 1: no trees. */
BASIN_API double basin_anomaly_share(const basin_anomaly_model *model);
/* What made frequencies of its probabilities: "none", "platt", "isotonic". */
BASIN_API const char *basin_anomaly_calibration(const basin_anomaly_model *model);

/* What a model knows of its training. The library makes these; fields may be added at the end. */
typedef struct basin_anomaly_card {
    char date[16];        /* the day that training began, UTC: "2026-11-15" */
    char version[16];     /* of Basin */
    char data[256];       /* what it was trained on, as messages call it */
    int64_t nodes, edges; /* of that network; edges as the largest relation counts them */
    int64_t trained_on, validated_on; /* labelled nodes */
    double base_rate;                 /* of anomalies among those trained on */
    basin_score validation;           /* what was reached there; without measures: no validation */
} basin_anomaly_card;
/* NULL: the file is of an earlier version. */
BASIN_API const basin_anomaly_card *basin_anomaly_get_card(const basin_anomaly_model *model);

/* ---- training ---- */

/* A network, given as it is or by files, and who trains and who validates. */
typedef struct basin_anomaly_data {
    size_t size; /* sizeof(basin_anomaly_data): fields beyond it are taken as zero */
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
    struct basin_parts *parts; /* a graph in parts, in place of network and path; or NULL */
} basin_anomaly_data;

/* Trains; validation chooses epoch and threshold. `model` may be NULL where the file is all that
 * is wanted. After an interrupt the model holds what was learnt, with 0.5 as its threshold, and is
 * NULL where there was no first step. */
BASIN_API basin_status basin_anomaly_train(basin_anomaly_model **model, basin_outcome *outcome,
                                           const basin_settings *settings,
                                           const basin_anomaly_data *data,
                                           const basin_training *training, basin_error *error);

/* Of a model that was trained just now, not read from a file: */

/* The probabilities of the network's nodes, [N]; NULL without validation nodes. */
BASIN_API const double *basin_anomaly_scores(const basin_anomaly_model *model);
/* What these reach on a part of the nodes, see basin_anomaly_measure; NULL: there are none. */
BASIN_API const basin_score *basin_anomaly_reached(const basin_anomaly_model *model, int part);
/* Its probabilities beside frequencies on a part of the nodes; NULL: there are none. */
BASIN_API const basin_reliability *basin_anomaly_reliability(const basin_anomaly_model *model,
                                                             int part);
/* What the trees or the network of an ensemble reach alone, each with a threshold of
 * its own; NULL: there are no trees. Of a file: AUROC and AUPRC on validation. */
enum { BASIN_ANOMALY_TREES, BASIN_ANOMALY_NETWORK };
BASIN_API const basin_score *basin_anomaly_reached_alone(const basin_anomaly_model *model,
                                                         int which, int part);
/* What it was trained on, in words: "the full graph in 0.21 GiB of 5.8 allowed". */
BASIN_API const char *basin_anomaly_trained_on(const basin_anomaly_model *model);

/* ---- use ---- */

/* How scoring and explaining may go about it. NULL in place of it: all zeros. */
typedef struct basin_anomaly_work {
    size_t size;              /* sizeof(basin_anomaly_work) */
    const basin_watch *watch; /* or NULL */
    size_t memory;            /* bytes that may be used; 0: three quarters of what is free */
    bool least; /* take little memory in any case: scores streamed, reasons from nearby nodes */
    struct basin_parts *parts; /* scoring: the graph in parts; the network is their face. Or NULL */
} basin_anomaly_work;

/* The probability of every node to be anomalous. Nodes are scored with all their neighbours; a
 * graph that does not fit into the memory allowed is streamed. */
BASIN_API basin_status basin_anomaly_score(double *probability /* [N] */,
                                           const basin_anomaly_model *model,
                                           const basin_network *network,
                                           const basin_anomaly_work *work, basin_error *error);

/* Why a node scores as it does, by its distance from a typical node: one whose features are the
 * medians over the graph, in this node's place, with neighbours that are typical, too. */
typedef struct basin_anomaly_neighbour {
    int64_t node;
    double share;    /* of the node's attention, mean over heads, blocks and relations */
    double returned; /* of this neighbour's own attention that the node gets */
    double push;     /* what of the logit's distance comes through this neighbour */
    double probability;
} basin_anomaly_neighbour;

typedef struct basin_anomaly_feature {
    int64_t column; /* of the network's features; beyond them the number of neighbours in a
                       relation; -1: the share of anomalies among neighbours that were trained on */
    int64_t hop;    /* 0: its own, 1: of its neighbours, ..; the last one also means further away */
    double value;   /* its own, or the mean over neighbours, as the table has it; NaN: not known */
    double typical; /* the median over the graph */
    double share;   /* of the logit's distance: integrated gradients of the network, Shapley values
                       of trees, each with its weight */
    int64_t fact; /* which total of what edges carry it is, for basin_anomaly_fact_name; -1: none */
} basin_anomaly_feature;

enum { BASIN_FACT_TEXT = 220 };

/* In words: "amount mean of edges", of a directed network "amount mean of edges that come" or "that
 * go". */
BASIN_API void basin_anomaly_fact_name(char text[BASIN_FACT_TEXT], const basin_network *network,
                                       int64_t fact);

/* The library makes these; fields may be added at the end. Both lists tell the same distance:
 *
 *     logit - typical_logit = sum of feature[].share + rest
 *                           = own + sum of neighbour[].push + rest
 *
 * up to the steps of the integral: mostly within a fiftieth of the distance. */
typedef struct basin_anomaly_explanation {
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
    basin_anomaly_neighbour *neighbour; /* [neighbours] by falling size of their push */
    basin_anomaly_feature *feature;     /* [features] by falling size of their share */
    bool nearby;        /* the graph does not fit a plan: energies and attention are not known */
    bool has_attention; /* shares of attention are known */
    double own;         /* what comes from the node's own features */
    double rest;        /* what comes from the graph further away than was looked at */
} basin_anomaly_explanation;

BASIN_API basin_status basin_anomaly_explain(basin_anomaly_explanation **explanation,
                                             const basin_anomaly_model *model,
                                             const basin_network *network, int64_t node,
                                             const basin_anomaly_work *work, basin_error *error);
/* Of many nodes in one pass. `probability` is what basin_anomaly_score gave, or NULL: scored here.
 * `brief`: without energies and attention. Free each. */
BASIN_API basin_status basin_anomaly_explain_nodes(
    basin_anomaly_explanation **explanation /* [count] */, const basin_anomaly_model *model,
    const basin_network *network, const int64_t *node /* [count] */, int64_t count,
    const double *probability /* [N] */, bool brief, const basin_anomaly_work *work,
    basin_error *error);
BASIN_API void basin_anomaly_explanation_free(basin_anomaly_explanation *explanation);

/* What a feature of an explanation is called: "amount", "amount, mean 1 hop away", "number of
 * neighbours", "known anomalies, mean 1 hop away". */
enum { BASIN_REASON_TEXT = 300 };
BASIN_API const char *basin_anomaly_reason_name(char text[BASIN_REASON_TEXT],
                                                const basin_network *network,
                                                const basin_anomaly_feature *feature);
/* The n-th (from 0) of the features that raise the score: "amount 15200 (typical 320) +2.31"; ""
 * where there are fewer. `schema` is the model's. */
BASIN_API const char *basin_anomaly_reason_print(char text[BASIN_REASON_TEXT],
                                                 const basin_anomaly_explanation *explanation,
                                                 const basin_network *network,
                                                 const basin_schema *schema, int n);

/* ---- without labels ---- */

/* How odd every node is, without labels and without a model: an Energy Transformer learns, on this
 * network, to complete nodes whose features are hidden from their neighbours by descent; the energy
 * of a node is what it is off by when it is hidden itself, half the squared distance, summed over
 * scaled features. *stopped: the watcher stopped it, and energies are not there. */
BASIN_API basin_status basin_anomaly_unsupervised(double *energy /* [N] */, bool *stopped,
                                                  const basin_network *network, uint64_t seed,
                                                  basin_backend *backend,
                                                  const basin_anomaly_work *work,
                                                  basin_error *error);

/* ---- a page ---- */

/* What a page on a model and the nodes that it scores has. Zero in place of numbers: the default.
 */
typedef struct basin_anomaly_reporting {
    size_t size;         /* sizeof(basin_anomaly_reporting) */
    const char *model;   /* what the page calls the model */
    const uint8_t *part; /* [N] BASIN_PART_TEST for nodes to judge by; NULL: all labelled ones */
    int64_t alerts;      /* to list with their reasons; 0: 20 */
    int64_t reasons;     /* of each; 0: 6 */
    const basin_anomaly_work *work;
} basin_anomaly_reporting;

/* Writes one page of HTML that needs no other file, or the JSON document that it shows (path ends
 * in .json, or NULL: stdout; docs/reports.md has the schema): curves, probabilities beside
 * frequencies, scores, the highest of them with their reasons, columns and their drift, what the
 * model is. */
BASIN_API basin_status basin_anomaly_report(const char *path, const basin_anomaly_model *model,
                                            const basin_network *network,
                                            const basin_anomaly_reporting *reporting,
                                            basin_error *error);

/* ---- figures ---- */

/* The threshold of the best macro-F1 on validation nodes; `scan` is what the setting threshold may
 * be: "all", "grid" or "smooth". */
BASIN_API basin_status basin_anomaly_choose_threshold(double *threshold,
                                                      const double *probability /* [N] */,
                                                      const basin_network *network,
                                                      const uint8_t *part /* [N] */,
                                                      const char *scan, basin_error *error);
/* "macro_f1" at the threshold, "auroc", "auprc", "recall_at_k" (k: as many as there are anomalies)
 * and "ece" (how far probabilities are from frequencies, basin/calibration.h) over the nodes of
 * part `which`, from 0 to 1. */
BASIN_API basin_status basin_anomaly_measure(basin_score *score,
                                             const double *probability /* [N] */,
                                             const basin_network *network,
                                             const uint8_t *part /* [N] */, int which,
                                             double threshold, basin_error *error);

/* A back-test: what a model reaches on labels that came later. */
enum { BASIN_ANOMALY_BUDGETS = 12 };
typedef struct basin_anomaly_budget {
    int64_t alerts; /* so many of the highest probabilities; equal ones count by their share */
    double precision, recall;
} basin_anomaly_budget;
typedef struct basin_anomaly_figures {
    int64_t nodes, anomalous;         /* that were judged */
    int64_t trained_on, validated_on; /* of these; -1: the model does not say */
    double auroc, auprc, recall_at_k;
    double threshold; /* at which: */
    int64_t alerts;
    double precision, recall, f1, macro_f1;
    basin_reliability reliability;
    int budgets;
    basin_anomaly_budget budget[BASIN_ANOMALY_BUDGETS];
} basin_anomaly_figures;

/* Over the nodes of part `which`; all labelled ones where `part` is NULL. Without a model the
 * scores may be any numbers, and reliability stays zero. */
BASIN_API basin_status basin_anomaly_backtest(basin_anomaly_figures *figures,
                                              const basin_anomaly_model *model,
                                              const basin_network *network,
                                              const double *probability /* [N] */,
                                              const uint8_t *part /* [N] */, int which,
                                              double threshold, basin_error *error);
/* Which nodes took part in training: BASIN_PART_TRAIN, BASIN_PART_VAL or BASIN_PART_NONE of each.
 * They are known by their ids; without ids, in the network of training alone. BASIN_UNSUPPORTED:
 * the model does not say, or these nodes cannot be told. */
BASIN_API basin_status basin_anomaly_seen(uint8_t *seen /* [N] */, const basin_anomaly_model *model,
                                          const basin_network *network, basin_error *error);

/* How far a column has moved since training. */
typedef struct basin_anomaly_drift_column {
    char name[128];
    bool category, date; /* its kind; else a number */
    double index;        /* population stability index: below 0.1 little, above 0.25 much */
    int level;           /* 0: little, or what chance gives so few nodes; 1: some; 2: much */
    double then, now;    /* medians; of a category the share of nodes with none of its values */
} basin_anomaly_drift_column;

typedef struct basin_anomaly_drift {
    int64_t nodes; /* that were looked at */
    bool few;      /* too few to tell: no column has a level */
    int64_t some, large;
    int64_t columns;
    basin_anomaly_drift_column *column; /* [columns] by falling index */
} basin_anomaly_drift;

/* Columns of the table, and the number of neighbours, of the nodes from `first` on, beside all
 * nodes of training's network. BASIN_UNSUPPORTED: the model's file is of an earlier version. */
BASIN_API basin_status basin_anomaly_drift_measure(basin_anomaly_drift *drift,
                                                   const basin_anomaly_model *model,
                                                   const basin_network *network, int64_t first,
                                                   basin_error *error);
BASIN_API void basin_anomaly_drift_free(basin_anomaly_drift *drift);

/* The plain models beside which a detector is judged: logistic regression and an MLP on the
 * features, and the same with one- and two-hop means. Validation chooses weight decay, scaling and
 * epoch. Of `training` backend, memory and the watcher's stop count. */
enum { BASIN_ANOMALY_BASELINES = 4 };
BASIN_API const char *basin_anomaly_baseline_name(int which);
BASIN_API basin_status basin_anomaly_baseline(basin_anomaly_model **model, basin_outcome *outcome,
                                              int which, int64_t seed, const basin_network *network,
                                              const uint8_t *part /* [N] */,
                                              const basin_training *training, basin_error *error);

/* XGBoost's probabilities, where its library (Debian's libxgboost0) is there: trained on features,
 * degrees and their means over two hops, with *rounds trees by validation AUPRC. Of `training` the
 * memory and the watcher count. */
BASIN_API basin_status basin_anomaly_xgboost(double *probability /* [N] */, int64_t *rounds,
                                             int64_t seed, const basin_network *network,
                                             const uint8_t *part /* [N] */,
                                             const basin_training *training, basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
