/* Energy attention on the device: what its three forms share. The equations are those of
 * backend/cpu/attention/attention.h. For .cu files only.
 *
 *     dense    all pairs without multipliers and mixing: tiles of scores on tensor cores
 *     listed   a CSR list without mixing and biases: streamed rows, nothing stored for a pair
 *     mixed    the rest: scores of every pair and head in the workspace, pass by pass
 *
 * Scores are kept in units of log 2: exp(z - lse) = 2^(z' - maximum) / total, z' = z / log 2. */
#ifndef BASIN_BACKEND_CUDA_ATTENTION_ATTENTION_H
#define BASIN_BACKEND_CUDA_ATTENTION_ATTENTION_H

#include "engine/backend/cuda/device.h"

enum { BASIN_CUDA_DENSE_WIDTH = 128 }; /* the widest heads of the dense form */

enum basin_cuda_mode { BASIN_CUDA_VALUE, BASIN_CUDA_FORCE, BASIN_CUDA_REVERSE };

/* Elements from one node's heads to the next one's, H Y where an operand lies by itself and more
 * where it is some columns of a joint matrix; batch entries follow each other at nodes times that.
 * Only the dense form takes other steps than H Y. */
struct basin_cuda_steps {
    int64_t q, k, a, b, out_q, out_k;
};

/* The operands; absent ones are NULL. T is float or bfloat16, as `kind` says. */
struct basin_cuda_heads {
    basin_kind kind;
    int64_t batch, queries, keys, heads, width, pairs;
    bool exclude_self, causal, tf32; /* tf32: floats may be rounded to that for products */
    bool added;                      /* scale is a bias: added to the scores */
    const int32_t *row, *key, *column, *query, *pair; /* row NULL: all pairs */
    const void *q, *k, *a, *b;                        /* T [batch, nodes, H, Y] */
    const float *beta;                                /* [H] */
    const float *scale;                               /* [pairs, H] */
    const float *mix;                                 /* [H, H] */
    const float *w;                                   /* [batch, queries, H] */
    void *out_q, *out_k;                              /* T: dq, dk or gq, gk */
    float *lse, *gw;                                  /* [batch, queries, H] */
    float *out_beta, *out_scale, *out_mix;            /* like beta, scale, mix */
    basin_cuda_steps step;
    bool bytes, five; /* results are bytes, of numbers times the scale; five: e5m2, else e4m3 */
    float byte_scale;
};

/* What the key side needs to know of a query and head. */
struct basin_cuda_summary {
    float maximum; /* the largest score, in units of log 2 */
    float weight;  /* w / sum of 2^(z' - maximum); 0 for a query with no key */
    float mean;    /* reverse: the mean of c under P */
    float unused;
};

/* Whether the rows of a table are aligned to `bytes`; true for an absent table. */
static inline bool basin_cuda_aligned(const void *table, int64_t step, basin_kind kind,
                                      size_t bytes) {
    size_t size = kind == BASIN_NARROW ? sizeof(basin_bf16) : sizeof(float);
    return !table || ((uintptr_t)table % bytes == 0 && (size_t)step * size % bytes == 0);
}

/* Pieces of the workspace, one after the other; a NULL base only counts. */
struct basin_cuda_arena {
    char *base;
    size_t used;
};
template <typename T> static inline T *basin_cuda_take(basin_cuda_arena *a, int64_t count) {
    T *piece = a->base ? (T *)(a->base + a->used) : NULL;
    a->used += ((size_t)count * sizeof(T) + 255) / 256 * 256;
    return piece;
}

/* Each says its workspace, and queues its kernels. The dense form's workspace does not depend on
 * where operands lie, though its kernels do. */
bool basin_cuda_dense_fits(const basin_cuda *cuda, const basin_cuda_heads *at);
/* Whether results of the dense form may be bytes; wherever operands lie. */
bool basin_cuda_dense_stores_bytes(const basin_cuda *cuda, const basin_cuda_heads *at);
size_t basin_cuda_dense_workspace(const basin_cuda_heads *at, basin_cuda_mode mode);
void basin_cuda_dense(const basin_cuda_frame *frame, const basin_cuda_heads *at,
                      basin_cuda_mode mode);
bool basin_cuda_listed_fits(const basin_cuda_heads *at);
size_t basin_cuda_listed_workspace(const basin_cuda_heads *at, basin_cuda_mode mode);
void basin_cuda_listed(const basin_cuda_frame *frame, const basin_cuda_heads *at,
                       basin_cuda_mode mode);
/* The same for short lists, all heads of a node at once; workspace of the listed form. */
bool basin_cuda_joint_fits(const basin_cuda_heads *at);
void basin_cuda_joint(const basin_cuda_frame *frame, const basin_cuda_heads *at,
                      basin_cuda_mode mode);
size_t basin_cuda_mixed_workspace(const basin_cuda_heads *at, basin_cuda_mode mode);
void basin_cuda_mixed(const basin_cuda_frame *frame, const basin_cuda_heads *at,
                      basin_cuda_mode mode);

/* ---- on the device ---- */

#define BASIN_LOG2_E 1.44269504088896340736f
#define BASIN_LN_2 0.69314718055994530942f

BASIN_DEVICE float basin_exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

BASIN_DEVICE float basin_minus_infinity() { return __int_as_float(0xff800000); }

#endif
