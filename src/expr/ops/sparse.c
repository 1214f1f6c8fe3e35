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
#include "expr/graph.h"

static basin_expr threshold(basin_expr a, int count, const char *what) {
    char text[BASIN_EXPR_TEXT];
    if (!a) return NULL;
    if (a->shape.rank < 1)
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE,
                                "%s: %s is a scalar and has no last axis", what,
                                basin_expr_print(text, a));
    basin_attr attr = {.count = count};
    return basin_node_single(a->graph, BASIN_OP_THRESHOLD, &attr, &a, 1,
                             basin_shape_drop(a->shape, a->shape.rank - 1, 1));
}

/* relu(a - t) of the row's own threshold. */
static basin_expr excess(basin_expr a, int count, const char *what) {
    return basin_relu(basin_sub(a, basin_as_column(threshold(a, count, what))));
}

void basin_rule_threshold(basin_node *node, const basin_expr *cotangent, const bool *want,
                          basin_expr *grad) {
    (void)want;
    basin_expr over = basin_sub(node->in[0], basin_as_column(node->out[0]));
    basin_expr w = node->attr.count == 1 ? basin_heaviside(over) : basin_relu(over);
    basin_expr sum = basin_as_column(basin_sum(w, -1, 1));
    grad[0] = basin_mul(basin_as_column(cotangent[0]), basin_div(w, sum));
}

basin_expr basin_sparsemax(basin_expr a) { return excess(a, 1, "sparsemax"); }

basin_expr basin_entmax15(basin_expr a) {
    return basin_square(excess(basin_scale(a, 0.5), 2, "entmax15"));
}

basin_expr basin_normmax2(basin_expr a) {
    basin_expr r = excess(a, 2, "normmax2");
    return r ? basin_div(r, basin_as_column(basin_sum(r, -1, 1))) : NULL;
}

/* p.z - |p|^2/2 + 1/2 */
basin_expr basin_sparsemax_conjugate(basin_expr a) {
    basin_expr p = basin_sparsemax(a);
    basin_expr inner = basin_mul(p, basin_sub(a, basin_scale(p, 0.5)));
    return p ? basin_offset(basin_sum(inner, -1, 1), 0.5) : NULL;
}

/* p.z - (sum r^3 - 1) 4/3, of which r^3 is written without a root of p. */
basin_expr basin_entmax15_conjugate(basin_expr a) {
    basin_expr r = excess(basin_scale(a, 0.5), 2, "entmax15_conjugate");
    basin_expr inner = basin_mul(basin_square(r), basin_sub(a, basin_scale(r, 4.0 / 3)));
    return r ? basin_offset(basin_sum(inner, -1, 1), 4.0 / 3) : NULL;
}

basin_expr basin_normmax2_conjugate(basin_expr a) {
    return basin_offset(threshold(a, 2, "normmax2_conjugate"), 1);
}
