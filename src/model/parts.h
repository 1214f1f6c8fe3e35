/* Parts that several models are made of. */
#ifndef BASIN_MODEL_PARTS_H
#define BASIN_MODEL_PARTS_H

#include "basin/model.h"

/* x W + b; a bias of NULL is left out. */
basin_expr basin_model_affine(basin_expr x, basin_expr weight, basin_expr bias);
/* Layer norm with a gain and a bias per dimension [D]; a bias of NULL is left out. */
basin_expr basin_model_norm(basin_expr x, basin_expr gain, basin_expr bias, double epsilon);
/* The results of several relations, each [N, D], as one: [N, D], or [N, relations D]. */
basin_expr basin_model_merge(const basin_expr *result, int relations, basin_merge merge);
/* One logit a row: h [N, W], weight [W], bias [] -> [N]. */
basin_expr basin_model_logits(basin_expr h, basin_expr weight, basin_expr bias);

#endif
