/* Attention computed directly on the caller's memory and stream, as an energy or with values: no
 * graph, no plan, no copies. For frameworks that bring their own tensors and derivatives, such as
 * PyTorch and JAX.
 *
 *     basin_eager *eager = NULL;
 *     basin_eager_open(&eager, NULL, &error);
 *     basin_eager_attention at = {.dtype = BASIN_F32, .batch = 8, .queries = 196, .keys = 196,
 *                                 .heads = 12, .head_dim = 64, .q = q, .k = k, .beta = beta,
 *                                 .lse = lse};
 *     basin_eager_run(eager, BASIN_EAGER_LSE, &at, &error);
 *     basin_eager_close(eager);
 *
 * Each of the three operations is the reverse of the one before; sums run over the pairs (query,
 * key) that count:
 *
 *     LSE      z = beta q . k scale,  lse = log sum over keys of exp z; 0 where a query has no key
 *     FORCE    dq, dk, dbeta, dscale: the gradient of sum(w lse); and lse
 *     REVERSE  gq, gk, gw, gbeta, gscale: the gradient of sum(a dq) + sum(b dk)
 *
 * The energy of the paper's equation 3 is -sum(lse / beta).
 *
 * Softmax attention with values, p = softmax(factor q . k + bias), has three as well:
 *
 *     VALUES          o = sum over keys of p v; 0 where a query has no key
 *     VALUES_REVERSE  dq, dk, dv, dbias: the gradient of sum(c o)
 *     VALUES_SECOND   gq, gk, gv, gbias, gc: how these, and o, change along tangents a of q, b of
 *                     k, av of v, abias of the bias and ac of c. So gc on its own, without c, is
 *                     the forward derivative of o; with the cotangents of dq, dk, dv and dbias as
 *                     tangents it is the reverse of the reverse. o is also written where it is not
 *                     NULL; on cuda this adds almost nothing to the cost of gc. */
#ifndef BASIN_EAGER_H
#define BASIN_EAGER_H

#include "basin/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What single operations run on; on cuda, the device that is the calling thread's. It does not
 * change once it is open, so threads may share it. Of `compute`, backend and threads hold. */
typedef struct basin_eager basin_eager;
BASIN_API basin_status basin_eager_open(basin_eager **eager, const basin_compute *compute,
                                        basin_error *error);
BASIN_API void basin_eager_close(basin_eager *eager);

typedef enum basin_eager_operation {
    BASIN_EAGER_LSE,
    BASIN_EAGER_FORCE,
    BASIN_EAGER_REVERSE,
    BASIN_EAGER_VALUES,
    BASIN_EAGER_VALUES_REVERSE,
    BASIN_EAGER_VALUES_SECOND,
} basin_eager_operation;

/* Operands lie in the backend's memory, row-major and dense. T is `dtype`: F64 on ref, F32 or BF16
 * on cpu (computed in float) and cuda; where Y of them are a multiple of 16 bytes, so are their
 * addresses. R is double on ref and float elsewhere. Results that are NULL are not computed.
 *
 * Heads may also be entries of the batch: [batch, H, N, Y] of one beta is [batch H, N, 1, Y]. */

/* Operands and results of the operations with values, beside those of basin_eager_attention. */
typedef struct basin_eager_values {
    size_t size;                            /* sizeof this struct; 0: as in version 1.0 */
    bool heads_first;                       /* tokens are [batch, H, N, Y] */
    int64_t key_heads, value_dim;           /* key_heads divides `heads` */
    double factor;                          /* of the scores */
    bool bias_repeats[3], abias_repeats[3]; /* along batch, heads, queries: broadcast */
    const void *v;                          /* T [batch, keys, key_heads, value_dim] */
    const void *bias;      /* R [batch, H, queries, keys], a list's [batch, pairs, H]; NULL: 0 */
    const void *c;         /* T [batch, queries, H, value_dim], cotangent of o */
    const void *av;        /* T like v; these and a, b: tangents, NULL: 0 */
    const void *abias;     /* R like bias */
    const void *ac;        /* T like c */
    void *o, *dv;          /* T like c, v; values and second, reverse */
    void *dbias;           /* R like bias without repeating */
    void *gv, *gbias, *gc; /* like v, dbias, c; second */
} basin_eager_values;

typedef struct basin_eager_attention {
    size_t size; /* sizeof this struct; 0: as in version 1.0 */
    basin_dtype dtype;
    int64_t batch, queries, keys, heads, head_dim;
    bool exclude_self, causal; /* all pairs but query == key, but key > query */
    bool tf32;                 /* cuda: floats may be rounded to 10 bits for products */
    /* A list of pairs, the same for all entries of the batch: basin/pairs.h makes it. Without it
     * (row NULL) all pairs count. */
    int64_t pairs;
    const int32_t *row;    /* [queries + 1] */
    const int32_t *key;    /* [pairs] */
    const int32_t *column; /* [keys + 1] */
    const int32_t *query;  /* [pairs] */
    const int32_t *pair;   /* [pairs] */
    const void *q;         /* T [batch, queries, H, Y] */
    const void *k;         /* T [batch, keys, H, Y], with values [batch, keys, key_heads, Y] */
    const void *beta;      /* R [H]; this, scale, w, and their gradients: not with values */
    const void *scale;     /* R [batch, queries, keys, H], a list's [pairs, H]; NULL: 1 */
    const void *w;         /* R [batch, queries, H]; force, reverse */
    const void *a;         /* T like q, cotangent of dq, or tangent of q; NULL: 0 */
    const void *b;         /* T like k, cotangent of dk, or tangent of k; NULL: 0 */
    void *lse;             /* R [batch, queries, H]; lse, force */
    void *dq, *dk;         /* T; force, values reverse */
    void *dbeta, *dscale;  /* R; force */
    void *gq, *gk;         /* T; reverse, values second */
    void *gw;              /* R like w; reverse */
    void *gbeta, *gscale;  /* R; reverse */
    const basin_eager_values *values; /* of the operations with values; NULL for others */
    void *workspace; /* basin_eager_workspace bytes, at a multiple of 64; NULL: taken for the call,
                        not on cuda */
    size_t workspace_bytes;
    void *stream; /* cuda: a cudaStream_t, on which all is queued; NULL is CUDA's default one */
} basin_eager_attention;

/* Bytes of scratch memory that the operation takes; reads sizes, and which pointers are NULL. */
BASIN_API basin_status basin_eager_workspace(size_t *bytes, const basin_eager *eager,
                                             basin_eager_operation operation,
                                             const basin_eager_attention *at, basin_error *error);
/* On cuda it is queued, and allocates and waits for nothing; indices of a list are not checked
 * there. A list takes one entry of the batch after the other; with more than one it gives neither
 * gradients of beta nor of scale. */
BASIN_API basin_status basin_eager_run(const basin_eager *eager, basin_eager_operation operation,
                                       const basin_eager_attention *at, basin_error *error);

/* ---- plans on the caller's memory ---- */

/* A run of a plan whose inputs and outputs are the caller's: dense, of the backend's type and in
 * its memory. Inputs of indices are not among them. */
typedef struct basin_eager_plan {
    size_t size; /* sizeof this struct; 0: as in version 1.0 */
    basin_plan *plan;
    const basin_expr *input, *output; /* [inputs], [outputs] */
    int inputs, outputs;
    const void *const *from; /* [inputs] */
    void *const *to;         /* [outputs] */
    void *stream; /* cuda: the cudaStream_t that the work is ordered on, after what was queued
                     before and before what is queued later; NULL: CUDA's default stream */
} basin_eager_plan;

/* On cuda the calling thread's device is the backend's. */
BASIN_API basin_status basin_eager_run_plan(const basin_eager_plan *run, basin_error *error);

/* ---- custom calls of XLA ---- */

/* Handlers for jax.ffi, which basin.jax registers: "attention_host", "attention_cuda" or "plan";
 * NULL for any other name. `call` is an XLA_FFI_CallFrame, the result an XLA_FFI_Error or NULL;
 * src/engine/eager/xla.c says what they take. */
typedef void *basin_xla_handler(void *call);
BASIN_API basin_xla_handler *basin_xla_handler_named(const char *name);

/* How the handler "plan" finds what a call names, in the whole process: XLA passes handlers no
 * context, and its own table of handlers is also one per process. The function is asked once for a
 * name, from any thread, one at a time, and again after each run of a plan that searches fixed
 * points, so that a caller can read their convergence. What it returns (NULL: unknown; from, to and
 * stream are not read) and the plan's backend belong to these calls from then on, as long as the
 * process lives. */
typedef const basin_eager_plan *basin_xla_find(const char *name);
BASIN_API void basin_xla_set_find(basin_xla_find *find);

#ifdef __cplusplus
}
#endif
#endif
