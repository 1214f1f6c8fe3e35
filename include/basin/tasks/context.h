/* Anomalies from a few labels, at once: the labelled nodes of a network are stored patterns, and
 * the other nodes are queries of an Energy Transformer that was trained beforehand, on synthetic
 * tables, to compare rows. Nothing is trained on the network.
 *
 *     basin_context *context;
 *     if (basin_context_open(&context, NULL, backend, &error) ||
 *         basin_context_read(context, network, 0, &error) ||
 *         basin_context_store(context, NULL, &error) ||
 *         basin_context_predict(probability, context, node, count, &error))
 *         return fprintf(stderr, "%s\n", error.text), 1;
 *     basin_context_close(context);
 *
 * Threads: one thread at a time may use a context. */
#ifndef BASIN_TASKS_CONTEXT_H
#define BASIN_TASKS_CONTEXT_H

#include "basin/backend.h"
#include "basin/tasks/network.h"
#include "basin/tasks/run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct basin_context basin_context;

/* Reads a file of weights; NULL: the one that comes with Basin, "context" of basin/tasks/models.h.
 * `backend` must stay open as long as the context. */
BASIN_API basin_status basin_context_open(basin_context **context, const char *path,
                                          basin_backend *backend, basin_error *error);
BASIN_API void basin_context_close(basin_context *context);

/* Reads the columns of a network: those of its table, totals of its edges, their means over
 * neighbours and over two hops, and the number of neighbours. More than 100 become 21 principal
 * components first. The network must stay open. `memory`: the bytes that the table may take; 0: any
 * number. */
BASIN_API basin_status basin_context_read(basin_context *context, const basin_network *network,
                                          size_t memory, basin_error *error);

/* All zeros, or NULL in place of it, are the defaults. */
enum { BASIN_CONTEXT_LABELS = 2000 };
typedef struct basin_context_options {
    size_t size;          /* sizeof(basin_context_options), or 0 */
    const int32_t *label; /* [N] in place of the network's: 0, 1, or -1 for unknown */
    int64_t labels;       /* max stored; 0: BASIN_CONTEXT_LABELS, or fewer of many cells */
    int64_t passes; /* scores are means over that many, each with other codes of cells; 0: 1 */
    const basin_watch *watch; /* of predictions; or NULL */
} basin_context_options;

/* Stores the labelled nodes, in place of those of before. More labels than fit are chosen: all
 * anomalies, up to half of the places, the normal nodes nearest to them, and others at random. */
BASIN_API basin_status basin_context_store(basin_context *context,
                                           const basin_context_options *options,
                                           basin_error *error);

/* Adds or corrects labels (0 or 1; -1 takes a label back) of nodes; what is stored is chosen again.
 * After an error labels are as before. */
BASIN_API basin_status basin_context_label(basin_context *context,
                                           const int64_t *node /* [count] */,
                                           const int32_t *label /* [count] */, int64_t count,
                                           basin_error *error);
/* -1: unknown. */
BASIN_API int32_t basin_context_get_label(const basin_context *context, int64_t node);

/* Describes what is stored. Made by the library; fields may be added at the end. */
typedef struct basin_context_info {
    int64_t parameters;
    int64_t labelled[2]; /* normal and anomalous nodes with a label */
    int64_t stored[2];   /* of these, how many were stored */
    int64_t columns;     /* of the table of columns, means over neighbours included */
    int64_t reduced;     /* columns that became principal components; 0: none */
    int64_t cells;       /* of a row */
    int64_t passes;
    int64_t blocks;
    const basin_schema *schema; /* of the network that was read; or NULL */
} basin_context_info;
/* Valid until the context changes or is closed. */
BASIN_API const basin_context_info *basin_context_get_info(const basin_context *context);

/* Probabilities of nodes to be anomalous, at the rate of anomalies among the labelled nodes. A
 * node's own label is not read, unless the node is stored. */
BASIN_API basin_status basin_context_predict(double *probability /* [count] */,
                                             basin_context *context, const int64_t *node,
                                             int64_t count, basin_error *error);

/* The same of all nodes of a network with the same columns: the one that was read, or another one,
 * of whose nodes no label is known and whose columns are ranked among those that were read, so that
 * a score does not depend on the other nodes. */
BASIN_API basin_status basin_context_predict_network(double *probability /* [N] */,
                                                     basin_context *context,
                                                     const basin_network *network,
                                                     basin_error *error);

/* A stored node that a score was retrieved from, and the columns in which both agree most. */
enum { BASIN_CONTEXT_AGREEING = 3 };
typedef struct basin_context_source {
    int64_t node;
    int32_t label;
    double share; /* of what the query's cells retrieve in the first block over rows: how much it
                     resembles this node rather than the others */
    double move;  /* of the logit, if the node counted more: its derivative by the logarithm of how
                     often the node counts in all blocks; those of all nodes add up to 0 */
    int64_t column[BASIN_CONTEXT_AGREEING];   /* basin_context_column; -1: no further one */
    double value[BASIN_CONTEXT_AGREEING];     /* of the stored node, as in the table, or a mean */
    double asked[BASIN_CONTEXT_AGREEING];     /* of the node that is explained */
    double agreement[BASIN_CONTEXT_AGREEING]; /* 1 less the share of nodes that are nearer */
} basin_context_source;

/* Made by the library; fields may be added at the end. */
typedef struct basin_context_explanation {
    int64_t node;
    double probability, logit, odds; /* odds: the part of the logit that is the labels' log odds */
    double anomalous;                /* share of what was retrieved that is from anomalies */
    int64_t sources;
    basin_context_source *source; /* [sources] by falling share */
    int64_t blocks;
    double *energy; /* [blocks, 2] of the node's row, at the beginning and the end of each block */
} basin_context_explanation;

/* `network` as for basin_context_predict_network; NULL: the one that was read. */
BASIN_API basin_status basin_context_explain(basin_context_explanation **explanation,
                                             basin_context *context, const basin_network *network,
                                             int64_t node, basin_error *error);
BASIN_API void basin_context_explanation_free(basin_context_explanation *explanation);
/* The name of a column: "amount", "amount, mean 1 hop away", "number of neighbours". */
enum { BASIN_MAX_COLUMN = 300 };
BASIN_API const char *basin_context_column(char text[BASIN_MAX_COLUMN],
                                           const basin_context *context, int64_t column);

#ifdef __cplusplus
}
#endif
#endif
