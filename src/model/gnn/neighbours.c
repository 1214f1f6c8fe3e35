/* Sums over the neighbours of a list of pairs: plain, by degrees, by softmax. All of them are
 * basin_pair_sum, so that no tensor has pairs x D numbers. */
#include "model/gnn/gnn.h"

/* 1 for each pair, [pairs, 1]. */
static basin_expr ones_of(basin_expr x, const basin_pattern *pattern) {
    return basin_fill(basin_expr_graph(x), BASIN_SHAPE(basin_expr_shape(pattern->key).dim[0], 1),
                      1);
}

basin_expr basin_neighbour_sum(basin_expr x, const basin_pattern *pattern) {
    if (!x) return NULL;
    basin_shape shape = basin_expr_shape(x);
    basin_expr one = basin_reshape(x, BASIN_SHAPE(shape.dim[0], 1, shape.dim[1]));
    return basin_reshape(basin_pair_sum(ones_of(x, pattern), one, pattern), shape);
}

basin_expr basin_neighbour_counts(basin_expr x, const basin_pattern *pattern, double power) {
    if (!x) return NULL;
    basin_graph *graph = basin_expr_graph(x);
    basin_expr one = basin_fill(graph, BASIN_SHAPE(basin_expr_shape(x).dim[0], 1), 1);
    basin_expr count = basin_max(basin_neighbour_sum(one, pattern), basin_const(graph, 1));
    return basin_pow(count, power);
}

basin_expr basin_neighbour_smooth(basin_expr x, const basin_pattern *pattern) {
    basin_expr root = basin_neighbour_counts(x, pattern, -0.5);
    return basin_mul(basin_neighbour_sum(basin_mul(x, root), pattern), root);
}

basin_expr basin_neighbour_softmax(basin_expr lowered, basin_expr value,
                                   const basin_pattern *pattern) {
    if (!lowered || !value) return NULL;
    basin_graph *graph = basin_expr_graph(value);
    basin_shape shape = basin_expr_shape(value);
    int64_t N = shape.dim[0], H = shape.dim[1], Y = shape.dim[2];
    basin_expr ones = basin_fill(graph, BASIN_SHAPE(N, H, 1), 1);
    /* The sum of the weights is that of one more column. */
    basin_expr wide = basin_concat((basin_expr[]){value, ones}, 2, 2);
    basin_expr sum = basin_pair_sum(basin_exp(lowered), wide, pattern);
    basin_expr total = basin_max(basin_slice(sum, 2, Y, 1), basin_const(graph, 1e-30));
    return basin_div(basin_slice(sum, 2, 0, Y), total);
}
