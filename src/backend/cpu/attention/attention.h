/* Fused energy attention on the CPU in float32: value, force, reverse of the force.
 *
 * Per batch entry, with q a query, k a key, h a head; sums run over the allowed pairs only:
 *
 *     r[q,k,h] = Q[q,h] . K[k,h]             s = beta[h] r
 *     y[q,k,h'] = sum_h s[q,k,h] mix[h,h']    (y = s without mix)
 *     z = y scale[pair,h']                    (z = y without scale; z = y + bias where it is added)
 *
 *     value    lse[q,h] = log sum_k exp z[q,k,h], and 0 for a query with no key
 *
 *     force    the gradient of sum w lse, P = exp(z - lse):
 *         u = w P scale                        t[q,k,h] = sum_h' mix[h,h'] u[q,k,h']
 *         dQ[q,h] = beta[h] sum_k t K[k,h]     dK[k,h] = beta[h] sum_q t Q[q,h]
 *         dbeta[h] = sum t r                   dscale = w P y     dmix[h,h'] = sum s[h] u[h']
 *
 *     reverse  the gradient of F = sum A . dQ + sum B . dK, lse differentiated through:
 *         c[q,k,h] = A[q,h] . K[k,h] + Q[q,h] . B[k,h]
 *         v[q,k,h'] = sum_h mix[h,h'] beta[h] c[q,k,h]      gw[q,h'] = sum_k P scale v
 *         gz = w P (scale v - gw[q])           gs[q,k,h] = sum_h' mix[h,h'] scale gz
 *         gQ[q,h] = beta[h] sum_k (t B[k,h] + gs K[k,h])
 *         gK[k,h] = beta[h] sum_q (t A[q,h] + gs Q[q,h])
 *         gbeta[h] = sum t c + gs r            gscale = w P v + gz y
 *         gmix[h,h'] = sum u[h'] beta[h] c[h] + s[h] scale gz[h']
 *
 * A bias leaves the factors scale out of all this: dbias = w P, gbias = gz.
 *
 * Results are the same bit for bit for any number of threads. */
#ifndef BASIN_BACKEND_CPU_ATTENTION_ATTENTION_H
#define BASIN_BACKEND_CPU_ATTENTION_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct basin_attention_pattern {
    int64_t batch, queries, keys, heads, width;
    int64_t parts;         /* of how many such batches this is one; 0: it is all */
    bool exclude_self;     /* all pairs: q == k is left out (queries == keys then) */
    bool causal;           /* all pairs: k > q is left out (queries == keys then) */
    int64_t pairs;         /* CSR: what key, query, pair and scale have room for, >= row[queries] */
    const int32_t *row;    /* [queries + 1]; NULL for all pairs. CSR has batch 1 */
    const int32_t *key;    /* [pairs] of each pair; ascending inside a row is faster */
    const int32_t *column; /* [keys + 1] the same pairs by key, for dk and gk: */
    const int32_t *query;  /* [pairs] the query of the j-th pair in that order */
    const int32_t *pair;   /* [pairs] and its number in CSR order */
} basin_attention_pattern;

/* Operands. Optional inputs and unwanted outputs are NULL; an unwanted output costs no time. */
typedef struct basin_attention {
    basin_attention_pattern pattern;
    const float *q;     /* [batch, queries, H, Y] */
    const float *k;     /* [batch, keys, H, Y] */
    const float *beta;  /* [H] */
    const float *scale; /* [pairs, H], or all pairs [batch, queries, keys, H]; optional */
    bool added;         /* scale is a bias: added to the scores */
    const float *mix;   /* [H, H]; optional */
    const float *w;     /* [batch, queries, H] cotangent of lse; force and reverse */
    const float *a;     /* like q, cotangent of dq; reverse, NULL for zero */
    const float *b;     /* like k, cotangent of dk; reverse, NULL for zero */
    float *lse;         /* [batch, queries, H]; value and force */
    float *dq, *dk, *dbeta, *dscale, *dmix;
    float *gq, *gk, *gw, *gbeta, *gscale, *gmix;
} basin_attention;

/* Bytes of workspace (64-byte aligned) for `threads` threads: linear in tokens and in pairs x
 * heads. */
size_t basin_attention_value_workspace(const basin_attention *at, int threads);
size_t basin_attention_force_workspace(const basin_attention *at, int threads);
size_t basin_attention_force_reverse_workspace(const basin_attention *at, int threads);

void basin_attention_value(const basin_attention *at, int threads, void *workspace);
void basin_attention_force(const basin_attention *at, int threads, void *workspace);
void basin_attention_force_reverse(const basin_attention *at, int threads, void *workspace);

#endif
