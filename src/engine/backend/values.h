/* Softmax attention with values, and its derivatives to second order: what the backends share.
 *
 * Per batch entry and head, i a query and j one of the keys that it sees:
 *
 *     s[i,j] = scale q[i] . k[j] + bias[i,j]      p[i,j] = exp s[i,j] / sum over j of exp s[i,j]
 *
 *     VALUES   o[i] = sum_j p v[j]; 0 for a query that sees no key
 *
 *     REVERSE  the gradient of F = sum c . o, with g[i,j] = c[i] . v[j] and d[i] = sum_j p g:
 *         ds = p (g - d)         (the gradient of the bias)
 *         dq[i] = scale sum_j ds k[j]    dk[j] = scale sum_i ds q[i]    dv[j] = sum_i p c[i]
 *
 *     SECOND   the tangents of all these, the gradient of F by c (which is o) among them:
 *         ts = scale (tq[i] . k[j] + q[i] . tk[j]) + tbias       tp = p (ts - sum_j p ts)
 *         tg = tc[i] . v[j] + c[i] . tv[j]
 *         u = p ((ts - sum_j p ts) (g - d) + tg)                 tds = u - p sum_j u
 *         gq[i] = scale sum_j (tds k[j] + ds tk[j])    gk[j] = scale sum_i (tds q[i] + ds tq[i])
 *         gv[j] = sum_i (tp c[i] + p tc[i])            gc[i] = sum_j (tp v[j] + p tv[j])
 *         gbias = tds
 *
 * Dropout multiplies p by m[i,j], 0 or 1 / (1 - drop), where it meets v: o[i] = sum_j m p v[j], so
 * that g and tg are m times the above, and gv, dv and gc have m p and m tp.
 *
 * Second derivatives of F are symmetric, so SECOND is all of these: the tangent of o (gc, no c),
 * the tangent of the reverse (forward over reverse), and, with the cotangents of dq, dk, dv and
 * dbias in the place of tq, tk, tv and tbias, the reverse of the reverse. */
#ifndef BASIN_BACKEND_VALUES_H
#define BASIN_BACKEND_VALUES_H

#include <string.h>

#include "engine/backend/kernel.h"
#include "engine/backend/shape.h"

/* Where rows of one head lie in a tensor: elements from one of each to the next. */
typedef struct basin_values_steps {
    int64_t batch, head, token;
} basin_values_steps;

/* Steps of biases. A list's have none for queries, others none for pairs but 1. */
typedef struct basin_bias_steps {
    int64_t batch, head, query, pair;
} basin_bias_steps;

/* A call's sizes and operands; absent ones are NULL. */
typedef struct basin_values {
    int order; /* 0: values, 1: reverse, 2: second */
    int64_t batch, queries, keys, heads, shared /* heads of keys */, width, value_width, pairs;
    double scale;
    double drop;
    const int32_t *seed; /* of dropout, or NULL; m[i,j] is that of basin_values_draw */
    uint32_t stream;
    bool causal, exclude_self;
    basin_values_steps of_q, of_k, of_v, of_c;
    basin_bias_steps of_bias, of_tbias;
    const int32_t *row, *key, *column, *query, *pair; /* row NULL: all pairs */
    const void *q, *k, *v, *bias, *c, *tq, *tk, *tv, *tbias, *tc;
    void *out_q, *out_k, *out_v, *out_bias, *out_c, *out_o /* beside its tangent */;
    const void *o; /* of a reverse with what its result kept, or NULL */
    void *kept;    /* there, and where a result is to keep it; see basin_values_kept */
} basin_values;

static inline basin_values_steps basin_values_steps_of(const basin_shape *shape, bool heads_first) {
    const int64_t *dim = shape->dim; /* [batch, tokens, heads, width] */
    basin_values_steps by_token = {dim[1] * dim[2] * dim[3], dim[3], dim[2] * dim[3]};
    basin_values_steps by_head = {dim[1] * dim[2] * dim[3], dim[1] * dim[3], dim[3]};
    return heads_first ? by_head : by_token;
}

static inline basin_bias_steps basin_bias_steps_of(const basin_shape *shape, bool list) {
    const int64_t *dim =
        shape->dim; /* [batch, heads, queries, keys], list: [batch, pairs, heads] */
    basin_bias_steps of_list = {dim[0] == 1 ? 0 : dim[1] * dim[2], 1, 0, dim[2]};
    basin_bias_steps of_all = {dim[0] == 1 ? 0 : dim[1] * dim[2] * dim[3],
                               dim[1] == 1 ? 0 : dim[2] * dim[3], dim[2] == 1 ? 0 : dim[3], 1};
    return list ? of_list : of_all;
}

static inline basin_values basin_values_of(const basin_call *call, const void *const *in,
                                           void *const *out) {
    bool first = call->attr.transpose_a, forward = call->op == BASIN_OP_VALUES;
    const basin_shape *q = &call->in[BASIN_VAL_Q].shape, *k = &call->in[BASIN_VAL_K].shape;
    const basin_shape *v = &call->in[BASIN_VAL_V].shape;
    basin_shape c = BASIN_SHAPE(q->dim[0], q->dim[1], q->dim[2], v->dim[3]);
    basin_values at;
    memset(&at, 0, sizeof at);
    at.order = (int)call->op - (int)BASIN_OP_VALUES;
    at.batch = q->dim[0], at.queries = q->dim[1], at.heads = q->dim[2], at.width = q->dim[3];
    at.keys = k->dim[1], at.shared = k->dim[2], at.value_width = v->dim[3];
    at.scale = call->attr.value;
    at.causal = call->attr.causal, at.exclude_self = call->attr.exclude_self;
    at.drop = call->attr.drop, at.stream = call->attr.stream;
    if (call->ins > BASIN_VAL_SEED && at.drop > 0) at.seed = (const int32_t *)in[BASIN_VAL_SEED];
    at.of_q = basin_values_steps_of(q, first);
    at.of_k = basin_values_steps_of(k, first);
    at.of_v = basin_values_steps_of(v, first), at.of_c = basin_values_steps_of(&c, first);
    at.q = in[BASIN_VAL_Q], at.k = in[BASIN_VAL_K], at.v = in[BASIN_VAL_V];
    at.bias = in[BASIN_VAL_BIAS];
    const int32_t *const *list = (const int32_t *const *)(in + BASIN_VAL_ROW);
    at.row = list[0], at.key = list[1], at.column = list[2], at.query = list[3], at.pair = list[4];
    at.pairs = at.row ? call->in[BASIN_VAL_ROW + 1].shape.dim[0] : at.keys;
    at.of_bias = basin_bias_steps_of(&call->in[BASIN_VAL_BIAS].shape, at.row);
    if (call->ins > BASIN_VAL_C) at.c = in[BASIN_VAL_C];
    if (at.order == 2) {
        at.tq = in[BASIN_VAL_TQ], at.tk = in[BASIN_VAL_TK], at.tv = in[BASIN_VAL_TV];
        at.tbias = in[BASIN_VAL_TBIAS], at.tc = in[BASIN_VAL_TC];
        at.of_tbias = basin_bias_steps_of(&call->in[BASIN_VAL_TBIAS].shape, at.row);
        at.out_c = out[BASIN_VAL_OUT_C];
        if (call->outs > BASIN_VAL_OUT_O) at.out_o = out[BASIN_VAL_OUT_O];
    }
    if (at.order == 1 && call->ins > BASIN_VAL_O)
        at.o = in[BASIN_VAL_O], at.kept = (void *)(uintptr_t)in[BASIN_VAL_KEPT];
    if (forward) {
        at.out_c = out[0], at.kept = call->outs > 1 ? out[1] : NULL;
    } else {
        at.out_q = out[BASIN_VAL_OUT_Q], at.out_k = out[BASIN_VAL_OUT_K];
        at.out_v = out[BASIN_VAL_OUT_V], at.out_bias = out[BASIN_VAL_OUT_BIAS];
    }
    return at;
}

/* What a backend may keep of a result for its reverse, 4 bytes each: a number for every query,
 * [batch H, rows], and with dropout a bit for every pair, [batch H, words, rows]. */
static inline int64_t basin_values_rows(int64_t queries) { return (queries + 63) / 64 * 64; }
static inline int64_t basin_values_words(int64_t keys) { return (keys + 63) / 64 * 2; }
static inline basin_shape basin_values_kept(const basin_shape *q, const basin_shape *k, bool drop) {
    return BASIN_SHAPE(q->dim[0] * q->dim[2], 1 + (drop ? basin_values_words(k->dim[1]) : 0),
                       basin_values_rows(q->dim[1]));
}

/* The draw of a query's first key; the others follow. */
static inline uint64_t basin_values_draw(const basin_values *at, int64_t b, int64_t h, int64_t i) {
    return (uint64_t)(((b * at->heads + h) * at->queries + i) * at->keys);
}

/* Where head h of a token of batch entry b begins. */
static inline int64_t basin_values_at(const basin_values_steps *of, int64_t b, int64_t h,
                                      int64_t token) {
    return b * of->batch + h * of->head + token * of->token;
}

/* Where a query's biases, and their gradients, begin; a list's are `heads` apart, others 1. */
static inline int64_t basin_values_bias_at(const basin_bias_steps *of, const int32_t *row,
                                           int64_t b, int64_t h, int64_t i) {
    return b * of->batch + h * of->head + i * of->query + (row ? row[i] * of->pair : 0);
}
static inline int64_t basin_values_slope_at(const basin_values *at, int64_t b, int64_t h,
                                            int64_t i) {
    if (at->row) return (b * at->pairs + at->row[i]) * at->heads + h;
    return ((b * at->heads + h) * at->queries + i) * at->keys;
}

/* The number n of keys of a query, numbered 0 .. n - 1; over all pairs, `exclude_self` leaves one
 * out. */
static inline int64_t basin_values_keys(const basin_values *at, int64_t i) {
    if (at->row) return at->row[i + 1] - at->row[i];
    int64_t seen = i + !at->exclude_self;
    return at->causal && seen < at->keys ? seen : at->keys;
}

#endif
