/* Arranging numbers along one axis: strides, flips, rolls, stacks, diagonals, rows by index,
 * running sums. Formulas of the operations of move.c, so that their gradients follow. */
#include "expr/graph.h"

#include <stdlib.h>

#include "base/memory.h"

basin_expr basin_axes_insert(basin_expr a, int axis, int count) {
    char text[BASIN_EXPR_TEXT];
    if (!a) return NULL;
    basin_shape shape = {.rank = a->shape.rank + count};
    int at = axis < 0 ? axis + shape.rank : axis;
    if (count < 0 || shape.rank > BASIN_MAX_RANK || at < 0 || at > a->shape.rank)
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE, "axes_insert: %d axes at %d of %s",
                                count, axis, basin_expr_print(text, a));
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
    basin_expr sum = NULL;
    if (count < 1) return NULL;
    basin_expr *wide = basin_array_new((size_t)count, sizeof(basin_expr));
    if (!wide)
        return basin_graph_fail(basin_expr_graph(parts[0]), BASIN_NO_MEMORY,
                                "out of memory for an expression");
    for (int i = 0; i < count; i++) wide[i] = basin_axes_insert(parts[i], axis, 1);
    sum = basin_concat(wide, count, axis);
    free(wide);
    return sum;
}

/* Every step-th element is the first of its group of `step`. */
basin_expr basin_stride(basin_expr a, int axis, int64_t start, int64_t step) {
    char text[BASIN_EXPR_TEXT];
    if (!a || (axis = basin_axis(a, axis, "stride")) < 0) return NULL;
    int64_t n = a->shape.dim[axis];
    if (start < 0 || start > n || step < 1)
        return basin_graph_fail(a->graph, BASIN_BAD_VALUE,
                                "stride: every element %lld from %lld on of axis %d of %s",
                                (long long)step, (long long)start, axis, basin_expr_print(text, a));
    if (a->shape.rank >= BASIN_MAX_RANK)
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE, "stride: %s has no room for an axis",
                                basin_expr_print(text, a));
    if (step == 1) return basin_slice(a, axis, start, n - start);
    if (step >= n - start) return basin_slice(a, axis, start, n > start);
    int64_t count = (n - start + step - 1) / step, over = count * step - (n - start);
    a = basin_pad(basin_slice(a, axis, start, n - start), axis, 0, over);
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
    return move_axis(basin_gather(move_axis(a, axis, 0), index), 0, axis);
}

basin_expr basin_flip(basin_expr a, int axis) {
    if (!a || (axis = basin_axis(a, axis, "flip")) < 0) return NULL;
    int64_t n = a->shape.dim[axis];
    int32_t *from = n <= INT32_MAX ? basin_array_new((size_t)n, sizeof *from) : NULL;
    if (!from)
        return basin_graph_fail(a->graph, BASIN_NO_MEMORY, "out of memory for an expression");
    for (int64_t i = 0; i < n; i++) from[i] = (int32_t)(n - 1 - i);
    basin_expr index = basin_index_constant(a->graph, from, BASIN_SHAPE(n));
    free(from);
    return basin_take(a, axis, index);
}

/* The elements (i, i) of the last two axes, n of them, are every (n + 1)-th of the matrix. */
basin_expr basin_diagonal(basin_expr a, int axis, int other) {
    char text[BASIN_EXPR_TEXT];
    if (!a || (axis = basin_axis(a, axis, "diagonal")) < 0 ||
        (other = basin_axis(a, other, "diagonal")) < 0)
        return NULL;
    int64_t n = a->shape.dim[axis];
    if (axis == other || a->shape.dim[other] != n)
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE,
                                "diagonal: axes %d and %d of %s, wanted two of equal length", axis,
                                other, basin_expr_print(text, a));
    a = basin_axis_last(basin_axis_last(a, axis), other > axis ? other - 1 : other);
    if (!a) return NULL;
    basin_shape flat = a->shape;
    flat.rank--;
    flat.dim[flat.rank - 1] = n * n;
    return basin_stride(basin_reshape(a, flat), -1, 0, n + 1);
}

/* Sums of 1, 2, 4, .. elements in turn: as exact as a tree, and as many steps as the length has
 * bits. */
basin_expr basin_cumsum(basin_expr a, int axis) {
    if (!a || (axis = basin_axis(a, axis, "cumsum")) < 0) return NULL;
    int64_t n = a->shape.dim[axis];
    for (int64_t by = 1; by < n; by *= 2)
        a = basin_add(a, basin_pad(basin_slice(a, axis, 0, n - by), axis, by, 0));
    return a;
}
