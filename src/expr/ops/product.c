/* Matrix products, with their reverse: two more matrix products. */
#include "expr/graph.h"

static basin_expr mismatch(basin_expr a, bool ta, basin_expr b, bool tb) {
    char x[BASIN_EXPR_TEXT], y[BASIN_EXPR_TEXT];
    return basin_graph_fail(a->graph, BASIN_BAD_SHAPE, "matmul: %s%s and %s%s do not multiply",
                            basin_expr_print(x, a), ta ? " (transposed)" : "",
                            basin_expr_print(y, b), tb ? " (transposed)" : "");
}

/* a vector is a matrix of one row */
static basin_expr matmul_vector(basin_expr a, basin_expr b, bool tb) {
    basin_expr row = basin_reshape(a, BASIN_SHAPE(1, a->shape.dim[0]));
    basin_expr out = basin_matmul_t(row, false, b, tb);
    return out ? basin_reshape(out, basin_shape_drop(out->shape, 0, 1)) : NULL;
}

static basin_expr product(basin_expr a, bool transpose_a, basin_expr b, bool transpose_b) {
    int ra = a->shape.rank, rb = b->shape.rank;
    if (ra == 1 && rb == 2 && !transpose_a) return matmul_vector(a, b, transpose_b);
    if (ra < 2 || rb < 2 || (rb > 2 && ra != rb) || (rb == 2 && ra > 2 && transpose_a))
        return mismatch(a, transpose_a, b, transpose_b);
    int64_t m = a->shape.dim[ra - 1 - !transpose_a], ka = a->shape.dim[ra - 1 - transpose_a];
    int64_t n = b->shape.dim[rb - 1 - transpose_b], kb = b->shape.dim[rb - 1 - !transpose_b];
    bool fits = ka == kb;
    for (int i = 0; rb > 2 && i < rb - 2; i++) fits = fits && a->shape.dim[i] == b->shape.dim[i];
    if (!fits) return mismatch(a, transpose_a, b, transpose_b);
    basin_shape shape = a->shape;
    shape.dim[ra - 2] = m;
    shape.dim[ra - 1] = n;
    basin_attr attr = {.transpose_a = transpose_a, .transpose_b = transpose_b};
    return basin_node_single(a->graph, BASIN_OP_MATMUL, &attr, (basin_expr[]){a, b}, 2, shape);
}

double basin_split_factor(basin_expr *a) {
    const basin_node *node = (*a)->node;
    if (node->op == BASIN_OP_NEG) {
        *a = node->in[0];
        return -1;
    }
    if (node->op != BASIN_OP_MUL || !basin_expr_is_const(node->in[0])) return 1;
    *a = node->in[1];
    return node->in[0]->node->attr.value;
}

/* For a plan, constant factors move behind the product, where they cost nothing and the operand can
 * be shared with whoever else reads it. */
basin_expr basin_matmul_t(basin_expr a, bool transpose_a, basin_expr b, bool transpose_b) {
    if (!a || !b) return NULL;
    if (!a->graph->simplify) return product(a, transpose_a, b, transpose_b);
    double factor = basin_split_factor(&a) * basin_split_factor(&b);
    return basin_scale(product(a, transpose_a, b, transpose_b), factor);
}
basin_expr basin_matmul(basin_expr a, basin_expr b) { return basin_matmul_t(a, false, b, false); }

/* All leading axes merged: [.., k] -> [rows, k]. */
static basin_expr flatten_rows(basin_expr a) {
    if (!a || a->shape.rank == 2) return a;
    int64_t k = a->shape.dim[a->shape.rank - 1];
    int64_t rows = 1;
    for (int i = 0; i < a->shape.rank - 1; i++) rows *= a->shape.dim[i];
    return basin_reshape(a, BASIN_SHAPE(rows, k));
}

void basin_rule_matmul(basin_node *node, const basin_expr *cotangent, const bool *want,
                       basin_expr *grad) {
    basin_expr a = node->in[0], b = node->in[1], c = cotangent[0];
    bool ta = node->attr.transpose_a, tb = node->attr.transpose_b;
    if (want[0]) grad[0] = ta ? basin_matmul_t(b, tb, c, true) : basin_matmul_t(c, false, b, !tb);
    if (!want[1]) return;
    if (b->shape.rank == 2) a = flatten_rows(a), c = flatten_rows(c);
    grad[1] = tb ? basin_matmul_t(c, true, a, ta) : basin_matmul_t(a, !ta, c, false);
}
