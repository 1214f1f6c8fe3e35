/* What the files of graph networks share: sums over neighbours, and each kind's own part. */
#ifndef BASIN_MODEL_GNN_GNN_H
#define BASIN_MODEL_GNN_GNN_H

#include "basin/gnn.h"

/* ---- neighbours.c ---- */

/* The sum of x [N, D] over each node's neighbours. */
basin_expr basin_neighbour_sum(basin_expr x, const basin_pattern *pattern);
/* D^power of the numbers of neighbours, [N, 1]; a node without any counts as having one. */
basin_expr basin_neighbour_counts(basin_expr x, const basin_pattern *pattern, double power);
/* D^-1/2 A D^-1/2 x. */
basin_expr basin_neighbour_smooth(basin_expr x, const basin_pattern *pattern);
/* Means of values [N, H, Y] over neighbours, weighted by the softmax of their scores [pairs, H],
 * from which a number per node and head was taken away so that none overflows and not all vanish:
 * the softmax does not change by it. Zero for a node without neighbours. */
basin_expr basin_neighbour_softmax(basin_expr lowered, basin_expr value,
                                   const basin_pattern *pattern);

/* ---- one file a kind: parameters, and the forward expression of one relation, [N, D] ---- */

/* First values of torch's linear layer, and of Glorot. */
basin_init basin_gnn_uniform(int64_t in);
basin_init basin_gnn_glorot(int64_t in, int64_t out);
void basin_gnn_affine_add(basin_expr *weight, basin_expr *bias, basin_params *params,
                          const char *prefix, const char *name, int64_t in, int64_t out);

void basin_bwgnn_declare(basin_gnn *net, basin_params *params, const char *prefix);
basin_expr basin_bwgnn_embed(const basin_gnn *net, basin_expr features);
basin_expr basin_bwgnn_forward(const basin_gnn *net, basin_expr h, const basin_pattern *pattern);
/* Coefficients of x^k in wavelet i of order C: theta[i (C + 1) + k], k and i from 0 to C. */
void basin_bwgnn_wavelets(double *theta /* [C + 1, C + 1] */, int order);

void basin_gt_declare(basin_gnn_layer *layer, const basin_gnn_config *config, basin_params *params,
                      const char *prefix);
basin_expr basin_gt_forward(const basin_gnn_layer *layer, const basin_gnn_config *config,
                            basin_expr h, const basin_pattern *pattern);

/* GCN, GAT and SAGE; `in` is what the layer reads. */
void basin_gnn_conv_declare(basin_gnn_layer *layer, const basin_gnn_config *config,
                            basin_params *params, const char *prefix, int64_t in);
basin_expr basin_gnn_conv_forward(const basin_gnn_layer *layer, const basin_gnn_config *config,
                                  basin_expr h, const basin_pattern *pattern);

#endif
