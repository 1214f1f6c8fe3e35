/* Hubs in the tokens' own space, for tokens.cu: nodes with so many pairs that a group of lanes
 * would be the last to end. Groups take pieces of a range's pairs and leave sums of the hubs in
 * them, in slots 2 piece and 2 piece + 1; a last kernel adds these in the order of the pieces. */
#ifndef BASIN_BACKEND_CUDA_ATTENTION_TOKENS_HUBS_H
#define BASIN_BACKEND_CUDA_ATTENTION_TOKENS_HUBS_H

#include "backend/cuda/lists/tokens_walk.h"

/* The node, of those of the range, that a pair belongs to. */
static __device__ int node_of(const basin_tokens_walk &p, int pair) {
    int low = 0, high = p.count; /* start[low] <= pair < start[high] */
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (__ldg(p.start + p.first + middle) <= pair)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The pairs of a range, low .. high - 1, in pieces. */
struct cutting {
    int low, high, hub;
    __device__ cutting(const basin_tokens_walk &p)
        : low(__ldg(p.start + p.first)), high(__ldg(p.start + p.first + p.count)),
          hub(basin_tokens_hub(high - low)) {}
    __device__ int pieces() const { return (high - low + hub - 1) / hub; }
};

/* A hub's pairs within a piece: those of the node that the piece begins with (side 0, where the
 * node began before it), or of the one that it ends with. */
struct fragment {
    int node, begin, end; /* begin == end: none */
};
static __device__ fragment fragment_of(const basin_tokens_walk &p, const cutting &cut, int piece,
                                       int side) {
    int64_t begin = cut.low + (int64_t)piece * cut.hub, end = begin + cut.hub;
    int64_t pair = side == 0 ? begin : end - 1;
    fragment f = {0, 0, 0};
    if (pair >= cut.high) return f;
    f.node = node_of(p, (int)pair);
    int from = __ldg(p.start + p.first + f.node), to = __ldg(p.start + p.first + f.node + 1);
    if (to - from <= cut.hub || (from < begin) != (side == 0)) return f;
    f.begin = side == 0 ? (int)begin : from, f.end = (int)(to < end ? to : end);
    return f;
}

template <bool REVERSE, typename T, int G, int H, bool KEYS>
static __device__ __forceinline__ void leave(basin_tokens_node<REVERSE, T, G, H, KEYS> &n,
                                             const basin_tokens_walk &p, int64_t slot) {
    enum { PARTS = basin_tokens_node<REVERSE, T, G, H, KEYS>::PARTS, D = G * BASIN_TOKENS_EACH };
#pragma unroll
    for (int h = 0; h < H; h++) {
        float *to = p.sums + (slot * H + h) * PARTS * D;
        n.sum[h].leave(to);
        if (PARTS == 2) n.plain[h].leave(to + D);
        if (!KEYS && threadIdx.x % G == 0) p.state[slot * H + h] = n.s[h];
    }
}

/* The hubs of the range, piece by piece. */
template <bool REVERSE, typename T, int G, int H, bool KEYS>
static __global__ void __launch_bounds__(BASIN_TOKENS_THREADS) walk_hubs(basin_tokens_walk p) {
    enum { GROUPS = 32 / G };
    if (!*p.hubs) return;
    int warp = (int)(blockIdx.x * BASIN_TOKENS_THREADS + threadIdx.x) / 32;
    int warps = (int)(gridDim.x * BASIN_TOKENS_THREADS) / 32, group = (int)threadIdx.x % 32 / G;
    cutting cut(p);
    float beta[H];
    basin_tokens_ahead<REVERSE, T, G, H, KEYS> ahead;
    basin_tokens_node<REVERSE, T, G, H, KEYS> n;
#pragma unroll
    for (int h = 0; h < H; h++) beta[h] = p.beta[h];
    ahead.last = cut.high - 1;
    for (int base = warp * GROUPS; base < 2 * cut.pieces(); base += warps * GROUPS) {
        fragment f = fragment_of(p, cut, (base + group) / 2, (base + group) % 2);
        if (!__any_sync(0xffffffffu, f.begin < f.end)) continue;
        ahead.fill(p, f.begin);
        n.begin(p, f.node);
        for (int at = f.begin; __any_sync(0xffffffffu, at < f.end); at++)
            n.turn(ahead, p, beta, at, at < f.end);
        if (f.begin < f.end) leave(n, p, base + group);
    }
}

/* A hub's pieces: number i of `count` is at slot(i). */
struct pieces {
    int first, count;
    __device__ pieces(const basin_tokens_walk &p, const cutting &cut, int node) {
        int begin = __ldg(p.start + p.first + node), end = __ldg(p.start + p.first + node + 1);
        first = (begin - cut.low) / cut.hub, count = (end - 1 - cut.low) / cut.hub - first + 1;
    }
    __device__ int64_t slot(int i) const {
        return i == 0 ? (int64_t)first * 2 + 1 : (int64_t)(first + i) * 2;
    }
};

/* A hub that begins where a piece does leaves nothing in slot 0, one that began before nothing in
 * slot 1: so the first piece is in slot 1 either way. */
template <bool REVERSE, typename T, int H>
static __device__ void join_query(const basin_tokens_walk &p, const pieces &cut, int node, int h,
                                  int width) {
    enum { PARTS = REVERSE ? 2 : 1 };
    basin_tokens_sums s = {basin_minus_infinity()};
    for (int i = 0; i < cut.count; i++) s.most = fmaxf(s.most, p.state[cut.slot(i) * H + h].most);
    s.center = p.state[cut.slot(0) * H + h].center;
    for (int i = 0; i < cut.count; i++) {
        const basin_tokens_sums &from = p.state[cut.slot(i) * H + h];
        float factor = basin_exp2(from.most - s.most), shift = from.center - s.center;
        s.total = fmaf(factor, from.total, s.total);
        s.slope = fmaf(factor, from.slope, s.slope);
        s.gain = fmaf(factor, from.gain + shift * from.total, s.gain);
        s.gain_slope = fmaf(factor, from.gain_slope + shift * from.slope, s.gain_slope);
    }
    int64_t row = (int64_t)node * H + h;
    float beta = p.beta[h];
    basin_tokens_closing end =
        basin_tokens_close<REVERSE>(p, s, (int64_t)p.first * H + row, beta, threadIdx.x % 32 == 0);
    for (int y = (int)threadIdx.x % 32; y < width; y += 32) {
        float sum = 0, plain = 0;
        for (int i = 0; i < cut.count; i++) {
            const basin_tokens_sums &from = p.state[cut.slot(i) * H + h];
            const float *left = p.sums + (cut.slot(i) * H + h) * PARTS * width;
            float factor = basin_exp2(from.most - s.most), shift = from.center - s.center;
            float second = REVERSE ? left[width + y] : 0.0f;
            sum = fmaf(factor, left[y] + beta * shift * second, sum);
            plain = fmaf(factor, second, plain);
        }
        float all = end.factor * (sum - beta * end.offset * plain);
        ((T *)p.out)[row * width + y] = basin_from_float<T>(all);
        if (REVERSE) ((T *)p.out2)[row * width + y] = basin_from_float<T>(end.factor * plain);
    }
}

template <typename T, int H>
static __device__ void join_key(const basin_tokens_walk &p, const pieces &cut, int node, int h,
                                int width) {
    for (int y = (int)threadIdx.x % 32; y < width; y += 32) {
        float sum = 0;
        for (int i = 0; i < cut.count; i++) sum += p.sums[(cut.slot(i) * H + h) * width + y];
        ((T *)p.out)[((int64_t)node * H + h) * width + y] = basin_from_float<T>(p.beta[h] * sum);
    }
}

/* A warp looks at 32 nodes for hubs. */
template <bool REVERSE, typename T, int H, bool KEYS>
static __global__ void __launch_bounds__(BASIN_TOKENS_THREADS)
    join_hubs(basin_tokens_walk p, int width) {
    if (!*p.hubs) return;
    int first = (int)((blockIdx.x * BASIN_TOKENS_THREADS + threadIdx.x) / 32 * 32);
    int own = first + (int)threadIdx.x % 32;
    const int32_t *start = p.start + p.first;
    cutting cut(p);
    bool wants = own < p.count && __ldg(start + own + 1) - __ldg(start + own) > cut.hub;
    for (unsigned hubs = __ballot_sync(0xffffffffu, wants); hubs; hubs &= hubs - 1) {
        int node = first + __ffs((int)hubs) - 1;
        pieces parts(p, cut, node);
        for (int h = 0; h < H; h++) {
            if (KEYS)
                join_key<T, H>(p, parts, node, h, width);
            else
                join_query<REVERSE, T, H>(p, parts, node, h, width);
        }
    }
}

#endif
