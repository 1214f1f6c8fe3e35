/* Detection in context inside the library: labelled nodes are stored patterns, other nodes are
 * queries, nothing is trained. Callers see include/basin/tasks/context.h.
 *
 *     cells.c      the columns of a network as cells of three, ranked
 *     net.c        the Energy Transformer over cells: weights, energies, plans
 *     detector.c   chooses and stores labels, scores and explains
 *     rivals.c     trees, logistic regression and nearest neighbours on the same labels
 */
#ifndef BASIN_TASK_NODES_CONTEXT_CONTEXT_H
#define BASIN_TASK_NODES_CONTEXT_CONTEXT_H

#include "basin/tasks/context.h"
#include "tasks/nodes/nodes.h"

/* ---- cells.c ----
 * A cell holds three columns: a node's value, the mean over its neighbours and the mean over two
 * hops. The last cells hold the logarithm of the degree and two empty places; and the labels of
 * neighbours: the share of anomalies among the labelled ones, among labelled ends of two steps, and
 * the logarithm of the number of labelled neighbours. A node's own label is never in them. Without
 * edges a cell holds three unrelated columns. An entry of a column has three numbers: the normal
 * score of its rank, the share of rows with the same value, and a mark: 0 for a gap or an empty
 * place, 1 in a group, -1 for an unrelated column and for the number of labelled neighbours. */

enum {
    BASIN_CELL_COLUMNS = 3,
    BASIN_CELL_ENTRY = 3,
    BASIN_CELL_VOTES = 3, /* columns of neighbours' labels */
    BASIN_CELL = BASIN_CELL_COLUMNS * BASIN_CELL_ENTRY,
};

typedef struct basin_cells basin_cells;
struct basin_cells {
    const basin_network *network;
    const basin_relation *relation;
    const basin_cells *as; /* whose ranks and components these columns have; NULL: their own */
    int64_t own;           /* columns of a node before means */
    int64_t degree;        /* the column of it; `own` without edges */
    int64_t columns;       /* with means, the degree and neighbours' labels */
    int64_t cells;         /* of a row, without the label's */
    int64_t components;    /* own columns are principal components of that many; 0: they are not */
    bool grouped;          /* cells of a graph; else of unrelated columns */
    int64_t *order; /* [table's columns and totals] by the order of own columns, that of names */
    float *value;   /* [N, columns] own, means, means over two hops, degree, labels; NaN: a gap */
    int64_t sample; /* rows that ranks refer to */
    float *sorted;  /* [columns, sample] ascending, gaps at the end */
    int64_t *known; /* [columns] of the sample without gaps */
    int64_t *vote;  /* [N, 4] anomalous and all labelled neighbours, and ends of two steps */
    float *axes;    /* of components, and means and scales of the columns that they are of */
    double *moment;
};

/* `as`: cells of a network with the same columns, which must stay open; or NULL. `memory`: bytes
 * that may be used; 0: any number. To be freed even after an error. */
basin_status basin_cells_open(basin_cells *cells, const basin_network *network,
                              const basin_cells *as, size_t memory, basin_error *error);
void basin_cells_close(basin_cells *cells);
/* Fills the columns of neighbours' labels from labels [N], -1: unknown. */
void basin_cells_label(const basin_cells *cells, const int32_t *label);
/* The same after the labels of single nodes have changed, each counted and then all ranked. */
void basin_cells_relabel(const basin_cells *cells, int64_t node, int32_t before, int32_t after);
void basin_cells_rank_labels(const basin_cells *cells);
/* Rows of nodes, [count, cells, BASIN_CELL]. */
void basin_cells_rows(float *row, const basin_cells *cells, const int64_t *node, int64_t count);
/* Where the entry of a column is in a row; its value for a node, as in the table or a mean of such;
 * its name: "amount, mean 1 hop away". */
int64_t basin_cells_place(const basin_cells *cells, int64_t column);
double basin_cells_value(const basin_cells *cells, int64_t node, int64_t column);
const char *basin_cells_name(char text[BASIN_MAX_REASON], const basin_cells *cells, int64_t column);

/* ---- net.c ---- */

/* The file's weights on a backend, and one stored context. */
typedef struct basin_context_net basin_context_net;

/* `path` NULL: the model that comes with Basin. */
basin_status basin_context_net_open(basin_context_net **net, const char *path,
                                    basin_backend *backend, basin_error *error);
void basin_context_net_close(basin_context_net *net);

typedef struct basin_context_shape {
    int64_t max_cells; /* that have codes */
    int64_t passes;    /* codes of each */
    int blocks;
    int64_t parameters;
} basin_context_shape;
basin_context_shape basin_context_net_shape(const basin_context_net *net);

/* Encodes labelled rows block by block and keeps their keys and values, which the functions below
 * read. `pass` is the number of the codes that name the cells. */
basin_status basin_context_net_store(basin_context_net *net,
                                     const float *row /* [rows, cells, BASIN_CELL] */,
                                     const int32_t *label /* [rows] 0 or 1 */, int64_t rows,
                                     int64_t cells, int64_t pass, basin_error *error);
/* Log likelihood ratios: with the log odds of the labels added, logits. A query does not see other
 * queries, and costs its own row. */
basin_status basin_context_net_predict(double *ratio /* [rows] */, basin_context_net *net,
                                       const float *row /* [rows, cells, BASIN_CELL] */,
                                       int64_t rows, basin_error *error);
/* One query; arrays of the caller. */
typedef struct basin_context_look {
    double ratio;
    double *energy; /* [blocks, 2] of its row at the beginning and the end of every block */
    double *share;  /* [stored] of each labelled row in what its cells retrieve, in the first block
                       over rows */
    double *move; /* [stored] derivative of the ratio by the logarithm of how often the row counts;
                     they add up to 0 */
} basin_context_look;
basin_status basin_context_net_look(basin_context_look *look, basin_context_net *net,
                                    const float *row, basin_error *error);

/* ---- detector.c ---- */

/* A network as queries read it. */
typedef struct basin_context_table {
    basin_network *ordered; /* the network in the order of ids; NULL: it is */
    int64_t *place;         /* [N] of the network's nodes in the ordered one; NULL: theirs */
    basin_cells cells;      /* of the ordered network; so are nodes of a context */
} basin_context_table;

struct basin_context {
    basin_context_net *net;
    const basin_network *network; /* the caller's */
    basin_context_table table;    /* of it */
    basin_context_info info;
    int64_t max_labels; /* to be stored */
    int32_t *known;     /* [N] labels */
    int64_t stored;
    int64_t *node;  /* [stored] */
    int32_t *label; /* [stored] */
    float *row;     /* [stored, cells, BASIN_CELL] */
    double odds;    /* logarithm of those of the labels */
    int64_t pass;   /* whose codes are in the net; -1: none */
    const basin_watch *watch;
};

/* Rows of the caller's nodes, [count, cells, BASIN_CELL]. */
void basin_context_rows(float *row, const basin_context_table *table, const int64_t *node,
                        int64_t count);

/* ---- rivals.c ---- */

typedef enum basin_context_rival {
    BASIN_CONTEXT_LOGISTIC,
    BASIN_CONTEXT_NEIGHBOURS,
    BASIN_CONTEXT_XGBOOST, /* the mean of three settings; these need the library */
    BASIN_CONTEXT_FOREST,
    BASIN_CONTEXT_BAG, /* the mean of both */
    BASIN_CONTEXT_RIVALS
} basin_context_rival;
extern const char *const basin_context_rival_name[BASIN_CONTEXT_RIVALS];

/* Trains a rival on what the context stores, and scores nodes: all read the same ranked columns. */
basin_status basin_context_run_rival(double *probability /* [count] */,
                                     const basin_context *context, basin_context_rival rival,
                                     uint64_t seed, const int64_t *node, int64_t count,
                                     basin_error *error);

#endif
