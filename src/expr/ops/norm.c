/* Layer norm with a scalar gain, g = gamma (x - mean) / sqrt(var + epsilon) + delta (the paper's
 * equation 1), its fused reverse, and the reverse of that through its definition. */
#include "expr/grad.h"
#include "expr/graph.h"

basin_expr basin_layernorm(basin_expr x, basin_expr gamma, basin_expr delta, double epsilon) {
    char a[BASIN_EXPR_TEXT], b[BASIN_EXPR_TEXT], c[BASIN_EXPR_TEXT];
    if (!x || !gamma || !delta) return NULL;
    if (x->shape.rank < 1 || gamma->shape.rank != 0 || delta->shape.rank != 1 ||
        delta->shape.dim[0] != x->shape.dim[x->shape.rank - 1])
        return basin_graph_fail(x->graph, BASIN_BAD_SHAPE,
                                "layernorm: x %s, gamma %s, delta %s; wanted [.., D], [], [D]",
                                basin_expr_print(a, x), basin_expr_print(b, gamma),
                                basin_expr_print(c, delta));
    basin_attr attr = {.value = epsilon};
    return basin_node_single(x->graph, BASIN_OP_LAYERNORM, &attr, (basin_expr[]){x, gamma, delta},
                             3, x->shape);
}

void basin_rule_layernorm(basin_node *node, const basin_expr *cotangent, const bool *want,
                          basin_expr *grad) {
    basin_expr x = node->in[0], gamma = node->in[1], delta = node->in[2];
    basin_result out[3] = {{.shape = x->shape, .absent = !want[0]},
                           {.shape = BASIN_SCALAR, .absent = !want[1]},
                           {.shape = delta->shape, .absent = !want[2]}};
    basin_node *reverse = basin_node_new(x->graph, BASIN_OP_LAYERNORM_REVERSE, &node->attr,
                                         (basin_expr[]){x, gamma, cotangent[0]}, 3, out, 3);
    for (int i = 0; reverse && i < 3; i++)
        if (want[i]) grad[i] = reverse->out[i];
}

static basin_expr row_mean(basin_expr a) { return basin_as_column(basin_mean(a, -1, 1)); }

/* The fused reverse written out, for differentiating it again:
 * with n = (x - mean) / s and s = sqrt(var + epsilon),
 * dx = gamma / s (c - mean(c) - n mean(c n)), dgamma = sum c n, ddelta = sum over rows of c. */
void basin_rule_layernorm_reverse(basin_node *node, const basin_expr *cotangent, const bool *want,
                                  basin_expr *grad) {
    basin_expr in[3];
    basin_stand_ins(in, node);
    basin_expr x = in[0], gamma = in[1], c = in[2];
    if (!x || !gamma || !c) return;
    basin_expr centred = basin_sub(x, row_mean(x));
    basin_expr s = basin_sqrt(basin_offset(row_mean(basin_square(centred)), node->attr.value));
    basin_expr n = basin_div(centred, s);
    basin_expr y[3] = {NULL, NULL, NULL};
    if (cotangent[0]) {
        basin_expr flat = basin_sub(c, row_mean(c));
        basin_expr along = basin_mul(n, row_mean(basin_mul(c, n)));
        y[0] = basin_mul(basin_div(gamma, s), basin_sub(flat, along));
    }
    if (cotangent[1]) y[1] = basin_sum_all(basin_mul(c, n));
    if (cotangent[2]) y[2] = basin_sum(c, 0, c->shape.rank - 1);
    basin_partial(grad, y, cotangent, 3, in, want, 3);
}
