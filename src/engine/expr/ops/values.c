/* Softmax attention with values as three fused operations: the result, its reverse, and the second
 * order, which is the reverse of the reverse (backend/values.h). */
#include <math.h>

#include "base/shape.h"
#include "base/sized.h"
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

/* Multiplies q by a beta of [] or [H], and returns the number that is left for the operation. */
static double apply_beta(basin_expr *q, basin_expr beta) {
    const int64_t *dim = (*q)->shape.dim;
    if (!beta) return dim[3] > 0 ? 1 / sqrt((double)dim[3]) : 1;
    if (basin_expr_is_const(beta)) return beta->node->attr.value;
    if (beta->shape.rank > 0 && !basin_shape_equal(beta->shape, BASIN_SHAPE(dim[2])))
        *q =
            basin_graph_fail(beta->graph, BASIN_BAD_SHAPE, "attention: beta is %s, expected [%lld]",
                             basin_expr_text(beta), (long long)dim[2]);
    else
        *q = basin_mul(*q, beta->shape.rank > 0 ? basin_as_column(beta) : beta);
    return 1;
}

/* Dropout as an operand and attributes; false, and an error in the graph, where it does not fit. */
static bool apply_dropout(basin_attr *attr, basin_expr *seed, const basin_softmax_options *options,
                          const basin_pattern *pattern) {
    if (!options->seed || options->dropout == 0) return true;
    basin_graph *graph = options->seed->graph;
    if (!(options->dropout > 0 && options->dropout < 1))
        return basin_graph_fail(graph, BASIN_BAD_VALUE, "dropout of %g, expected 0 <= rate < 1",
                                options->dropout);
    if (pattern->row)
        return basin_graph_fail(graph, BASIN_UNSUPPORTED,
                                "attention: dropout over a list of pairs, expected all pairs");
    if (!basin_is_seed(options->seed)) return false;
    *seed = options->seed, attr->drop = options->dropout, attr->stream = ++graph->streams;
    return true;
}

basin_expr basin_softmax_attention(basin_expr q, basin_expr k, basin_expr v,
                                   const basin_pattern *pattern,
                                   const basin_softmax_options *options) {
    if (!q || !k || !v) return NULL;
    basin_error error = {0};
    if (BASIN_SIZE_CHECK(options, "basin_softmax_options", &error))
        return basin_graph_fail(q->graph, error.status, "%s", error.text);
    if (!pattern) pattern = &BASIN_ALL_PAIRS;
    if (!options) options = &(basin_softmax_options){0};
    basin_shape shape = q->shape;
    basin_expr in[BASIN_VAL_SEED + 1] = {basin_as_batch(q, "q"), basin_as_batch(k, "k"),
                                         basin_as_batch(v, "v")};
    if (!in[0] || !in[1] || !in[2] || !check_tokens(in[0], in[1], in[2], pattern)) return NULL;
    if (pattern->row && !check_list(in[0], in[1], pattern)) return NULL;
    basin_attr attr = {.value = apply_beta(&in[BASIN_VAL_Q], options->beta),
                       .exclude_self = !pattern->row && pattern->exclude_self,
                       .causal = pattern->causal};
    basin_expr list[] = {pattern->row, pattern->key, pattern->column, pattern->query,
                         pattern->pair};
    for (int i = 0; i < 5; i++) in[BASIN_VAL_ROW + i] = pattern->row ? list[i] : NULL;
    if (!in[BASIN_VAL_Q] || !apply_dropout(&attr, &in[BASIN_VAL_SEED], options, pattern))
        return NULL;
    if (options->bias && !(in[BASIN_VAL_BIAS] = as_slopes(options->bias, slopes_of(in))))
        return NULL;
    basin_shape out = in[BASIN_VAL_Q]->shape;
    shape.dim[shape.rank - 1] = out.dim[3] = v->shape.dim[v->shape.rank - 1];
    return basin_reshape(
        basin_node_single(q->graph, BASIN_OP_VALUES, &attr, in,
                          in[BASIN_VAL_SEED] ? BASIN_VAL_SEED + 1 : BASIN_VAL_PAIR + 1, out),
        shape);
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
