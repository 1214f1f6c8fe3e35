/* Parts that several models are made of; see parts.h. */
#include "model/parts.h"

#include <math.h>

basin_expr basin_model_affine(basin_expr x, basin_expr weight, basin_expr bias) {
    basin_expr y = basin_matmul(x, weight);
    return bias ? basin_add(y, bias) : y;
}

basin_expr basin_model_norm(basin_expr x, basin_expr gain, basin_expr bias, double epsilon) {
    if (!x || !gain) return NULL;
    basin_graph *graph = basin_expr_graph(gain);
    basin_expr none = basin_fill(graph, basin_expr_shape(gain), 0);
    basin_expr y = basin_mul(basin_layernorm(x, basin_const(graph, 1), none, epsilon), gain);
    return bias ? basin_add(y, bias) : y;
}

basin_expr basin_model_gelu(basin_expr z) {
    basin_expr gate = basin_offset(basin_erf(basin_scale(z, sqrt(0.5))), 1);
    return basin_scale(basin_mul(z, gate), 0.5);
}

basin_expr basin_model_merge(const basin_expr *result, int relations, basin_merge merge) {
    if (merge == BASIN_MERGE_CONCAT && relations > 1) return basin_concat(result, relations, 1);
    basin_expr most = result[0];
    for (int r = 1; r < relations; r++) most = basin_max(most, result[r]);
    return most;
}

void basin_model_head_add(basin_expr *weight, basin_expr *bias, basin_params *params,
                          const char *prefix, int64_t width, int64_t outputs, basin_init weights,
                          basin_init biases) {
    bool one = outputs <= 1;
    *weight = basin_param_add(params, prefix, "head_w",
                              one ? BASIN_SHAPE(width) : BASIN_SHAPE(width, outputs), weights);
    *bias = basin_param_add(params, prefix, "head_b", one ? BASIN_SCALAR : BASIN_SHAPE(outputs),
                            biases);
}

basin_expr basin_model_logits(basin_expr h, basin_expr weight, basin_expr bias) {
    if (!h || !weight) return NULL;
    if (basin_expr_shape(weight).rank == 2) return basin_model_affine(h, weight, bias);
    basin_shape shape = basin_expr_shape(h);
    basin_expr column = basin_reshape(weight, BASIN_SHAPE(shape.dim[1], 1));
    basin_expr logits = basin_reshape(basin_matmul(h, column), BASIN_SHAPE(shape.dim[0]));
    return basin_add(logits, bias);
}
