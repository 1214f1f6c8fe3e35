/* What a job may be: types, sizes, which operands an operation needs, where they lie, and the
 * indices of a list that lies in the host's memory. */
#include "eager/eager.h"

static basin_status check_dtype(const basin_eager *eager, const basin_eager_attention *at,
                                basin_error *error) {
    basin_dtype real = eager->backend->table->real;
    bool narrow = at->dtype == BASIN_BF16 && real == BASIN_F32;
    if (narrow || at->dtype == real) return BASIN_OK;
    return basin_fail(error, BASIN_UNSUPPORTED, "attention: backend %s takes %s, not %s",
                      basin_eager_backend(eager), real == BASIN_F64 ? "F64" : "F32 and BF16",
                      basin_dtype_name(at->dtype));
}

/* Counts of all operands fit, products of theirs included. */
static bool counts_fit(const basin_eager_attention *at) {
    int64_t q = basin_shape_count(BASIN_SHAPE(at->batch, at->queries, at->heads, at->width, 64));
    int64_t k = basin_shape_count(BASIN_SHAPE(at->batch, at->keys, at->heads, at->width, 64));
    int64_t pairs = basin_shape_count(BASIN_SHAPE(at->batch, at->queries, at->keys, at->heads, 64));
    int64_t list = basin_shape_count(BASIN_SHAPE(at->pairs, at->heads, 64));
    return q >= 0 && k >= 0 && pairs >= 0 && list >= 0 && at->queries < INT32_MAX &&
           at->keys < INT32_MAX && at->pairs < INT32_MAX;
}

static basin_status check_pattern(const basin_eager_attention *at, basin_error *error) {
    if (at->row && (at->exclude_self || at->causal))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "attention: a list of pairs that is to leave out %s; list the pairs that "
                          "count",
                          at->causal ? "later keys" : "self pairs");
    if ((at->exclude_self || at->causal) && at->queries != at->keys)
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "attention: %lld queries and %lld keys, which must be the same tokens to "
                          "leave out %s",
                          (long long)at->queries, (long long)at->keys,
                          at->causal ? "later ones" : "self pairs");
    if (at->row && at->batch > 1 && (at->dbeta || at->dscale || at->gbeta || at->gscale))
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "attention: gradients of beta and scale through a list in a batch of "
                          "%lld; wanted 1",
                          (long long)at->batch);
    if (at->row && at->batch > 1 && at->scale)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "attention: scale with a list in a batch of %lld; wanted 1",
                          (long long)at->batch);
    return BASIN_OK;
}

basin_status basin_eager_check_sizes(const basin_eager *eager, basin_eager_operation operation,
                                     const basin_eager_attention *at, basin_error *error) {
    if (operation < BASIN_EAGER_LSE || operation > BASIN_EAGER_REVERSE)
        return basin_fail(error, BASIN_BAD_VALUE, "attention: operation %d, of 0 to %d",
                          (int)operation, (int)BASIN_EAGER_REVERSE);
    if (!counts_fit(at))
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "attention: batch %lld, %lld queries, %lld keys, %lld heads of %lld, "
                          "%lld pairs: negative, or too large",
                          (long long)at->batch, (long long)at->queries, (long long)at->keys,
                          (long long)at->heads, (long long)at->width, (long long)at->pairs);
    basin_status status = check_dtype(eager, at, error);
    return status ? status : check_pattern(at, error);
}

static basin_status missing(const char *name, basin_error *error) {
    return basin_fail(error, BASIN_BAD_VALUE, "attention: %s is NULL", name);
}

/* Of empty operands the address may be anything. */
static basin_status check_present(basin_eager_operation operation, const basin_eager_attention *at,
                                  basin_error *error) {
    bool queries = at->batch * at->queries * at->heads > 0,
         keys = at->batch * at->keys * at->heads > 0;
    bool wide = at->width > 0;
    bool list = !at->row || (at->column && (at->pairs == 0 || (at->key && at->query && at->pair)));
    if (!at->q && queries && wide) return missing("q", error);
    if (!at->k && keys && wide) return missing("k", error);
    if (!at->beta && at->heads > 0) return missing("beta", error);
    if (!list) return missing("a part of the list (key, column, query or pair)", error);
    if (operation != BASIN_EAGER_LSE && !at->w && queries) return missing("w", error);
    if (operation == BASIN_EAGER_REVERSE && !at->a && !at->b && (queries || keys) && wide)
        return missing("a and b", error);
    if (operation == BASIN_EAGER_LSE && !at->lse && queries) return missing("lse", error);
    return BASIN_OK;
}

/* Kernels read rows of whole vectors as vectors; others element by element. */
static basin_status check_aligned(const basin_eager_attention *at, basin_error *error) {
    if ((size_t)at->width * basin_dtype_size(at->dtype) % 16) return BASIN_OK;
    static const char *const name[] = {"q", "k", "a", "b", "dq", "dk", "gq", "gk"};
    const void *operand[] = {at->q, at->k, at->a, at->b, at->dq, at->dk, at->gq, at->gk};
    for (int i = 0; i < 8; i++)
        if ((uintptr_t)operand[i] % 16)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "attention: %s lies at an address that is no multiple of 16",
                              name[i]);
    return BASIN_OK;
}

static basin_status check_workspace(const basin_eager *eager, const basin_eager_attention *at,
                                    size_t bytes, basin_error *error) {
    if (!at->workspace && (bytes == 0 || !eager->device)) return BASIN_OK;
    size_t given = at->workspace ? at->workspace_bytes : 0;
    if (given < bytes)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "attention: the workspace has %zu bytes, wanted %zu", given, bytes);
    if ((uintptr_t)at->workspace % 64)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "attention: the workspace lies at an address that is no multiple of 64");
    return BASIN_OK;
}

/* ---- lists in the host's memory ---- */

static basin_status check_indices(const int32_t *index, int64_t count, int64_t limit,
                                  const char *name, basin_error *error) {
    for (int64_t i = 0; i < count; i++)
        if (index[i] < 0 || index[i] >= limit)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "attention: %s %lld at element %lld is not in [0, %lld)", name,
                              (long long)index[i], (long long)i, (long long)limit);
    return BASIN_OK;
}

static basin_status check_starts(const int32_t *start, int64_t nodes, int64_t pairs,
                                 const char *name, basin_error *error) {
    int32_t last = 0;
    for (int64_t i = 0; i <= nodes; last = start[i], i++)
        if (start[i] < last || start[i] > pairs || (i == 0 && start[i] != 0))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "attention: %s has %lld at element %lld; wanted 0 and then numbers "
                              "that do not fall, up to %lld",
                              name, (long long)start[i], (long long)i, (long long)pairs);
    return BASIN_OK;
}

static basin_status check_list(const basin_eager_attention *at, basin_error *error) {
    basin_status status = check_starts(at->row, at->queries, at->pairs, "row", error);
    if (!status) status = check_starts(at->column, at->keys, at->pairs, "column", error);
    if (!status && at->row[at->queries] != at->column[at->keys])
        status = basin_fail(error, BASIN_BAD_VALUE, "attention: %d pairs by query, %d by key",
                            (int)at->row[at->queries], (int)at->column[at->keys]);
    if (status) return status;
    int64_t used = at->row[at->queries];
    status = check_indices(at->key, used, at->keys, "key", error);
    if (!status) status = check_indices(at->query, used, at->queries, "query", error);
    return status ? status : check_indices(at->pair, used, at->pairs, "pair", error);
}

basin_status basin_eager_check_operands(const basin_eager *eager, basin_eager_operation operation,
                                        const basin_eager_attention *at, size_t bytes,
                                        basin_error *error) {
    basin_status status = check_present(operation, at, error);
    if (!status) status = check_aligned(at, error);
    if (!status) status = check_workspace(eager, at, bytes, error);
    if (!status && at->row && !eager->device) status = check_list(at, error);
    return status;
}
