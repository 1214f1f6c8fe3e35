/* Energy attention over all pairs whose tokens are bfloat16, on the processor's instructions for
 * these: scores and all sums over pairs are products of bfloat16 with float sums, what lies between
 * is float. Without scale and mix. The notation is attention.h's. */
#ifndef BASIN_BACKEND_CPU_ATTENTION_NARROW_H
#define BASIN_BACKEND_CPU_ATTENTION_NARROW_H

#include "backend/cpu/attention/attention.h"
#include "backend/cpu/attention/edges.h"

typedef struct basin_attention_narrow {
    const basin_attention *at;     /* the rest: pattern, beta, w, lse, gw, sums of beta */
    const uint16_t *q, *k, *a, *b; /* as there, bfloat16 */
    uint16_t *by_query, *by_key;   /* dq and dk, or gq and gk; NULL where nobody asks */
} basin_attention_narrow;

/* Whether the operands are such that this computes them. */
bool basin_attention_narrow_fits(const basin_attention *at, basin_attention_mode mode);
size_t basin_attention_narrow_workspace(const basin_attention_narrow *n, basin_attention_mode mode,
                                        int threads);
void basin_attention_narrow_run(const basin_attention_narrow *n, basin_attention_mode mode,
                                int threads, void *workspace);

#endif
