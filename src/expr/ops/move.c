/* Moving numbers without arithmetic: reshape, permute, slice, concatenate, gather; and the reverse
 * of each, which is another of them. */
#include "expr/graph.h"

int basin_axis(basin_expr a, int axis, const char *what) {
    char text[BASIN_EXPR_TEXT];
    int found = axis < 0 ? axis + a->shape.rank : axis;
    if (found >= 0 && found < a->shape.rank) return found;
    basin_graph_fail(a->graph, BASIN_BAD_SHAPE, "%s: axis %d of %s", what, axis,
                     basin_expr_print(text, a));
    return -1;
}

/* A view of a view is one view; repeated scalars are repeated anew; signs and constant factors stay
 * outside, where products and sums find them. */
static basin_expr simplify_reshape(basin_expr a, basin_shape shape) {
    const basin_node *node = a->node;
    if (node->op == BASIN_OP_RESHAPE) return basin_reshape(node->in[0], shape);
    if (node->op == BASIN_OP_COPY && node->in[0]->shape.rank == 0)
        return basin_broadcast(node->in[0], shape);
    if (node->op == BASIN_OP_NEG) return basin_neg(basin_reshape(node->in[0], shape));
    if (node->op == BASIN_OP_MUL && basin_expr_is_const(node->in[0]))
        return basin_mul(node->in[0], basin_reshape(node->in[1], shape));
    return NULL;
}

/* The one axis given as -1 takes what the others leave; the shape as it is where none fits. */
static basin_shape complete_shape(basin_shape shape, int64_t count) {
    int open = -1;
    basin_shape rest = shape;
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dim[i] != -1) continue;
        if (open >= 0) return shape;
        open = i;
        rest.dim[i] = 1;
    }
    int64_t others = open < 0 ? 0 : basin_shape_count(rest);
    if (others > 0 && count % others == 0) shape.dim[open] = count / others;
    return shape;
}

basin_expr basin_reshape(basin_expr a, basin_shape shape) {
    char x[BASIN_EXPR_TEXT], y[BASIN_EXPR_TEXT];
    basin_attr attr = {0};
    if (a) shape = complete_shape(shape, basin_shape_count(a->shape));
    if (!a || basin_shape_equal(a->shape, shape)) return a;
    if (basin_shape_count(a->shape) != basin_shape_count(shape))
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE,
                                "reshape: %s does not have as many elements as %s",
                                basin_expr_print(x, a), basin_shape_print(y, shape));
    if (basin_expr_is_const(a)) return basin_broadcast(a, shape);
    if (a->graph->simplify) {
        basin_expr simple = simplify_reshape(a, shape);
        if (simple) return simple;
    }
    basin_result out = {.kind = a->kind, .shape = shape};
    basin_node *node = basin_node_new(a->graph, BASIN_OP_RESHAPE, &attr, &a, 1, &out, 1);
    return node ? node->out[0] : NULL;
}

void basin_rule_reshape(basin_node *node, const basin_expr *cotangent, const bool *want,
                        basin_expr *grad) {
    (void)want;
    grad[0] = basin_reshape(cotangent[0], node->in[0]->shape);
}

static bool is_permutation(const int *axes, int rank) {
    unsigned seen = 0;
    for (int i = 0; i < rank; i++) {
        if (axes[i] < 0 || axes[i] >= rank) return false;
        seen |= 1u << axes[i];
    }
    return seen == (1u << rank) - 1;
}

basin_expr basin_permute(basin_expr a, const int *axes) {
    char text[BASIN_EXPR_TEXT];
    basin_attr attr = {0};
    if (!a) return NULL;
    basin_shape shape = a->shape;
    if (!is_permutation(axes, shape.rank))
        return basin_graph_fail(a->graph, BASIN_BAD_VALUE,
                                "permute: the axes given are no permutation of those of %s",
                                basin_expr_print(text, a));
    bool identity = true;
    for (int i = 0; i < shape.rank; i++) {
        attr.axes[i] = (int8_t)axes[i];
        shape.dim[i] = a->shape.dim[axes[i]];
        identity = identity && axes[i] == i;
    }
    return identity ? a : basin_node_single(a->graph, BASIN_OP_PERMUTE, &attr, &a, 1, shape);
}

void basin_rule_permute(basin_node *node, const basin_expr *cotangent, const bool *want,
                        basin_expr *grad) {
    int back[BASIN_MAX_RANK];
    (void)want;
    for (int i = 0; i < node->in[0]->shape.rank; i++) back[node->attr.axes[i]] = i;
    grad[0] = basin_permute(cotangent[0], back);
}

basin_expr basin_transpose(basin_expr a) {
    char text[BASIN_EXPR_TEXT];
    int axes[BASIN_MAX_RANK];
    if (!a) return NULL;
    if (a->shape.rank < 2)
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE,
                                "transpose: %s has rank %d, wanted two axes or more",
                                basin_expr_print(text, a), a->shape.rank);
    for (int i = 0; i < a->shape.rank; i++) axes[i] = i;
    axes[a->shape.rank - 1] = a->shape.rank - 2;
    axes[a->shape.rank - 2] = a->shape.rank - 1;
    return basin_permute(a, axes);
}

basin_expr basin_slice(basin_expr a, int axis, int64_t start, int64_t count) {
    char text[BASIN_EXPR_TEXT];
    if (!a || (axis = basin_axis(a, axis, "slice")) < 0) return NULL;
    basin_shape shape = a->shape;
    if (start < 0 || count < 0 || start > shape.dim[axis] - count)
        return basin_graph_fail(
            a->graph, BASIN_BAD_SHAPE, "slice: %lld elements from %lld on of axis %d of %s",
            (long long)count, (long long)start, axis, basin_expr_print(text, a));
    if (count == shape.dim[axis]) return a;
    basin_attr attr = {.axis = axis, .start = start};
    shape.dim[axis] = count;
    return basin_node_single(a->graph, BASIN_OP_SLICE, &attr, &a, 1, shape);
}

void basin_rule_slice(basin_node *node, const basin_expr *cotangent, const bool *want,
                      basin_expr *grad) {
    int axis = node->attr.axis;
    int64_t start = node->attr.start, count = node->out[0]->shape.dim[axis];
    (void)want;
    grad[0] = basin_pad(cotangent[0], axis, start, node->in[0]->shape.dim[axis] - start - count);
}

basin_expr basin_pad(basin_expr a, int axis, int64_t before, int64_t after) {
    char text[BASIN_EXPR_TEXT];
    if (!a || (axis = basin_axis(a, axis, "pad")) < 0) return NULL;
    if (before < 0 || after < 0 || before > INT64_MAX - after ||
        before + after > INT64_MAX - a->shape.dim[axis])
        return basin_graph_fail(a->graph, BASIN_BAD_VALUE,
                                "pad: %lld before and %lld after axis %d of %s", (long long)before,
                                (long long)after, axis, basin_expr_print(text, a));
    if (before == 0 && after == 0) return a;
    basin_attr attr = {.axis = axis, .start = before};
    basin_shape shape = a->shape;
    shape.dim[axis] += before + after;
    return basin_node_single(a->graph, BASIN_OP_PAD, &attr, &a, 1, shape);
}

void basin_rule_pad(basin_node *node, const basin_expr *cotangent, const bool *want,
                    basin_expr *grad) {
    int axis = node->attr.axis;
    (void)want;
    grad[0] = basin_slice(cotangent[0], axis, node->attr.start, node->in[0]->shape.dim[axis]);
}

static bool concat_fits(basin_expr a, basin_expr b, int axis) {
    char x[BASIN_EXPR_TEXT], y[BASIN_EXPR_TEXT];
    basin_shape shape = b->shape;
    if (shape.rank == a->shape.rank) shape.dim[axis] = a->shape.dim[axis];
    if (basin_shape_equal(shape, a->shape)) return true;
    basin_graph_fail(a->graph, BASIN_BAD_SHAPE, "concat: %s and %s differ in an axis other than %d",
                     basin_expr_print(x, a), basin_expr_print(y, b), axis);
    return false;
}

basin_expr basin_concat(const basin_expr *parts, int count, int axis) {
    if (count < 1 || !parts[0] || (axis = basin_axis(parts[0], axis, "concat")) < 0) return NULL;
    if (count == 1) return parts[0];
    if (count > BASIN_MAX_IN) {
        basin_expr head = basin_concat(parts, BASIN_MAX_IN, axis);
        basin_expr rest = basin_concat(parts + BASIN_MAX_IN, count - BASIN_MAX_IN, axis);
        return basin_concat((basin_expr[]){head, rest}, 2, axis);
    }
    basin_shape shape = parts[0]->shape;
    for (int i = 1; i < count; i++) {
        if (!parts[i] || !concat_fits(parts[0], parts[i], axis)) return NULL;
        shape.dim[axis] += parts[i]->shape.dim[axis];
    }
    basin_attr attr = {.axis = axis};
    return basin_node_single(parts[0]->graph, BASIN_OP_CONCAT, &attr, parts, count, shape);
}

void basin_rule_concat(basin_node *node, const basin_expr *cotangent, const bool *want,
                       basin_expr *grad) {
    int64_t start = 0;
    for (int i = 0; i < node->ins; i++) {
        int64_t count = node->in[i]->shape.dim[node->attr.axis];
        if (want[i]) grad[i] = basin_slice(cotangent[0], node->attr.axis, start, count);
        start += count;
    }
}

basin_expr basin_gather(basin_expr table, basin_expr index) {
    char x[BASIN_EXPR_TEXT], y[BASIN_EXPR_TEXT];
    basin_attr attr = {0};
    if (!table || !index) return NULL;
    if (index->kind != BASIN_INDEX || index->shape.rank != 1 || table->shape.rank < 1)
        return basin_graph_fail(table->graph, BASIN_BAD_SHAPE,
                                "gather: rows of %s by %s, which must be an index tensor [n]",
                                basin_expr_print(x, table), basin_expr_print(y, index));
    basin_shape shape = table->shape;
    shape.dim[0] = index->shape.dim[0];
    return basin_node_single(table->graph, BASIN_OP_GATHER, &attr, (basin_expr[]){table, index}, 2,
                             shape);
}

void basin_rule_gather(basin_node *node, const basin_expr *cotangent, const bool *want,
                       basin_expr *grad) {
    if (want[0]) grad[0] = basin_scatter(cotangent[0], node->in[1], node->in[0]->shape.dim[0]);
}

basin_expr basin_scatter(basin_expr values, basin_expr index, int64_t rows) {
    char x[BASIN_EXPR_TEXT], y[BASIN_EXPR_TEXT];
    basin_attr attr = {0};
    if (!values || !index) return NULL;
    if (index->kind != BASIN_INDEX || index->shape.rank != 1 || values->shape.rank < 1 ||
        values->shape.dim[0] != index->shape.dim[0] || rows < 0)
        return basin_graph_fail(
            values->graph, BASIN_BAD_SHAPE,
            "scatter: rows of %s by %s into %lld rows; wanted an index tensor as "
            "long as the values",
            basin_expr_print(x, values), basin_expr_print(y, index), (long long)rows);
    basin_shape shape = values->shape;
    shape.dim[0] = rows;
    return basin_node_single(values->graph, BASIN_OP_SCATTER, &attr, (basin_expr[]){values, index},
                             2, shape);
}

void basin_rule_scatter(basin_node *node, const basin_expr *cotangent, const bool *want,
                        basin_expr *grad) {
    if (want[0]) grad[0] = basin_gather(cotangent[0], node->in[1]);
}

/* ---- rows of other parts ---- */

/* To `rows` rows; EXCHANGE where that is more, else its reverse. */
static basin_expr exchange(basin_expr a, int64_t rows) {
    basin_attr attr = {0};
    if (!a) return NULL;
    basin_shape shape = a->shape;
    basin_op op = rows > shape.dim[0] ? BASIN_OP_EXCHANGE : BASIN_OP_EXCHANGE_BACK;
    shape.dim[0] = rows;
    return basin_node_single(a->graph, op, &attr, &a, 1, shape);
}

basin_expr basin_exchange(basin_expr a, int64_t halo) {
    char text[BASIN_EXPR_TEXT];
    if (!a || halo == 0) return a;
    if (a->shape.rank < 1 || halo < 0)
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE,
                                "exchange: %s with %lld rows of others, wanted rows and some",
                                basin_expr_print(text, a), (long long)halo);
    return exchange(a, a->shape.dim[0] + halo);
}

void basin_rule_exchange(basin_node *node, const basin_expr *cotangent, const bool *want,
                         basin_expr *grad) {
    if (want[0]) grad[0] = exchange(cotangent[0], node->in[0]->shape.dim[0]);
}
