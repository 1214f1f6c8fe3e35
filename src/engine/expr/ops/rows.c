/* Reductions, layer norm, and what is over rows: softmax, its relatives, causal pairs, choices. */
#include <float.h>

#include "engine/expr/graph.h"

basin_shape basin_shape_drop(basin_shape shape, int axis, int count) {
    basin_shape out = {.rank = shape.rank - count};
    for (int i = 0; i < out.rank; i++) out.dim[i] = shape.dim[i < axis ? i : i + count];
    return out;
}

static basin_expr reduce(basin_op op, basin_expr a, int axis, int count, const char *what) {
    if (!a || count == 0) return a;
    if ((axis = basin_axis(a, axis, what)) < 0) return NULL;
    if (count < 0 || axis + count > a->shape.rank)
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE, "%s: %d axes from %d on of %s", what,
                                count, axis, basin_expr_text(a));
    basin_shape shape = basin_shape_drop(a->shape, axis, count);
    if (basin_shape_count(shape) == basin_shape_count(a->shape)) return basin_reshape(a, shape);
    basin_attr attr = {.axis = axis, .count = count};
    return basin_node_single(a->graph, op, &attr, &a, 1, shape);
}

basin_expr basin_sum(basin_expr a, int axis, int count) {
    return reduce(BASIN_OP_SUM, a, axis, count, "sum");
}
basin_expr basin_max(basin_expr a, int axis, int count) {
    return reduce(BASIN_OP_MAX, a, axis, count, "maximum");
}
basin_expr basin_min(basin_expr a, int axis, int count) {
    return basin_neg(basin_max(basin_neg(a), axis, count));
}
basin_expr basin_sum_all(basin_expr a) { return a ? basin_sum(a, 0, a->shape.rank) : NULL; }
basin_expr basin_max_all(basin_expr a) { return a ? basin_max(a, 0, a->shape.rank) : NULL; }

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

BASIN_RULE(squares) {
    for (int i = 0; i < node->ins; i++)
        if (want[i]) grad[i] = basin_scale(basin_mul(cotangent[0], node->in[i]), 2);
}

/* With ones in place of the reduced axes, and these broadcast back to the operand's shape. */
static basin_expr spread(const basin_node *node, basin_expr reduced) {
    basin_shape shape = node->in[0]->shape, ones = shape;
    for (int i = 0; i < node->attr.count; i++) ones.dim[node->attr.axis + i] = 1;
    return basin_broadcast_to(basin_reshape(reduced, ones), shape);
}

BASIN_RULE(sum) { grad[0] = spread(node, cotangent[0]); }

/* Elements that tie for the maximum share its cotangent evenly. */
BASIN_RULE(max) {
    basin_expr hit = basin_equal(node->in[0], spread(node, node->out[0]));
    basin_expr ties = basin_sum(hit, node->attr.axis, node->attr.count);
    grad[0] = basin_mul(hit, spread(node, basin_div(cotangent[0], ties)));
}

basin_expr basin_logsumexp(basin_expr a, int axis) {
    basin_attr attr = {0};
    if (!a || (axis = basin_axis(a, axis, "logsumexp")) < 0) return NULL;
    a = basin_axis_last(a, axis);
    if (!a) return NULL;
    return basin_node_single(a->graph, BASIN_OP_LOGSUMEXP, &attr, &a, 1,
                             basin_shape_drop(a->shape, a->shape.rank - 1, 1));
}

basin_expr basin_as_column(basin_expr a) {
    if (!a) return NULL;
    basin_shape shape = a->shape;
    shape.dim[shape.rank++] = 1;
    return basin_reshape(a, shape);
}

BASIN_RULE(logsumexp) {
    grad[0] = basin_mul(basin_as_column(cotangent[0]), basin_softmax(node->in[0], -1));
}

basin_expr basin_softmax(basin_expr a, int axis) {
    basin_attr attr = {0};
    if (!a || (axis = basin_axis(a, axis, "softmax")) < 0) return NULL;
    a = basin_axis_last(a, axis);
    if (!a) return NULL;
    return basin_axis_back(basin_node_single(a->graph, BASIN_OP_SOFTMAX, &attr, &a, 1, a->shape),
                           axis);
}

BASIN_RULE(softmax) {
    basin_expr s = node->out[0], c = cotangent[0];
    basin_expr mean = basin_as_column(basin_sum(basin_mul(c, s), -1, 1));
    grad[0] = basin_mul(s, basin_sub(c, mean));
}

/* Layer norm with a gain, of all or of each column, g = gamma (x - mean) / sqrt(var + epsilon) +
 * delta (the paper's equation 1), its fused reverse, and the reverse of that through its
 * definition. */

basin_expr basin_layernorm(basin_expr x, basin_expr gamma, basin_expr delta, double epsilon) {
    if (!x || !gamma) return NULL;
    bool zero = !delta && x->shape.rank > 0;
    if (zero) delta = basin_full(x->graph, BASIN_SHAPE(x->shape.dim[x->shape.rank - 1]), 0);
    if (zero && !delta) return NULL; /* no memory */
    bool each = gamma->shape.rank != 0;
    if (x->shape.rank < 1 || (each && !basin_shape_equal(gamma->shape, delta->shape)) ||
        delta->shape.rank != 1 || delta->shape.dim[0] != x->shape.dim[x->shape.rank - 1])
        return basin_graph_fail(x->graph, BASIN_BAD_SHAPE,
                                "layernorm: x %s, gamma %s, delta %s; expected [.., D], [] or [D], "
                                "[D]",
                                basin_expr_text(x), basin_expr_text(gamma),
                                delta ? basin_expr_text(delta) : "0");
    basin_attr attr = {.value = epsilon};
    return basin_node_single(x->graph, BASIN_OP_LAYERNORM, &attr, (basin_expr[]){x, gamma, delta},
                             3, x->shape);
}

BASIN_RULE(layernorm) {
    basin_expr x = node->in[0], gamma = node->in[1], delta = node->in[2];
    basin_result out[3] = {{.shape = x->shape, .absent = !want[0]},
                           {.shape = gamma->shape, .absent = !want[1]},
                           {.shape = delta->shape, .absent = !want[2]}};
    basin_node *reverse = basin_node_new(x->graph, BASIN_OP_LAYERNORM_REVERSE, &node->attr,
                                         (basin_expr[]){x, gamma, cotangent[0]}, 3, out, 3);
    for (int i = 0; reverse && i < 3; i++)
        if (want[i]) grad[i] = reverse->out[i];
}

static basin_expr row_mean(basin_expr a) { return basin_as_column(basin_mean(a, -1, 1)); }

/* The fused reverse written out, for differentiating it again:
 * with n = (x - mean) / s and s = sqrt(var + epsilon),
 * dx = gamma / s (c - mean(c) - n mean(c n)), dgamma = sum c n, ddelta = sum over rows of c. A
 * gain of each column multiplies c in dx instead. */
BASIN_RULE(layernorm_reverse) {
    basin_expr in[3];
    basin_stand_ins(in, node);
    basin_expr x = in[0], gamma = in[1], c = in[2];
    if (!x || !gamma || !c) return;
    bool each = gamma->shape.rank > 0;
    basin_expr centred = basin_sub(x, row_mean(x));
    basin_expr s = basin_sqrt(basin_offset(row_mean(basin_square(centred)), node->attr.value));
    basin_expr n = basin_div(centred, s);
    basin_expr y[3] = {NULL, NULL, NULL};
    if (cotangent[0]) {
        basin_expr own = each ? basin_mul(c, gamma) : c;
        basin_expr flat = basin_sub(own, row_mean(own));
        basin_expr along = basin_mul(n, row_mean(basin_mul(own, n)));
        basin_expr slope = basin_sub(flat, along);
        y[0] = each ? basin_div(slope, s) : basin_mul(basin_div(gamma, s), slope);
    }
    if (cotangent[1])
        y[1] = each ? basin_sum(basin_mul(c, n), 0, c->shape.rank - 1)
                    : basin_sum_all(basin_mul(c, n));
    if (cotangent[2]) y[2] = basin_sum(c, 0, c->shape.rank - 1);
    basin_partial(grad, y, cotangent, 3, in, want, 3);
}

/* Sparse relatives of softmax, and the convex functions whose gradients they are.
 *
 * The threshold t of a row x, with relu(x - t)^n summing to 1, has
 *
 *     dt/dx = w / sum w,   w = relu(x - t)^(n - 1)
 *
 * and w is a function of x and t, so every derivative follows; the support is held, as it is almost
 * everywhere. With p the probabilities, each conjugate max over p of p.z - Omega(p) is
 *
 *     sparsemax   p = relu(z - t)              Omega = |p|^2/2 - 1/2
 *     entmax 1.5  p = relu(z/2 - t)^2 = r^2    Omega = (sum r^3 - 1) 4/3
 *     normmax 2   p = relu(z - t) / sum        Omega = |p| - 1,  its conjugate is t + 1
 */

static basin_expr threshold(basin_expr a, int count, const char *what) {
    if (!a) return NULL;
    if (a->shape.rank < 1)
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE,
                                "%s: %s is a scalar and has no last axis", what,
                                basin_expr_text(a));
    basin_attr attr = {.count = count};
    return basin_node_single(a->graph, BASIN_OP_THRESHOLD, &attr, &a, 1,
                             basin_shape_drop(a->shape, a->shape.rank - 1, 1));
}

/* relu(a - t) of the row's own threshold. */
static basin_expr excess(basin_expr a, int count, const char *what) {
    return basin_relu(basin_sub(a, basin_as_column(threshold(a, count, what))));
}

BASIN_RULE(threshold) {
    basin_expr over = basin_sub(node->in[0], basin_as_column(node->out[0]));
    basin_expr w = node->attr.count == 1 ? basin_heaviside(over) : basin_relu(over);
    basin_expr sum = basin_as_column(basin_sum(w, -1, 1));
    grad[0] = basin_mul(basin_as_column(cotangent[0]), basin_div(w, sum));
}

/* r of the formulas above, before its square or its sum. */
static basin_expr sparse_root(basin_expr a, basin_sparse_kind kind) {
    switch (kind) {
    case BASIN_SPARSE_SPARSEMAX: return excess(a, 1, "sparsemax");
    case BASIN_SPARSE_ENTMAX15: return excess(basin_scale(a, 0.5), 2, "entmax15");
    case BASIN_SPARSE_NORMMAX2: return excess(a, 2, "normmax2");
    }
    return basin_graph_fail(basin_expr_graph(a), BASIN_BAD_VALUE,
                            "sparse_softmax: no kind has the number %d", (int)kind);
}

basin_expr basin_sparse_softmax(basin_expr a, basin_sparse_kind kind) {
    basin_expr r = a ? sparse_root(a, kind) : NULL;
    if (!r || kind == BASIN_SPARSE_SPARSEMAX) return r;
    if (kind == BASIN_SPARSE_ENTMAX15) return basin_square(r);
    return basin_div(r, basin_as_column(basin_sum(r, -1, 1)));
}

/* sparsemax: p.z - |p|^2/2 + 1/2. entmax 1.5: p.z - (sum r^3 - 1) 4/3, of which r^3 is written
 * without a root of p. */
basin_expr basin_sparse_conjugate(basin_expr a, basin_sparse_kind kind) {
    if (kind == BASIN_SPARSE_NORMMAX2) return basin_offset(threshold(a, 2, "normmax2"), 1);
    basin_expr r = a ? sparse_root(a, kind) : NULL;
    if (!r) return NULL;
    bool square = kind == BASIN_SPARSE_ENTMAX15;
    double part = square ? 4.0 / 3 : 0.5;
    basin_expr p = square ? basin_square(r) : r;
    basin_expr inner = basin_mul(p, basin_sub(a, basin_scale(r, part)));
    return basin_offset(basin_sum(inner, -1, 1), part);
}

/* Log-sum-exp and softmax over the keys that causal queries see, for scores that are in memory,
 * [.., N, M, H]; the fused reverse, and the reverse of that through its definition. */

static bool check(basin_expr x, const char *what) {
    if (x->shape.rank >= 3) return true;
    return basin_graph_fail(x->graph, BASIN_BAD_SHAPE,
                            "%s: %s, expected [.., queries, keys, heads]", what,
                            basin_expr_text(x));
}

basin_expr basin_causal_logsumexp(basin_expr x, double factor, bool strict) {
    if (!x || !check(x, "causal logsumexp")) return NULL;
    basin_attr attr = {.value = factor, .exclude_self = strict};
    return basin_node_single(x->graph, BASIN_OP_CAUSAL_LOGSUMEXP, &attr, &x, 1,
                             basin_shape_drop(x->shape, x->shape.rank - 2, 1));
}

basin_expr basin_causal_softmax(basin_expr x, double factor, bool strict) {
    if (!x || !check(x, "causal softmax")) return NULL;
    basin_attr attr = {.value = factor, .exclude_self = strict};
    return basin_node_single(x->graph, BASIN_OP_CAUSAL_SOFTMAX, &attr, &x, 1, x->shape);
}

BASIN_RULE(causal_logsumexp) {
    basin_expr x = node->in[0];
    basin_expr shares = basin_causal_softmax(x, node->attr.value, node->attr.exclude_self);
    basin_expr weight = basin_expand_dims(cotangent[0], x->shape.rank - 2, 1);
    grad[0] = basin_scale(basin_mul(weight, shares), node->attr.value);
}

BASIN_RULE(causal_softmax) {
    basin_expr in[2] = {node->in[0], cotangent[0]};
    grad[0] = basin_node_single(in[0]->graph, BASIN_OP_CAUSAL_SOFTMAX_REVERSE, &node->attr, in, 2,
                                in[0]->shape);
}

/* The fused reverse written out, for differentiating it again: with p the shares, dx = factor p (c
 * - sum over keys of p c). */
BASIN_RULE(causal_softmax_reverse) {
    basin_expr in[2] = {NULL, NULL};
    basin_stand_ins(in, node);
    basin_expr x = in[0], c = in[1];
    if (!x || !c) return;
    basin_graph *graph = x->graph;
    int keys = x->shape.rank - 2;
    basin_expr seen = basin_expand_dims(basin_tri(graph, x->shape.dim[keys - 1], x->shape.dim[keys],
                                                  node->attr.exclude_self ? -1 : 0),
                                        2, 1);
    basin_expr score =
        basin_where(seen, basin_scale(x, node->attr.value), basin_scalar(graph, -1e30));
    basin_expr p = basin_where(seen, basin_softmax(score, keys), basin_scalar(graph, 0));
    basin_expr mean = basin_expand_dims(basin_sum(basin_mul(p, c), keys, 1), keys, 1);
    basin_expr dx = basin_scale(basin_mul(p, basin_sub(c, mean)), node->attr.value);
    basin_partial(grad, &dx, cotangent, 1, in, want, node->ins);
}

/* Choosing among the elements of an axis: positions of the largest, the cross entropy of a labelled
 * choice. Formulas; the choice itself has derivative 0, so gradients flow only through values. */

/* The first position of the largest element of the last axis, as a number [.., 1]. */
static basin_expr first_largest(basin_expr a) {
    if (!a) return NULL;
    int64_t n = a->shape.dim[a->shape.rank - 1];
    basin_expr largest = basin_as_column(basin_max(a, -1, 1));
    basin_expr position = basin_arange(a->graph, n);
    basin_expr later = basin_scalar(a->graph, (double)n);
    basin_expr hit = basin_where(basin_equal(a, largest), position, later);
    return basin_as_column(basin_neg(basin_max(basin_neg(hit), -1, 1)));
}

static bool has_elements(basin_expr a, int axis, int64_t count, const char *what) {
    if (count >= 1 && count <= a->shape.dim[axis]) return true;
    return basin_graph_fail(a->graph, BASIN_BAD_SHAPE, "%s: %lld elements of axis %d of %s", what,
                            (long long)count, axis, basin_expr_text(a));
}

basin_expr basin_argmax(basin_expr a, int axis) {
    if (!a || (axis = basin_axis(a, axis, "argmax")) < 0 || !has_elements(a, axis, 1, "argmax"))
        return NULL;
    int64_t n = a->shape.dim[axis];
    basin_expr position = first_largest(basin_axis_last(a, axis));
    return basin_to_index(basin_reshape(position, basin_shape_drop(a->shape, axis, 1)), n);
}

/* One after the other: what was chosen is less than all that is left. */
basin_expr basin_top_k(basin_expr a, int64_t count, int axis, basin_expr *where) {
    basin_expr best[BASIN_MAX_TOP_K], place[BASIN_MAX_TOP_K];
    if (where) *where = NULL;
    if (!a || (axis = basin_axis(a, axis, "top")) < 0 || !has_elements(a, axis, count, "top"))
        return NULL;
    if (count > BASIN_MAX_TOP_K)
        return basin_graph_fail(a->graph, BASIN_UNSUPPORTED,
                                "top: the %lld largest, expected 1 to %d", (long long)count,
                                BASIN_MAX_TOP_K);
    basin_expr left = basin_axis_last(a, axis);
    basin_expr position = basin_arange(a->graph, a->shape.dim[axis]);
    basin_expr gone = basin_scalar(a->graph, -FLT_MAX), zero = basin_scalar(a->graph, 0);
    for (int64_t i = 0; i < count; i++) {
        place[i] = first_largest(left);
        basin_expr hit = basin_equal(position, place[i]);
        best[i] = basin_as_column(basin_sum(basin_where(hit, left, zero), -1, 1));
        left = basin_where(hit, gone, left);
    }
    basin_expr chosen = basin_axis_back(basin_concat(place, (int)count, -1), axis);
    if (where) *where = basin_to_index(chosen, a->shape.dim[axis]);
    return basin_axis_back(basin_concat(best, (int)count, -1), axis);
}

basin_expr basin_cross_entropy_labels(basin_expr scores, basin_expr label) {
    if (!scores || !label) return NULL;
    int rank = scores->shape.rank;
    if (rank < 1 || label->kind != BASIN_INDEX ||
        !basin_shape_equal(label->shape, basin_shape_drop(scores->shape, rank - 1, 1)))
        return basin_graph_fail(
            scores->graph, BASIN_BAD_SHAPE,
            "cross_entropy: scores %s and labels %s; expected [.., classes] and "
            "an index tensor [..]",
            basin_expr_text(scores), basin_expr_text(label));
    int64_t classes = scores->shape.dim[rank - 1];
    basin_expr zero = basin_scalar(scores->graph, 0);
    basin_expr hot = basin_one_hot(label, classes);
    basin_expr own = basin_sum(basin_where(hot, scores, zero), -1, 1);
    basin_expr known =
        basin_greater(basin_from_index(label, classes), basin_scalar(scores->graph, -0.5));
    return basin_where(known, basin_sub(basin_logsumexp(scores, -1), own), zero);
}
