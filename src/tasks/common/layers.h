/* What the models are made of: checks of shapes, affine maps, norms, heads. */
#ifndef BASIN_MODEL_MODEL_H
#define BASIN_MODEL_MODEL_H

#include "basin/energy.h"
#include "basin/tasks/networks.h"

/* ---- shapes, beyond what broadcasting would let pass ---- */

/* Whether a and b have one shape; otherwise the graph gets an error that names both. */
bool basin_model_shapes_agree(basin_expr a, basin_expr b, const char *what);
/* Whether the shape of a is the expected one, -1 standing for any size. */
bool basin_model_shape_is(basin_expr a, basin_shape expected, const char *what);

/* The status of the graph: what a declaration that builds without checks returns. */
basin_status basin_model_status(const basin_graph *graph);

/* ---- maps and heads ---- */

/* x W + b; a bias of NULL is left out. */
basin_expr basin_model_affine(basin_expr x, basin_expr weight, basin_expr bias);
/* Layer norm with a gain and a bias per dimension [D]; a bias of NULL is left out. */
basin_expr basin_model_norm(basin_expr x, basin_expr gain, basin_expr bias, double epsilon);
/* The head's weights for `outputs` numbers per row: [W] and [] for one (or 0), else [W, C] and [C].
 */
void basin_model_head_add(basin_expr *weight, basin_expr *bias, basin_params *params,
                          const char *prefix, int64_t width, int64_t outputs, basin_init weights,
                          basin_init biases);
/* h [N, W] by such weights: one logit per row, [N], or [N, C]. */
basin_expr basin_model_logits(basin_expr h, basin_expr weight, basin_expr bias);

/* ---- sets of graphs, beyond basin/tasks/networks.h ---- */

/* The edge features as the reconstruction head sees them, [pairs, P] (or [pairs, 1]): sums over
 * heads of edge_w by the factor of the scores. */
basin_expr basin_graph_net_edges(const basin_graph_net *model, const basin_graph_net_batch *batch);

#endif
