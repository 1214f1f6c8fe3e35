/* What several models are made of: checks of shapes, maps and heads; smoothing over a graph. */
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

/* ---- smoothing, as the descent of an energy ---- */

typedef struct smoothness {
    basin_expr own;  /* h [N, C] */
    basin_expr root; /* [N, 1] one over the root of the number of neighbours */
    const basin_pattern *pattern;
    const basin_smoothing *how;
} smoothness;

/* The sum of x [N, D] over each node's neighbours. */
static basin_expr neighbour_sum(basin_expr x, const basin_pattern *pattern) {
    if (!x) return NULL;
    basin_shape shape = basin_expr_shape(x);
    basin_expr one = basin_reshape(x, BASIN_SHAPE(shape.dim[0], 1, shape.dim[1]));
    int64_t pairs = basin_expr_shape(pattern->key).dim[0];
    basin_expr ones = basin_full(basin_expr_graph(x), BASIN_SHAPE(pairs, 1), 1);
    return basin_reshape(basin_pair_sum(ones, one, pattern), shape);
}

/* One over the root of the numbers of neighbours, each node being its own. */
static basin_expr roots(basin_expr h, const basin_pattern *pattern, bool loops) {
    basin_graph *graph = basin_expr_graph(h);
    basin_expr one = basin_full(graph, BASIN_SHAPE(basin_expr_shape(h).dim[0], 1), 1);
    basin_expr count = neighbour_sum(one, pattern);
    count = loops ? basin_maximum(count, one) : basin_add(count, one);
    return basin_power_scalar(count, -0.5);
}

/* S z */
static basin_expr spread(const smoothness *s, basin_expr z) {
    basin_expr sent = basin_mul(z, s->root);
    basin_expr heard = neighbour_sum(sent, s->pattern);
    if (!s->how->loops) heard = basin_add(heard, sent);
    return basin_mul(heard, s->root);
}

static basin_expr own(const void *context, basin_expr z) {
    const smoothness *s = context;
    return basin_scale(basin_sum_all(basin_square(basin_sub(z, s->own))), 0.5 * s->how->anchor);
}

static basin_expr neighbours(const void *context, basin_expr z) {
    const smoothness *s = context;
    basin_expr rough = basin_mul(z, basin_sub(z, spread(s, z)));
    return basin_scale(basin_sum_all(rough), 0.5 * (1 - s->how->anchor));
}

basin_expr basin_smooth(basin_expr h, const basin_pattern *pattern, const basin_smoothing *how) {
    if (!h || how->steps < 1) return h;
    smoothness s = {h, roots(h, pattern, how->loops), pattern, how};
    basin_energy energy = {BASIN_TERMS({"own", own, &s}, {"neighbours", neighbours, &s})};
    basin_descent_spec spec = {.steps = how->steps, .alpha = 1};
    return basin_descend(&energy, h, &spec, NULL);
}
