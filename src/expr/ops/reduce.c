/* Sums, maxima, log-sum-exp and softmax, each beside its reverse. */
#include "expr/graph.h"

basin_shape basin_shape_drop(basin_shape shape, int axis, int count) {
    basin_shape out = {.rank = shape.rank - count};
    for (int i = 0; i < out.rank; i++) out.dim[i] = shape.dim[i < axis ? i : i + count];
    return out;
}

/* The shape with ones in place of the reduced axes, which broadcasts back to the operand's. */
static basin_shape with_ones(basin_shape shape, int axis, int count) {
    for (int i = axis; i < axis + count; i++) shape.dim[i] = 1;
    return shape;
}

static basin_expr reduce(basin_op op, basin_expr a, int axis, int count, const char *what) {
    char text[BASIN_EXPR_TEXT];
    if (!a || count == 0) return a;
    if ((axis = basin_axis(a, axis, what)) < 0) return NULL;
    if (count < 0 || axis + count > a->shape.rank)
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE, "%s: %d axes from %d on of %s", what,
                                count, axis, basin_expr_print(text, a));
    basin_shape shape = basin_shape_drop(a->shape, axis, count);
    if (basin_shape_count(shape) == basin_shape_count(a->shape)) return basin_reshape(a, shape);
    basin_attr attr = {.axis = axis, .count = count};
    return basin_node_single(a->graph, op, &attr, &a, 1, shape);
}

basin_expr basin_sum(basin_expr a, int axis, int count) {
    return reduce(BASIN_OP_SUM, a, axis, count, "sum");
}
basin_expr basin_maximum(basin_expr a, int axis, int count) {
    return reduce(BASIN_OP_MAX, a, axis, count, "maximum");
}
basin_expr basin_sum_all(basin_expr a) { return a ? basin_sum(a, 0, a->shape.rank) : NULL; }
basin_expr basin_maximum_all(basin_expr a) { return a ? basin_maximum(a, 0, a->shape.rank) : NULL; }

basin_expr basin_mean(basin_expr a, int axis, int count) {
    basin_expr sum = basin_sum(a, axis, count);
    if (!sum) return NULL;
    int64_t all = basin_shape_count(a->shape), left = basin_shape_count(sum->shape);
    return all > 0 ? basin_scale(sum, (double)left / (double)all) : sum;
}
basin_expr basin_mean_all(basin_expr a) { return a ? basin_mean(a, 0, a->shape.rank) : NULL; }

basin_expr basin_sum_squares(const basin_expr *a, int count) {
    basin_expr sum = NULL;
    for (int first = 0; first < count; first += BASIN_MAX_IN) {
        int part = count - first < BASIN_MAX_IN ? count - first : BASIN_MAX_IN;
        for (int i = 0; i < part; i++)
            if (!a[first + i]) return NULL;
        basin_expr squares = basin_node_single(a[first]->graph, BASIN_OP_SQUARES, &(basin_attr){0},
                                               a + first, part, BASIN_SCALAR);
        sum = sum ? basin_add(sum, squares) : squares;
    }
    return sum;
}

void basin_rule_squares(basin_node *node, const basin_expr *cotangent, const bool *want,
                        basin_expr *grad) {
    for (int i = 0; i < node->ins; i++)
        if (want[i]) grad[i] = basin_scale(basin_mul(cotangent[0], node->in[i]), 2);
}

static basin_expr spread(const basin_node *node, basin_expr reduced) {
    basin_shape shape = node->in[0]->shape;
    basin_shape ones = with_ones(shape, node->attr.axis, node->attr.count);
    return basin_broadcast(basin_reshape(reduced, ones), shape);
}

void basin_rule_sum(basin_node *node, const basin_expr *cotangent, const bool *want,
                    basin_expr *grad) {
    (void)want;
    grad[0] = spread(node, cotangent[0]);
}

/* Elements that tie for the maximum share its cotangent evenly. */
void basin_rule_max(basin_node *node, const basin_expr *cotangent, const bool *want,
                    basin_expr *grad) {
    (void)want;
    basin_expr hit = basin_equal(node->in[0], spread(node, node->out[0]));
    basin_expr ties = basin_sum(hit, node->attr.axis, node->attr.count);
    grad[0] = basin_mul(hit, spread(node, basin_div(cotangent[0], ties)));
}

static bool has_row(basin_expr a, const char *what) {
    char text[BASIN_EXPR_TEXT];
    if (a->shape.rank >= 1) return true;
    basin_graph_fail(a->graph, BASIN_BAD_SHAPE, "%s: %s is a scalar and has no last axis", what,
                     basin_expr_print(text, a));
    return false;
}

basin_expr basin_logsumexp(basin_expr a) {
    basin_attr attr = {0};
    if (!a || !has_row(a, "logsumexp")) return NULL;
    return basin_node_single(a->graph, BASIN_OP_LOGSUMEXP, &attr, &a, 1,
                             basin_shape_drop(a->shape, a->shape.rank - 1, 1));
}

basin_expr basin_as_column(basin_expr a) {
    if (!a) return NULL;
    basin_shape shape = a->shape;
    shape.dim[shape.rank++] = 1;
    return basin_reshape(a, shape);
}

void basin_rule_logsumexp(basin_node *node, const basin_expr *cotangent, const bool *want,
                          basin_expr *grad) {
    (void)want;
    grad[0] = basin_mul(basin_as_column(cotangent[0]), basin_softmax(node->in[0]));
}

basin_expr basin_softmax(basin_expr a) {
    basin_attr attr = {0};
    if (!a || !has_row(a, "softmax")) return NULL;
    return basin_node_single(a->graph, BASIN_OP_SOFTMAX, &attr, &a, 1, a->shape);
}

basin_expr basin_softmax_along(basin_expr a, int axis) {
    if (!a || (axis = basin_axis(a, axis, "softmax")) < 0) return NULL;
    return basin_axis_back(basin_softmax(basin_axis_last(a, axis)), axis);
}

basin_expr basin_logsumexp_along(basin_expr a, int axis) {
    if (!a || (axis = basin_axis(a, axis, "logsumexp")) < 0) return NULL;
    return basin_logsumexp(basin_axis_last(a, axis));
}

void basin_rule_softmax(basin_node *node, const basin_expr *cotangent, const bool *want,
                        basin_expr *grad) {
    basin_expr s = node->out[0], c = cotangent[0];
    (void)want;
    basin_expr mean = basin_as_column(basin_sum(basin_mul(c, s), -1, 1));
    grad[0] = basin_mul(s, basin_sub(c, mean));
}
