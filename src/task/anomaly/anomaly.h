/* Anomaly detection as a task: from a network and a split to a trained detector, scores, figures
 * and reasons. Nothing here prints; commands do.
 *
 *     basin_anomaly_recipe recipe;
 *     basin_anomaly_preset(&recipe, "default", &error);
 *     basin_anomaly_fit(&detector, network, part, &recipe, &work, &error);
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
 * recipe may have "none", or "auto" for those that validation prefers. Of equals, the first. */
#define BASIN_ANOMALY_SCALINGS(X)                                                                  \
    X("both", "standard+quantile+bins")                                                            \
    X("standard", "both+quantile+bins")                                                            \
    X("quantile", "both+standard+bins")                                                            \
    X("bins", "both+standard+quantile")
#define BASIN_SCALING_ALONE(name, others) name,
#define BASIN_SCALING_OTHERS(name, others) others,

/* Everything that decides what is trained and how; a model file carries it. Choices are strings of
 * the table basin_anomaly_settings. */
typedef struct basin_anomaly_recipe {
    /* what a node is described by */
    const char *scaling;    /* of features, fitted on training nodes; joined by + where members see
                             * different ones */
    int64_t hops;           /* means of the features over so many hops stand beside them; -1 here
                             * and "auto" above: validation chooses, with a quick MLP */
    bool degree;            /* so does the logarithm of the number of neighbours */
    const char *relations;  /* one: the whole graph; max, concat: each relation by itself */
    const char *self_loops; /* keep, drop, add */
    /* the model */
    const char *form; /* energy: the paper's; published: its code's; linear, mlp: baselines */
    int64_t dim, heads, head_dim, memories, blocks, steps;
    double alpha;
    const char *position; /* none, learned, laplacian */
    int64_t eigenvectors;
    int64_t embedding, hidden; /* units of the hidden layers before and after; 0: none */
    bool attention, hopfield, concat, learn_beta; /* off: ablations */
    double degree_power; /* a node's attention energy weighs its degree to this power */
    double query_init;   /* deviation of the first wk and wq */
    double dropout;
    /* training */
    int64_t epochs, patience, warmup;
    int64_t evaluate; /* epochs between looks at validation */
    double rate, decay, clip;
    double average;        /* of weights over steps: w' = average w' + (1 - average) w; 0: none */
    const char *select;    /* macro_f1, auroc, auprc: of validation, chooses the epoch */
    const char *threshold; /* all, grid, smooth: how validation chooses it */
    const char *balance;   /* full, root, none: weight of anomalies against the class ratio */
    const char *sampling;  /* auto, full, subgraph, neighbours */
    double fraction;       /* of the training nodes in a subgraph */
    int64_t batch, fanout; /* of neighbour sampling: targets, neighbours of each node a step */
    int64_t members;       /* detectors trained from different seeds and averaged; 0: 6, 3 or 1,
                            * fewer the larger the graph */
    int64_t seed;
} basin_anomaly_recipe;

/* The default: made to do well on any graph, tuned to none. */
#define BASIN_ANOMALY_DEFAULT                                                                      \
    {                                                                                              \
        .scaling = "auto", .hops = -1, .degree = true, .relations = "one", .self_loops = "drop",   \
        .form = "energy", .dim = 64, .heads = 2, .head_dim = 32, .memories = 128, .blocks = 2,     \
        .steps = 1, .alpha = 1, .position = "none", .eigenvectors = 16, .hidden = 64,              \
        .attention = true, .hopfield = true, .concat = true, .learn_beta = true,                   \
        .query_init = 0.05, .dropout = 0.2, .epochs = 300, .evaluate = 2, .patience = 50,          \
        .warmup = 10, .rate = 3e-3, .decay = 0.02, .clip = 1, .average = 0.95, .select = "auprc",  \
        .threshold = "smooth", .balance = "root", .sampling = "auto", .fraction = 0.05,            \
        .batch = 1024, .fanout = 16,                                                               \
    }

extern const basin_setting basin_anomaly_settings[];

/* "default"; "paper" and "amazon", "yelp", "tfinance", "tsocial" and the same with "-1" for the
 * rows of the paper's table. */
basin_status basin_anomaly_preset(basin_anomaly_recipe *recipe, const char *name,
                                  basin_error *error);
extern const char basin_anomaly_presets[]; /* "default|paper|..." */
basin_status basin_anomaly_check(const basin_anomaly_recipe *recipe, basin_error *error);

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
    basin_anomaly_recipe recipe;
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
                               const uint8_t *part /* [N] */, const basin_anomaly_recipe *recipe,
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
 * features, and the same with one- and two-hop means. Each is a recipe; of several strengths of
 * weight decay and ways of scaling validation chooses. */
enum { BASIN_BASELINES = 4 };
extern const char *const basin_baseline_name[BASIN_BASELINES];
basin_status basin_baseline_fit(double *probability /* [N] */, int64_t *epoch, int which,
                                const basin_network *network, const uint8_t *part, int64_t seed,
                                const basin_anomaly_work *work, basin_error *error);

#endif
