/* Energy attention at once: the job is checked and handed to the backend as a call. */
#include "engine/eager/eager.h"
#include "base/sized.h"
#include "base/try.h"

static const basin_op op_of[] = {BASIN_OP_ATTENTION, BASIN_OP_ATTENTION_FORCE,
                                 BASIN_OP_ATTENTION_REVERSE};

/* ---- the call ---- */

typedef basin_eager_job job;

void basin_eager_in(job *j, int i, const void *data, basin_kind kind, basin_shape shape) {
    int block = 1 + i;
    j->block[block] = (void *)(uintptr_t)data; /* kernels only read it */
    j->call.in[i] = (basin_operand){.block = data ? block : -1, .kind = kind, .shape = shape};
}

void basin_eager_out(job *j, int o, void *data, basin_kind kind, basin_shape shape) {
    int block = 1 + BASIN_MAX_IN + o;
    j->block[block] = data;
    j->call.out[o] = (basin_operand){.block = data ? block : -1, .kind = kind, .shape = shape};
}

static void add_inputs(job *j, const basin_eager_attention *at) {
    basin_kind kind = at->dtype == BASIN_BF16 ? BASIN_NARROW : BASIN_REAL;
    basin_shape q = BASIN_SHAPE(at->batch, at->queries, at->heads, at->head_dim);
    basin_shape k = BASIN_SHAPE(at->batch, at->keys, at->heads, at->head_dim);
    basin_shape list = BASIN_SHAPE(at->pairs);
    int64_t pairs = at->row ? at->pairs : at->batch * at->queries * at->keys;
    basin_eager_in(j, BASIN_ATT_Q, at->q, kind, q);
    basin_eager_in(j, BASIN_ATT_K, at->k, kind, k);
    basin_eager_in(j, BASIN_ATT_BETA, at->beta, BASIN_REAL, BASIN_SHAPE(at->heads));
    basin_eager_in(j, BASIN_ATT_SCALE, at->scale, BASIN_REAL, BASIN_SHAPE(pairs, at->heads));
    basin_eager_in(j, BASIN_ATT_MIX, NULL, BASIN_REAL, BASIN_SCALAR);
    basin_eager_in(j, BASIN_ATT_ROW, at->row, BASIN_INDEX, BASIN_SHAPE(at->queries + 1));
    basin_eager_in(j, BASIN_ATT_KEY, at->row ? at->key : NULL, BASIN_INDEX, list);
    basin_eager_in(j, BASIN_ATT_COLUMN, at->row ? at->column : NULL, BASIN_INDEX,
                   BASIN_SHAPE(at->keys + 1));
    basin_eager_in(j, BASIN_ATT_QUERY, at->row ? at->query : NULL, BASIN_INDEX, list);
    basin_eager_in(j, BASIN_ATT_PAIR, at->row ? at->pair : NULL, BASIN_INDEX, list);
    basin_eager_in(j, BASIN_ATT_W, at->w, BASIN_REAL,
                   BASIN_SHAPE(at->batch, at->queries, at->heads));
    basin_eager_in(j, BASIN_ATT_A, at->a, kind, q);
    basin_eager_in(j, BASIN_ATT_B, at->b, kind, k);
    j->call.ins = BASIN_ATT_IN;
}

static void add_results(job *j, const basin_eager_attention *at) {
    const basin_operand *in = j->call.in;
    basin_kind kind = in[BASIN_ATT_Q].kind;
    basin_shape q = in[BASIN_ATT_Q].shape, k = in[BASIN_ATT_K].shape;
    basin_shape row = in[BASIN_ATT_W].shape, beta = in[BASIN_ATT_BETA].shape;
    basin_shape scale = in[BASIN_ATT_SCALE].shape;
    if (j->call.op == BASIN_OP_ATTENTION_REVERSE) {
        basin_eager_out(j, BASIN_ATT_GQ, at->gq, kind, q);
        basin_eager_out(j, BASIN_ATT_GK, at->gk, kind, k);
        basin_eager_out(j, BASIN_ATT_GW, at->gw, BASIN_REAL, row);
        basin_eager_out(j, BASIN_ATT_GBETA, at->gbeta, BASIN_REAL, beta);
        basin_eager_out(j, BASIN_ATT_GSCALE, at->gscale, BASIN_REAL, scale);
        basin_eager_out(j, BASIN_ATT_GMIX, NULL, BASIN_REAL, BASIN_SCALAR);
    } else {
        basin_eager_out(j, BASIN_ATT_LSE, at->lse, BASIN_REAL, row);
        basin_eager_out(j, BASIN_ATT_DQ, at->dq, kind, q);
        basin_eager_out(j, BASIN_ATT_DK, at->dk, kind, k);
        basin_eager_out(j, BASIN_ATT_DBETA, at->dbeta, BASIN_REAL, beta);
        basin_eager_out(j, BASIN_ATT_DSCALE, at->dscale, BASIN_REAL, scale);
        basin_eager_out(j, BASIN_ATT_DMIX, NULL, BASIN_REAL, BASIN_SCALAR);
    }
    j->call.outs = BASIN_ATT_OUT;
    if (j->call.op == BASIN_OP_ATTENTION) j->call.outs = 1;
}

static void describe(job *j, basin_eager_operation operation, const basin_eager_attention *at) {
    if (basin_eager_has_values(operation)) {
        basin_eager_values_describe(j, operation, at);
        return;
    }
    *j = (job){.call.op = op_of[operation]};
    j->call.attr.exclude_self = at->exclude_self;
    j->call.attr.causal = at->causal;
    j->call.attr.widens = true;
    j->call.attr.products = at->tf32 ? BASIN_PRODUCTS_TF32 : BASIN_PRODUCTS_F32;
    add_inputs(j, at);
    add_results(j, at);
}

/* What a job may be: types, sizes, needed operands, where they lie, a list's indices. */

static basin_status check_dtype(const basin_eager *eager, const basin_eager_attention *at,
                                basin_error *error) {
    basin_dtype real = eager->backend->table->real;
    bool narrow = at->dtype == BASIN_BF16 && real == BASIN_F32;
    if (narrow || at->dtype == real) return BASIN_OK;
    return basin_fail(error, BASIN_UNSUPPORTED, "attention: backend %s takes %s, not %s",
                      eager->backend->table->name, real == BASIN_F64 ? "F64" : "F32 and BF16",
                      basin_dtype_name(at->dtype));
}

/* Counts of all operands fit, products of theirs included. */
static bool counts_fit(const basin_eager_attention *at) {
    int64_t q = basin_shape_count(BASIN_SHAPE(at->batch, at->queries, at->heads, at->head_dim, 64));
    int64_t k = basin_shape_count(BASIN_SHAPE(at->batch, at->keys, at->heads, at->head_dim, 64));
    int64_t pairs = basin_shape_count(BASIN_SHAPE(at->batch, at->queries, at->keys, at->heads, 64));
    int64_t list = basin_shape_count(BASIN_SHAPE(at->pairs, at->heads, 64));
    return q >= 0 && k >= 0 && pairs >= 0 && list >= 0 && at->queries < INT32_MAX &&
           at->keys < INT32_MAX && at->pairs < INT32_MAX;
}

static basin_status check_pattern(const basin_eager_attention *at, bool values,
                                  basin_error *error) {
    if (at->row && (at->exclude_self || at->causal))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "attention: a list of pairs that is to leave out %s; list the pairs that "
                          "count",
                          at->causal ? "later keys" : "self pairs");
    if ((at->exclude_self || (at->causal && !values)) && at->queries != at->keys)
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "attention: %lld queries and %lld keys, which must be the same tokens to "
                          "leave out %s",
                          (long long)at->queries, (long long)at->keys,
                          at->causal ? "later ones" : "self pairs");
    if (values || !at->row || at->batch <= 1) return BASIN_OK;
    if (at->dbeta || at->dscale || at->gbeta || at->gscale)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "attention: gradients of beta and scale through a list in a batch of "
                          "%lld; expected 1",
                          (long long)at->batch);
    if (at->scale)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "attention: scale with a list in a batch of %lld; expected 1",
                          (long long)at->batch);
    return BASIN_OK;
}

static basin_status check_sizes(const basin_eager *eager, basin_eager_operation operation,
                                const basin_eager_attention *at, basin_error *error) {
    if (operation < BASIN_EAGER_LSE || operation > BASIN_EAGER_VALUES_SECOND)
        return basin_fail(error, BASIN_BAD_VALUE, "attention: operation %d, of 0 to %d",
                          (int)operation, (int)BASIN_EAGER_VALUES_SECOND);
    if (!counts_fit(at))
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "attention: batch %lld, %lld queries, %lld keys, %lld heads of %lld, "
                          "%lld pairs: negative, or too large",
                          (long long)at->batch, (long long)at->queries, (long long)at->keys,
                          (long long)at->heads, (long long)at->head_dim, (long long)at->pairs);
    BASIN_TRY(check_dtype(eager, at, error));
    bool values = basin_eager_has_values(operation);
    if (values) BASIN_TRY(basin_eager_values_check(at, error));
    return check_pattern(at, values, error);
}

static basin_status missing(const char *name, basin_error *error) {
    return basin_fail(error, BASIN_BAD_VALUE, "attention: %s is NULL", name);
}

/* Empty operands may have any address. */
static basin_status check_present(basin_eager_operation operation, const basin_eager_attention *at,
                                  basin_error *error) {
    bool queries = at->batch * at->queries * at->heads > 0,
         keys = at->batch * at->keys * at->heads > 0;
    bool wide = at->head_dim > 0;
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
    if ((size_t)at->head_dim * basin_dtype_size(at->dtype) % 16) return BASIN_OK;
    static const basin_eager_values none = {0};
    static const char *const name[] = {"q", "k", "a",  "b",  "dq", "dk", "gq", "gk",
                                       "v", "c", "av", "ac", "o",  "dv", "gv", "gc"};
    const basin_eager_values *v = at->values ? at->values : &none;
    const void *operand[] = {at->q, at->k, at->a, at->b, at->dq, at->dk, at->gq, at->gk,
                             v->v,  v->c,  v->av, v->ac, v->o,   v->dv,  v->gv,  v->gc};
    for (int i = 0; i < 16; i++)
        if ((uintptr_t)operand[i] % 16)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "attention: the address of %s is not a multiple of 16", name[i]);
    return BASIN_OK;
}

static basin_status check_workspace(const basin_eager *eager, const basin_eager_attention *at,
                                    size_t bytes, basin_error *error) {
    if (!at->workspace && (bytes == 0 || !eager->device)) return BASIN_OK;
    size_t given = at->workspace ? at->workspace_bytes : 0;
    if (given < bytes)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "attention: the workspace has %zu bytes, expected %zu", given, bytes);
    if ((uintptr_t)at->workspace % 64)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "attention: the address of the workspace is not a multiple of 64");
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
                              "attention: %s has %lld at element %lld; expected 0 and then numbers "
                              "that do not fall, up to %lld",
                              name, (long long)start[i], (long long)i, (long long)pairs);
    return BASIN_OK;
}

static basin_status check_list(const basin_eager_attention *at, basin_error *error) {
    BASIN_TRY(check_starts(at->row, at->queries, at->pairs, "row", error));
    BASIN_TRY(check_starts(at->column, at->keys, at->pairs, "column", error));
    int64_t used = at->row[at->queries];
    if (used != at->column[at->keys])
        return basin_fail(error, BASIN_BAD_VALUE, "attention: %d pairs by query, %d by key",
                          (int)used, (int)at->column[at->keys]);
    BASIN_TRY(check_indices(at->key, used, at->keys, "key", error));
    BASIN_TRY(check_indices(at->query, used, at->queries, "query", error));
    return check_indices(at->pair, used, at->pairs, "pair", error);
}

static basin_status check_operands(const basin_eager *eager, basin_eager_operation operation,
                                   const basin_eager_attention *at, size_t bytes,
                                   basin_error *error) {
    bool values = basin_eager_has_values(operation);
    BASIN_TRY((values ? basin_eager_values_present : check_present)(operation, at, error));
    BASIN_TRY(check_aligned(at, error));
    BASIN_TRY(check_workspace(eager, at, bytes, error));
    return at->row && !eager->device ? check_list(at, error) : BASIN_OK;
}

/* ---- running ---- */

/* Lists run one batch entry after the other: kernels take lists of a single entry. */
static basin_eager_attention entry_of(const basin_eager_attention *at, int64_t entry) {
    basin_eager_attention one = *at;
    size_t real = at->dtype == BASIN_F64 ? sizeof(double) : sizeof(float);
    size_t row = (size_t)(entry * at->queries * at->heads) * real;
    size_t q =
        (size_t)(entry * at->queries * at->heads * at->head_dim) * basin_dtype_size(at->dtype);
    size_t k = (size_t)(entry * at->keys * at->heads * at->head_dim) * basin_dtype_size(at->dtype);
    one.batch = 1;
    const void **in[] = {&one.q, &one.a, &one.k, &one.b, &one.w};
    void **out[] = {&one.dq, &one.gq, &one.dk, &one.gk, &one.gw, &one.lse};
    const size_t in_step[] = {q, q, k, k, row}, out_step[] = {q, q, k, k, row, row};
    for (int i = 0; i < 5; i++)
        if (*in[i]) *in[i] = (const char *)*in[i] + in_step[i];
    for (int i = 0; i < 6; i++)
        if (*out[i]) *out[i] = (char *)*out[i] + out_step[i];
    return one;
}

static bool goes_by_entry(basin_eager_operation operation, const basin_eager_attention *at) {
    return at->row && at->batch > 1 && !basin_eager_has_values(operation);
}

static size_t call_bytes(const basin_eager *eager, const basin_call *call) {
    const basin_eager_table *device = basin_backend_eager(eager->backend);
    return device ? device->workspace(eager->backend, call)
                  : eager->backend->table->workspace(eager->backend, call);
}

/* For the kernels only; for one entry where they run entry by entry. */
static size_t kernel_bytes(const basin_eager *eager, basin_eager_operation operation,
                           const basin_eager_attention *at) {
    basin_eager_attention one = goes_by_entry(operation, at) ? entry_of(at, 0) : *at;
    job j;
    describe(&j, operation, &one);
    return (call_bytes(eager, &j.call) + 63) / 64 * 64;
}

static basin_status run_on_host(const basin_eager *eager, const job *j, basin_error *error) {
    basin_backend *backend = NULL; /* of this call alone: errors are kept in it */
    const basin_backend *like = eager->backend;
    basin_status status = basin_backend_open(
        &backend, &(basin_compute){.backend = like->table->name, .threads = like->threads}, error);
    if (status) return status;
    backend->table->run(backend, &j->call, 1, j->block);
    status = backend->table->wait(backend, error);
    basin_backend_close(backend);
    return status;
}

static basin_status run_one(const basin_eager *eager, basin_eager_operation operation,
                            const basin_eager_attention *at, basin_error *error) {
    if (operation == BASIN_EAGER_VALUES_SECOND && at->values->o && !eager->device) {
        BASIN_TRY(run_one(eager, BASIN_EAGER_VALUES, at, error));
        basin_eager_attention rest = *at;
        basin_eager_values without = *at->values;
        without.o = NULL, rest.values = &without;
        return run_one(eager, operation, &rest, error);
    }
    job j;
    describe(&j, operation, at);
    j.block[0] = at->workspace;
    j.call.workspace_bytes = call_bytes(eager, &j.call);
    const basin_eager_table *device = basin_backend_eager(eager->backend);
    if (device) return device->run(eager->backend, &j.call, j.block, at->stream, error);
    return run_on_host(eager, &j, error);
}

static basin_status run_entries(const basin_eager *eager, basin_eager_operation operation,
                                const basin_eager_attention *at, basin_error *error) {
    if (!goes_by_entry(operation, at)) return run_one(eager, operation, at, error);
    for (int64_t i = 0; i < at->batch; i++) {
        basin_eager_attention one = entry_of(at, i);
        BASIN_TRY(run_one(eager, operation, &one, error));
    }
    return BASIN_OK;
}

/* The job without operands of other operations, which may be there all the same. */
static basin_eager_attention only(basin_eager_operation operation,
                                  const basin_eager_attention *at) {
    basin_eager_attention mine = *at;
    if (basin_eager_has_values(operation)) return mine;
    mine.values = NULL;
    if (operation == BASIN_EAGER_LSE) mine.w = NULL;
    if (operation != BASIN_EAGER_FORCE) mine.dq = mine.dk = mine.dbeta = mine.dscale = NULL;
    if (operation == BASIN_EAGER_REVERSE) {
        mine.lse = NULL;
    } else {
        mine.a = mine.b = NULL;
        mine.gq = mine.gk = mine.gw = mine.gbeta = mine.gscale = NULL;
    }
    return mine;
}

static basin_status workspace_of(size_t *bytes, const basin_eager *eager,
                                 basin_eager_operation operation, const basin_eager_attention *at,
                                 basin_error *error) {
    BASIN_TRY(BASIN_SIZE_CHECK(at, "basin_eager_attention", error));
    *bytes = 0;
    BASIN_TRY(check_sizes(eager, operation, at, error));
    *bytes = kernel_bytes(eager, operation, at);
    return BASIN_OK;
}

basin_status basin_eager_workspace(size_t *bytes, const basin_eager *eager,
                                   basin_eager_operation operation, const basin_eager_attention *at,
                                   basin_error *error) {
    basin_eager_attention mine = only(operation, at);
    return workspace_of(bytes, eager, operation, &mine, error);
}

basin_status basin_eager_run(const basin_eager *eager, basin_eager_operation operation,
                             const basin_eager_attention *at, basin_error *error) {
    size_t bytes;
    basin_eager_attention mine = only(operation, at);
    void *own = NULL;
    BASIN_TRY(workspace_of(&bytes, eager, operation, &mine, error));
    BASIN_TRY(check_operands(eager, operation, &mine, bytes, error));
    if (bytes > 0 && !mine.workspace) {
        mine.workspace = own = basin_aligned_new(bytes);
        if (!own)
            return basin_fail(error, BASIN_NO_MEMORY,
                              "attention: out of memory for %zu bytes of work", bytes);
    }
    basin_status status = run_entries(eager, operation, &mine, error);
    basin_aligned_free(own);
    return status;
}

/* ---- The life of what single operations run on ---- */

basin_status basin_eager_open(basin_eager **eager, const basin_compute *compute,
                              basin_error *error) {
    *eager = NULL;
    BASIN_SCRATCH(basin_eager, made, 1, "a backend of single operations", error);
    BASIN_TRY(basin_backend_open_eager(&made->backend, compute, error));
    made->device = basin_backend_eager(made->backend) != NULL;
    *eager = made;
    made = NULL;
    return BASIN_OK;
}

void basin_eager_close(basin_eager *eager) {
    if (!eager) return;
    basin_backend_close(eager->backend);
    free(eager);
}
