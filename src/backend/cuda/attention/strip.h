/* Energy attention over all pairs of a picture's tokens: the launch. See
 * attention/strip_sm90a.cu. */
#ifndef BASIN_BACKEND_CUDA_ATTENTION_STRIP_H
#define BASIN_BACKEND_CUDA_ATTENTION_STRIP_H

#include "backend/cuda/attention/attention.h"

/* Node n, head h, entry b of q is at (b * queries + n) * step.q + h * width, and so on. */
struct basin_strip_launch {
    const void *q, *k, *a, *b; /* a, b: reverse, or NULL */
    void *out_q, *out_k;       /* NULL: not wanted */
    const float *beta, *w;     /* w: not of a value */
    float *lse, *gw, *slope;   /* [batch, queries, H]; slope: shares of dbeta or gbeta; or NULL */
    int queries, keys, heads, width;
    bool exclude_self;
    bool bytes, five; /* results are bytes, five: e5m2, else e4m3, of numbers times the scale */
    float scale;
    basin_cuda_steps step;
};

/* Whether there is a kernel for these sizes on this device. Rows that are read must begin at
 * multiples of 16 bytes, those of results at multiples of 8. */
bool basin_strip_fits(const basin_cuda *cuda, const basin_cuda_heads *at);
cudaError_t basin_strip_start(const basin_strip_launch *p, basin_kind kind, basin_cuda_mode mode,
                              int64_t blocks, cudaStream_t stream);

#endif
