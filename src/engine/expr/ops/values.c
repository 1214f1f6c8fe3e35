/* Softmax attention with values as three fused operations: the result, its reverse, and the second
 * order, which is the reverse of the reverse (backend/values.h). */
#include <math.h>

#include "base/shape.h"
#include "engine/expr/graph.h"

basin_expr basin_as_batch(basin_expr a, const char *what) {
    basin_shape s = a->shape;
    if (s.rank == 4) return a;
    if (s.rank == 3) return basin_reshape(a, BASIN_SHAPE(1, s.dim[0], s.dim[1], s.dim[2]));
    return basin_graph_fail(a->graph, BASIN_BAD_SHAPE,
                            "attention: %s %s, expected [tokens, heads, width] or a batch of these",
                            what, basin_expr_text(a));
}

static bool check_tokens(basin_expr q, basin_expr k, basin_expr v, const basin_pattern *p) {
    const int64_t *x = q->shape.dim, *y = k->shape.dim, *z = v->shape.dim;
    bool shared = y[2] > 0 ? x[2] % y[2] == 0 : x[2] == 0;
    if (x[0] != y[0] || x[3] != y[3] || !shared || y[0] != z[0] || y[1] != z[1] || y[2] != z[2])
        return basin_graph_fail(
            q->graph, BASIN_BAD_SHAPE,
            "attention: queries %s, keys %s and values %s, expected [batch, Nq, H, Y], "
            "[batch, Nk, K, Y] and [batch, Nk, K, V] where K divides H",
            basin_expr_text(q), basin_expr_text(k), basin_expr_text(v));
    if (!p->row && p->exclude_self && x[1] != y[1])
        return basin_graph_fail(
            q->graph, BASIN_BAD_SHAPE,
            "attention: %lld queries and %lld keys, which must be the same tokens to "
            "leave out self pairs",
            (long long)x[1], (long long)y[1]);
    return true;
}

static bool check_list(basin_expr q, basin_expr k, const basin_pattern *p) {
    int64_t pairs = basin_pattern_pairs(p, q->shape.dim[1], k->shape.dim[1]);
    if (pairs >= 0 && !p->causal && !p->halo) return true;
    return basin_graph_fail(
        q->graph, BASIN_BAD_SHAPE,
        "attention: a list of pairs that does not fit %lld queries and %lld keys, "
        "or is causal or in parts",
        (long long)q->shape.dim[1], (long long)k->shape.dim[1]);
}

/* The shape of gradients of a bias: all of [batch, H, Nq, Nk], or [batch, pairs, H]. */
static basin_shape slopes_of(const basin_expr *in) {
    const int64_t *q = in[BASIN_VAL_Q]->shape.dim;
    if (in[BASIN_VAL_ROW]) return BASIN_SHAPE(q[0], in[BASIN_VAL_ROW + 1]->shape.dim[0], q[2]);
    return BASIN_SHAPE(q[0], q[2], q[1], in[BASIN_VAL_K]->shape.dim[1]);
}

/* The bias with as many axes as its gradients have; NULL and an error where it does not fit. */
static basin_expr as_slopes(basin_expr bias, basin_shape all) {
    basin_shape s = all, from = bias->shape;
    int missing = all.rank - from.rank,
        fixed = all.rank == 3 ? 1 : 3; /* axes before that may be 1 */
    bool fits = missing >= 0;
    for (int i = 0; fits && i < all.rank; i++) {
        s.dim[i] = i < missing ? 1 : from.dim[i - missing];
        fits = s.dim[i] == all.dim[i] || (s.dim[i] == 1 && i < fixed);
    }
    if (fits) return basin_reshape(bias, s);
    return basin_graph_fail(bias->graph, BASIN_BAD_SHAPE, "attention: a bias %s, expected %s",
                            basin_expr_text(bias), basin_shape_text(all));
}

/* Multiplies q by a scale of [] or [H], and returns the number that is left for the operation. */
static double apply_scale(basin_expr *q, basin_expr scale) {
    const int64_t *dim = (*q)->shape.dim;
    if (!scale) return dim[3] > 0 ? 1 / sqrt((double)dim[3]) : 1;
    if (basin_expr_is_const(scale)) return scale->node->attr.value;
    if (scale->shape.rank > 0 && !basin_shape_equal(scale->shape, BASIN_SHAPE(dim[2])))
        *q = basin_graph_fail(scale->graph, BASIN_BAD_SHAPE,
                              "attention: scale is %s, expected [%lld]", basin_expr_text(scale),
                              (long long)dim[2]);
    else
        *q = basin_mul(*q, scale->shape.rank > 0 ? basin_as_column(scale) : scale);
    return 1;
}

basin_expr basin_softmax_attention(basin_expr q, basin_expr k, basin_expr v, basin_expr scale,
                                   basin_expr bias, const basin_pattern *pattern) {
    if (!q || !k || !v) return NULL;
    if (!pattern) pattern = &BASIN_ALL_PAIRS;
    basin_shape shape = q->shape;
    basin_expr in[BASIN_VAL_PAIR + 1] = {basin_as_batch(q, "q"), basin_as_batch(k, "k"),
                                         basin_as_batch(v, "v")};
    if (!in[0] || !in[1] || !in[2] || !check_tokens(in[0], in[1], in[2], pattern)) return NULL;
    if (pattern->row && !check_list(in[0], in[1], pattern)) return NULL;
    basin_attr attr = {.value = apply_scale(&in[BASIN_VAL_Q], scale),
                       .exclude_self = !pattern->row && pattern->exclude_self,
                       .causal = pattern->causal};
    basin_expr list[] = {pattern->row, pattern->key, pattern->column, pattern->query,
                         pattern->pair};
    for (int i = 0; i < 5; i++) in[BASIN_VAL_ROW + i] = pattern->row ? list[i] : NULL;
    if (!in[BASIN_VAL_Q]) return NULL;
    if (bias && !(in[BASIN_VAL_BIAS] = as_slopes(bias, slopes_of(in)))) return NULL;
    basin_shape out = in[BASIN_VAL_Q]->shape;
    shape.dim[shape.rank - 1] = out.dim[3] = v->shape.dim[v->shape.rank - 1];
    return basin_reshape(
        basin_node_single(q->graph, BASIN_OP_VALUES, &attr, in, BASIN_VAL_PAIR + 1, out), shape);
}

basin_expr basin_softmax_attention_packed(basin_expr qkv, int64_t heads, double drop,
                                          basin_expr seed, const basin_pattern *pattern) {
    if (!qkv) return NULL;
    basin_shape s = qkv->shape;
    if (s.rank != 3 || heads < 1 || s.dim[2] % (3 * heads) != 0)
        return basin_graph_fail(qkv->graph, BASIN_BAD_SHAPE,
                                "attention of %lld heads: %s, expected [batch, tokens, 3 H Y]",
                                (long long)heads, basin_expr_text(qkv));
    int64_t width = s.dim[2] / (3 * heads);
    basin_attr attr = {.value = 1 / sqrt((double)width),
                       .exclude_self = pattern->exclude_self,
                       .causal = pattern->causal,
                       .packed_b = true};
    basin_expr in[BASIN_VAL_SEED + 1] = {
        basin_reshape(qkv, BASIN_SHAPE(s.dim[0], s.dim[1], 3 * heads, width))};
    if (seed && drop != 0) {
        if (!(drop > 0 && drop < 1))
            return basin_graph_fail(qkv->graph, BASIN_BAD_VALUE,
                                    "dropout of %g, expected 0 <= rate < 1", drop);
        if (!basin_is_seed(seed)) return NULL;
        in[BASIN_VAL_SEED] = seed, attr.drop = drop, attr.stream = ++qkv->graph->streams;
    }
    return basin_node_single(qkv->graph, BASIN_OP_VALUES, &attr, in, BASIN_VAL_SEED + 1,
                             BASIN_SHAPE(s.dim[0], s.dim[1], heads, width));
}

/* The sum of all gradients of a bias over what it is repeated along. */
static basin_expr to_bias(basin_expr slopes, basin_expr bias) {
    basin_expr sum = slopes;
    for (int i = slopes->shape.rank - 1; i >= 0 && sum; i--)
        if (bias->shape.dim[i] == 1 && slopes->shape.dim[i] != 1) sum = basin_sum(sum, i, 1);
    return sum ? basin_reshape(sum, bias->shape) : NULL;
}

/* A node of the reverse or second order with the results requested; sets the gradients. */
static void derive(basin_op op, const basin_node *node, const basin_expr *in, int ins,
                   const bool *want, basin_expr *grad) {
    static const int from[] = {BASIN_VAL_Q, BASIN_VAL_K, BASIN_VAL_V, BASIN_VAL_BIAS, BASIN_VAL_C};
    int outs = op == BASIN_OP_VALUES_SECOND ? BASIN_VAL_OUT : BASIN_VAL_OUT_C;
    basin_result out[BASIN_VAL_OUT];
    for (int i = 0; i < outs; i++) {
        out[i] = (basin_result){.absent = !want[from[i]]};
        if (out[i].absent) continue;
        out[i].shape = i == BASIN_VAL_OUT_BIAS ? slopes_of(in) : in[from[i]]->shape;
    }
    basin_node *made = basin_node_new(in[0]->graph, op, &node->attr, in, ins, out, outs);
    for (int i = 0; made && i < outs; i++) {
        if (out[i].absent) continue;
        grad[from[i]] =
            i == BASIN_VAL_OUT_BIAS ? to_bias(made->out[i], in[BASIN_VAL_BIAS]) : made->out[i];
    }
}

BASIN_RULE(values) {
    basin_expr in[BASIN_VAL_C + 1];
    for (int i = 0; i < BASIN_VAL_C; i++) in[i] = i < node->ins ? node->in[i] : NULL;
    in[BASIN_VAL_C] = cotangent[0];
    derive(BASIN_OP_VALUES_REVERSE, node, in, BASIN_VAL_C + 1, want, grad);
}

/* Cotangents of dq, dk, dv and dbias are tangents: second derivatives are symmetric. */
BASIN_RULE(values_reverse) {
    basin_expr in[BASIN_VAL_IN] = {0};
    for (int i = 0; i <= BASIN_VAL_C; i++) in[i] = node->in[i];
    in[BASIN_VAL_TQ] = cotangent[BASIN_VAL_OUT_Q], in[BASIN_VAL_TK] = cotangent[BASIN_VAL_OUT_K];
    in[BASIN_VAL_TV] = cotangent[BASIN_VAL_OUT_V];
    in[BASIN_VAL_TBIAS] = cotangent[BASIN_VAL_OUT_BIAS];
    derive(BASIN_OP_VALUES_SECOND, node, in, BASIN_VAL_IN, want, grad);
}
