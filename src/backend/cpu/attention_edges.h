/* Energy attention over a CSR list: what its passes share. Internal to attention*.c. */
#ifndef BASIN_BACKEND_CPU_ATTENTION_EDGES_H
#define BASIN_BACKEND_CPU_ATTENTION_EDGES_H

#include "backend/cpu/attention.h"
#include "backend/cpu/attention_kernels.h"
#include "backend/cpu/attention_pairs.h"

typedef enum basin_attention_mode {
    BASIN_ATTENTION_VALUE,
    BASIN_ATTENTION_FORCE,
    BASIN_ATTENTION_REVERSE,
} basin_attention_mode;

/* A run's operands and its workspace. Slots are those of attention_pairs.h. */
typedef struct basin_edges {
    const basin_attention *at;
    const basin_attention_kernels *kernels;
    basin_attention_mode mode;
    int64_t heads, width;
    int64_t padded; /* width rounded up to ATTENTION_ALIGN */
    int64_t parts;  /* 1, or 2 in reverse where a row is (Q | A) or (K | B) */
    int64_t plane;  /* capacity in pairs: the distance between heads in r and c */
    basin_pairs rows, columns;
    float *query;               /* [H, queries, parts * padded] */
    float *key;                 /* [H, keys, parts * padded] */
    float *r, *c;               /* [H, plane] */
    float *most, *total, *gain; /* [slots of rows, H] */
    float *query_sum;           /* [H, slots of rows, padded] */
    float *key_sum;             /* [H, slots of columns, padded] */
    float *partial;             /* [chunks, H + H * H] of dbeta and dmix */
    float *scratch;             /* [threads, scratch_size] */
    int64_t scratch_size;
} basin_edges;

size_t basin_attention_edges_workspace(const basin_attention *at, basin_attention_mode mode,
                                       int threads);
void basin_attention_edges(const basin_attention *at, basin_attention_mode mode, int threads,
                           void *workspace);

size_t basin_attention_dense_workspace(const basin_attention *at, basin_attention_mode mode,
                                       int threads);
void basin_attention_dense(const basin_attention *at, basin_attention_mode mode, int threads,
                           void *workspace);

#endif
