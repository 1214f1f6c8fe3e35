/* Walking a list of pairs from one of its sides, in chunks of equal length whatever the degrees; a
 * warp walks the nodes of a chunk (of one head). A node's part in a chunk is a fragment; one that
 * continues an earlier chunk's node leaves its sums in the chunk's slot 0, one that a later chunk
 * continues in slot 1, and a last kernel adds them in order: the result does not depend on warps.
 *
 * Inside a warp, groups of G lanes take the pairs of a fragment in turn; a lane holds E elements of
 * a row, in vectors of V: element (v * G + lane % G) * V + i. */
#ifndef BASIN_BACKEND_CUDA_ATTENTION_WALK_H
#define BASIN_BACKEND_CUDA_ATTENTION_WALK_H

#include <type_traits>

#include "engine/backend/cuda/attention/attention.h"

enum { BASIN_WALK_WARPS = 4 };
static const int64_t BASIN_WALK_CHUNKS = 8192, BASIN_WALK_MIN = 16, BASIN_WALK_PIECE = 64,
                     BASIN_WALK_MAX = 8192;

/* One side of a CSR list, or (start NULL) of all pairs of a batch. */
struct basin_cuda_walk {
    const int32_t *start, *other, *pair; /* pair: by key, the number in CSR order; else NULL */
    int64_t nodes, capacity;             /* capacity >= the number of pairs */
    int64_t own, across;                 /* all pairs: nodes of an entry here and across */
    int64_t piece, chunks;
    bool by_key;
};

/* Pairs of a chunk, as many by query as by key. A molecule's node has three or four pairs, and a
 * warp walks its nodes one after the other: such lists are cut small. */
static inline int64_t basin_cuda_walk_piece(const basin_cuda_heads *at) {
    int64_t pairs = at->pairs;
    int64_t nodes = at->batch * (at->queries < at->keys ? at->queries : at->keys);
    int64_t even = basin_cuda_ceil(basin_cuda_ceil(pairs, BASIN_WALK_CHUNKS), 32) * 32;
    if (even > BASIN_WALK_MAX) return BASIN_WALK_MAX; /* the last warps to end: a part of all */
    int64_t few = basin_cuda_ceil(4 * pairs, nodes > 0 ? nodes : 1);
    if (even > BASIN_WALK_PIECE || few > BASIN_WALK_PIECE)
        return even > BASIN_WALK_PIECE ? even : (int64_t)BASIN_WALK_PIECE;
    return few < BASIN_WALK_MIN ? (int64_t)BASIN_WALK_MIN : few;
}

static inline basin_cuda_walk basin_cuda_walk_of(const basin_cuda_heads *at, bool by_key) {
    basin_cuda_walk walk = {};
    walk.start = by_key ? at->column : at->row, walk.other = by_key ? at->query : at->key;
    walk.pair = by_key ? at->pair : NULL;
    if (!at->row) walk.start = walk.other = walk.pair = NULL;
    walk.own = by_key ? at->keys : at->queries, walk.across = by_key ? at->queries : at->keys;
    walk.nodes = at->batch * walk.own, walk.capacity = at->pairs;
    walk.piece = basin_cuda_walk_piece(at);
    walk.chunks = basin_cuda_ceil(at->pairs, walk.piece), walk.by_key = by_key;
    return walk;
}

static inline unsigned basin_cuda_walk_blocks(int64_t warps) {
    return (unsigned)basin_cuda_ceil(warps, BASIN_WALK_WARPS);
}

/* Which warp of the launch this is. */
BASIN_DEVICE int64_t basin_cuda_walk_task() {
    return (int64_t)blockIdx.x * BASIN_WALK_WARPS + threadIdx.x / 32;
}

BASIN_DEVICE int64_t basin_cuda_walk_start(const basin_cuda_walk &walk, int64_t node) {
    return walk.start ? (int64_t)__ldg(walk.start + node) : node * walk.across;
}

/* The other end of pair i of `node`, and the pair's number by query. */
BASIN_DEVICE int64_t basin_cuda_walk_other(const basin_cuda_walk &walk, int64_t node, int64_t i) {
    if (walk.start) return __ldg(walk.other + i);
    return node / walk.own * walk.across + (i - node * walk.across);
}
BASIN_DEVICE int64_t basin_cuda_walk_pair(const basin_cuda_walk &walk, int64_t node, int64_t i) {
    if (walk.pair) return __ldg(walk.pair + i);
    if (walk.start || !walk.by_key) return i;
    return basin_cuda_walk_other(walk, node, i) * walk.own + node % walk.own;
}

/* The node of pair `begin`: the last that starts at or before it. Asked by whole warps. */
BASIN_DEVICE int64_t basin_cuda_walk_find(const basin_cuda_walk &walk, int64_t begin) {
    if (!walk.start) return begin / walk.across;
    int64_t low = 0, high = walk.nodes; /* start[low] <= begin < start[high] */
    int lane = threadIdx.x % 32;
    while (high - low > 1) {
        int64_t step = (high - low + 31) / 32, probe = low + lane * step;
        bool before = probe < high && __ldg(walk.start + probe) <= begin;
        int count = __popc(__ballot_sync(0xffffffffu, before));
        low += (count - 1) * step;
        high = high < low + step ? high : low + step;
    }
    return low;
}

/* The part of a node's pairs that lies in a chunk. */
struct basin_cuda_fragment {
    int64_t node, begin, end;  /* pairs; begin == end: no more */
    bool continues, continued; /* an earlier chunk's node; by a later chunk */
};

struct basin_cuda_walker {
    int64_t chunk, at, end, node;
    BASIN_METHOD basin_cuda_walker(const basin_cuda_walk &walk, int64_t chunk_) {
        int64_t total = basin_cuda_walk_start(walk, walk.nodes);
        chunk = chunk_, at = chunk * walk.piece;
        end = at + walk.piece < total ? at + walk.piece : total;
        node = at < end ? basin_cuda_walk_find(walk, at) : 0;
    }
    /* The pairs of one node, whole. */
    BASIN_METHOD basin_cuda_walker(const basin_cuda_walk &walk, int64_t node_, bool) {
        chunk = 0, node = node_;
        at = basin_cuda_walk_start(walk, node), end = basin_cuda_walk_start(walk, node + 1);
    }
    BASIN_METHOD bool more() const { return at < end; }
    BASIN_METHOD basin_cuda_fragment next(const basin_cuda_walk &walk) {
        int64_t first = basin_cuda_walk_start(walk, node),
                last = basin_cuda_walk_start(walk, node + 1);
        while (last <= at && at < end) first = last, last = basin_cuda_walk_start(walk, ++node + 1);
        basin_cuda_fragment f = {node, at, last < end ? last : end, first<at, last> end};
        at = f.end;
        return f;
    }
};

/* Where a fragment that is not a whole node leaves its sums. */
BASIN_DEVICE int64_t basin_cuda_fragment_slot(const basin_cuda_fragment &f, int64_t chunk) {
    return chunk * 2 + (f.continues ? 0 : 1);
}

/* Slot i of `count` of a node that is cut; count 1: not cut, 0: no pairs. */
struct basin_cuts {
    int64_t first, count;
    BASIN_METHOD basin_cuts(const basin_cuda_walk &walk, int64_t node) {
        int64_t begin = basin_cuda_walk_start(walk, node),
                end = basin_cuda_walk_start(walk, node + 1);
        first = begin / walk.piece;
        count = begin == end ? 0 : (end - 1) / walk.piece - first + 1;
    }
    BASIN_METHOD int64_t slot(int64_t i) const { return i == 0 ? first * 2 + 1 : (first + i) * 2; }
};

/* Calls f(node, head, cuts) with whole warps for nodes that were cut or have no pairs. In large
 * graphs these are few: a warp then checks 32 nodes, else one node and head. */
static inline bool basin_cuda_walk_is_large(const basin_cuda_walk &walk) {
    return walk.nodes > (int64_t)1 << 20;
}
static inline unsigned basin_cuda_walk_cut_blocks(const basin_cuda_walk &walk, int64_t heads) {
    bool large = basin_cuda_walk_is_large(walk);
    return basin_cuda_walk_blocks(large ? basin_cuda_ceil(walk.nodes, 32) : walk.nodes * heads);
}
template <typename F>
BASIN_DEVICE void basin_cuda_walk_cut(const basin_cuda_walk &walk, int heads, bool large, F f) {
    int64_t task = basin_cuda_walk_task(), first = large ? task * 32 : task / heads;
    int64_t own = large ? first + threadIdx.x % 32 : first;
    bool wants = own < walk.nodes && basin_cuts(walk, own).count != 1;
    unsigned cut = __ballot_sync(0xffffffffu, wants) & (large ? 0xffffffffu : 1u);
    for (; cut; cut &= cut - 1) {
        int64_t node = first + __ffs((int)cut) - 1;
        basin_cuts cuts(walk, node);
        for (int h = large ? 0 : (int)(task % heads), end = large ? heads : h + 1; h < end; h++)
            f(node, h, cuts);
    }
}

/* ---- rows of numbers, spread over the lanes of a group ---- */

BASIN_DEVICE void basin_row_unpack(float *x, float4 v) {
    x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
}
BASIN_DEVICE void basin_row_unpack(float *x, uint4 v) {
    uint32_t word[4] = {v.x, v.y, v.z, v.w};
    BASIN_UNROLL (i, 4) {
        x[2 * i] = __uint_as_float(word[i] << 16);
        x[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000u);
    }
}
BASIN_DEVICE void basin_row_load(float (&x)[4], const float *from) {
    basin_row_unpack(x, __ldg((const float4 *)from));
}
BASIN_DEVICE void basin_row_load(float (&x)[8], const basin_bf16 *from) {
    basin_row_unpack(x, __ldg((const uint4 *)from));
}
template <typename T> BASIN_DEVICE void basin_row_load(float (&x)[1], const T *from) {
    x[0] = basin_to_float(*from);
}

BASIN_DEVICE void basin_row_store(float *to, const float (&x)[4]) {
    *(float4 *)to = make_float4(x[0], x[1], x[2], x[3]);
}
BASIN_DEVICE void basin_row_store(basin_bf16 *to, const float (&x)[8]) {
    uint32_t word[4];
    BASIN_UNROLL (i, 4)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word[i]) : "f"(x[2 * i + 1]), "f"(x[2 * i]));
    *(uint4 *)to = make_uint4(word[0], word[1], word[2], word[3]);
}
template <typename T> BASIN_DEVICE void basin_row_store(T *to, const float (&x)[1]) {
    *to = basin_from_float<T>(x[0]);
}

/* A lane's share of a row. Elements beyond the width are 0. */
template <typename T, int G, int E, int V> struct basin_row {
    float x[E];

    BASIN_METHOD void clear() {
        BASIN_UNROLL (i, E) x[i] = 0;
    }
    BASIN_METHOD void load(const T *row, int width) {
        int lane = threadIdx.x % G;
        BASIN_UNROLL (v, E / V) {
            float part[V] = {};
            int at = (v * G + lane) * V;
            if (at < width) basin_row_load(part, row + at);
            BASIN_UNROLL (i, V) x[v * V + i] = part[i];
        }
    }
    /* row = factor x, by the first group only. */
    BASIN_METHOD void store(T *row, float factor, int width) const {
        int lane = threadIdx.x % 32;
        if (lane >= G) return;
        BASIN_UNROLL (v, E / V) {
            float part[V];
            int at = (v * G + lane) * V;
            BASIN_UNROLL (i, V) part[i] = factor * x[v * V + i];
            if (at < width) basin_row_store(row + at, part);
        }
    }
    /* The same in float, for the slots. */
    BASIN_METHOD void leave(float *row, int width) const {
        int lane = threadIdx.x % 32;
        if (lane >= G) return;
        BASIN_UNROLL (i, E) {
            int at = (i / V * G + lane) * V + i % V;
            if (at < width) row[at] = x[i];
        }
    }
    BASIN_METHOD void add(float weight, const basin_row &other) {
        BASIN_UNROLL (i, E) x[i] = fmaf(weight, other.x[i], x[i]);
    }
    BASIN_METHOD void times(float factor) {
        BASIN_UNROLL (i, E) x[i] *= factor;
    }
    /* The sum over the groups of a warp, in all of them. */
    BASIN_METHOD void join() {
        BASIN_UNROLL (i, E)
#pragma unroll
            for (int step = G; step < 32; step *= 2)
                x[i] += __shfl_xor_sync(0xffffffffu, x[i], step);
    }
    /* The lane's share of a dot product. */
    BASIN_METHOD float part(const basin_row &other) const {
        float sum = 0;
        BASIN_UNROLL (i, E) sum = fmaf(x[i], other.x[i], sum);
        return sum;
    }
};

/* The sum over the lanes of a group, in all of them. */
template <int G> BASIN_DEVICE float basin_group_sum(float x) {
#pragma unroll
    for (int step = G / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}
/* Over the groups of a warp. */
template <int G> BASIN_DEVICE float basin_groups_sum(float x) {
#pragma unroll
    for (int step = G; step < 32; step *= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}
template <int G> BASIN_DEVICE float basin_groups_max(float x) {
#pragma unroll
    for (int step = G; step < 32; step *= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

/* out [nodes, step], columns `shift` + h * `stride` + 0 .. width - 1 of it, for the nodes that were
 * cut, from sums [slots, H, width], times factor[h] if any; 0 for nodes without pairs. */
template <typename T>
static __global__ void __launch_bounds__(BASIN_WALK_WARPS * 32)
    basin_cuda_walk_join(T *out, const float *sums, const float *factor, basin_cuda_walk walk,
                         int heads, int width, int64_t step, int64_t stride, int64_t shift,
                         bool large) {
    basin_cuda_walk_cut(walk, heads, large, [&](int64_t node, int h, const basin_cuts &cuts) {
        float times = factor ? factor[h] : 1.0f;
        for (int y = threadIdx.x % 32; y < width; y += 32) {
            float sum = 0;
            for (int64_t i = 0; i < cuts.count; i++)
                sum += sums[(cuts.slot(i) * heads + h) * width + y];
            out[node * step + shift + h * stride + y] = basin_from_float<T>(times * sum);
        }
    });
}

static constexpr int64_t BASIN_WALK_WIDTH = 256; /* elements of a row that a warp holds */

/* Calls f(row, group) with the type of a row that holds `width` elements of T and the lanes of a
 * group; `aligned`: rows start at multiples of 16 bytes. */
template <typename T, typename F>
static inline void basin_cuda_walk_rows(int64_t width, bool aligned, F f) {
    enum { V = 16 / sizeof(T) };
    if (!aligned)
        f(basin_row<T, 32, 8, 1>(), std::integral_constant<int, 32>());
    else if (width <= 32)
        f(basin_row<T, 4, 8, V>(), std::integral_constant<int, 4>());
    else if (width <= 64)
        f(basin_row<T, 8, 8, V>(), std::integral_constant<int, 8>());
    else if (width <= 128)
        f(basin_row<T, 8, 16, V>(), std::integral_constant<int, 8>());
    else
        f(basin_row<T, 16, 16, V>(), std::integral_constant<int, 16>());
}

/* ---- products over pairs, of lists/pairs.cu ---- */

/* Numbers per pair and head: pair p, head h at p * pair + h * head. */
struct basin_pair_numbers {
    float *at; /* NULL: none */
    int64_t pair, head;
};

/* r = x[q] . y[k] and, where c is requested, c = x2[q] . y[k] + x[q] . y2[k]; x2, y2 may be NULL. x
 * [queries, H, Y], y [keys, H, Y] of one kind. `fill`: numbers past the last pair become 0. */
void basin_cuda_pair_dots(const basin_cuda_frame *frame, basin_pair_numbers r, basin_pair_numbers c,
                          basin_kind kind, const void *x, const void *x2, const void *y,
                          const void *y2, const basin_cuda_walk &queries, int64_t heads,
                          int64_t width, bool fill);

/* out [nodes, H, Y] = sums over a node's pairs of t y[other] + gs y2[other]; the second is left out
 * where gs is NULL. Workspace of basin_cuda_pair_sums_bytes. */
size_t basin_cuda_pair_sums_bytes(const basin_cuda_walk &walk, int64_t heads, int64_t width);
void basin_cuda_pair_sums(const basin_cuda_frame *frame, void *out, basin_kind kind,
                          basin_pair_numbers t, const void *y, basin_pair_numbers gs,
                          const void *y2, const basin_cuda_walk &walk, int64_t heads, int64_t width,
                          void *workspace);

#endif
