/* Softmax attention with values at once: the call, and what it may be. */
#include "engine/eager/eager.h"

#include "base/sized.h"
#include "base/try.h"

static basin_shape bias_shape(const basin_eager_attention *at, const bool *repeats) {
    static const bool none[3] = {false};
    if (!repeats) repeats = none;
    int64_t batch = repeats[0] ? 1 : at->batch;
    if (at->row) return BASIN_SHAPE(batch, at->pairs, at->heads);
    return BASIN_SHAPE(batch, repeats[1] ? 1 : at->heads, repeats[2] ? 1 : at->queries, at->keys);
}

static void add_list(basin_eager_job *j, const basin_eager_attention *at) {
    const int32_t *list[] = {at->row, at->key, at->column, at->query, at->pair};
    const int64_t length[] = {at->queries + 1, at->pairs, at->keys + 1, at->pairs, at->pairs};
    for (int i = 0; i < 5; i++)
        basin_eager_in(j, BASIN_VAL_ROW + i, at->row ? list[i] : NULL, BASIN_INDEX,
                       BASIN_SHAPE(length[i]));
}

void basin_eager_values_describe(basin_eager_job *j, basin_eager_operation operation,
                                 const basin_eager_attention *at) {
    const basin_eager_values *v = at->values;
    basin_kind kind = at->dtype == BASIN_BF16 ? BASIN_NARROW : BASIN_REAL;
    basin_shape q = BASIN_SHAPE(at->batch, at->queries, at->heads, at->head_dim);
    basin_shape k = BASIN_SHAPE(at->batch, at->keys, v->key_heads, at->head_dim);
    basin_shape like_v = BASIN_SHAPE(at->batch, at->keys, v->key_heads, v->value_dim);
    basin_shape c = BASIN_SHAPE(at->batch, at->queries, at->heads, v->value_dim);
    int order = (int)operation - (int)BASIN_EAGER_VALUES;
    *j = (basin_eager_job){.call.op = (basin_op)((int)BASIN_OP_VALUES + order)};
    j->call.attr = (basin_attr){.value = v->factor,
                                .exclude_self = at->exclude_self,
                                .causal = at->causal,
                                .transpose_a = v->heads_first,
                                .products = at->tf32 ? BASIN_PRODUCTS_TF32 : BASIN_PRODUCTS_F32};
    basin_eager_in(j, BASIN_VAL_Q, at->q, kind, q);
    basin_eager_in(j, BASIN_VAL_K, at->k, kind, k);
    basin_eager_in(j, BASIN_VAL_V, v->v, kind, like_v);
    basin_eager_in(j, BASIN_VAL_BIAS, v->bias, BASIN_REAL, bias_shape(at, v->bias_repeats));
    add_list(j, at);
    basin_eager_in(j, BASIN_VAL_SEED, NULL, BASIN_INDEX, BASIN_SHAPE(2));
    basin_eager_in(j, BASIN_VAL_C, order > 0 ? v->c : NULL, kind, c);
    basin_eager_in(j, BASIN_VAL_TQ, at->a, kind, q);
    basin_eager_in(j, BASIN_VAL_TK, at->b, kind, k);
    basin_eager_in(j, BASIN_VAL_TV, v->av, kind, like_v);
    basin_eager_in(j, BASIN_VAL_TBIAS, v->abias, BASIN_REAL, bias_shape(at, v->abias_repeats));
    basin_eager_in(j, BASIN_VAL_TC, v->ac, kind, c);
    j->call.ins = order == 2 ? BASIN_VAL_IN : BASIN_VAL_C + 1;
    if (order == 0) {
        basin_eager_out(j, 0, v->o, kind, c);
        j->call.outs = 1;
        return;
    }
    bool second = order == 2;
    basin_shape slopes = bias_shape(at, NULL);
    basin_eager_out(j, BASIN_VAL_OUT_Q, second ? at->gq : at->dq, kind, q);
    basin_eager_out(j, BASIN_VAL_OUT_K, second ? at->gk : at->dk, kind, k);
    basin_eager_out(j, BASIN_VAL_OUT_V, second ? v->gv : v->dv, kind, like_v);
    basin_eager_out(j, BASIN_VAL_OUT_BIAS, second ? v->gbias : v->dbias, BASIN_REAL, slopes);
    basin_eager_out(j, BASIN_VAL_OUT_C, v->gc, kind, c);
    if (second) basin_eager_out(j, BASIN_VAL_OUT_O, v->o, kind, c);
    j->call.outs = second ? BASIN_VAL_OUT_O + (v->o != NULL) : BASIN_VAL_OUT_C;
}

basin_status basin_eager_values_check(const basin_eager_attention *at, basin_error *error) {
    const basin_eager_values *v = at->values;
    if (!v) return basin_fail(error, BASIN_BAD_VALUE, "attention: values is NULL");
    BASIN_TRY(BASIN_SIZE_CHECK(v, "basin_eager_values", error));
    bool heads = v->key_heads > 0 ? at->heads % v->key_heads == 0 : at->heads == 0;
    bool fits =
        basin_shape_count(BASIN_SHAPE(at->batch, at->queries, at->heads, v->value_dim, 64)) >= 0 &&
        basin_shape_count(BASIN_SHAPE(at->batch, at->keys, at->heads, v->value_dim, 64)) >= 0;
    if (!heads || v->key_heads < 0 || !fits)
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "attention: %lld heads of keys for %lld of queries, values %lld wide: "
                          "heads of keys must divide those of queries",
                          (long long)v->key_heads, (long long)at->heads, (long long)v->value_dim);
    return BASIN_OK;
}

/* Empty operands may have any address. */
basin_status basin_eager_values_present(basin_eager_operation operation,
                                        const basin_eager_attention *at, basin_error *error) {
    const basin_eager_values *v = at->values;
    bool queries = at->batch * at->queries * at->heads > 0, wide = at->head_dim > 0;
    bool keys = at->batch * at->keys * v->key_heads > 0, values = v->value_dim > 0;
    bool list = !at->row || (at->column && (at->pairs == 0 || (at->key && at->query && at->pair)));
    bool slopes = at->gq || at->gk || v->gv || v->gbias || operation == BASIN_EAGER_VALUES_REVERSE;
    bool all = v->bias || !(v->dbias || v->gbias || v->abias);
    const char *missing = NULL;
    if (!at->q && queries && wide) missing = "q";
    if (!at->k && keys && wide) missing = "k";
    if (!v->v && keys && values) missing = "v";
    if (!list) missing = "a part of the list (key, column, query or pair)";
    if (operation == BASIN_EAGER_VALUES && !v->o && queries && values) missing = "o";
    if (operation != BASIN_EAGER_VALUES && slopes && !v->c && queries && values) missing = "c";
    if (operation != BASIN_EAGER_VALUES && !all) missing = "bias";
    return missing ? basin_fail(error, BASIN_BAD_VALUE, "attention: %s is NULL", missing)
                   : BASIN_OK;
}
