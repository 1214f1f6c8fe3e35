/* Convolution and pooling over [B, h, w, C]. sum(y * conv(x, kernel)) is linear in each of its
 * three factors, so convolution, its transpose and the kernel's gradient are each other's reverse.
 */
#include "expr/graph.h"

static basin_expr bad_window(basin_expr x, const char *what, const char *window) {
    char text[BASIN_EXPR_TEXT];
    return basin_graph_fail(x->graph, BASIN_BAD_SHAPE, "%s: %s and the window %s do not fit", what,
                            basin_expr_print(text, x), window);
}

basin_expr basin_conv2d(basin_expr x, basin_expr kernel, int stride, bool same) {
    char text[BASIN_EXPR_TEXT];
    if (!x || !kernel) return NULL;
    basin_shape xs = x->shape, ks = kernel->shape;
    if (xs.rank != 4 || ks.rank != 4 || xs.dim[3] != ks.dim[2] || stride < 1)
        return bad_window(x, "conv2d", basin_expr_print(text, kernel));
    basin_attr attr = {.stride = {stride, stride}};
    basin_shape ys = {.rank = 4, .dim = {xs.dim[0], 0, 0, ks.dim[3]}};
    for (int i = 0; i < 2; i++) {
        int64_t in = xs.dim[1 + i], k = ks.dim[i];
        int64_t out = same ? (in + stride - 1) / stride : in < k ? 0 : (in - k) / stride + 1;
        int64_t missing = (out - 1) * stride + k - in;
        if (same && missing > 0) attr.pad[i] = (int32_t)(missing / 2);
        ys.dim[1 + i] = out;
        if (out < 1 || k < 1) return bad_window(x, "conv2d", basin_expr_print(text, kernel));
    }
    return basin_node_single(x->graph, BASIN_OP_CONV, &attr, (basin_expr[]){x, kernel}, 2, ys);
}

static basin_expr trilinear(basin_op op, const basin_attr *attr, basin_expr a, basin_expr b,
                            basin_shape shape) {
    return a && b ? basin_node_single(a->graph, op, attr, (basin_expr[]){a, b}, 2, shape) : NULL;
}

void basin_rule_conv(basin_node *node, const basin_expr *cotangent, const bool *want,
                     basin_expr *grad) {
    basin_expr x = node->in[0], kernel = node->in[1], y = cotangent[0];
    const basin_attr *attr = &node->attr;
    if (want[0]) grad[0] = trilinear(BASIN_OP_CONV_INPUT, attr, y, kernel, x->shape);
    if (want[1]) grad[1] = trilinear(BASIN_OP_CONV_KERNEL, attr, x, y, kernel->shape);
}

void basin_rule_conv_input(basin_node *node, const basin_expr *cotangent, const bool *want,
                           basin_expr *grad) {
    basin_expr y = node->in[0], kernel = node->in[1], x = cotangent[0];
    const basin_attr *attr = &node->attr;
    if (want[0]) grad[0] = trilinear(BASIN_OP_CONV, attr, x, kernel, y->shape);
    if (want[1]) grad[1] = trilinear(BASIN_OP_CONV_KERNEL, attr, x, y, kernel->shape);
}

void basin_rule_conv_kernel(basin_node *node, const basin_expr *cotangent, const bool *want,
                            basin_expr *grad) {
    basin_expr x = node->in[0], y = node->in[1], kernel = cotangent[0];
    const basin_attr *attr = &node->attr;
    if (want[0]) grad[0] = trilinear(BASIN_OP_CONV_INPUT, attr, y, kernel, x->shape);
    if (want[1]) grad[1] = trilinear(BASIN_OP_CONV, attr, x, kernel, y->shape);
}

static basin_expr pool(basin_op op, basin_expr x, int window, int stride, const char *what) {
    char text[BASIN_SHAPE_TEXT];
    if (!x) return NULL;
    basin_shape shape = x->shape;
    if (shape.rank != 4 || window < 1 || stride < 1 || shape.dim[1] < window ||
        shape.dim[2] < window)
        return bad_window(x, what, basin_shape_print(text, BASIN_SHAPE(window, window)));
    basin_attr attr = {.window = {window, window}, .stride = {stride, stride}};
    for (int i = 1; i <= 2; i++) shape.dim[i] = (shape.dim[i] - window) / stride + 1;
    return basin_node_single(x->graph, op, &attr, &x, 1, shape);
}

basin_expr basin_avgpool2d(basin_expr x, int window, int stride) {
    return pool(BASIN_OP_AVGPOOL, x, window, stride, "avgpool2d");
}

void basin_rule_avgpool(basin_node *node, const basin_expr *cotangent, const bool *want,
                        basin_expr *grad) {
    (void)want;
    grad[0] = basin_node_single(cotangent[0]->graph, BASIN_OP_AVGPOOL_REVERSE, &node->attr,
                                cotangent, 1, node->in[0]->shape);
}

void basin_rule_avgpool_reverse(basin_node *node, const basin_expr *cotangent, const bool *want,
                                basin_expr *grad) {
    (void)want;
    grad[0] = basin_node_single(cotangent[0]->graph, BASIN_OP_AVGPOOL, &node->attr, cotangent, 1,
                                node->in[0]->shape);
}

basin_expr basin_maxpool2d(basin_expr x, int window, int stride) {
    return pool(BASIN_OP_MAXPOOL, x, window, stride, "maxpool2d");
}

/* The place of a maximum does not move under small changes, so only the values carry gradients. */
void basin_rule_maxpool(basin_node *node, const basin_expr *cotangent, const bool *want,
                        basin_expr *grad) {
    (void)want;
    grad[0] = trilinear(BASIN_OP_MAXPOOL_SCATTER, &node->attr, node->in[0], cotangent[0],
                        node->in[0]->shape);
}

void basin_rule_maxpool_scatter(basin_node *node, const basin_expr *cotangent, const bool *want,
                                basin_expr *grad) {
    if (want[1])
        grad[1] = trilinear(BASIN_OP_MAXPOOL_GATHER, &node->attr, node->in[0], cotangent[0],
                            node->in[1]->shape);
}

void basin_rule_maxpool_gather(basin_node *node, const basin_expr *cotangent, const bool *want,
                               basin_expr *grad) {
    if (want[1])
        grad[1] = trilinear(BASIN_OP_MAXPOOL_SCATTER, &node->attr, node->in[0], cotangent[0],
                            node->in[1]->shape);
}
