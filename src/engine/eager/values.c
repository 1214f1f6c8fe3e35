/* Softmax attention with values at once: the call, and what it may be. */
#include "engine/eager/eager.h"

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

void basin_eager_values(basin_eager_job *j, basin_eager_operation operation,
                        const basin_eager_attention *at) {
    basin_kind kind = at->dtype == BASIN_BF16 ? BASIN_NARROW : BASIN_REAL;
    basin_shape q = BASIN_SHAPE(at->batch, at->queries, at->heads, at->width);
    basin_shape k = BASIN_SHAPE(at->batch, at->keys, at->key_heads, at->width);
    basin_shape v = BASIN_SHAPE(at->batch, at->keys, at->key_heads, at->value_width);
    basin_shape c = BASIN_SHAPE(at->batch, at->queries, at->heads, at->value_width);
    int order = (int)operation - (int)BASIN_EAGER_VALUES;
    *j = (basin_eager_job){.call.op = (basin_op)((int)BASIN_OP_VALUES + order)};
    j->call.attr = (basin_attr){.value = at->factor,
                                .exclude_self = at->exclude_self,
                                .causal = at->causal,
                                .transpose_a = at->heads_first,
                                .products = at->tf32 ? BASIN_PRODUCTS_TF32 : BASIN_PRODUCTS_F32};
    basin_eager_in(j, BASIN_VAL_Q, at->q, kind, q);
    basin_eager_in(j, BASIN_VAL_K, at->k, kind, k);
    basin_eager_in(j, BASIN_VAL_V, at->v, kind, v);
    basin_eager_in(j, BASIN_VAL_BIAS, at->bias, BASIN_REAL, bias_shape(at, at->bias_repeats));
    add_list(j, at);
    basin_eager_in(j, BASIN_VAL_SEED, NULL, BASIN_INDEX, BASIN_SHAPE(2));
    basin_eager_in(j, BASIN_VAL_C, order > 0 ? at->c : NULL, kind, c);
    basin_eager_in(j, BASIN_VAL_TQ, at->a, kind, q);
    basin_eager_in(j, BASIN_VAL_TK, at->b, kind, k);
    basin_eager_in(j, BASIN_VAL_TV, at->av, kind, v);
    basin_eager_in(j, BASIN_VAL_TBIAS, at->abias, BASIN_REAL, bias_shape(at, at->abias_repeats));
    basin_eager_in(j, BASIN_VAL_TC, at->ac, kind, c);
    j->call.ins = order == 2 ? BASIN_VAL_IN : BASIN_VAL_C + 1;
    if (order == 0) {
        basin_eager_out(j, 0, at->o, kind, c);
        j->call.outs = 1;
        return;
    }
    bool second = order == 2;
    basin_shape slopes = bias_shape(at, NULL);
    basin_eager_out(j, BASIN_VAL_OUT_Q, second ? at->gq : at->dq, kind, q);
    basin_eager_out(j, BASIN_VAL_OUT_K, second ? at->gk : at->dk, kind, k);
    basin_eager_out(j, BASIN_VAL_OUT_V, second ? at->gv : at->dv, kind, v);
    basin_eager_out(j, BASIN_VAL_OUT_BIAS, second ? at->gbias : at->dbias, BASIN_REAL, slopes);
    basin_eager_out(j, BASIN_VAL_OUT_C, at->gc, kind, c);
    if (second) basin_eager_out(j, BASIN_VAL_OUT_O, at->o, kind, c);
    j->call.outs = second ? BASIN_VAL_OUT_O + (at->o != NULL) : BASIN_VAL_OUT_C;
}

basin_status basin_eager_values_check(const basin_eager_attention *at, basin_error *error) {
    bool heads = at->key_heads > 0 ? at->heads % at->key_heads == 0 : at->heads == 0;
    bool fits =
        basin_shape_count(BASIN_SHAPE(at->batch, at->queries, at->heads, at->value_width, 64)) >=
            0 &&
        basin_shape_count(BASIN_SHAPE(at->batch, at->keys, at->heads, at->value_width, 64)) >= 0;
    if (!heads || at->key_heads < 0 || !fits)
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "attention: %lld heads of keys for %lld of queries, values %lld wide: "
                          "heads of keys must divide those of queries",
                          (long long)at->key_heads, (long long)at->heads,
                          (long long)at->value_width);
    return BASIN_OK;
}

/* Empty operands may have any address. */
basin_status basin_eager_values_present(basin_eager_operation operation,
                                        const basin_eager_attention *at, basin_error *error) {
    bool queries = at->batch * at->queries * at->heads > 0, wide = at->width > 0;
    bool keys = at->batch * at->keys * at->key_heads > 0, values = at->value_width > 0;
    bool list = !at->row || (at->column && (at->pairs == 0 || (at->key && at->query && at->pair)));
    bool slopes =
        at->gq || at->gk || at->gv || at->gbias || operation == BASIN_EAGER_VALUES_REVERSE;
    bool all = at->bias || !(at->dbias || at->gbias || at->abias);
    const char *missing = NULL;
    if (!at->q && queries && wide) missing = "q";
    if (!at->k && keys && wide) missing = "k";
    if (!at->v && keys && values) missing = "v";
    if (!list) missing = "a part of the list (key, column, query or pair)";
    if (operation == BASIN_EAGER_VALUES && !at->o && queries && values) missing = "o";
    if (operation != BASIN_EAGER_VALUES && slopes && !at->c && queries && values) missing = "c";
    if (operation != BASIN_EAGER_VALUES && !all) missing = "bias";
    return missing ? basin_fail(error, BASIN_BAD_VALUE, "attention: %s is NULL", missing)
                   : BASIN_OK;
}
