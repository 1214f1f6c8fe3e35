/* Energy attention at once: the job is checked, written as a call of the kind that plans make, and
 * handed to the backend. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eager/eager.h"

static const basin_op op_of[] = {BASIN_OP_ATTENTION, BASIN_OP_ATTENTION_FORCE,
                                 BASIN_OP_ATTENTION_REVERSE};

/* ---- the call ---- */

/* Block 0 is the workspace; then come the inputs, then the results. */
enum { BLOCKS = 1 + BASIN_ATT_IN + BASIN_MAX_OUT };

typedef struct job {
    basin_call call;
    void *block[BLOCKS];
} job;

static void add_in(job *j, int i, const void *data, basin_kind kind, basin_shape shape) {
    int block = 1 + i;
    j->block[block] = (void *)(uintptr_t)data; /* kernels only read it */
    j->call.in[i] = (basin_operand){.block = data ? block : -1, .kind = kind, .shape = shape};
}

static void add_out(job *j, int o, void *data, basin_kind kind, basin_shape shape) {
    int block = 1 + BASIN_ATT_IN + o;
    j->block[block] = data;
    j->call.out[o] = (basin_operand){.block = data ? block : -1, .kind = kind, .shape = shape};
}

static void add_inputs(job *j, const basin_eager_attention *at) {
    basin_kind kind = at->dtype == BASIN_BF16 ? BASIN_NARROW : BASIN_REAL;
    basin_shape q = BASIN_SHAPE(at->batch, at->queries, at->heads, at->width);
    basin_shape k = BASIN_SHAPE(at->batch, at->keys, at->heads, at->width);
    basin_shape list = BASIN_SHAPE(at->pairs);
    int64_t pairs = at->row ? at->pairs : at->batch * at->queries * at->keys;
    add_in(j, BASIN_ATT_Q, at->q, kind, q);
    add_in(j, BASIN_ATT_K, at->k, kind, k);
    add_in(j, BASIN_ATT_BETA, at->beta, BASIN_REAL, BASIN_SHAPE(at->heads));
    add_in(j, BASIN_ATT_SCALE, at->scale, BASIN_REAL, BASIN_SHAPE(pairs, at->heads));
    add_in(j, BASIN_ATT_MIX, NULL, BASIN_REAL, BASIN_SCALAR);
    add_in(j, BASIN_ATT_ROW, at->row, BASIN_INDEX, BASIN_SHAPE(at->queries + 1));
    add_in(j, BASIN_ATT_KEY, at->row ? at->key : NULL, BASIN_INDEX, list);
    add_in(j, BASIN_ATT_COLUMN, at->row ? at->column : NULL, BASIN_INDEX,
           BASIN_SHAPE(at->keys + 1));
    add_in(j, BASIN_ATT_QUERY, at->row ? at->query : NULL, BASIN_INDEX, list);
    add_in(j, BASIN_ATT_PAIR, at->row ? at->pair : NULL, BASIN_INDEX, list);
    add_in(j, BASIN_ATT_W, at->w, BASIN_REAL, BASIN_SHAPE(at->batch, at->queries, at->heads));
    add_in(j, BASIN_ATT_A, at->a, kind, q);
    add_in(j, BASIN_ATT_B, at->b, kind, k);
    j->call.ins = BASIN_ATT_IN;
}

static void add_results(job *j, const basin_eager_attention *at) {
    const basin_operand *in = j->call.in;
    basin_kind kind = in[BASIN_ATT_Q].kind;
    basin_shape q = in[BASIN_ATT_Q].shape, k = in[BASIN_ATT_K].shape;
    basin_shape row = in[BASIN_ATT_W].shape, beta = in[BASIN_ATT_BETA].shape;
    basin_shape scale = in[BASIN_ATT_SCALE].shape;
    if (j->call.op == BASIN_OP_ATTENTION_REVERSE) {
        add_out(j, BASIN_ATT_GQ, at->gq, kind, q);
        add_out(j, BASIN_ATT_GK, at->gk, kind, k);
        add_out(j, BASIN_ATT_GW, at->gw, BASIN_REAL, row);
        add_out(j, BASIN_ATT_GBETA, at->gbeta, BASIN_REAL, beta);
        add_out(j, BASIN_ATT_GSCALE, at->gscale, BASIN_REAL, scale);
        add_out(j, BASIN_ATT_GMIX, NULL, BASIN_REAL, BASIN_SCALAR);
    } else {
        add_out(j, BASIN_ATT_LSE, at->lse, BASIN_REAL, row);
        add_out(j, BASIN_ATT_DQ, at->dq, kind, q);
        add_out(j, BASIN_ATT_DK, at->dk, kind, k);
        add_out(j, BASIN_ATT_DBETA, at->dbeta, BASIN_REAL, beta);
        add_out(j, BASIN_ATT_DSCALE, at->dscale, BASIN_REAL, scale);
        add_out(j, BASIN_ATT_DMIX, NULL, BASIN_REAL, BASIN_SCALAR);
    }
    j->call.outs = BASIN_ATT_OUT;
    if (j->call.op == BASIN_OP_ATTENTION) j->call.outs = 1;
}

static void describe(job *j, basin_eager_operation operation, const basin_eager_attention *at) {
    *j = (job){.call.op = op_of[operation]};
    j->call.attr.exclude_self = at->exclude_self;
    j->call.attr.causal = at->causal;
    j->call.attr.products = at->tf32 ? BASIN_PRODUCTS_TF32 : BASIN_PRODUCTS_F32;
    add_inputs(j, at);
    add_results(j, at);
}

/* ---- running ---- */

/* A list takes one entry after the other; kernels know lists of one entry alone. */
static basin_eager_attention entry_of(const basin_eager_attention *at, int64_t entry) {
    basin_eager_attention one = *at;
    size_t real = at->dtype == BASIN_F64 ? sizeof(double) : sizeof(float);
    size_t row = (size_t)(entry * at->queries * at->heads) * real;
    size_t q = (size_t)(entry * at->queries * at->heads * at->width) * basin_dtype_size(at->dtype);
    size_t k = (size_t)(entry * at->keys * at->heads * at->width) * basin_dtype_size(at->dtype);
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

static bool goes_by_entry(const basin_eager_attention *at) { return at->row && at->batch > 1; }

/* Whether bfloat16 is computed in float. */
static bool widens(const basin_eager *eager, const basin_eager_attention *at) {
    return at->dtype == BASIN_BF16 && !eager->device;
}

static size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

static size_t call_bytes(const basin_eager *eager, const basin_call *call) {
    const basin_eager_table *device = basin_backend_eager(eager->backend);
    return device ? device->workspace(eager->backend, call)
                  : eager->backend->table->workspace(eager->backend, call);
}

/* Of the kernels alone, one entry where they go by entry. */
static size_t kernel_bytes(const basin_eager *eager, basin_eager_operation operation,
                           const basin_eager_attention *at) {
    basin_eager_attention one = goes_by_entry(at) ? entry_of(at, 0) : *at;
    if (widens(eager, at)) one.dtype = BASIN_F32;
    job j;
    describe(&j, operation, &one);
    return aligned(call_bytes(eager, &j.call));
}

static basin_status run_on_host(const basin_eager *eager, const job *j, basin_error *error) {
    basin_backend *backend = NULL; /* of this call alone: errors are kept in it */
    const basin_backend *like = eager->backend;
    basin_status status = basin_backend_open(
        &backend, &(basin_compute){.backend = basin_backend_name(like), .threads = like->threads},
        error);
    if (status) return status;
    backend->table->run(backend, &j->call, 1, j->block);
    status = backend->table->wait(backend, error);
    basin_backend_close(backend);
    return status;
}

static basin_status run_one(const basin_eager *eager, basin_eager_operation operation,
                            const basin_eager_attention *at, basin_error *error) {
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
    basin_status status = BASIN_OK;
    if (!goes_by_entry(at)) return run_one(eager, operation, at, error);
    for (int64_t i = 0; i < at->batch && !status; i++) {
        basin_eager_attention one = entry_of(at, i);
        status = run_one(eager, operation, &one, error);
    }
    return status;
}

static basin_status run_wide(const basin_eager *eager, basin_eager_operation operation,
                             const basin_eager_attention *at, basin_error *error) {
    char *room = (char *)at->workspace + kernel_bytes(eager, operation, at);
    basin_eager_attention wide = basin_eager_widen(at, room);
    basin_status status = run_entries(eager, operation, &wide, error);
    if (!status) basin_eager_narrow(at, &wide);
    return status;
}

/* The job without operands of other operations, which may be there all the same. */
static basin_eager_attention only(basin_eager_operation operation,
                                  const basin_eager_attention *at) {
    basin_eager_attention mine = *at;
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
    *bytes = 0;
    basin_status status = basin_eager_check_sizes(eager, operation, at, error);
    if (status) return status;
    *bytes = kernel_bytes(eager, operation, at);
    if (widens(eager, at)) *bytes += basin_eager_wide_bytes(at);
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
    basin_status status = workspace_of(&bytes, eager, operation, &mine, error);
    if (!status) status = basin_eager_check_operands(eager, operation, &mine, bytes, error);
    if (status) return status;
    if (bytes > 0 && !mine.workspace) {
        mine.workspace = own = basin_aligned_new(bytes);
        if (!own)
            return basin_fail(error, BASIN_NO_MEMORY,
                              "attention: out of memory for %zu bytes of work", bytes);
    }
    status = widens(eager, &mine) ? run_wide(eager, operation, &mine, error)
                                  : run_entries(eager, operation, &mine, error);
    basin_aligned_free(own);
    return status;
}
