/* Choosing among the elements of an axis: positions of the largest, the cross entropy of a labelled
 * choice. Formulas; a choice itself is flat, so gradients flow through values alone. */
#include <float.h>

#include "expr/graph.h"

/* The first position of the largest element of the last axis, as a number [.., 1]. */
static basin_expr first_largest(basin_expr a) {
    if (!a) return NULL;
    int64_t n = a->shape.dim[a->shape.rank - 1];
    basin_expr largest = basin_as_column(basin_maximum(a, -1, 1));
    basin_expr position = basin_iota(a->graph, n);
    basin_expr later = basin_const(a->graph, (double)n);
    basin_expr hit = basin_select(basin_equal(a, largest), position, later);
    return basin_as_column(basin_neg(basin_maximum(basin_neg(hit), -1, 1)));
}

static bool has_elements(basin_expr a, int axis, int64_t count, const char *what) {
    char text[BASIN_EXPR_TEXT];
    if (count >= 1 && count <= a->shape.dim[axis]) return true;
    basin_graph_fail(a->graph, BASIN_BAD_SHAPE, "%s: %lld elements of axis %d of %s", what,
                     (long long)count, axis, basin_expr_print(text, a));
    return false;
}

basin_expr basin_argmax(basin_expr a, int axis) {
    if (!a || (axis = basin_axis(a, axis, "argmax")) < 0 || !has_elements(a, axis, 1, "argmax"))
        return NULL;
    int64_t n = a->shape.dim[axis];
    basin_expr position = first_largest(basin_axis_last(a, axis));
    return basin_to_index(basin_reshape(position, basin_shape_drop(a->shape, axis, 1)), n);
}

/* One after the other: what was chosen is less than all that is left. */
basin_expr basin_top(basin_expr a, int64_t count, int axis, basin_expr *where) {
    basin_expr best[BASIN_TOP_MOST], place[BASIN_TOP_MOST];
    if (where) *where = NULL;
    if (!a || (axis = basin_axis(a, axis, "top")) < 0 || !has_elements(a, axis, count, "top"))
        return NULL;
    if (count > BASIN_TOP_MOST)
        return basin_graph_fail(a->graph, BASIN_UNSUPPORTED,
                                "top: the %lld largest, wanted 1 to %d", (long long)count,
                                BASIN_TOP_MOST);
    basin_expr left = basin_axis_last(a, axis);
    basin_expr position = basin_iota(a->graph, a->shape.dim[axis]);
    basin_expr gone = basin_const(a->graph, -FLT_MAX), zero = basin_const(a->graph, 0);
    for (int64_t i = 0; i < count; i++) {
        place[i] = first_largest(left);
        basin_expr hit = basin_equal(position, place[i]);
        best[i] = basin_as_column(basin_sum(basin_select(hit, left, zero), -1, 1));
        left = basin_select(hit, gone, left);
    }
    basin_expr chosen = basin_axis_back(basin_concat(place, (int)count, -1), axis);
    if (where) *where = basin_to_index(chosen, a->shape.dim[axis]);
    return basin_axis_back(basin_concat(best, (int)count, -1), axis);
}

basin_expr basin_cross_entropy_labels(basin_expr scores, basin_expr label) {
    char x[BASIN_EXPR_TEXT], y[BASIN_EXPR_TEXT];
    if (!scores || !label) return NULL;
    int rank = scores->shape.rank;
    if (rank < 1 || label->kind != BASIN_INDEX ||
        !basin_shape_equal(label->shape, basin_shape_drop(scores->shape, rank - 1, 1)))
        return basin_graph_fail(scores->graph, BASIN_BAD_SHAPE,
                                "cross_entropy: scores %s and labels %s; wanted [.., classes] and "
                                "an index tensor [..]",
                                basin_expr_print(x, scores), basin_expr_print(y, label));
    int64_t classes = scores->shape.dim[rank - 1];
    basin_expr zero = basin_const(scores->graph, 0);
    basin_expr hot = basin_one_hot(label, classes);
    basin_expr own = basin_sum(basin_select(hot, scores, zero), -1, 1);
    basin_expr known =
        basin_greater(basin_from_index(label, classes), basin_const(scores->graph, -0.5));
    return basin_select(known, basin_sub(basin_logsumexp(scores), own), zero);
}
