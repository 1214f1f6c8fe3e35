/* Moving numbers: reshape, permute, slice, concatenate, take; the reverse of each. */
#include "base/shape.h"
#include "base/try.h"
#include "engine/expr/graph.h"

int basin_axis(basin_expr a, int axis, const char *what) {
    int found = axis < 0 ? axis + a->shape.rank : axis;
    if (found >= 0 && found < a->shape.rank) return found;
    basin_graph_fail(a->graph, BASIN_BAD_SHAPE, "%s: axis %d of %s%s", what, axis,
                     basin_expr_text(a), a->shape.rank ? "" : ", a scalar");
    return -1;
}

/* A view of a view is one; repeated scalars are repeated anew; signs and factors stay outside. */
static basin_expr simplify_reshape(basin_expr a, basin_shape shape) {
    const basin_node *node = a->node;
    if (node->op == BASIN_OP_RESHAPE) return basin_reshape(node->in[0], shape);
    if (node->op == BASIN_OP_COPY && node->in[0]->shape.rank == 0)
        return basin_broadcast_to(node->in[0], shape);
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
    basin_attr attr = {0};
    if (a) shape = complete_shape(shape, basin_shape_count(a->shape));
    if (!a || basin_shape_equal(a->shape, shape)) return a;
    if (basin_shape_count(a->shape) != basin_shape_count(shape))
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE,
                                "reshape: %s does not have as many elements as %s",
                                basin_expr_text(a), basin_shape_text(shape));
    if (basin_expr_is_const(a)) return basin_broadcast_to(a, shape);
    if (a->graph->simplify) {
        basin_expr simple = simplify_reshape(a, shape);
        if (simple) return simple;
    }
    basin_result out = {.kind = a->kind, .shape = shape};
    basin_node *node = basin_node_new(a->graph, BASIN_OP_RESHAPE, &attr, &a, 1, &out, 1);
    return node ? node->out[0] : NULL;
}

BASIN_RULE(reshape) { grad[0] = basin_reshape(cotangent[0], node->in[0]->shape); }

static bool is_permutation(const int *axes, int rank) {
    unsigned seen = 0;
    for (int i = 0; i < rank; i++) {
        if (axes[i] < 0 || axes[i] >= rank) return false;
        seen |= 1u << axes[i];
    }
    return seen == (1u << rank) - 1;
}

basin_expr basin_permute(basin_expr a, const int *axes) {
    basin_attr attr = {0};
    if (!a) return NULL;
    basin_shape shape = a->shape;
    if (!is_permutation(axes, shape.rank))
        return basin_graph_fail(a->graph, BASIN_BAD_VALUE,
                                "permute: the axes are not a permutation of those of %s",
                                basin_expr_text(a));
    bool identity = true;
    for (int i = 0; i < shape.rank; i++) {
        attr.axes[i] = (int8_t)axes[i];
        shape.dim[i] = a->shape.dim[axes[i]];
        identity = identity && axes[i] == i;
    }
    return identity ? a : basin_node_single(a->graph, BASIN_OP_PERMUTE, &attr, &a, 1, shape);
}

BASIN_RULE(permute) {
    int back[BASIN_MAX_RANK];
    for (int i = 0; i < node->in[0]->shape.rank; i++) back[node->attr.axes[i]] = i;
    grad[0] = basin_permute(cotangent[0], back);
}

basin_expr basin_transpose(basin_expr a) {
    int axes[BASIN_MAX_RANK];
    if (!a) return NULL;
    if (a->shape.rank < 2)
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE,
                                "transpose: %s has rank %d, expected two axes or more",
                                basin_expr_text(a), a->shape.rank);
    for (int i = 0; i < a->shape.rank; i++) axes[i] = i;
    axes[a->shape.rank - 1] = a->shape.rank - 2;
    axes[a->shape.rank - 2] = a->shape.rank - 1;
    return basin_permute(a, axes);
}

basin_expr basin_slice(basin_expr a, int axis, int64_t start, int64_t count) {
    if (!a || (axis = basin_axis(a, axis, "slice")) < 0) return NULL;
    basin_shape shape = a->shape;
    if (start < 0 || count < 0 || start > shape.dim[axis] - count)
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE,
                                "slice: %lld elements from %lld on of axis %d of %s",
                                (long long)count, (long long)start, axis, basin_expr_text(a));
    if (count == shape.dim[axis]) return a;
    basin_attr attr = {.axis = axis, .start = start};
    shape.dim[axis] = count;
    return basin_node_single(a->graph, BASIN_OP_SLICE, &attr, &a, 1, shape);
}

BASIN_RULE(slice) {
    int axis = node->attr.axis;
    int64_t start = node->attr.start, count = node->out[0]->shape.dim[axis];
    grad[0] = basin_pad(cotangent[0], axis, start, node->in[0]->shape.dim[axis] - start - count);
}

basin_expr basin_pad(basin_expr a, int axis, int64_t before, int64_t after) {
    if (!a || (axis = basin_axis(a, axis, "pad")) < 0) return NULL;
    if (before < 0 || after < 0 || before > INT64_MAX - after ||
        before + after > INT64_MAX - a->shape.dim[axis])
        return basin_graph_fail(a->graph, BASIN_BAD_VALUE,
                                "pad: %lld before and %lld after axis %d of %s", (long long)before,
                                (long long)after, axis, basin_expr_text(a));
    if (before == 0 && after == 0) return a;
    basin_attr attr = {.axis = axis, .start = before};
    basin_shape shape = a->shape;
    shape.dim[axis] += before + after;
    return basin_node_single(a->graph, BASIN_OP_PAD, &attr, &a, 1, shape);
}

BASIN_RULE(pad) {
    int axis = node->attr.axis;
    grad[0] = basin_slice(cotangent[0], axis, node->attr.start, node->in[0]->shape.dim[axis]);
}

static bool concat_fits(basin_expr a, basin_expr b, int axis) {
    basin_shape shape = b->shape;
    if (shape.rank == a->shape.rank) shape.dim[axis] = a->shape.dim[axis];
    if (basin_shape_equal(shape, a->shape)) return true;
    return basin_graph_fail(a->graph, BASIN_BAD_SHAPE,
                            "concat: %s and %s differ in an axis other than %d", basin_expr_text(a),
                            basin_expr_text(b), axis);
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

BASIN_RULE(concat) {
    int64_t start = 0;
    for (int i = 0; i < node->ins; i++) {
        int64_t count = node->in[i]->shape.dim[node->attr.axis];
        if (want[i]) grad[i] = basin_slice(cotangent[0], node->attr.axis, start, count);
        start += count;
    }
}

/* Rows of a table by index. */
static basin_expr gather(basin_expr table, basin_expr index) {
    basin_attr attr = {0};
    if (!table) return NULL;
    if (index->kind != BASIN_INDEX || index->shape.rank != 1)
        return basin_graph_fail(table->graph, BASIN_BAD_SHAPE,
                                "take: rows of %s by %s, which must be an index tensor [n]",
                                basin_expr_text(table), basin_expr_text(index));
    basin_shape shape = table->shape;
    shape.dim[0] = index->shape.dim[0];
    return basin_node_single(table->graph, BASIN_OP_GATHER, &attr, (basin_expr[]){table, index}, 2,
                             shape);
}

BASIN_RULE(gather) {
    if (want[0]) grad[0] = basin_scatter(cotangent[0], node->in[1], node->in[0]->shape.dim[0]);
}

basin_expr basin_scatter(basin_expr values, basin_expr index, int64_t rows) {
    basin_attr attr = {0};
    if (!values || !index) return NULL;
    if (index->kind != BASIN_INDEX || index->shape.rank != 1 || values->shape.rank < 1 ||
        values->shape.dim[0] != index->shape.dim[0] || rows < 0)
        return basin_graph_fail(
            values->graph, BASIN_BAD_SHAPE,
            "scatter: rows of %s by %s into %lld rows; expected an index tensor as "
            "long as the values",
            basin_expr_text(values), basin_expr_text(index), (long long)rows);
    basin_shape shape = values->shape;
    shape.dim[0] = rows;
    return basin_node_single(values->graph, BASIN_OP_SCATTER, &attr, (basin_expr[]){values, index},
                             2, shape);
}

BASIN_RULE(scatter) {
    if (want[0]) grad[0] = gather(cotangent[0], node->in[1]);
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
    if (!a || halo == 0) return a;
    if (a->shape.rank < 1 || halo < 0)
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE,
                                "exchange: %s with %lld rows of others, expected rows and some",
                                basin_expr_text(a), (long long)halo);
    return exchange(a, a->shape.dim[0] + halo);
}

BASIN_RULE(exchange) {
    if (want[0]) grad[0] = exchange(cotangent[0], node->in[0]->shape.dim[0]);
}

/* Arranging numbers along one axis: strides, rolls, stacks, diagonals, elements by index, running
 * sums. Formulas of the operations of move.c, so that their gradients follow. */

basin_expr basin_expand_dims(basin_expr a, int axis, int count) {
    if (!a) return NULL;
    basin_shape shape = {.rank = a->shape.rank + count};
    int at = axis < 0 ? axis + shape.rank : axis;
    if (count < 0 || shape.rank > BASIN_MAX_RANK || at < 0 || at > a->shape.rank)
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE, "axes_insert: %d axes at %d of %s",
                                count, axis, basin_expr_text(a));
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = i < at ? a->shape.dim[i] : i < at + count ? 1 : a->shape.dim[i - count];
    return basin_reshape(a, shape);
}

/* Moves one axis to the place `to`; the others keep their order. */
static basin_expr move_axis(basin_expr a, int from, int to) {
    int axes[BASIN_MAX_RANK], next = 0;
    if (!a) return NULL;
    for (int i = 0; i < a->shape.rank; i++) {
        if (next == from) next++;
        axes[i] = i == to ? from : next++;
    }
    return basin_permute(a, axes);
}

basin_expr basin_axis_last(basin_expr a, int axis) {
    return a ? move_axis(a, axis, a->shape.rank - 1) : NULL;
}
basin_expr basin_axis_back(basin_expr a, int axis) {
    return a ? move_axis(a, a->shape.rank - 1, axis) : NULL;
}

basin_expr basin_stack(const basin_expr *parts, int count, int axis) {
    if (count < 1) return NULL;
    BASIN_FREE_AT_EXIT basin_expr *wide = basin_array_new((size_t)count, sizeof *wide);
    if (!wide)
        return basin_graph_fail(basin_expr_graph(parts[0]), BASIN_NO_MEMORY,
                                "out of memory for an expression");
    for (int i = 0; i < count; i++) wide[i] = basin_expand_dims(parts[i], axis, 1);
    return basin_concat(wide, count, axis);
}

/* By index: for steps backwards. */
static basin_expr take_steps(basin_expr a, int axis, int64_t start, int64_t count, int64_t step) {
    BASIN_FREE_AT_EXIT int32_t *from =
        start <= INT32_MAX ? basin_array_new((size_t)count, sizeof *from) : NULL;
    if (!from)
        return basin_graph_fail(a->graph, BASIN_NO_MEMORY, "out of memory for an expression");
    for (int64_t i = 0; i < count; i++) from[i] = (int32_t)(start + i * step);
    return basin_take(a, axis, basin_leaf_data(a->graph, BASIN_INDEX, BASIN_SHAPE(count), from));
}

/* Every step-th element is the first of its group of `step`. */
basin_expr basin_stride(basin_expr a, int axis, int64_t start, int64_t count, int64_t step) {
    if (!a || (axis = basin_axis(a, axis, "stride")) < 0) return NULL;
    int64_t n = a->shape.dim[axis], room = step > 0 ? n - 1 - start : start;
    if (start < 0 || start > n || count < 0 || step == 0 || step == INT64_MIN ||
        (count > 0 && (start == n || (count - 1) > room / (step > 0 ? step : -step))))
        return basin_graph_fail(
            a->graph, BASIN_BAD_SHAPE,
            "stride: %lld elements from %lld on in steps of %lld of axis %d of %s",
            (long long)count, (long long)start, (long long)step, axis, basin_expr_text(a));
    if (a->shape.rank >= BASIN_MAX_RANK)
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE, "stride: %s has no room for an axis",
                                basin_expr_text(a));
    if (step == 1 || count <= 1) return basin_slice(a, axis, start, count);
    if (step < 0) return take_steps(a, axis, start, count, step);
    int64_t whole = count * step, there = whole < n - start ? whole : n - start;
    a = basin_pad(basin_slice(a, axis, start, there), axis, 0, whole - there);
    if (!a) return NULL;
    basin_shape groups = a->shape, shape = groups;
    for (int i = groups.rank++; i > axis + 1; i--) groups.dim[i] = groups.dim[i - 1];
    groups.dim[axis] = shape.dim[axis] = count;
    groups.dim[axis + 1] = step;
    return basin_reshape(basin_slice(basin_reshape(a, groups), axis + 1, 0, 1), shape);
}

basin_expr basin_roll(basin_expr a, int axis, int64_t by) {
    if (!a || (axis = basin_axis(a, axis, "roll")) < 0) return NULL;
    int64_t n = a->shape.dim[axis];
    by = n > 0 ? (by % n + n) % n : 0;
    if (by == 0) return a;
    return basin_concat(
        (basin_expr[]){basin_slice(a, axis, n - by, by), basin_slice(a, axis, 0, n - by)}, 2, axis);
}

basin_expr basin_take(basin_expr a, int axis, basin_expr index) {
    if (!a || !index || (axis = basin_axis(a, axis, "take")) < 0) return NULL;
    return move_axis(gather(move_axis(a, axis, 0), index), 0, axis);
}

/* The elements (i, i) of the last two axes, n of them, are every (n + 1)-th of the matrix. */
basin_expr basin_diagonal(basin_expr a, int axis, int other) {
    if (!a || (axis = basin_axis(a, axis, "diagonal")) < 0 ||
        (other = basin_axis(a, other, "diagonal")) < 0)
        return NULL;
    int64_t n = a->shape.dim[axis];
    if (axis == other || a->shape.dim[other] != n)
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE,
                                "diagonal: axes %d and %d of %s, expected two of equal length",
                                axis, other, basin_expr_text(a));
    a = basin_axis_last(basin_axis_last(a, axis), other > axis ? other - 1 : other);
    if (!a) return NULL;
    basin_shape flat = a->shape;
    flat.rank--;
    flat.dim[flat.rank - 1] = n * n;
    return basin_stride(basin_reshape(a, flat), -1, 0, n, n + 1);
}

/* Sums of 1, 2, 4, .. elements in turn: as exact as a tree, a step for each bit of the length. */
basin_expr basin_cumsum(basin_expr a, int axis) {
    if (!a || (axis = basin_axis(a, axis, "cumsum")) < 0) return NULL;
    int64_t n = a->shape.dim[axis];
    for (int64_t by = 1; by < n; by *= 2)
        a = basin_add(a, basin_pad(basin_slice(a, axis, 0, n - by), axis, by, 0));
    return a;
}
