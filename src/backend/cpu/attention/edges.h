/* Energy attention over a CSR list: what its two forms share. Internal to attention*.c. */
#ifndef BASIN_BACKEND_CPU_ATTENTION_EDGES_H
#define BASIN_BACKEND_CPU_ATTENTION_EDGES_H

#include "backend/cpu/attention/attention.h"
#include "backend/cpu/attention/kernels.h"
#include "backend/cpu/attention/pairs.h"

typedef enum basin_attention_mode {
    BASIN_ATTENTION_VALUE,
    BASIN_ATTENTION_FORCE,
    BASIN_ATTENTION_REVERSE,
} basin_attention_mode;

/* How many of so many threads are worth waking for all pairs of the pattern. */
int basin_attention_threads(const basin_attention *at, int threads);

/* A workspace being laid out; with a NULL base it is only counted. */
typedef struct basin_arena {
    char *base;
    size_t used; /* bytes */
} basin_arena;

static inline void *basin_arena_take(basin_arena *arena, int64_t count, size_t size) {
    void *block = arena->base ? arena->base + arena->used : NULL;
    arena->used += ((size_t)count * size + 63) / 64 * 64;
    return block;
}

static inline float *basin_arena_floats(basin_arena *arena, int64_t count) {
    return basin_arena_take(arena, count, sizeof(float));
}

/* A run's operands, packed. Slots are those of attention/pairs.h. */
typedef struct basin_cpu_edges {
    const basin_attention *at;
    const basin_attention_kernels *kernels;
    basin_attention_mode mode;
    int threads;
    int64_t heads, width;
    int64_t padded; /* width rounded up to ATTENTION_ALIGN */
    int64_t parts;  /* 1, or 2 in reverse where a row is (Q | A) or (K | B) */
    int64_t plane;  /* capacity in pairs: the distance between heads in what is kept of a pair */
    basin_cpu_pairs rows, columns;
    float *query;               /* [H, queries, parts * padded] */
    float *key;                 /* [H, keys, parts * padded] */
    float *key_sum;             /* [H, slots of columns, padded] where dk or gk is wanted */
    float *out_query, *out_key; /* dq and dk, or gq and gk */
    float *out_beta;            /* dbeta or gbeta */
} basin_cpu_edges;

/* Everything but what points into the workspace. */
basin_cpu_edges basin_cpu_edges_new(const basin_attention *at, basin_attention_mode mode,
                                    int threads);

/* Packed rows, sums over columns and the cuts of both sides. */
void basin_cpu_edges_lay_out(basin_cpu_edges *e, basin_arena *arena);

/* Cuts the pairs, which reads row and column. */
void basin_cpu_edges_cut(basin_cpu_edges *e);

/* Preparation is cut into so many slices: slices first .. last - 1 of packing and of filling x. */
enum { BASIN_CPU_EDGES_SLICES = 64 };
static inline int64_t basin_cpu_edges_slice(int64_t slice, int64_t count) {
    return slice * count / BASIN_CPU_EDGES_SLICES;
}
void basin_cpu_edges_pack(const basin_cpu_edges *e, int64_t first, int64_t last);
void basin_cpu_edges_fill(float *x, int64_t count, float value, int64_t first, int64_t last);

/* What else comes before the first pass. */
void basin_cpu_edges_find_runs(const basin_cpu_edges *e);

/* Does `chunk` for every block, head and chunk, so that what a block of the other side holds for
 * one head is read while it is in cache. */
typedef void (*basin_cpu_edges_chunk)(const void *context, int64_t head, int64_t block,
                                      int64_t chunk);
void basin_cpu_edges_each(const void *context, basin_cpu_edges_chunk chunk,
                          const basin_cpu_edges *e, const basin_cpu_pairs *pairs);

/* out[node, h] = sums[h, node], the extra slots folded in. */
void basin_cpu_edges_write(float *out, float *sums, const basin_cpu_edges *e,
                           const basin_cpu_pairs *pairs);

/* The three forms. Short rows without mix, in force and reverse. */
bool basin_attention_is_short(const basin_attention *at, basin_attention_mode mode);
size_t basin_attention_short_workspace(const basin_attention *at, basin_attention_mode mode);
void basin_attention_short_run(const basin_attention *at, basin_attention_mode mode, int threads,
                               void *workspace);
/* Any scale and mix; neither, in fewer passes. */
size_t basin_attention_mixed_workspace(const basin_attention *at, basin_attention_mode mode,
                                       int threads);
void basin_attention_mixed(const basin_attention *at, basin_attention_mode mode, int threads,
                           void *workspace);
size_t basin_attention_fused_workspace(const basin_attention *at, basin_attention_mode mode);
void basin_attention_fused(const basin_attention *at, basin_attention_mode mode, int threads,
                           void *workspace);

size_t basin_attention_dense_workspace(const basin_attention *at, basin_attention_mode mode,
                                       int threads);
void basin_attention_dense(const basin_attention *at, basin_attention_mode mode, int threads,
                           void *workspace);

#endif
