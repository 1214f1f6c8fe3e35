/* A CSR list of pairs seen from one of its two sides, and how its work is cut.
 *
 * Pairs are cut into chunks of equal size, whatever the nodes' degrees; the part of a node that
 * lies in one chunk is a fragment. A fragment that begins its node owns the node's slot; one that
 * continues it owns the chunk's extra slot, nodes + chunk, to be merged in chunk order. So a hub is
 * shared by many threads, and the result does not depend on how many.
 *
 * A fragment is also cut into runs whose other ends lie in one block of nodes, a block being what
 * fits the second-level cache: all fragments visit block 0, then block 1, ... Runs follow from
 * ascending order; without it they are longer in the last block, and nothing else changes. */
#ifndef BASIN_BACKEND_CPU_ATTENTION_PAIRS_H
#define BASIN_BACKEND_CPU_ATTENTION_PAIRS_H

#include <stddef.h>
#include <stdint.h>

enum { PAIRS_MAX_CHUNKS = 128 };

typedef struct basin_cpu_pairs {
    int64_t nodes, others, count;
    const int32_t *start;  /* [nodes + 1] */
    const int32_t *other;  /* [count] node at the other end */
    int64_t piece, chunks; /* pairs in a chunk, number of chunks */
    int64_t block, blocks; /* other nodes in a block, number of blocks */
    int32_t *cut;          /* [nodes + chunks, blocks + 1] ends of runs; unused with one block */
} basin_cpu_pairs;

typedef struct basin_cpu_fragment {
    int64_t node, slot;
    int64_t begin, end; /* pairs; none left when equal */
} basin_cpu_fragment;

/* `row_bytes`: what a pair reads of its other node. `cut` is set by the caller afterwards. */
basin_cpu_pairs basin_cpu_pairs_cut(const int32_t *start, const int32_t *other, int64_t nodes,
                                    int64_t others, int64_t row_bytes);

/* The most elements `cut` can have for so many pairs. */
size_t basin_cpu_pairs_cut_size(int64_t pairs, int64_t nodes, int64_t others, int64_t row_bytes);

/* Fills `cut`. */
void basin_cpu_pairs_find_runs(const basin_cpu_pairs *pairs, int threads);

basin_cpu_fragment basin_cpu_fragment_first(const basin_cpu_pairs *pairs, int64_t chunk);
void basin_cpu_fragment_next(basin_cpu_fragment *fragment, const basin_cpu_pairs *pairs,
                             int64_t chunk);

/* The run of a fragment in a block: itself, with begin and end narrowed. */
static inline basin_cpu_fragment
basin_cpu_fragment_run(basin_cpu_fragment fragment, const basin_cpu_pairs *pairs, int64_t block) {
    if (pairs->blocks > 1) {
        const int32_t *cut = pairs->cut + fragment.slot * (pairs->blocks + 1) + block;
        fragment.begin = cut[0];
        fragment.end = cut[1];
    }
    return fragment;
}

/* The node whose pairs continue into this chunk from the one before, or -1. */
int64_t basin_cpu_pairs_continued(const basin_cpu_pairs *pairs, int64_t chunk);

#endif
