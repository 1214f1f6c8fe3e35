/* What several models are made of: checks of shapes, maps and heads. */
#include <math.h>
#include <stdio.h>

#include "base/shape.h"
#include "basin/expr.h"
#include "tasks/common/layers.h"

bool basin_model_shapes_agree(basin_expr a, basin_expr b, const char *what) {
    if (!a || !b) return false;
    if (basin_shape_equal(basin_expr_shape(a), basin_expr_shape(b))) return true;
    return basin_graph_fail(
        basin_expr_graph(a), BASIN_BAD_SHAPE, "%s: %s and %s, expected equal shapes", what,
        basin_shape_text(basin_expr_shape(a)), basin_shape_text(basin_expr_shape(b)));
}

bool basin_model_shape_is(basin_expr a, basin_shape expected, const char *what) {
    basin_shape shape = basin_expr_shape(a);
    bool good = a && shape.rank == expected.rank;
    for (int i = 0; good && i < expected.rank; i++)
        good = expected.dim[i] < 0 || shape.dim[i] == expected.dim[i];
    if (a && !good)
        basin_graph_fail(basin_expr_graph(a), BASIN_BAD_SHAPE, "%s %s, expected %s%s", what,
                         basin_shape_text(basin_expr_shape(a)), basin_shape_text(expected),
                         " (-1: any size)");
    return good;
}

basin_status basin_model_status(const basin_graph *graph) {
    const basin_error *error = basin_graph_error(graph);
    return error ? error->status : BASIN_OK;
}

/* ---- maps and heads ---- */

basin_expr basin_model_affine(basin_expr x, basin_expr weight, basin_expr bias) {
    basin_expr y = basin_matmul(x, weight);
    return bias ? basin_add(y, bias) : y;
}

basin_expr basin_model_norm(basin_expr x, basin_expr gain, basin_expr bias, double epsilon) {
    if (!x || !gain) return NULL;
    basin_graph *graph = basin_expr_graph(gain);
    return basin_layernorm(x, gain, bias ? bias : basin_full(graph, basin_expr_shape(gain), 0),
                           epsilon);
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
