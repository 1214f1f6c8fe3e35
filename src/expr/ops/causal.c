/* Log-sum-exp and softmax over the keys that causal queries see, for scores that are in memory,
 * [.., N, M, H]; the fused reverse, and the reverse of that through its definition. */
#include "expr/grad.h"
#include "expr/graph.h"

static bool check(basin_expr x, const char *what) {
    char text[BASIN_EXPR_TEXT];
    if (x->shape.rank >= 3) return true;
    basin_graph_fail(x->graph, BASIN_BAD_SHAPE, "%s: %s, wanted [.., queries, keys, heads]", what,
                     basin_expr_print(text, x));
    return false;
}

basin_expr basin_causal_logsumexp(basin_expr x, double factor, bool strict) {
    if (!x || !check(x, "causal logsumexp")) return NULL;
    basin_attr attr = {.value = factor, .exclude_self = strict};
    return basin_node_single(x->graph, BASIN_OP_CAUSAL_LOGSUMEXP, &attr, &x, 1,
                             basin_shape_drop(x->shape, x->shape.rank - 2, 1));
}

/* Draws are those of the graph's next stream, as of basin_dropout. */
basin_expr basin_causal_softmax(basin_expr x, double factor, bool strict, double drop,
                                basin_expr seed) {
    if (!x || !check(x, "causal softmax")) return NULL;
    basin_attr attr = {.value = factor, .exclude_self = strict};
    bool drops = seed && drop != 0;
    if (drops && !(drop > 0 && drop < 1))
        return basin_graph_fail(x->graph, BASIN_BAD_VALUE, "dropout of %g, wanted 0 <= rate < 1",
                                drop);
    if (drops && !basin_is_seed(seed)) return NULL;
    if (drops) attr.drop = drop, attr.stream = ++x->graph->streams;
    return basin_node_single(x->graph, BASIN_OP_CAUSAL_SOFTMAX, &attr, (basin_expr[]){x, seed},
                             drops ? 2 : 1, x->shape);
}

void basin_rule_causal_logsumexp(basin_node *node, const basin_expr *cotangent, const bool *want,
                                 basin_expr *grad) {
    basin_expr x = node->in[0];
    (void)want;
    basin_expr shares = basin_causal_softmax(x, node->attr.value, node->attr.exclude_self, 0, NULL);
    basin_expr weight = basin_axes_insert(cotangent[0], x->shape.rank - 2, 1);
    grad[0] = basin_scale(basin_mul(weight, shares), node->attr.value);
}

void basin_rule_causal_softmax(basin_node *node, const basin_expr *cotangent, const bool *want,
                               basin_expr *grad) {
    basin_expr in[3] = {node->in[0], cotangent[0], node->ins > 1 ? node->in[1] : NULL};
    (void)want;
    grad[0] = basin_node_single(in[0]->graph, BASIN_OP_CAUSAL_SOFTMAX_REVERSE, &node->attr, in,
                                node->ins + 1, in[0]->shape);
}

/* 1 / (1 - drop) where a share is kept, else 0; the scalar 1 where none is dropped. */
static basin_expr kept(const basin_node *node, basin_expr seed, basin_shape shape) {
    basin_graph *graph = node->in[0]->graph;
    double drop = node->attr.drop;
    if (!seed) return basin_const(graph, 1);
    basin_attr attr = {.stream = node->attr.stream, .drop = drop};
    basin_expr keep = basin_node_single(graph, BASIN_OP_UNIFORM, &attr, &seed, 1, shape);
    return basin_scale(keep, 1 / (1 - drop));
}

/* The fused reverse written out, for differentiating it again: with p the shares before dropping
 * and d = c kept, dx = factor p (d - sum over keys of p d). */
void basin_rule_causal_softmax_reverse(basin_node *node, const basin_expr *cotangent,
                                       const bool *want, basin_expr *grad) {
    basin_expr in[3] = {NULL, NULL, NULL};
    basin_stand_ins(in, node);
    basin_expr x = in[0], c = in[1];
    if (!x || !c) return;
    basin_graph *graph = x->graph;
    int keys = x->shape.rank - 2;
    basin_expr seen =
        basin_axes_insert(basin_triangle(graph, x->shape.dim[keys - 1], x->shape.dim[keys],
                                         node->attr.exclude_self ? -1 : 0),
                          2, 1);
    basin_expr score =
        basin_select(seen, basin_scale(x, node->attr.value), basin_const(graph, -1e30));
    basin_expr p = basin_select(seen, basin_softmax_along(score, keys), basin_const(graph, 0));
    basin_expr d = basin_mul(c, kept(node, node->ins > 2 ? node->in[2] : NULL, x->shape));
    basin_expr mean = basin_axes_insert(basin_sum(basin_mul(p, d), keys, 1), keys, 1);
    basin_expr dx = basin_scale(basin_mul(p, basin_sub(d, mean)), node->attr.value);
    basin_partial(grad, &dx, cotangent, 1, in, want, node->ins);
}
