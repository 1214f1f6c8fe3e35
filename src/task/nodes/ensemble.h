/* Labels of training nodes, by which trees look at a node's neighbours. They are looked up by the
 * ids of nodes, so that tomorrow's table finds them, too; nodes without ids go by number, in the
 * network of training alone. Labels of the network that is scored are never looked at. */
#ifndef BASIN_TASK_NODES_ENSEMBLE_H
#define BASIN_TASK_NODES_ENSEMBLE_H

#include "basin/tasks/nodes.h"
#include "data/network/network.h"
#include "model/model.h"
#include "train/calibration.h"
#include "train/trees/trees.h"

typedef struct basin_known_labels {
    int64_t count;
    uint64_t *id;         /* [count] hashes, ascending */
    uint8_t *label;       /* [count] */
    bool named;           /* by ids; else by number */
    int64_t nodes, edges; /* of the network of training */
} basin_known_labels;

/* Those of the nodes of part `which`. */
basin_status basin_known_labels_take(basin_known_labels *known, const basin_network *network,
                                     const uint8_t *part /* [N] */, int which, basin_error *error);
void basin_known_labels_free(basin_known_labels *known);
/* Whether nodes of the network can be told: both have ids, or it is the network of training. */
bool basin_known_labels_fit(const basin_known_labels *known, const basin_network *network);
/* Fills `label` [N] with 0, 1, or -1 where none is known; returns how many are. */
int64_t basin_known_labels_find(int8_t *label, const basin_known_labels *known,
                                const basin_network *network);

/* ---- what a row has of them ---- */

/* Known neighbours of each node, along one relation. */
typedef struct basin_known_sums {
    float *anomalous, *count; /* [N] */
} basin_known_sums;

void basin_known_sums_fill(basin_known_sums *sums, const int8_t *label,
                           const basin_relation *relation, int64_t nodes);
/* The share of anomalies among a node's known neighbours, and the mean of that share over its
 * neighbours, to which the node itself does not count; both drawn towards `rate`. Where edges are
 * not directed, whom a node sees sees it, too. */
void basin_known_shares(float share[2], const basin_known_sums *sums, const int8_t *label,
                        const basin_relation *relation, bool directed, int64_t node, double rate);

/* ---- files ---- */

/* As PREFIXid, PREFIXlabel, ..; one that was not stored is loaded as none. */
basin_status basin_known_labels_store(basin_bundle *bundle, const char *prefix,
                                      const basin_known_labels *known, basin_error *error);
basin_status basin_known_labels_load(basin_known_labels *known, const basin_bundle *bundle,
                                     const char *prefix, basin_error *error);

/* ---- Boosted trees beside an Energy Transformer: a detector's logit is
 *
 *     (1 - share) z_trees + share (scale z_network + shift)
 *     z_trees = sum over views v of weight[v] z_v
 *
 * z_v is the mean over the tree fits of one view, z_network that over members. Some trees see a
 * node's own columns alone: means over neighbours are noise where labels are few or the graph tells
 * little. Validation chooses the share and the weights, which add up to 1; scale and shift give
 * trees and network the same mean and deviation there. */

enum { BASIN_TREE_RELATIONS = BASIN_ANOMALY_RELATIONS + 1, BASIN_SPLIT_PARTS = 4 };

/* Names, one per line, as model files have them. */
enum { BASIN_NODES_LINES = 2560 };
void basin_nodes_add_line(char text[BASIN_NODES_LINES], const char *name);

/* What a fit sees: a node's own columns (plainly, or with small leaves and anomalies upweighted);
 * means over neighbours, too; and known labels, too. */
typedef enum basin_tree_view {
    BASIN_VIEW_OWN,
    BASIN_VIEW_OWN_BOLD,
    BASIN_VIEW_HOPS,
    BASIN_VIEW_KNOWN,
    BASIN_TREE_VIEWS
} basin_tree_view;

typedef struct basin_nodes_ensemble {
    int64_t fits;                     /* of all views */
    int64_t seeing[BASIN_TREE_VIEWS]; /* fits of each view, one view after the other */
    double weight[BASIN_TREE_VIEWS];  /* of a view's mean */
    basin_trees **trees;              /* [fits] */
    basin_known_labels known;
    double rate;                       /* of anomalies among them */
    bool degree;                       /* degrees are among the inputs, */
    bool facts;                        /* and totals of what edges carry */
    char relations[BASIN_NODES_LINES]; /* names of those that means run along, one per line */
    double share, scale, shift;
    /* What trees and network reach by themselves, by part; of a file: validation alone. */
    basin_score alone[2][BASIN_SPLIT_PARTS];
} basin_nodes_ensemble;

void basin_nodes_ensemble_free(basin_nodes_ensemble *ensemble);

/* ---- table.c: what trees read of a network ---- */

/* Columns of a row: features, logarithms of degrees and totals of what edges carry, unscaled; then,
 * for each relation, the means of those over its neighbours, and the means of these; then, where
 * labels are known, the two shares of basin_known_shares for each relation. The second means are
 * taken row by row, so that no more than the first is held for all nodes. */
typedef struct basin_tree_table {
    const basin_network *network;
    int64_t halo; /* rows behind those of the network's nodes: of nodes that a part sees */
    int relations;
    int relation[BASIN_TREE_RELATIONS]; /* numbers of the network's; the union comes first */
    int64_t own;                        /* features, degrees and facts */
    int64_t facts;                      /* of which the last so many are facts */
    int64_t plain;                      /* own (1 + 2 relations): columns before the shares */
    int64_t columns;                    /* of a row */
    float *raw;                         /* [N + halo, own] */
    float *near;                        /* [N + halo, relations, own] */
    int8_t *label;                      /* [N + halo] known ones; NULL: the ensemble keeps none */
    int64_t known;                      /* how many there are here */
    basin_known_sums sums[BASIN_TREE_RELATIONS]; /* [N + halo] */
    double rate;
} basin_tree_table;

/* With the relations that the ensemble names. `memory`: bytes that may be used; 0: any number. */
basin_status basin_tree_table_open(basin_tree_table *table, const basin_network *network,
                                   const basin_nodes_ensemble *ensemble, size_t memory,
                                   basin_error *error);
void basin_tree_table_close(basin_tree_table *table);
/* Of nodes node[0] .., or of first .. where `node` is NULL. */
void basin_tree_table_rows(float *x /* [rows, columns] */, const basin_tree_table *table,
                           const int64_t *node, int64_t first, int64_t rows);

/* The table of a whole graph, or those of this rank's parts of one; all ranks open them together.
 */
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

/* Rows that trees are fitted to. */
typedef struct basin_tree_rows {
    int64_t *node;   /* [trains + validations] */
    float *x;        /* [trains + validations, columns] */
    uint8_t *label;  /* [trains + validations] */
    double taken[2]; /* share of each class that is here; the rest weighs with it */
    basin_trees_data data;
} basin_tree_rows;
/* Those of the nodes of training and validation, thinned out to `most` each (INFINITY: all); to be
 * freed even after an error. */
basin_status basin_tree_rows_take(basin_tree_rows *rows, const basin_tree_tables *tables,
                                  const uint8_t *part /* [N] */, double most, basin_error *error);
void basin_tree_rows_free(basin_tree_rows *rows);

/* Names the relations of a network: the union, or each one where there is none. */
basin_status basin_nodes_ensemble_name(basin_nodes_ensemble *ensemble, const basin_network *network,
                                       basin_error *error);
/* Grows `fits` times, several at once; a function of the seed and the nodes' parts. Stopped by the
 * watcher, they end early. */
basin_status basin_nodes_ensemble_grow(basin_nodes_ensemble *ensemble, int64_t fits, uint64_t seed,
                                       const basin_tree_tables *tables,
                                       const uint8_t *part /* [N] */, const basin_watch *watch,
                                       basin_error *error);
/* What a fit's logit weighs in the trees'. Fits that look at known labels weigh nothing where the
 * table has none, unless there are no others. */
double basin_nodes_ensemble_weight(const basin_nodes_ensemble *ensemble,
                                   const basin_tree_table *table, int64_t fit);
/* The trees' logits of all nodes [N]; or means over the fits of each view by itself
 * [BASIN_TREE_VIEWS, N], 0 for a view without fits. */
basin_status basin_nodes_ensemble_logits(double *logit, const basin_nodes_ensemble *ensemble,
                                         const basin_tree_tables *tables, bool views,
                                         basin_error *error);
/* The first with tables of their own, of the network or of `parts` where it is not NULL. An error
 * where they have other columns than the trees; a note where they know no labels. */
basin_status basin_nodes_ensemble_score(double *logit /* [N] */,
                                        const basin_nodes_ensemble *ensemble,
                                        const basin_network *network, basin_parts *parts,
                                        size_t memory, const basin_watch *watch,
                                        basin_error *error);
/* Trees, relations, share and figures as tensors and metadata of a model file. */
basin_status basin_nodes_ensemble_store(basin_bundle *bundle, const basin_nodes_ensemble *ensemble,
                                        basin_error *error);
basin_status basin_nodes_ensemble_load(basin_nodes_ensemble *ensemble, const basin_bundle *bundle,
                                       basin_error *error);

/* ---- mix.c ---- */

/* Weights, share, scale and shift, by validation; and what trees and network reach by themselves.
 */
basin_status
basin_nodes_ensemble_choose(basin_nodes_ensemble *ensemble, double *trees /* [N] logits, written */,
                            const double *view /* [BASIN_TREE_VIEWS, N] logits */,
                            const double *network_logit /* [N] */, const basin_network *network,
                            const uint8_t *part /* [N] */, const char *scan, basin_error *error);
/* Probabilities of both together. `probability` may be either of the logits. */
void basin_nodes_ensemble_mix(double *probability /* [N] */, const basin_nodes_ensemble *ensemble,
                              const double *trees, const double *network_logit, int64_t nodes);

/* ---- card.c: what a model remembers of its training, in its file: when, by which version, on
 * what; how many nodes and anomalies; what validation reached; and which nodes they were, under
 * hashes of their ids, so that nobody judges it by labels that it was trained on without being told
 * ---- */

typedef struct basin_nodes_memory {
    basin_nodes_card card; /* without a date: a file of earlier versions */
    /* Nodes of training (none where the ensemble knows their labels) and of validation. */
    basin_known_labels trained, validated;
} basin_nodes_memory;

/* At the beginning of a run; what validation reaches is added at its end. */
basin_status basin_nodes_memory_take(basin_nodes_memory *memory, const basin_network *network,
                                     const uint8_t *part /* [N] */, bool labels_known,
                                     basin_error *error);
void basin_nodes_memory_free(basin_nodes_memory *memory);

basin_status basin_nodes_memory_store(basin_bundle *bundle, const basin_nodes_memory *memory,
                                      basin_error *error);
basin_status basin_nodes_memory_load(basin_nodes_memory *memory, const basin_bundle *bundle,
                                     basin_error *error);

/* ---- How the columns of a network have moved since training: the population stability index over
 * bins that the nodes of training's network set: a bin a value where there are few, else ten of
 * about equal count, one for the least value, one below it. A category has a bin for none of its
 * values, too. */

enum { BASIN_DRIFT_EDGES = 10, BASIN_DRIFT_BINS = BASIN_DRIFT_EDGES + 2 };

/* What some columns looked like. */
typedef struct basin_drift_sketch {
    int64_t rows; /* columns */
    float *edge;  /* [rows, EDGES] ascending; the first is the least value */
    float *count; /* [rows, BINS] nodes, or edges */
} basin_drift_sketch;

/* What training's network looked like. */
typedef struct basin_nodes_reference {
    basin_drift_sketch node; /* a row a feature, then the number of neighbours; no rows: a file of
                                earlier versions */
    basin_drift_sketch fact; /* what edges carry (basin_facts_columns), where the model reads it */
} basin_nodes_reference;

basin_status basin_nodes_reference_take(basin_nodes_reference *reference,
                                        const basin_network *network, bool facts,
                                        basin_error *error);
void basin_nodes_reference_free(basin_nodes_reference *reference);
/* As tensors drift.edge and drift.count, drift.fact_edge and drift.fact_count; older files have
 * none. */
basin_status basin_nodes_reference_store(basin_bundle *bundle,
                                         const basin_nodes_reference *reference,
                                         basin_error *error);
basin_status basin_nodes_reference_load(basin_nodes_reference *reference,
                                        const basin_bundle *bundle, int64_t features,
                                        basin_error *error);

#endif
