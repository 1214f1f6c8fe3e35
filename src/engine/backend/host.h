/* What backends that compute in the host's memory share: frames, faults, sizes of operations. */
#ifndef BASIN_BACKEND_HOST_H
#define BASIN_BACKEND_HOST_H

#include "engine/backend/kernel.h"
#include "engine/backend/shape.h"

/* ---- frames ---- */

struct basin_simd;

/* A call with its operands resolved to addresses: what each operation is a function of. */
typedef struct basin_frame {
    const basin_backend *backend;
    const basin_call *call;
    const void *in[BASIN_MAX_IN];           /* NULL where the operand is absent */
    void *out[BASIN_MAX_OUT];               /* NULL where nobody asks for the result */
    void *byte_copy[BASIN_MAX_BYTE_COPIES]; /* the same */
    void *workspace;                        /* 64-byte aligned, call->workspace_bytes of it */
    basin_error *error;                     /* the first fault of the stream; reported by wait */
    int threads;                            /* of cpu, */
    const struct basin_simd *simd;          /* and its inner loops */
} basin_frame;

/* A backend is a table and the first fault of its stream, kept until wait() asks. */
typedef struct basin_host_backend {
    basin_backend base;
    basin_error error; /* status BASIN_OK while nothing failed */
} basin_host_backend;

basin_status basin_host_open(basin_backend **backend, const basin_backend_table *table, int threads,
                             basin_error *error);
/* Part number `part` of a call that is in parts, or 0. */
basin_frame basin_host_frame(basin_backend *backend, const basin_call *call, void *const *block,
                             size_t part);

/* Records what went wrong in an operation, once: the stream goes on. Any thread may call it. */
void basin_host_fail(const basin_frame *frame, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Notes that `found`, element `at` of an index operand of `name`, is outside [min, limit). Such an
 * index counts as absent. */
void basin_host_bad_index(const basin_frame *frame, const char *name, int64_t at, int64_t found,
                          int64_t min, int64_t limit);
/* Records an error for operations that the backend does not have. */
void basin_host_none(const basin_frame *frame);

/* For tables: allocation, copies, wait and close. */
void *basin_host_alloc(basin_backend *backend, size_t bytes);
void basin_host_free(basin_backend *backend, void *memory);
void basin_host_copy_in(basin_backend *backend, void *device, const void *host, size_t bytes);
void basin_host_copy_out(basin_backend *backend, void *host, const void *device, size_t bytes);
void basin_host_fill_zero(basin_backend *backend, void *device, size_t bytes);
basin_status basin_host_wait(basin_backend *backend, basin_error *error);
void basin_host_close(basin_backend *backend);
#define BASIN_HOST_MEMORY                                                                          \
    .alloc = basin_host_alloc, .free = basin_host_free, .copy_in = basin_host_copy_in,             \
    .copy_out = basin_host_copy_out, .fill_zero = basin_host_fill_zero, .wait = basin_host_wait,   \
    .close = basin_host_close

/* ---- sizes ---- */

/* The operand of a reduction is [outer, middle, inner]; the middle vanishes. */
typedef struct basin_span {
    int64_t outer, middle, inner;
} basin_span;
basin_span basin_span_of(const basin_call *call);

/* A factor of a product. One with a single matrix is used for every batch entry. */
typedef struct basin_factor {
    int64_t batch, rows, columns; /* as used in the product, after transposition */
    int64_t step_batch, step_row, step_column;
} basin_factor;
basin_factor basin_factor_of(const basin_shape *shape, bool transposed);

/* The square matrices of the first operand, [count, n, n]. */
typedef struct basin_matrices {
    int64_t count, n;
} basin_matrices;
static inline basin_matrices basin_matrices_of(const basin_call *call) {
    const basin_shape *s = &call->in[0].shape;
    return (basin_matrices){basin_shape_product(s, 0, s->rank - 2), basin_shape_last(s, 1)};
}

/* Scores of causal pairs, [rows, keys, heads]; the rows are all queries of all sequences. */
typedef struct basin_causal {
    int64_t rows, queries, keys, heads;
    double factor;
    int64_t offset; /* query n sees keys 0 .. n + offset - 1 */
} basin_causal;
basin_causal basin_causal_of(const basin_call *call);
/* The keys that the query of a row sees. */
static inline int64_t basin_causal_seen(const basin_causal *c, int64_t row) {
    int64_t n = row % c->queries + c->offset;
    return n < c->keys ? n : c->keys;
}

/* The seed of an operand of two words, low and high. */
static inline uint64_t basin_seed_of(const int32_t *seed) {
    return (uint64_t)(uint32_t)seed[0] | (uint64_t)(uint32_t)seed[1] << 32;
}

#endif
