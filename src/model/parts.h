/* Parts that several models are made of. */
#ifndef BASIN_MODEL_PARTS_H
#define BASIN_MODEL_PARTS_H

#include "basin/model.h"

/* x W + b; a bias of NULL is left out. */
basin_expr basin_model_affine(basin_expr x, basin_expr weight, basin_expr bias);
/* Layer norm with a gain and a bias per dimension [D]; a bias of NULL is left out. */
basin_expr basin_model_norm(basin_expr x, basin_expr gain, basin_expr bias, double epsilon);
/* z (1 + erf(z / sqrt 2)) / 2 */
basin_expr basin_model_gelu(basin_expr z);
/* The results of several relations, each [N, D], as one: [N, D], or [N, relations D]. */
basin_expr basin_model_merge(const basin_expr *result, int relations, basin_merge merge);
/* The head's weights for `outputs` numbers a row: [W] and [] for one (or 0), else [W, C] and [C].
 */
void basin_model_head_add(basin_expr *weight, basin_expr *bias, basin_params *params,
                          const char *prefix, int64_t width, int64_t outputs, basin_init weights,
                          basin_init biases);
/* h [N, W] by such weights: one logit a row, [N], or [N, C]. */
basin_expr basin_model_logits(basin_expr h, basin_expr weight, basin_expr bias);

#endif
