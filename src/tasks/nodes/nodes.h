/* Models of nodes inside the library: settings, the model, and what is handed from file to file. A
 * detector of anomalies is the case of two classes with one logit per node. From the top down:
 *
 *     train.c, fit.c        a run from data to a model; training with settings that are settled
 *     score.c, stream.c, parts.c   scores: as one plan, streamed, of a graph that is cut over ranks
 *     features.c   the table of features that all of them read
 *     batch.c, inputs.c, net.c     what a step reads, and the expressions
 *     settings.c, model.c, card.c, drift.c   settings, the model's file, memory of its training
 *     classes.c    several classes: their names, inputs and figures
 *     known.c, table.c, forest.c, mix.c   known labels, boosted trees, calibration, thresholds
 *     explain*.c, report.c, rivals.c   why nodes score as they do; a page; XGBoost to compare with
 */
#ifndef BASIN_TASK_NODES_NODES_H
#define BASIN_TASK_NODES_NODES_H

#include "basin/tasks/nodes.h"
#include "tasks/common/calibration.h"
#include "tasks/nodes/anomaly.h"
#include "tasks/nodes/network/network.h"
#include "tasks/nodes/trees/trees.h"

/* ---- labels of training nodes, for trees; found by ids, or by number in the network of training.
 * Labels of the network that is scored are never read. ---- */

/* What hashes of ids begin with, so that those of two models cannot be compared. */
typedef struct basin_salt {
    bool set; /* else a file of earlier versions: plain hashes */
    uint8_t byte[16];
} basin_salt;

typedef struct basin_known_labels {
    int64_t count;
    uint64_t *id;   /* [count] hashes, ascending */
    uint8_t *label; /* [count]; NULL: only that they took part is known */
    basin_salt salt;
    bool named;           /* by ids; else by number */
    int64_t nodes, edges; /* of the network of training */
} basin_known_labels;

/* Those of the nodes of part `which`; `labels`: with what they are. */
basin_status basin_known_labels_take(basin_known_labels *known, const basin_network *network,
                                     const uint8_t *part /* [N] */, int which, bool labels,
                                     const basin_salt *salt, basin_error *error);
/* Adds the nodes of `more`, without labels; *fits: whether ids and hashes can be compared. */
basin_status basin_known_labels_join(basin_known_labels *known, bool *fits,
                                     const basin_known_labels *more, basin_error *error);
void basin_known_labels_free(basin_known_labels *known);
/* Whether nodes of the network can be found: both have ids, or it is the network of training. */
bool basin_known_labels_fit(const basin_known_labels *known, const basin_network *network);
/* Fills `label` [N]: 0 (also without a label), 1, or -1 unknown; returns how many are known. */
int64_t basin_known_labels_find(int8_t *label, const basin_known_labels *known,
                                const basin_network *network);

/* In files PREFIXid, PREFIXlabel, ..; one that was not stored is loaded as none. */
basin_status basin_known_labels_store(basin_bundle *bundle, const char *prefix,
                                      const basin_known_labels *known, basin_error *error);
basin_status basin_known_labels_load(basin_known_labels *known, const basin_bundle *bundle,
                                     const char *prefix, basin_error *error);

/* ---- Boosted trees beside an Energy Transformer: a detector's logit is
 *
 *     (1 - share) z_trees + share (scale z_network + shift)
 *     z_trees = sum over views v of weight[v] z_v
 *
 * z_v is the mean over the tree fits of one view, z_network that over members. Some trees see
 * only a node's own columns: means over neighbours are noise where labels are few or the graph
 * says little. Validation chooses the share and the weights, which add up to 1; scale and shift
 * give trees and network the same mean and deviation there. */

enum { BASIN_TREE_RELATIONS = BASIN_MAX_RELATIONS + 1 };

/* Notes columns that by themselves tell label 1 from 0. */
typedef struct basin_leaks {
    const basin_network *network;
    const int32_t *label; /* [N] below 0: left out */
    const float *value;   /* [N, stride], of which `columns` are looked at */
    int64_t stride, columns;
    const char *(*name)(char text[BASIN_MAX_REASON], const void *of, int64_t column);
    const void *of;
} basin_leaks;
basin_status basin_nodes_note_leaks(const basin_leaks *leaks, const basin_watch *watch,
                                    basin_error *error);

enum { BASIN_NODES_LINES = 2560 }; /* names, one per line, as model files have them */
void basin_nodes_add_line(char text[BASIN_NODES_LINES], const char *name);

/* What a fit sees: own columns (plain, or small leaves and weights); also means, and the same
 * taught by the Energy Transformer in context (teach.c); also labels. */
typedef enum basin_tree_view {
    BASIN_VIEW_OWN,
    BASIN_VIEW_OWN_WEIGHTED,
    BASIN_VIEW_HOPS,
    BASIN_VIEW_TAUGHT,
    BASIN_VIEW_KNOWN,
    BASIN_TREE_VIEWS, /* of these fits are grown; files of earlier versions also have */
    BASIN_VIEW_NET_OWN = BASIN_TREE_VIEWS, /* an Energy Transformer over rows of own columns */
    BASIN_VIEW_NET_ALL,                    /* and one over rows of all columns */
    BASIN_READ_VIEWS
} basin_tree_view;

typedef struct basin_nodes_ensemble {
    int64_t fits;                     /* of all views */
    int64_t seeing[BASIN_READ_VIEWS]; /* fits of each view, one view after the other */
    double weight[BASIN_READ_VIEWS];  /* of a view's mean */
    basin_trees **trees;              /* [fits] */
    basin_known_labels known;
    double rate;                       /* of anomalies among them */
    bool degree;                       /* degrees are among the inputs, */
    bool facts;                        /* and totals of what edges carry */
    char relations[BASIN_NODES_LINES]; /* names of those that means run along, one per line */
    double share, scale, shift;
    /* What trees and network reach by themselves, by part; from a file: only validation. */
    basin_score alone[2][BASIN_SPLIT_PARTS];
} basin_nodes_ensemble;

void basin_nodes_ensemble_free(basin_nodes_ensemble *ensemble);

/* ---- features.c: the one table of features, which trees, the network and scores of single nodes
 * read. A row has the node's own columns (features, logarithms of degrees, totals of edges), blocks
 * of their means over neighbours, and for trees sums of known labels. ---- */

struct basin_near_graph;

typedef struct basin_node_table {
    const basin_network *network;
    int64_t halo; /* rows after those of the network's nodes: of nodes that a part sees */
    int relations, relation[BASIN_TREE_RELATIONS]; /* numbers of the network's */
    int degrees;    /* columns: of each relation, or of edges both ways, that come, that go */
    int64_t facts;  /* columns of totals, after features and degrees */
    int64_t own;    /* features, degrees and totals */
    int64_t means;  /* blocks, from 1 on */
    int chain;      /* a block is the mean of the one before it along this relation; -1: block 1 + r
                       is the mean of the own columns along relation r of the table */
    int64_t stride; /* own (1 + means), and of trees 2 sums per relation */
    float *row;     /* [N + halo, stride] */
    const struct basin_near_graph *grown; /* additions to the network; or NULL */
    int64_t first; /* where rows of this table begin in the numbers of a node that they changed */
} basin_node_table;

/* Counts the columns of a table that has its relations; an error where there are none. */
basin_status basin_node_table_begin(basin_node_table *table, const basin_network *network,
                                    bool degree, bool facts, basin_error *error);
/* The own columns of all nodes; those of one node after additions, with room `total` [facts]. */
basin_status basin_node_table_own(float *x /* [N, stride] */, int64_t stride,
                                  const basin_node_table *table, basin_error *error);
void basin_node_table_own_row(float *x, float *total, const basin_node_table *table, int64_t node);
/* A block for one node; for all, threads 0: all. Blocks before it are there. */
void basin_node_table_mean(float *mean /* [own] */, const basin_node_table *table, int64_t block,
                           int64_t node);
void basin_node_table_means(const basin_node_table *table, int64_t block, int threads);
/* Own columns and means of a node; after additions, means over the rows that are there now. */
void basin_node_table_row(float *x /* [own (1 + means)] */, const basin_node_table *table,
                          int64_t node);
/* The mean of a block over a node's neighbours without itself; 0 where there are none. */
void basin_neighbour_mean(float *mean /* [own] */, const basin_node_table *table, int64_t block,
                          int relation, int64_t node);
static inline int basin_node_table_along(const basin_node_table *table, int64_t block) {
    return table->chain < 0 ? table->relation[block - 1] : table->chain;
}
/* Rows of the halos of this rank's parts, whose tables lie `step` bytes apart. */
basin_status basin_node_tables_fetch(basin_parts *parts, const basin_node_table *first, size_t step,
                                     basin_error *error);

/* ---- table.c: what trees read of a network ---- */

/* Columns of a row: the node table's, unscaled; per relation the means of its means; with known
 * labels two shares per relation. */
typedef struct basin_tree_table {
    basin_node_table node; /* relations: those that the ensemble names; the union comes first */
    int64_t plain;         /* own (1 + 2 relations): columns before the shares */
    int64_t columns;       /* of a row */
    int8_t *label;         /* [N + halo] known ones; NULL: the ensemble keeps none */
    int64_t known;         /* how many there are here */
    double rate;
} basin_tree_table;

/* With the relations that the ensemble names. `memory`: bytes that may be used; 0: any number. */
basin_status basin_tree_table_open(basin_tree_table *table, const basin_network *network,
                                   const basin_nodes_ensemble *ensemble, size_t memory,
                                   basin_error *error);
void basin_tree_table_close(basin_tree_table *table);
/* Known neighbours of a node along relation r of the table: anomalous ones, and all. */
float *basin_known_sums(const basin_tree_table *table, int r, int64_t node);
void basin_known_sums_fill(const basin_tree_table *table, int64_t node); /* all relations */
/* The share of anomalies among known neighbours, and its mean over neighbours without the node
 * itself; both shrunk to `rate`. Undirected edges are seen from both ends. */
void basin_known_shares(float share[2], const basin_tree_table *table, int r, int64_t node);
/* Rows of nodes node[0] .., or first .. where `node` is NULL. */
void basin_tree_table_rows(float *x /* [rows, columns] */, const basin_tree_table *table,
                           const int64_t *node, int64_t first, int64_t rows);

/* The table of a whole graph, or of this rank's parts; all ranks open them together. */
typedef struct basin_tree_tables {
    const basin_network *network; /* of all nodes, with their labels */
    basin_parts *parts;           /* NULL: the whole graph */
    int64_t count;
    basin_tree_table *table; /* [count] */
} basin_tree_tables;

basin_status basin_tree_tables_open(basin_tree_tables *tables, const basin_network *network,
                                    basin_parts *parts, const basin_nodes_ensemble *ensemble,
                                    size_t memory, basin_error *error);
void basin_tree_tables_close(basin_tree_tables *tables);
/* Rows of some nodes of the whole graph, on every rank. */
basin_status basin_tree_tables_rows(float *x /* [rows, columns] */, const basin_tree_tables *tables,
                                    const int64_t *node /* [rows] ascending */, int64_t rows,
                                    basin_error *error);

/* ---- forest.c ---- */

typedef struct basin_tree_rows {
    int64_t *node; /* [trains + validations] */
    float *x;      /* [trains + validations, columns] */
    uint8_t *label;
    double taken[2]; /* share of each class that is here; the rest weighs with it */
    basin_trees_data data;
} basin_tree_rows;
/* Rows of training and validation, at most `max` each; to be freed even after an error. */
basin_status basin_tree_rows_take(basin_tree_rows *rows, const basin_tree_tables *tables,
                                  const uint8_t *part /* [N] */, double max, basin_error *error);
void basin_tree_rows_free(basin_tree_rows *rows);

/* Names the network's relations: the union, or each one where there is none. */
basin_status basin_nodes_ensemble_name(basin_nodes_ensemble *ensemble, const basin_network *network,
                                       basin_error *error);
/* A teacher's output for nodes: probabilities, and labels where they are known. */
typedef struct basin_lesson {
    int64_t *node; /* [count] ascending */
    float *target; /* [count] */
    int64_t count; /* 0: there is no lesson */
} basin_lesson;
/* Grows fits, and those of a lesson, dealt to `ranks` (NULL: all here); a function of seed, parts
 * and lesson. The watcher may stop them early. */
basin_status basin_nodes_ensemble_grow(basin_nodes_ensemble *ensemble, int64_t fits, uint64_t seed,
                                       const basin_tree_tables *tables,
                                       const uint8_t *part /* [N] */, const basin_lesson *lesson,
                                       basin_ranks *ranks, const basin_watch *watch,
                                       basin_error *error);

/* ---- teach.c: the lesson of the Energy Transformer in context where labels are few; free it even
 * after an error. Without the file of its weights a note says so, and there is none. ---- */
basin_status basin_nodes_teach(basin_lesson *lesson, const basin_network *network,
                               const uint8_t *part /* [N] */, basin_backend *backend, size_t memory,
                               const basin_watch *watch, basin_error *error);
void basin_lesson_free(basin_lesson *lesson);

/* What a fit's logit weighs in the trees'. */
double basin_nodes_ensemble_weight(const basin_nodes_ensemble *ensemble,
                                   const basin_tree_table *table, int64_t fit);
basin_status basin_nodes_ensemble_node(double *logit, const basin_nodes_ensemble *ensemble,
                                       const basin_tree_table *table, int64_t node,
                                       basin_error *error);
/* The trees' logits [N]; or per view [BASIN_TREE_VIEWS, N], 0 for a view without fits. */
basin_status basin_nodes_ensemble_logits(double *logit, const basin_nodes_ensemble *ensemble,
                                         const basin_tree_tables *tables, bool views,
                                         basin_error *error);
/* The first, with new tables of the network or of `parts`; an error for other columns. */
basin_status basin_nodes_ensemble_score(double *logit /* [N] */,
                                        const basin_nodes_ensemble *ensemble,
                                        const basin_network *network, basin_parts *parts,
                                        size_t memory, const basin_watch *watch,
                                        basin_error *error);
basin_status basin_nodes_ensemble_store(basin_bundle *bundle, const basin_nodes_ensemble *ensemble,
                                        basin_error *error);
basin_status basin_nodes_ensemble_load(basin_nodes_ensemble *ensemble, const basin_bundle *bundle,
                                       basin_error *error);

/* ---- few.c ---- */

/* How many hops away something still moves a score; -1: anything may. */
int64_t basin_nodes_reach(const basin_nodes_model *model);
/* Probabilities of some nodes, NaN for others, by what is within reach of them: the bits of
 * basin_nodes_predict; where `cap` nodes are fewer, by the nearest, and *capped. */
basin_status basin_nodes_predict_some(double *probability /* [N] */, bool *capped,
                                      const basin_nodes_model *model, const basin_network *network,
                                      const int64_t *node /* [count] */, int64_t count, int64_t cap,
                                      const basin_nodes_predict_options *options,
                                      basin_error *error);
/* The nodes that a network has beyond its base, whose columns differ, or at an end of an edge that
 * is new or carries something else; returns how many. */
int64_t basin_nodes_changed(int64_t *node /* [N] */, bool *changed /* [N] */,
                            const basin_network *base, const basin_network *network);

/* ---- mix.c ---- */

/* Weights, share, scale and shift by validation; what trees and network each reach. */
basin_status
basin_nodes_ensemble_choose(basin_nodes_ensemble *ensemble, double *trees /* [N] logits, written */,
                            const double *view /* [BASIN_TREE_VIEWS, N] logits */,
                            const double *network_logit /* [N] */, const basin_network *network,
                            const uint8_t *part /* [N] */, const char *scan, basin_error *error);
/* Probabilities of both together. `probability` may be either of the logits. */
void basin_nodes_ensemble_mix(double *probability /* [N] */, const basin_nodes_ensemble *ensemble,
                              const double *trees, const double *network_logit, int64_t nodes);

/* ---- card.c: what a model file remembers of its training, with hashes of the ids of its nodes and
 * its parents', to warn of labels seen ---- */

enum { BASIN_SEEN_TRAINED, BASIN_SEEN_VALIDATED, BASIN_SEEN_BEFORE, BASIN_SEEN };
typedef struct basin_nodes_memory {
    basin_nodes_card card; /* its texts are owned; no date: a file of earlier versions */
    basin_salt salt;       /* of all ids below and of the ensemble's known labels */
    basin_known_labels
        seen[BASIN_SEEN]; /* hashes of nodes; those of training where no ensemble has them */
    bool before_unknown;  /* a parent does not say which these are, or they cannot be compared */
} basin_nodes_memory;

/* What a run was asked for. Any may be NULL. */
typedef struct basin_nodes_record {
    const char *digest;       /* basin_network_digest */
    const char *files, *cuts; /* see basin_nodes_card */
} basin_nodes_record;

/* Reads the parent's nodes and salt; an error where a resumed run began with another. */
basin_status basin_nodes_memory_begin(basin_nodes_memory *memory, const basin_nodes_record *record,
                                      const basin_network *network, int64_t seed,
                                      const basin_run *run, basin_error *error);
/* Who takes part. What validation reaches is added at the end of a run. */
basin_status basin_nodes_memory_take(basin_nodes_memory *memory, const basin_network *network,
                                     const uint8_t *part /* [N] */, bool labels_known,
                                     const basin_watch *watch, basin_error *error);
void basin_nodes_memory_free(basin_nodes_memory *memory);

basin_status basin_nodes_memory_store(basin_bundle *bundle, const basin_nodes_memory *memory,
                                      basin_error *error);
basin_status basin_nodes_memory_load(basin_nodes_memory *memory, const basin_bundle *bundle,
                                     basin_error *error);

/* ---- Drift since training: the population stability index over bins: one per value where there
 * are few, else ten of equal count, one for the minimum, one below it. ---- */

enum { BASIN_DRIFT_EDGES = 10, BASIN_DRIFT_BINS = BASIN_DRIFT_EDGES + 2 };

typedef struct basin_drift_sketch {
    int64_t rows; /* columns */
    float *edge;  /* [rows, EDGES] ascending; the first is the minimum */
    float *count; /* [rows, BINS] nodes, or edges */
} basin_drift_sketch;

/* What was looked at in training; no rows: a file of earlier versions, or nothing of that kind. */
typedef struct basin_nodes_reference {
    basin_drift_sketch of[2]; /* nodes: features, then the number of neighbours; what edges carry
                                 (basin_facts_columns), where the model reads it */
} basin_nodes_reference;

basin_status basin_nodes_reference_take(basin_nodes_reference *reference,
                                        const basin_network *network, bool facts,
                                        basin_error *error);
void basin_nodes_reference_free(basin_nodes_reference *reference);
basin_status basin_nodes_reference_store(basin_bundle *bundle,
                                         const basin_nodes_reference *reference,
                                         basin_error *error);
basin_status basin_nodes_reference_load(basin_nodes_reference *reference,
                                        const basin_bundle *bundle, int64_t features,
                                        basin_error *error);

#define BASIN_NODES_INPUT_SETTINGS(X)                                                              \
    X(CHOICE, scaling, BASIN_CHOICES("auto", "none", "rows", "standard", "quantile"),              \
      "Scaling of features, fitted on the training nodes; auto: of classes rows of words and "     \
      "standard of other numbers, else quantile.")                                                 \
    X(INTEGER, hops, "N", -1, 8,                                                                   \
      "Means of the features over N hops stand beside them; -1: of classes 0 or 2, whichever "     \
      "validation prefers, else 2.")                                                               \
    X(SWITCH, degree, "The logarithm of the number of neighbours stands beside the features.")     \
    X(CHOICE, facts, BASIN_CHOICES("auto", "none", "features", "energy", "both"),                  \
      "What edges carry (amounts, counts, times, kinds). features: totals of a node's edges "      \
      "stand "                                                                                     \
      "beside its features; energy: they bias the score of a pair; auto: both, where edges carry " \
      "something.",                                                                                \
      .absent = "none")                                                                            \
    X(CHOICE, relations, BASIN_CHOICES("one", "max", "concat"),                                    \
      "one: the graph as a whole; max, concat: each relation by itself, results merged so.")       \
    X(CHOICE, directions, BASIN_CHOICES("auto", "come", "both"),                                   \
      "Where edges have a direction. both: attention and means go along them either way, and "     \
      "degrees and totals count those that come, those that go, and all; come: a node sees those " \
      "whose edges come to it; auto: for detectors both, where the graph is whole and has one "    \
      "relation.",                                                                                 \
      .absent = "come")                                                                            \
    X(CHOICE, self_loops, BASIN_CHOICES("keep", "drop", "add"),                                    \
      "Whether nodes are neighbours of themselves.",                                               \
      .needs = "attention=on,smoothing!=0 form=energy|published,smoothing!=0")
#define BASIN_NODES_MODEL_SETTINGS(X)                                                              \
    X(CHOICE, form, BASIN_CHOICES("energy", "published", "linear", "mlp"),                         \
      "energy: descent as the paper has it; published: as its code does; linear, mlp: without "    \
      "descent.")                                                                                  \
    BASIN_BLOCK_SETTINGS(X)                                                                        \
    X(INTEGER, blocks, "S", 1, BASIN_MAX_ANOMALY_BLOCKS, "Blocks, one after the other.",           \
      .needs = "form=energy|published")                                                            \
    X(CHOICE, position, BASIN_CHOICES("none", "learned"),                                          \
      "Positions of nodes. With learned ones only the nodes of the training graph can be scored.", \
      .needs = "form=energy|published")                                                            \
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
      "What an epoch runs over; auto: for detectors of form energy without positions neighbours, " \
      "else the full graph where it fits, else neighbours.")                                       \
    X(REAL, fraction, "X", 0, 1,                                                                   \
      "The part of the nodes that a sampled epoch takes; 0: 0.05 of a subgraph's, of neighbours "  \
      "all training nodes up to 8,192.",                                                           \
      .needs = "sampling!=full")                                                                   \
    X(INTEGER, fanout, "N", 0, 1e6,                                                                \
      "Neighbours of a node that sampling takes; 0: 2, or 8 where facts of edges are in the "      \
      "energy, which compares them.",                                                              \
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
      "anomalous; off: no node's label is in the model's file.",                                   \
      .absent = "off", .needs = "trees!=0")                                                        \
    X(SWITCH, teacher,                                                                             \
      "With at most 1,000 labels, two fits of trees learn what the model in context says of "      \
      "nodes without a label.",                                                                    \
      .absent = "on", .needs = "trees!=0")                                                         \
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
      "which decay does not achieve.",                                                             \
      .absent = "0")

/* What means another thing than for a detector, or offers other choices. */
#define BASIN_NODE_JUDGE_SETTINGS(X)                                                               \
    X(CHOICE, select, BASIN_CHOICES("accuracy", "macro_f1", "auroc"),                              \
      "What on validation chooses the epoch; ties go to the smaller loss.", .absent = "accuracy")  \
    X(CHOICE, balance, BASIN_CHOICES("full", "root", "none"),                                      \
      "Weight of a class in the loss: one over its share of the nodes, the root of that, or 1.",   \
      .absent = "none")
/* Everything that decides what is trained; a model file has what its task's table names. */
typedef struct basin_nodes_settings {
    BASIN_NODES_INPUT_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_NODES_MODEL_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_NODES_TRAINING_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_NODE_OWN_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_LOOSE_SETTINGS(BASIN_SETTING_FIELD)
    /* Not settings, but from the labels: */
    int64_t classes; /* that the model tells apart; 0: a detector, with one logit per node */
    int64_t focus;   /* 1 + the class whose odds stand for all, for explanations; 0: none */
    int64_t tabular; /* members of networks over rows; from a file of an earlier version */
} basin_nodes_settings;

extern const basin_task_settings basin_anomaly_task, basin_node_task;
/* The settings of a detector's file, with those that no run can train any more. */
extern const basin_task_settings basin_anomaly_file;

typedef struct basin_nodes_resources {
    basin_backend *backend;
    const basin_watch *watch;
    size_t memory;      /* bytes that may be used; 0: three quarters of what is free */
    bool minimal;       /* force sampling and streaming, and hold to no limit */
    basin_parts *parts; /* of the graph, where it is in parts; NULL: it is not */
} basin_nodes_resources;

size_t basin_nodes_memory_limit(const basin_nodes_resources *work);

/* Probabilities and labels of some nodes. */
typedef struct basin_nodes_samples {
    double *score;  /* [count] */
    uint8_t *label; /* [count] */
    int64_t count;
} basin_nodes_samples;

/* To be freed even after an error. */
basin_status basin_nodes_samples_take(basin_nodes_samples *samples, const double *probability,
                                      const basin_network *network, const uint8_t *part, int which,
                                      basin_error *error);
void basin_nodes_samples_free(basin_nodes_samples *samples);

enum { BASIN_MODEL_ID = 16 }; /* digits */
struct basin_nodes_model {
    basin_nodes_info info;       /* filled when it is asked for */
    char id[BASIN_MODEL_ID + 1]; /* of the file that it was read from, or written to last */
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
    double floor;               /* of calibrated probabilities, and of their distance from 1 */
    basin_nodes_samples judged; /* validation nodes by rising probability; thinned where many */
    basin_nodes_memory memory;  /* of its training */
    basin_nodes_reference reference; /* what its columns looked like */
    int64_t members;                 /* trained so far, of settings.members */
    basin_bundle **member;           /* [settings.members] parameters by name; NULL: not trained */
    /* of one that was trained just now */
    double *score;                             /* [nodes], of classes [nodes, classes]; or NULL */
    basin_score reached[BASIN_SPLIT_TEST + 1]; /* by part */
    basin_reliability reliability[BASIN_SPLIT_TEST + 1];
    char trained_on[200];
    bool sampled; /* it was trained on samples, not on the full graph */
};

basin_status basin_nodes_set_number(basin_bundle *bundle, const char *key, double value,
                                    basin_error *error);

/* A model without members; `network` (or NULL) has its sizes. */
basin_status basin_nodes_model_new(basin_nodes_model **model, const basin_task_settings *task,
                                   const basin_nodes_settings *settings,
                                   const basin_network *network, basin_backend *backend,
                                   basin_error *error);
/* The parameters of one member of a model file, by name, as a new bundle. */
basin_status basin_nodes_member_read(basin_bundle **member, const basin_bundle *file,
                                     int64_t number, basin_error *error);
/* The best macro-F1 on validation nodes; `scan`: the setting threshold (all, grid, smooth). */
basin_status basin_nodes_choose_threshold(double *threshold, const double *probability /* [N] */,
                                          const basin_network *network,
                                          const uint8_t *part /* [N] */, const char *scan,
                                          basin_error *error);
/* Sets the calibration and kept samples by validation; calibrates `probability` and threshold. */
basin_status basin_nodes_calibrate(basin_nodes_model *model, double *probability /* [N] */,
                                   const basin_network *network, const uint8_t *part,
                                   basin_error *error);
/* The share of anomalies among the training nodes. */
double basin_nodes_base_rate(const basin_network *network, const uint8_t *part /* [N] */);
/* Strictly rising in the probability, so that ranks stay. */
double basin_nodes_calibrated(const basin_nodes_model *model, double probability);
basin_status basin_nodes_judged_store(basin_bundle *bundle, const basin_nodes_model *model,
                                      basin_error *error);
basin_status basin_nodes_judged_load(basin_nodes_model *model, const basin_bundle *bundle,
                                     basin_error *error);

basin_status basin_nodes_check_network(const basin_nodes_model *model, const basin_network *network,
                                       basin_error *error);

/* What a node has: one number for a detector, else one per class. */
static inline int64_t basin_nodes_width(const basin_nodes_settings *settings) {
    return settings->classes && !settings->focus ? settings->classes : 1;
}

/* basin_nodes_train with settings of a task as they are, and `minimal` as in the resources. */
basin_status basin_nodes_train_with(basin_nodes_model **model, basin_training_result *outcome,
                                    const basin_task_settings *task,
                                    const basin_nodes_settings *settings,
                                    const basin_nodes_data *data,
                                    const basin_training_options *training, bool minimal,
                                    basin_error *error);

/* In words: "amount mean of edges", of a directed network ".. that come" or ".. that go". */
enum { BASIN_FACT_TEXT = 220 };
void basin_nodes_fact_name(char text[BASIN_FACT_TEXT], const basin_network *network, int64_t fact);

/* ---- live.c: a detector and a network that grows, scoring single nodes. Additions keep the order
 * and the facts of a network read whole, so rows of inputs have the same bits. Scoring takes a read
 * lock, adding a write lock. ---- */

typedef struct basin_nodes_live_counts {
    int64_t nodes, edges;             /* of base and additions; edges of the main relation */
    int64_t added_nodes, added_edges; /* rows that were taken */
    size_t bytes;                     /* of inputs, states and additions */
} basin_nodes_live_counts;

const char *basin_nodes_live_id(basin_nodes_live *live, int64_t node, char *text, size_t size);
/* basin_nodes_live_add; `commit` (or NULL) runs when nothing else can fail, before anything is
 * changed, and its error is the last word. */
typedef struct basin_near_commit {
    basin_status (*run)(void *context, basin_error *error);
    void *context;
} basin_near_commit;
basin_status basin_nodes_live_commit(basin_nodes_live *live, const char *nodes, const char *edges,
                                     const basin_near_commit *commit, basin_error *error);
/* basin_context_label in the same way. */
struct basin_context;
basin_status basin_context_commit(struct basin_context *context, const int64_t *node,
                                  const int32_t *label, int64_t count,
                                  const basin_near_commit *commit, basin_error *error);
basin_nodes_live_counts basin_nodes_live_count(basin_nodes_live *live);
/* Looks at the nodes that were scored last, at most 4,096. */
basin_status basin_nodes_live_drift(basin_nodes_drift **drift, basin_nodes_live *live,
                                    basin_error *error);

/* The class of the highest probability; ties go to the first. */
static inline int32_t basin_best_class(const double *probability /* [classes] */, int64_t classes) {
    int32_t best = 0;
    for (int32_t c = 1; c < classes; c++)
        if (probability[c] > probability[best]) best = c;
    return best;
}

/* Which nodes took part in training: BASIN_SPLIT_TRAIN, BASIN_SPLIT_VAL or BASIN_SPLIT_NONE of
 * each. They are known by their ids; without ids, only in the network of training.
 * BASIN_UNSUPPORTED: the model does not say, or nodes cannot be compared. */
basin_status basin_nodes_seen(uint8_t *seen /* [N] */, const basin_nodes_model *model,
                              const basin_network *network, basin_error *error);

/* How many of part `which`; -1: not known. */
basin_status basin_nodes_count_seen(int64_t *trained, int64_t *validated,
                                    const basin_nodes_model *model, const basin_network *network,
                                    const uint8_t *part /* [N] */, int which, basin_error *error);

/* A back-test of a detector: figures on labels that came later. */
enum { BASIN_NODES_BUDGETS = 12 };
typedef struct basin_nodes_budget {
    int64_t alerts; /* the nodes of the highest probabilities; equal ones count by their share */
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
/* Over the nodes of part `which`. Without a model the scores may be any numbers, and reliability
 * stays zero. */
basin_status basin_nodes_backtest(basin_nodes_figures *figures, const basin_nodes_model *model,
                                  const basin_network *network, const double *probability /* [N] */,
                                  const uint8_t *part /* [N] */, int which, double threshold,
                                  basin_error *error);
/* The n-th (from 0) of the features that raise the score: "amount 15200 (typical 320) +2.31"; ""
 * where there are fewer. `schema` is the model's. */
const char *basin_nodes_reason_print(char text[BASIN_MAX_REASON],
                                     const basin_nodes_explanation *explanation,
                                     const basin_network *network, const basin_schema *schema,
                                     int n);

/* Zero in place of numbers: the default. */
typedef struct basin_nodes_report_options {
    const char *model;   /* its name on the page */
    const uint8_t *part; /* [N] BASIN_SPLIT_TEST for nodes to judge by; NULL: all labelled ones */
    int64_t alerts;      /* to list with their reasons; 0: 20 */
    int64_t reasons;     /* of each; 0: 6 */
    const basin_watch *watch;
    size_t memory;
} basin_nodes_report_options;
/* Writes one page of HTML that needs no other file, or the JSON document that it shows (path ends
 * in .json, or NULL: stdout; docs/reports.md has the schema): curves, probabilities beside
 * frequencies, scores, the highest of them with their reasons, columns and their drift, the model.
 */
basin_status basin_nodes_report(const char *path, const basin_nodes_model *model,
                                const basin_network *network,
                                const basin_nodes_report_options *options, basin_error *error);

/* XGBoost as a rival in evaluations, on features, degrees and their means over two hops. Of
 * `training` memory and the watcher count. */
typedef struct basin_nodes_rival {
    double threshold; /* of the best macro-F1 on validation */
    int64_t trees;    /* the number with the best AUPRC on validation */
} basin_nodes_rival;
basin_status basin_nodes_train_xgboost(double *probability /* [N] */, basin_nodes_rival *rival,
                                       int64_t seed, const basin_network *network,
                                       const uint8_t *part /* [N] */,
                                       const basin_training_options *training, basin_error *error);

#endif
