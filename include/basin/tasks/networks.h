/* The paper's model of graphs: parameters, the forward expression, the loss.
 *
 * A model is declared on a graph for one shape of data, gives expressions, and knows nothing of
 * files or training loops. The same declaration on another graph with another batch size shares its
 * parameters through the store. */
#ifndef BASIN_MODEL_H
#define BASIN_MODEL_H

#include "basin/energy.h"
#include "basin/pairs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- graph classification and regression (section 5) ---- */

/* The factor of an edge's scores, times the projected edge features in all kinds but the last. */
typedef enum basin_adjacency {
    BASIN_ADJACENCY_CONV,     /* the paper's: a 3 x 3 convolution of X X^T; depends on node order */
    BASIN_ADJACENCY_BILINEAR, /* 1 + (U_h x_i) . (U_h x_j) / R: the same for any node order */
    BASIN_ADJACENCY_EDGES,    /* 1: only the edge features */
    BASIN_ADJACENCY_NONE,     /* no factor at all */
    BASIN_ADJACENCY_BIAS,     /* none; an addend, linear in the features, separate for each block */
} basin_adjacency;

/* What a graph's outputs are read from; a sum of flags, 0 is CLS. */
typedef enum basin_graph_readout {
    BASIN_GRAPH_READOUT_CLS = 1,
    BASIN_GRAPH_READOUT_MEAN = 2, /* of the graph's nodes */
    BASIN_GRAPH_READOUT_SUM = 4,  /* of them, by 1/16: for targets that grow with a graph */
    BASIN_GRAPH_READOUT_NODES =
        8, /* cannot be combined: one output per token, for classes of nodes */
    BASIN_GRAPH_READOUT_SIZED =
        16, /* the mean by log(1 + nodes) / 4: knows the size, and stays small */
} basin_graph_readout;

/* Zeros are the published model. */
typedef struct basin_graph_net_config {
    int64_t features, edge_features, positions, outputs; /* F, P (1 if none), k, C */
    int blocks;
    basin_block_config block;
    basin_block_graph graph; /* of each block; facts follow from `adjacency` */
    basin_descent_spec descent;
    basin_adjacency adjacency;
    int64_t rank;        /* R of BILINEAR; 0 means 8 */
    int64_t pair_hidden; /* units that see the features of a pair, beside these; 0: none */
    int read;            /* a sum of basin_graph_readout */
    int64_t hidden;      /* units of the head's hidden layer; 0: a linear head */
    bool norm_head;      /* tokens are layer-normalized before they are read */
    double drop;         /* of what the head reads, dropped in training (with descent.seed) */
    bool reconstruct;    /* the edge-reconstruction head of the superpixel sets */
} basin_graph_net_config;

enum { BASIN_MAX_BLOCKS = 16 };
typedef struct basin_graph_net {
    basin_graph_net_config config;
    basin_block block[BASIN_MAX_BLOCKS];
    basin_expr enc_w, enc_b, cls, pos_w, pos_b; /* [F, D] [D] [D] [k, D] [D] */
    basin_expr conv, adj_w, adj_b;              /* [H, 3, 3] [P, H] [H] */
    basin_expr dec_w, dec_b;                    /* [D, C] [C]; with a readout [R, C] or [U, C] */
    basin_expr rank_w, edge_w;                  /* [H, R, D] [H, P]; NULL where not asked for */
    basin_expr head_gamma, head_delta;          /* [] [D] */
    basin_expr pair_w, pair_b;     /* [P, U] [U]; the other weights of pairs are [P + U, ..] */
    basin_expr hidden_w, hidden_b; /* [R, U] [U] */
} basin_graph_net;

/* A batch of graphs as one list of tokens, each graph's CLS before its nodes. Nodes [n, F] of all
 * graphs in a row; `source` [tokens] gives each token's node, -1 for a CLS; `before` and `after`
 * [tokens] its neighbours in the order of its graph, -1 at the ends (for the 3 x 3 convolution);
 * `first` [graphs] the CLS tokens; `owner` [tokens] each node's graph, -1 for a CLS, and `share`
 * [graphs] one over its number of nodes (for means and sums); positions [tokens, k]; pairs are
 * those of `pattern`, with edge_features [pairs, P] in its order, and, where blocks have couplings,
 * the `strength` [pairs] of each in that energy, 0 for padding. */
typedef struct basin_graph_net_batch {
    basin_expr nodes, positions, edge_features, share;
    basin_expr source, before, after, first, owner;
    basin_expr strength;
    basin_pattern pattern;
} basin_graph_net_batch;

BASIN_API basin_status basin_graph_net_declare(basin_graph_net *model, basin_params *params,
                                               const basin_graph_net_config *config);
/* Declares the inputs of a batch: `tokens` = nodes + graphs. */
BASIN_API void basin_graph_net_inputs(basin_graph_net_batch *batch, const basin_graph_net *model,
                                      basin_graph *graph, int64_t graphs, int64_t nodes,
                                      int64_t pairs);
/* Outputs of each graph [graphs, C]; with BASIN_GRAPH_READOUT_NODES of each token [tokens, C]. */
BASIN_API basin_expr basin_graph_net_forward(const basin_graph_net *model,
                                             const basin_graph_net_batch *batch);
/* Mean cross entropy of logits [G, C] against distributions [G, C]. */
BASIN_API basin_expr basin_cross_entropy(basin_expr logits, basin_expr target);

#ifdef __cplusplus
}
#endif
#endif
