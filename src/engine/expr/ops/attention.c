/* Energy attention as three fused operations, each the reverse of the one before: the log-sum-exp
 * of the scores, the force, the reverse of the force. The energy of the paper's equation 3 is
 * -sum(lse / beta); its gradient with respect to Q and K holds both terms of the update. */
#include "base/shape.h"
#include "base/sized.h"
#include "engine/expr/graph.h"

static bool pattern_is_list(const basin_pattern *p) { return p->row != NULL; }

/* Keys [.., tokens, H, Y] of one batch entry and those of other parts. */
static basin_expr with_halo(basin_expr k, const basin_pattern *p) {
    const int64_t *dim = k->shape.dim;
    if (!p->halo || !pattern_is_list(p) || k->shape.rank < 3) return k;
    return basin_exchange(
        basin_reshape(k, BASIN_SHAPE(-1, dim[k->shape.rank - 2], dim[k->shape.rank - 1])), p->halo);
}

static bool is_index(basin_expr a, int64_t length) {
    return a && a->kind == BASIN_INDEX && a->shape.rank == 1 && a->shape.dim[0] == length;
}

int64_t basin_pattern_pairs(const basin_pattern *p, int64_t queries, int64_t keys) {
    int64_t pairs = p->key && p->key->shape.rank == 1 ? p->key->shape.dim[0] : -1;
    bool fits = is_index(p->row, queries + 1) && is_index(p->key, pairs) &&
                is_index(p->column, keys + 1) && is_index(p->query, pairs) &&
                is_index(p->pair, pairs);
    return fits ? pairs : -1;
}

/* The number of pairs of the pattern, or -1 with an error. */
static int64_t count_pairs(const basin_pattern *p, basin_graph *graph, int64_t batch,
                           int64_t queries, int64_t keys) {
    bool list = pattern_is_list(p);
    int64_t pairs = -1;
    if (!list && (p->exclude_self || p->causal) && queries != keys)
        basin_graph_fail(graph, BASIN_BAD_SHAPE,
                         "attention: %lld queries and %lld keys, which must be the same tokens to "
                         "leave out %s",
                         (long long)queries, (long long)keys,
                         p->causal ? "later ones" : "self pairs");
    else if (!list && (pairs = basin_shape_count(BASIN_SHAPE(batch, queries, keys))) < 0)
        basin_graph_fail(graph, BASIN_BAD_SHAPE,
                         "attention: %lld x %lld x %lld pairs, which are too many to count",
                         (long long)batch, (long long)queries, (long long)keys);
    else if (list && p->causal)
        basin_graph_fail(graph, BASIN_UNSUPPORTED,
                         "attention: a pair list that is causal; list the pairs that count");
    else if (list && (batch != 1 || (pairs = basin_pattern_pairs(p, queries, keys)) < 0))
        basin_graph_fail(graph, BASIN_BAD_SHAPE,
                         "attention: the pair list does not fit %lld queries and %lld keys in one "
                         "batch entry",
                         (long long)queries, (long long)keys);
    return pairs;
}

static bool check_heads(basin_expr q, basin_expr k, basin_expr beta, basin_expr scale, bool added,
                        basin_expr mix, int64_t pairs) {
    int64_t H = q->shape.dim[2];
    basin_graph *graph = q->graph;
    if (q->shape.dim[0] != k->shape.dim[0] || k->shape.dim[2] != H ||
        q->shape.dim[3] != k->shape.dim[3])
        return basin_graph_fail(graph, BASIN_BAD_SHAPE,
                                "attention: queries %s and keys %s differ in batch, heads or width",
                                basin_expr_text(q), basin_expr_text(k));
    if (!basin_shape_equal(beta->shape, BASIN_SHAPE(H)))
        return basin_graph_fail(graph, BASIN_BAD_SHAPE, "attention: beta is %s, expected [%lld]",
                                basin_expr_text(beta), (long long)H);
    if (scale && !basin_shape_equal(scale->shape, BASIN_SHAPE(pairs, H)))
        return basin_graph_fail(graph, BASIN_BAD_SHAPE,
                                "attention: the %s are %s, expected [%lld, %lld]",
                                added ? "biases" : "multipliers", basin_expr_text(scale),
                                (long long)pairs, (long long)H);
    if (mix && !basin_shape_equal(mix->shape, BASIN_SHAPE(H, H)))
        return basin_graph_fail(graph, BASIN_BAD_SHAPE,
                                "attention: mix is %s, expected [%lld, %lld]", basin_expr_text(mix),
                                (long long)H, (long long)H);
    return true;
}

static bool check_options(basin_graph *graph, const basin_lse_options *options) {
    basin_error error = {0};
    if (BASIN_SIZE_CHECK(options, "basin_lse_options", &error))
        return basin_graph_fail(graph, error.status, "%s", error.text);
    if (options && options->scale && options->bias)
        return basin_graph_fail(graph, BASIN_UNSUPPORTED,
                                "attention: multipliers %s and biases %s, expected one of them",
                                basin_expr_text(options->scale), basin_expr_text(options->bias));
    return true;
}

basin_expr basin_attention_lse(basin_expr q, basin_expr k, basin_expr beta,
                               const basin_pattern *pattern, const basin_lse_options *options) {
    if (!pattern) pattern = &BASIN_ALL_PAIRS;
    if (!q || !k || !beta || !(k = with_halo(k, pattern))) return NULL;
    if (!check_options(q->graph, options)) return NULL;
    basin_expr mix = options ? options->mix : NULL, bias = options ? options->bias : NULL;
    basin_expr scale = bias ? bias : options ? options->scale : NULL;
    basin_expr q4 = basin_as_batch(q, "q"), k4 = basin_as_batch(k, "k");
    if (!q4 || !k4) return NULL;
    const int64_t *dim = q4->shape.dim;
    int64_t pairs = count_pairs(pattern, q->graph, dim[0], dim[1], k4->shape.dim[1]);
    if (pairs < 0 || !check_heads(q4, k4, beta, scale, bias, mix, pairs)) return NULL;
    basin_expr in[BASIN_ATT_PAIR + 1] = {[BASIN_ATT_Q] = q4,
                                         [BASIN_ATT_K] = k4,
                                         [BASIN_ATT_BETA] = beta,
                                         [BASIN_ATT_SCALE] = scale,
                                         [BASIN_ATT_MIX] = mix,
                                         [BASIN_ATT_ROW] = pattern->row,
                                         [BASIN_ATT_KEY] = pattern->key,
                                         [BASIN_ATT_COLUMN] = pattern->column,
                                         [BASIN_ATT_QUERY] = pattern->query,
                                         [BASIN_ATT_PAIR] = pattern->pair};
    basin_attr attr = {.exclude_self = !pattern_is_list(pattern) && pattern->exclude_self,
                       .causal = pattern->causal,
                       .added = bias};
    basin_expr lse = basin_node_single(q->graph, BASIN_OP_ATTENTION, &attr, in, BASIN_ATT_PAIR + 1,
                                       BASIN_SHAPE(dim[0], dim[1], dim[2]));
    return basin_reshape(lse, basin_shape_drop(q->shape, q->shape.rank - 1, 1));
}

/* From the log-sum-exp to the force. */
BASIN_RULE(attention) {
    basin_expr in[BASIN_ATT_W + 1];
    for (int i = 0; i < BASIN_ATT_W; i++) in[i] = node->in[i];
    in[BASIN_ATT_W] = cotangent[0];
    basin_result out[BASIN_ATT_OUT] = {[BASIN_ATT_LSE] = {.shape = node->out[0]->shape}};
    for (int i = BASIN_ATT_Q; i <= BASIN_ATT_MIX; i++) {
        out[BASIN_ATT_DQ + i].absent = !want[i];
        if (want[i]) out[BASIN_ATT_DQ + i].shape = node->in[i]->shape;
    }
    basin_node *force = basin_node_new(node->out[0]->graph, BASIN_OP_ATTENTION_FORCE, &node->attr,
                                       in, BASIN_ATT_W + 1, out, BASIN_ATT_OUT);
    for (int i = BASIN_ATT_Q; force && i <= BASIN_ATT_MIX; i++)
        if (want[i]) grad[i] = force->out[BASIN_ATT_DQ + i];
}

static basin_expr pair_node(basin_op op, bool transposed, basin_expr a, basin_expr b,
                            const basin_expr *list, basin_shape shape) {
    basin_attr attr = {.transpose_a = transposed};
    basin_expr in[7] = {a, b, list[0], list[1], list[2], list[3], list[4]};
    return a && b ? basin_node_single(a->graph, op, &attr, in, 7, shape) : NULL;
}

/* ---- from the force to its reverse ---- */

/* A number per query and head [batch, Nq, H] at each of the query's pairs, [pairs, H]. */
static basin_expr at_pairs(const basin_expr *in, basin_expr a) {
    const int64_t *q = in[BASIN_ATT_Q]->shape.dim;
    int64_t keys = in[BASIN_ATT_K]->shape.dim[1], H = q[2];
    if (!in[BASIN_ATT_ROW]) {
        basin_expr wide = basin_broadcast_to(basin_reshape(a, BASIN_SHAPE(q[0], q[1], 1, H)),
                                             BASIN_SHAPE(q[0], q[1], keys, H));
        return basin_reshape(wide, BASIN_SHAPE(q[0] * q[1] * keys, H));
    }
    basin_expr ones = basin_full(in[0]->graph, BASIN_SHAPE(keys, H, 1), 1);
    return pair_node(BASIN_OP_PAIR_DOT, false, basin_reshape(a, BASIN_SHAPE(q[1], H, 1)), ones,
                     in + BASIN_ATT_ROW, BASIN_SHAPE(in[BASIN_ATT_KEY]->shape.dim[0], H));
}

/* The products Q . K of all pairs, [pairs, H]. */
static basin_expr pair_products(const basin_expr *in) {
    basin_expr q = in[BASIN_ATT_Q], k = in[BASIN_ATT_K];
    const int64_t *dim = q->shape.dim;
    if (!in[BASIN_ATT_ROW])
        return basin_reshape(basin_einsum("bnhy,bmhy->bnmh", q, k),
                             BASIN_SHAPE(dim[0] * dim[1] * k->shape.dim[1], dim[2]));
    return pair_node(BASIN_OP_PAIR_DOT, false, basin_reshape(q, basin_shape_drop(q->shape, 0, 1)),
                     basin_reshape(k, basin_shape_drop(k->shape, 0, 1)), in + BASIN_ATT_ROW,
                     BASIN_SHAPE(in[BASIN_ATT_KEY]->shape.dim[0], dim[2]));
}

/* 1 where a pair of all pairs is left out, [pairs, 1]. */
static basin_expr pairs_left_out(basin_expr q, const basin_attr *attr) {
    int64_t batch = q->shape.dim[0], n = q->shape.dim[1];
    basin_expr out = attr->causal ? basin_tri(q->graph, n, n, attr->exclude_self ? -1 : 0)
                                  : basin_eye(q->graph, n);
    if (attr->causal) out = basin_sub(basin_scalar(q->graph, 1), out);
    return basin_reshape(basin_broadcast_to(out, BASIN_SHAPE(batch, n, n)),
                         BASIN_SHAPE(batch * n * n, 1));
}

/* The force's results for beta, the multipliers and the mixing, written out: with a = Q . K,
 * m = beta a, u = m mix, z = scale u, p = exp(z - lse) and dz = w p of each pair,
 *     dscale = dz u,   dmix = m^T (dz scale),   dbeta = sum over pairs of a (dz scale mix^T).
 * A bias in place of the multipliers: z = u + bias, dbias = dz.
 * Only a loss on the energy's own slopes asks for more of these, so they may take memory for every
 * pair and head. */
static void write_slopes(basin_expr slope[3], const basin_expr *in, const basin_attr *attr) {
    basin_expr beta = in[BASIN_ATT_BETA], mix = in[BASIN_ATT_MIX];
    basin_expr scale = attr->added ? NULL : in[BASIN_ATT_SCALE];
    basin_expr a = pair_products(in), m = basin_mul(a, beta);
    basin_expr u = mix ? basin_matmul(m, mix) : m, z = scale ? basin_mul(u, scale) : u;
    if (attr->added) z = basin_add(u, in[BASIN_ATT_SCALE]);
    basin_expr lse = basin_node_single(beta->graph, BASIN_OP_ATTENTION, attr, in,
                                       BASIN_ATT_PAIR + 1, in[BASIN_ATT_W]->shape);
    basin_expr gap = basin_sub(z, at_pairs(in, lse));
    if (attr->exclude_self || attr->causal)
        gap = basin_where(pairs_left_out(in[BASIN_ATT_Q], attr), basin_scalar(beta->graph, -1e9),
                          gap);
    basin_expr dz = basin_mul(at_pairs(in, in[BASIN_ATT_W]), basin_exp(gap));
    basin_expr du = scale ? basin_mul(dz, scale) : dz;
    basin_expr dm = mix ? basin_matmul_t(du, false, mix, true) : du;
    slope[0] = basin_sum(basin_mul(dm, a), 0, 1);
    slope[1] = attr->added ? dz : basin_mul(dz, u);
    slope[2] = basin_matmul_t(m, true, du, false);
}

/* Adds the reverse of those results; grad holds what there is already. */
static void reverse_slopes(const basin_node *node, const basin_expr *cotangent, const bool *want,
                           basin_expr *grad) {
    basin_expr slope[3], more[BASIN_ATT_W + 1], in[BASIN_ATT_W + 1];
    basin_stand_ins(in, node);
    if (basin_graph_error(node->out[0]->graph)) return;
    write_slopes(slope, in, &node->attr);
    basin_partial(more, slope, cotangent + BASIN_ATT_DBETA, 3, in, want, BASIN_ATT_W + 1);
    for (int i = 0; i <= BASIN_ATT_W; i++)
        if (want[i] && more[i]) grad[i] = grad[i] ? basin_add(grad[i], more[i]) : more[i];
}

/* The fused reverse of dq and dk. */
static void reverse_force(const basin_node *node, const basin_expr *cotangent, const bool *want,
                          basin_expr *grad) {
    static const int from[] = {BASIN_ATT_Q,    BASIN_ATT_K,     BASIN_ATT_W,
                               BASIN_ATT_BETA, BASIN_ATT_SCALE, BASIN_ATT_MIX};
    basin_expr in[BASIN_ATT_IN];
    for (int i = 0; i <= BASIN_ATT_W; i++) in[i] = node->in[i];
    in[BASIN_ATT_A] = cotangent[BASIN_ATT_DQ];
    in[BASIN_ATT_B] = cotangent[BASIN_ATT_DK];
    basin_result out[BASIN_MAX_OUT];
    for (int i = 0; i < BASIN_MAX_OUT; i++) {
        out[i] = (basin_result){.absent = !want[from[i]]};
        if (want[from[i]]) out[i].shape = node->in[from[i]]->shape;
    }
    basin_node *reverse = basin_node_new(in[0]->graph, BASIN_OP_ATTENTION_REVERSE, &node->attr, in,
                                         BASIN_ATT_IN, out, BASIN_MAX_OUT);
    for (int i = 0; reverse && i < BASIN_MAX_OUT; i++)
        if (want[from[i]]) grad[from[i]] = reverse->out[i];
}

BASIN_RULE(attention_force) {
    if (cotangent[BASIN_ATT_DQ] || cotangent[BASIN_ATT_DK])
        reverse_force(node, cotangent, want, grad);
    if (cotangent[BASIN_ATT_DBETA] || cotangent[BASIN_ATT_DSCALE] || cotangent[BASIN_ATT_DMIX])
        reverse_slopes(node, cotangent, want, grad);
}

/* ---- products over the pairs of a list; each is the other's reverse ---- */

static bool check_pairs(basin_expr z, const basin_pattern *p, int64_t queries, const char *what) {
    if (!pattern_is_list(p) || z->shape.rank != 3)
        return basin_graph_fail(z->graph, BASIN_BAD_SHAPE,
                                "%s: expected a pair list and tokens [N, H, Y], got %s", what,
                                basin_expr_text(z));
    return count_pairs(p, z->graph, 1, queries, z->shape.dim[0]) >= 0;
}

static void list_of(basin_expr list[5], const basin_pattern *p) {
    list[0] = p->row, list[1] = p->key, list[2] = p->column, list[3] = p->query, list[4] = p->pair;
}

basin_expr basin_pair_dot(basin_expr x, basin_expr z, const basin_pattern *pattern) {
    basin_expr list[5];
    if (!x || !z) return NULL;
    if (x->shape.rank != 3 || z->shape.rank != 3 || x->shape.dim[1] != z->shape.dim[1] ||
        x->shape.dim[2] != z->shape.dim[2])
        return basin_graph_fail(x->graph, BASIN_BAD_SHAPE,
                                "pair_dot: %s and %s, expected [N, H, Y] of equal H and Y",
                                basin_expr_text(x), basin_expr_text(z));
    if (!(z = with_halo(z, pattern))) return NULL;
    if (!check_pairs(z, pattern, x->shape.dim[0], "pair_dot")) return NULL;
    list_of(list, pattern);
    return pair_node(BASIN_OP_PAIR_DOT, false, x, z, list,
                     BASIN_SHAPE(pattern->key->shape.dim[0], x->shape.dim[1]));
}

basin_expr basin_pair_sum(basin_expr w, basin_expr z, const basin_pattern *pattern) {
    basin_expr list[5];
    if (!w || !z || !(z = with_halo(z, pattern))) return NULL;
    int64_t queries = pattern->row ? pattern->row->shape.dim[0] - 1 : 0;
    if (!check_pairs(z, pattern, queries, "pair_sum")) return NULL;
    basin_shape want = BASIN_SHAPE(pattern->key->shape.dim[0], z->shape.dim[1]);
    if (!basin_shape_equal(w->shape, want))
        return basin_graph_fail(w->graph, BASIN_BAD_SHAPE,
                                "pair_sum: the weights are %s, expected %s", basin_expr_text(w),
                                basin_shape_text(want));
    list_of(list, pattern);
    return pair_node(BASIN_OP_PAIR_SUM, false, w, z, list,
                     BASIN_SHAPE(queries, z->shape.dim[1], z->shape.dim[2]));
}

BASIN_RULE(pair_dot) {
    basin_expr x = node->in[0], z = node->in[1], c = cotangent[0];
    const basin_expr *list = node->in + 2;
    if (want[0]) grad[0] = pair_node(BASIN_OP_PAIR_SUM, false, c, z, list, x->shape);
    if (want[1]) grad[1] = pair_node(BASIN_OP_PAIR_SUM, true, c, x, list, z->shape);
}

BASIN_RULE(pair_sum) {
    basin_expr w = node->in[0], z = node->in[1], c = cotangent[0];
    const basin_expr *list = node->in + 2;
    bool back = node->attr.transpose_a; /* z are queries, the sums are per key */
    if (want[0])
        grad[0] = pair_node(BASIN_OP_PAIR_DOT, false, back ? z : c, back ? c : z, list, w->shape);
    if (want[1]) grad[1] = pair_node(BASIN_OP_PAIR_SUM, !back, w, c, list, z->shape);
}
