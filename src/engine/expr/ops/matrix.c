/* Decompositions of square matrices, the last two axes: Cholesky, linear systems, determinants. The
 * reverse rules are formulas of the same operations, so derivatives of any order follow. */
#include "engine/expr/graph.h"

static bool is_square(basin_expr a) {
    int rank = a->shape.rank;
    return rank >= 2 && a->shape.dim[rank - 1] == a->shape.dim[rank - 2];
}

static bool check_square(basin_expr a, const char *what) {
    if (is_square(a)) return true;
    return basin_graph_fail(a->graph, BASIN_BAD_SHAPE, "%s: %s, expected [.., n, n]", what,
                            basin_expr_text(a));
}

/* 1 on and below the diagonal, which is `diagonal`, else 0: [n, n] for a [.., n, n]. */
static basin_expr lower_mask(basin_expr a, double diagonal) {
    int64_t n = a->shape.dim[a->shape.rank - 1];
    basin_expr mask = basin_tri(a->graph, n, n, 0);
    return basin_sub(mask, basin_scale(basin_eye(a->graph, n), 1 - diagonal));
}

/* ---- Cholesky ---- */

basin_expr basin_cholesky(basin_expr a) {
    if (!a || !check_square(a, "cholesky")) return NULL;
    basin_expr even = basin_scale(basin_add(a, basin_transpose(a)), 0.5);
    if (!even) return NULL;
    return basin_node_single(even->graph, BASIN_OP_CHOLESKY, &(basin_attr){0}, &even, 1,
                             even->shape);
}

/* With A = L L' and c the cotangent of L: that of A is L'^-1 F(L' c) L^-1, where F keeps the lower
 * triangle and half of the diagonal. It is given transposed: the builder makes A even. */
BASIN_RULE(cholesky) {
    basin_expr l = node->out[0];
    basin_expr f = basin_mul(basin_matmul_t(l, true, cotangent[0], false), lower_mask(l, 0.5));
    basin_expr half = basin_solve(l, f, BASIN_SOLVE_LOWER_TRANSPOSED);
    grad[0] = basin_solve(l, basin_transpose(half), BASIN_SOLVE_LOWER_TRANSPOSED);
}

/* ---- linear systems ---- */

static basin_expr solve(basin_expr a, basin_expr b, bool lower, bool transposed) {
    if (!a || !b) return NULL;
    basin_attr attr = {.count = lower, .transpose_a = transposed};
    return basin_node_single(a->graph, BASIN_OP_SOLVE, &attr, (basin_expr[]){a, b}, 2, b->shape);
}

/* The leading axes of both, as numpy broadcasts them; false where they do not meet. */
static bool leading_axes(basin_shape *lead, basin_expr a, basin_expr b) {
    int ra = a->shape.rank - 2, rb = b->shape.rank - 2;
    lead->rank = ra > rb ? ra : rb;
    for (int i = 1; i <= lead->rank; i++) {
        int64_t x = i <= ra ? a->shape.dim[ra - i] : 1, y = i <= rb ? b->shape.dim[rb - i] : 1;
        if (x != y && x != 1 && y != 1) return false;
        lead->dim[lead->rank - i] = x == 1 ? y : x;
    }
    return true;
}

static basin_expr with_leading(basin_expr a, basin_shape lead) {
    int last = a->shape.rank - 2;
    for (int i = 0; i < 2; i++) lead.dim[lead.rank++] = a->shape.dim[last + i];
    return basin_broadcast_to(a, lead);
}

basin_expr basin_solve(basin_expr a, basin_expr b, basin_solve_kind kind) {
    if (!a || !b) return NULL;
    basin_shape lead = BASIN_SCALAR;
    bool vector = b->shape.rank == 1;
    basin_expr columns = vector ? basin_as_column(b) : b;
    bool fits = is_square(a) && columns && columns->shape.rank >= 2 &&
                columns->shape.dim[columns->shape.rank - 2] == a->shape.dim[a->shape.rank - 1] &&
                leading_axes(&lead, a, columns);
    if (!fits)
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE,
                                "solve: %s and %s, expected [.., n, n] and [n] or [.., n, k]",
                                basin_expr_text(a), basin_expr_text(b));
    bool transposed = kind == BASIN_SOLVE_TRANSPOSED || kind == BASIN_SOLVE_LOWER_TRANSPOSED;
    bool lower = kind == BASIN_SOLVE_LOWER || kind == BASIN_SOLVE_LOWER_TRANSPOSED;
    if (!transposed && !lower && kind != BASIN_SOLVE_GENERAL)
        return basin_graph_fail(a->graph, BASIN_BAD_VALUE, "solve: no kind has the number %d",
                                (int)kind);
    basin_expr x = solve(with_leading(a, lead), with_leading(columns, lead), lower, transposed);
    return x && vector ? basin_reshape(x, basin_shape_drop(x->shape, x->shape.rank - 1, 1)) : x;
}

/* ---- determinants ---- */

basin_expr basin_slogdet(basin_expr a, basin_expr *sign) {
    if (sign) *sign = NULL;
    if (!a || !check_square(a, "slogdet")) return NULL;
    basin_result size = {.shape = basin_shape_drop(a->shape, a->shape.rank - 2, 2)};
    basin_result out[3] = {{.absent = true}, size, size};
    basin_node *node = basin_node_new(a->graph, BASIN_OP_SOLVE, &(basin_attr){0}, &a, 1, out, 3);
    if (node && sign) *sign = node->out[2];
    return node ? node->out[1] : NULL;
}

/* A x = b with c the cotangent of x: that of b is A'^-1 c, that of A the negative product of the
 * former and x', within the triangle that is read. That of log |det A| is A'^-1; the sign is
 * constant where it has a derivative. */
BASIN_RULE(solve) {
    basin_expr a = node->in[0], x = node->out[0];
    bool lower = node->attr.count, transposed = node->attr.transpose_a;
    if (node->ins == 1) {
        basin_expr eye =
            basin_broadcast_to(basin_eye(a->graph, a->shape.dim[a->shape.rank - 1]), a->shape);
        basin_expr slope = cotangent[1] ? solve(a, eye, false, true) : NULL;
        grad[0] = basin_mul(basin_as_column(basin_as_column(cotangent[1])), slope);
        return;
    }
    basin_expr back = solve(a, cotangent[0], lower, !transposed);
    if (want[1]) grad[1] = back;
    if (!want[0]) return;
    grad[0] = basin_neg(basin_matmul_t(transposed ? x : back, false, transposed ? back : x, true));
    if (lower) grad[0] = basin_mul(grad[0], lower_mask(a, 1));
}
