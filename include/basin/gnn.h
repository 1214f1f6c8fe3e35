/* Graph networks that models of nodes are compared with: parameters and the forward expression,
 * from features and neighbours to a logit a node, or one a class. Each is written as its own paper
 * has it; docs/baselines.md has the equations. No energy is behind them.
 *
 *     basin_gnn net;
 *     basin_gnn_config config = {.arch = BASIN_GNN_BWGNN, .features = F, .dim = 32, .layers = 2};
 *     basin_gnn_declare(&net, &params, &config);
 *     basin_gnn_inputs inputs = {.features = features, .neighbours = &pairs};
 *     basin_expr logits = basin_gnn_logits(&net, &inputs);
 *
 * Whether nodes are neighbours of themselves is decided by the list of pairs. */
#ifndef BASIN_GNN_H
#define BASIN_GNN_H

#include "basin/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum basin_gnn_arch {
    BASIN_GNN_BWGNN, /* Beta wavelets of the Laplacian (Tang et al., 2022) */
    BASIN_GNN_GT,    /* graph transformer (Dwivedi and Bresson, 2020) */
    BASIN_GNN_GCN,   /* graph convolutions (Kipf and Welling, 2017) */
    BASIN_GNN_GAT,   /* graph attention (Velickovic et al., 2018) */
    BASIN_GNN_SAGE,  /* GraphSAGE with means (Hamilton et al., 2017) */
} basin_gnn_arch;

enum { BASIN_GNN_LAYERS = BASIN_ANOMALY_BLOCKS };

typedef struct basin_gnn_config {
    basin_gnn_arch arch;
    int64_t features, dim; /* F, D */
    int64_t heads;         /* of GT and GAT; must divide D */
    int64_t hidden;        /* units of a hidden layer of the head; 0: a linear head */
    int layers;            /* of BWGNN: the order C of its wavelets */
    int relations;         /* 0 means 1; the same weights run on each */
    basin_merge merge;     /* of the relations' results */
    double dropout;        /* between layers and in the head, in training */
    bool recompute;        /* keep one tensor a layer, compute the rest again in reverse */
    const char *prefix;    /* of the parameters' names; NULL: none */
    int64_t outputs;       /* C, logits a node; 0 or 1: one */
} basin_gnn_config;

/* One layer's weights; those that its kind does not have are NULL. */
typedef struct basin_gnn_layer {
    basin_expr w, b;           /* [in, D] [D] of GCN, GAT and SAGE */
    basin_expr neighbour_w;    /* [in, D] of SAGE */
    basin_expr source, target; /* [H, Y] each, of GAT: of the neighbour, of the node itself */
    basin_expr wq, wk, wv;     /* [D, D] each, of GT */
    basin_expr wo, bo;         /* [D, D] [D] */
    basin_expr norm1_g, norm1_b, norm2_g, norm2_b; /* [D] each */
    basin_expr mlp_w1, mlp_b1, mlp_w2, mlp_b2;     /* [D, 2D] [2D] [2D, D] [D] */
} basin_gnn_layer;

typedef struct basin_gnn {
    basin_gnn_config config;
    basin_expr emb_w, emb_b;                 /* [F, D] [D] of BWGNN and GT */
    basin_expr emb2_w, emb2_b, mix_w, mix_b; /* [D, D] [D] [(C + 1) D, D] [D] of BWGNN */
    basin_gnn_layer layer[BASIN_GNN_LAYERS]; /* [layers] of the others */
    basin_expr hidden_w, hidden_b;           /* [W, U] [U] */
    basin_expr head_w, head_b;               /* [W or U] [], of C outputs [W or U, C] [C] */
} basin_gnn;

typedef struct basin_gnn_inputs {
    basin_expr features;             /* [N, F] */
    const basin_pattern *neighbours; /* [relations] */
    basin_expr seed;                 /* index [2]: dropout takes place; NULL: none */
} basin_gnn_inputs;

BASIN_API basin_status basin_gnn_declare(basin_gnn *net, basin_params *params,
                                         const basin_gnn_config *config);
/* Logits [N], or [N, C]. */
BASIN_API basin_expr basin_gnn_logits(const basin_gnn *net, const basin_gnn_inputs *inputs);

/* ---- smoothing ---- */

/* Numbers of nodes that should agree with those of their neighbours: the descent of
 *
 *     E(z) = anchor / 2 |z - h|^2 + (1 - anchor) / 2 z . (z - S z)
 *
 * from z = h [N, C], where S = D^-1/2 (A + I) D^-1/2 over the pairs, each node a neighbour of
 * itself
 * (`loops`: the pairs have these already). A step of size 1 is z <- anchor h + (1 - anchor) S z,
 * personalised PageRank of h where edges go both ways; others count half each way. */
typedef struct basin_smoothing {
    int steps;
    double anchor; /* from 0 to 1 */
    bool loops;
} basin_smoothing;
BASIN_API basin_expr basin_smooth(basin_expr h, const basin_pattern *pattern,
                                  const basin_smoothing *how);

#ifdef __cplusplus
}
#endif
#endif
