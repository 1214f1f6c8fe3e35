/* Energy attention along the lists of a graph that lies in the host's memory, for graphs too large
 * for a plan: rows of neighbours are read where they are, once for all heads; nothing is packed,
 * sorted or kept of a pair.
 *
 * With M = Wk' Wq of a head the score of key B and query C is g_B . M g_C, so that both roles of a
 * node read the same rows g:
 *
 *     by query   own = M g_C:    lse[C] = log sum over B of exp(beta own . g_B + bias[C, B]),
 *                                sum[C] = sum over B of p[C, B] g_B
 *     by key     own = M' g_B:   sum[B] = sum over C of p[C, B] g_C
 *
 * with p[C, B] = exp(beta g_B . M g_C + bias[C, B] - lse[C]). */
#ifndef BASIN_WALK_H
#define BASIN_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "basin/export.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BASIN_WALK_ALIGN = 16 }; /* floats */

typedef struct basin_walk {
    const float *rows; /* [N, stride] g, zero beyond its width */
    int64_t stride;    /* a multiple of BASIN_WALK_ALIGN */
    int64_t heads;
    const float *beta;    /* [H] */
    const int64_t *begin; /* [N + 1] */
    const int32_t *other; /* neighbours of node i: begin[i] to begin[i + 1] */
    bool drop_self, add_self;
    int threads;
    const float *bias;    /* [edges, H], or NULL: 0; 0 of a node that is added as its own */
    const int64_t *entry; /* which edge each of `other` is; NULL: itself */
} basin_walk;

/* Nodes from `first` on; `own`, `sum` begin there, lse is of all. Without neighbours: 0. */
BASIN_API void basin_walk_by_query(float *sum /* [count, H, stride] */, float *lse /* [N, H] */,
                                   const float *own /* [count, H, stride] */,
                                   const basin_walk *walk, int64_t first, int64_t count);
BASIN_API void basin_walk_by_key(float *sum /* [count, H, stride] */, const float *own,
                                 const float *lse, const basin_walk *walk, int64_t first,
                                 int64_t count);

#ifdef __cplusplus
}
#endif
#endif
