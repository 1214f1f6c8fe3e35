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

/* ---- anomalies of nodes, beyond basin/tasks/networks.h ---- */

/* Its parts, for those who stream over nodes: tokens x [n, D] of features [n, F], or of a list of
 * them, where `where` is the eigenvectors or the place of the inputs above, as the model has
 * positions; logits of the first tokens and each relation's last ones. */
basin_expr basin_anomaly_embed(const basin_anomaly *model, basin_expr features,
                               const basin_listed *listed, basin_expr where);
basin_expr basin_anomaly_head(const basin_anomaly *model, basin_expr first,
                              const basin_expr *last /* [relations] */, basin_expr seed);
const basin_block *basin_anomaly_block(const basin_anomaly *model, int number);

/* The published code's form, which differs from the paper: see src/tasks/nodes/anomaly.c for what
 * it takes over. Parameters besides `config`'s sizes: steps T, heads, memories, dropout. */
typedef struct basin_published {
    basin_anomaly_config config;
    struct {
        basin_expr wk, wq, xi, temperature; /* [H, Y, D] twice, [D, M], [] */
    } block[2];                             /* all steps but the last; the last */
    basin_expr emb_w, emb_b, gain, bias;    /* [F, D] [D] [D] [D] */
    basin_expr head_w, head_b;              /* [2D or D] [], of C outputs [2D or D, C] [C] */
} basin_published;
basin_status basin_published_declare(basin_published *model, basin_params *params,
                                     const basin_anomaly_config *config);
basin_expr basin_published_logits(const basin_published *model, const basin_anomaly_inputs *inputs);
/* softplus(z) - label z = -log p(label) of one logit per node, and of several log-sum-exp(z) - sum
 * over classes of label z. */
basin_expr basin_model_surprise(basin_expr logits, basin_expr label);

#endif
