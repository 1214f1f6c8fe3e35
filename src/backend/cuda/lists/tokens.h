/* Walking the pairs of a list in the tokens' own space; see tokens.cu. A group of G lanes takes the
 * nodes of a short range one after the other, a pair a turn, with the rows of the next pair on
 * their way, whichever node it belongs to. All groups of a warp take their turns together. */
#ifndef BASIN_BACKEND_CUDA_LISTS_TOKENS_H
#define BASIN_BACKEND_CUDA_LISTS_TOKENS_H

#include "backend/cuda/lists/walk.h"

enum {
    BASIN_TOKENS_THREADS = 64,
    BASIN_TOKENS_EACH = 8,      /* elements of a row that a lane holds */
    BASIN_TOKENS_NODES = 4,     /* of a group */
    BASIN_TOKENS_HUB = 256,     /* pairs: a node with more is a hub */
    BASIN_TOKENS_PIECES = 16384 /* at most, of a range's pairs */
};

/* Blocks that a multiprocessor should have room for, 0: the compiler's choice; as measured, with
 * hardly a register spilled. */
static constexpr int basin_tokens_blocks(bool reverse, bool keys, int heads) {
    return keys || heads != 3 ? 0 : reverse ? 6 : 10;
}

/* The running sums of a query and head, under the score `most`, not far below the largest. */
struct basin_tokens_sums {
    float most, total, slope, gain, gain_slope, center;
};

/* What a walk reads and writes. Rows of x, x2, out and out2 are those of the nodes from `first`. */
struct basin_tokens_walk {
    const int32_t *start, *other;
    const void *x, *x2;       /* bfloat16 [count, H, D] */
    const void *y, *y2;       /* bfloat16 [N, D] */
    void *out, *out2;         /* [count, H, D]; out2: by query in reverse, the plain sums */
    const float *beta, *w;    /* [H]; [N, H] */
    float *lse, *gw, *slope;  /* [N, H], or NULL; by query */
    float *summary;           /* [N, H, 2 or 3] most, weight and, in reverse, mean */
    basin_tokens_sums *state; /* [slots, H] of hubs; by query */
    float *sums;              /* [slots, H, parts, D] of hubs */
    int first, count;         /* nodes */
    const int *hubs;          /* whether there are any in the range */
};

/* Nodes with more pairs are hubs, which are walked in pieces of so many pairs: more where the range
 * has so many pairs that there would be too many pieces. */
BASIN_DEVICE int basin_tokens_hub(int pairs) {
    return max((int)BASIN_TOKENS_HUB, (pairs + BASIN_TOKENS_PIECES - 1) / BASIN_TOKENS_PIECES);
}

/* A lane's share of a row as it lies in memory: 16 bytes, which is all of it. */
template <int G> BASIN_DEVICE uint4 basin_tokens_fetch(const void *table, int64_t row) {
    return __ldg((const uint4 *)table + row * G + threadIdx.x % G);
}

template <int G> struct basin_tokens_row : basin_row<basin_bf16, G, BASIN_TOKENS_EACH, 8> {
    BASIN_METHOD void load(const void *table, int64_t row) {
        basin_row_unpack(this->x, basin_tokens_fetch<G>(table, row));
    }
    BASIN_METHOD void store(void *table, int64_t row, float factor) const {
        float scaled[BASIN_TOKENS_EACH];
        BASIN_UNROLL (i, BASIN_TOKENS_EACH) scaled[i] = factor * this->x[i];
        basin_row_store((basin_bf16 *)table + (row * G + threadIdx.x % G) * 8, scaled);
    }
    /* The same as floats, for the slots. */
    BASIN_METHOD void leave(float *row) const {
        BASIN_UNROLL (i, BASIN_TOKENS_EACH) row[threadIdx.x % G * 8 + i] = this->x[i];
    }
    BASIN_METHOD float dot(const basin_tokens_row &other, float sum) const {
        BASIN_UNROLL (i, BASIN_TOKENS_EACH) sum = fmaf(this->x[i], other.x[i], sum);
        return sum;
    }
};

/* The rows of the next pair, on their way. */
template <bool REVERSE, int G, int H, bool KEYS> struct basin_tokens_ahead {
    enum { EACH = REVERSE ? 3 : 2, WORDS = KEYS ? (EACH * H + G - 1) / G : 1 };
    uint4 y, y2;
    float word[WORDS]; /* by key: the summaries of the query, a number a lane */
    int next;          /* the other end of the pair after it */
    int last;          /* no pair behind it is read */

    BASIN_METHOD int end_of(const basin_tokens_walk &p, int pair) const {
        return __ldg(p.other + min(pair, last));
    }
    BASIN_METHOD void fetch(const basin_tokens_walk &p, int other) {
        y = basin_tokens_fetch<G>(p.y, other);
        if (REVERSE) y2 = basin_tokens_fetch<G>(p.y2, other);
#pragma unroll
        for (int i = 0; KEYS && i < WORDS; i++) {
            int at = (int)threadIdx.x % G + i * G;
            word[i] = at < EACH * H ? __ldg(p.summary + (int64_t)other * (EACH * H) + at) : 0.0f;
        }
    }
    BASIN_METHOD void fill(const basin_tokens_walk &p, int pair) {
        fetch(p, end_of(p, pair));
        next = end_of(p, pair + 1);
    }
    /* Once `pair` is taken. */
    BASIN_METHOD void advance(const basin_tokens_walk &p, int pair) {
        fetch(p, next);
        next = end_of(p, pair + 2);
    }
};

/* A node in the making. */
template <bool REVERSE, int G, int H, bool KEYS> struct basin_tokens_node {
    using row = basin_tokens_row<G>;
    enum {
        X2 = REVERSE ? H : 1,
        PLAIN = REVERSE && !KEYS ? H : 1,
        PARTS = REVERSE && !KEYS ? 2 : 1
    };
    row x[H], x2[X2], sum[H], plain[PLAIN];
    basin_tokens_sums s[KEYS ? 1 : H];

    /* `at`: of the rows of x. */
    BASIN_METHOD void begin(const basin_tokens_walk &p, int64_t at) {
        BASIN_UNROLL (h, H) {
            x[h].load(p.x, at * H + h), sum[h].clear();
            if (REVERSE) x2[h].load(p.x2, at * H + h);
            if (PARTS == 2) plain[h].clear();
            if (!KEYS) s[h] = {basin_minus_infinity()};
        }
    }

    /* One pair more by query. Scores may rise a little above `most` before sums are made smaller.
     */
    BASIN_METHOD void by_query(int h, const row &y, const row &y2, float r, float c, float beta,
                               bool on) {
        basin_tokens_sums &q = s[h];
        const float rise = 16;
        float z = r * (beta * BASIN_LOG2_E);
        if (on && z > q.most + rise) {
            float factor = basin_exp2(q.most - z);
            if (q.most == basin_minus_infinity()) q.center = c;
            q.total *= factor, q.slope *= factor, q.gain *= factor, q.gain_slope *= factor;
            sum[h].times(factor);
            if (PARTS == 2) plain[h].times(factor);
            q.most = z;
        }
        float e = on ? basin_exp2(z - q.most) : 0.0f;
        q.total += e;
        q.slope = fmaf(e, r, q.slope);
        if (!REVERSE) {
            sum[h].add(e, y);
            return;
        }
        float d = c - q.center;
        q.gain = fmaf(e, d, q.gain);
        q.gain_slope = fmaf(e * d, r, q.gain_slope);
        sum[h].add(e, y2);
        sum[h].add(e * beta * d, y);
        plain[h].add(e, y);
    }

    BASIN_METHOD void by_key(int h, const row &y, const row &y2, float r, float c, float beta,
                             const float *q, bool on) {
        float t = on ? q[1] * basin_exp2(r * (beta * BASIN_LOG2_E) - q[0]) : 0.0f;
        if (REVERSE) {
            sum[h].add(t, y2);
            t *= beta * (c - q[2]);
        }
        sum[h].add(t, y);
    }

    /* A turn of the whole warp, with pair `at`; where a group is not `on` its sums stay as they
     * are.
     */
    BASIN_METHOD void turn(basin_tokens_ahead<REVERSE, G, H, KEYS> &ahead,
                           const basin_tokens_walk &p, const float (&beta)[H], int at, bool on) {
        enum { EACH = REVERSE ? 3 : 2, WORDS = basin_tokens_ahead<REVERSE, G, H, KEYS>::WORDS };
        row y, y2;
        float r[H], c[H], word[WORDS];
        basin_row_unpack(y.x, ahead.y);
        if (REVERSE) basin_row_unpack(y2.x, ahead.y2);
        BASIN_UNROLL (i, WORDS) word[i] = KEYS ? ahead.word[i] : 0.0f;
        if (on) ahead.advance(p, at);
        BASIN_UNROLL (h, H) {
            r[h] = basin_group_sum<G>(x[h].dot(y, 0));
            c[h] = REVERSE ? basin_group_sum<G>(x2[h].dot(y, x[h].dot(y2, 0))) : 0.0f;
        }
        BASIN_UNROLL (h, H) {
            if constexpr (KEYS) {
                float q[EACH];
                BASIN_UNROLL (i, EACH)
                    q[i] =
                        __shfl_sync(0xffffffffu, word[(h * EACH + i) / G], (h * EACH + i) % G, G);
                by_key(h, y, y2, r[h], c[h], beta[h], q, on);
            } else
                by_query(h, y, y2, r[h], c[h], beta[h], on);
        }
    }
};

/* What a query's sums come to: the factors of its rows of sums, and its numbers. */
struct basin_tokens_closing {
    float factor, offset; /* out = factor (sum - beta offset plain) */
};
template <bool REVERSE>
BASIN_DEVICE basin_tokens_closing basin_tokens_close(const basin_tokens_walk &p,
                                                     const basin_tokens_sums &s, int64_t at,
                                                     float beta, bool writes) {
    float w = p.w[at];
    bool any = s.total > 0;
    float inverse = any ? 1.0f / s.total : 0.0f, offset = s.gain * inverse;
    float mean = any ? s.center + offset : 0.0f, factor = beta * w * inverse;
    if (writes) {
        if (p.lse) p.lse[at] = any ? s.most * BASIN_LN_2 + logf(s.total) : 0.0f;
        if (p.gw) p.gw[at] = beta * mean;
        if (p.slope) p.slope[at] = w * mean + factor * (s.gain_slope - offset * s.slope);
        enum { EACH = REVERSE ? 3 : 2 };
        p.summary[at * EACH] = any ? s.most : 0.0f;
        p.summary[at * EACH + 1] = w * inverse;
        if (REVERSE) p.summary[at * EACH + 2] = mean;
    }
    return {factor, offset};
}

/* Hubs in the tokens' own space, for tokens.cu: nodes with so many pairs that a group of lanes
 * would be the last to end. Groups take pieces of a range's pairs and leave sums of the hubs in
 * them, in slots 2 piece and 2 piece + 1; a last kernel adds these in the order of the pieces. */

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

template <bool REVERSE, int G, int H, bool KEYS>
BASIN_DEVICE void leave(basin_tokens_node<REVERSE, G, H, KEYS> &n, const basin_tokens_walk &p,
                        int64_t slot) {
    enum { PARTS = basin_tokens_node<REVERSE, G, H, KEYS>::PARTS, D = G * BASIN_TOKENS_EACH };
    BASIN_UNROLL (h, H) {
        float *to = p.sums + (slot * H + h) * PARTS * D;
        n.sum[h].leave(to);
        if (PARTS == 2) n.plain[h].leave(to + D);
        if (!KEYS && threadIdx.x % G == 0) p.state[slot * H + h] = n.s[h];
    }
}

/* The hubs of the range, piece by piece. */
template <bool REVERSE, int G, int H, bool KEYS>
static __global__ void __launch_bounds__(BASIN_TOKENS_THREADS) walk_hubs(basin_tokens_walk p) {
    enum { GROUPS = 32 / G };
    if (!*p.hubs) return;
    int warp = (int)(blockIdx.x * BASIN_TOKENS_THREADS + threadIdx.x) / 32;
    int warps = (int)(gridDim.x * BASIN_TOKENS_THREADS) / 32, group = (int)threadIdx.x % 32 / G;
    cutting cut(p);
    float beta[H];
    basin_tokens_ahead<REVERSE, G, H, KEYS> ahead;
    basin_tokens_node<REVERSE, G, H, KEYS> n;
    BASIN_UNROLL (h, H) beta[h] = p.beta[h];
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
template <bool REVERSE, int H>
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
        ((basin_bf16 *)p.out)[row * width + y] = basin_from_float<basin_bf16>(all);
        if (REVERSE)
            ((basin_bf16 *)p.out2)[row * width + y] =
                basin_from_float<basin_bf16>(end.factor * plain);
    }
}

template <int H>
static __device__ void join_key(const basin_tokens_walk &p, const pieces &cut, int node, int h,
                                int width) {
    for (int y = (int)threadIdx.x % 32; y < width; y += 32) {
        float sum = 0;
        for (int i = 0; i < cut.count; i++) sum += p.sums[(cut.slot(i) * H + h) * width + y];
        ((basin_bf16 *)p.out)[((int64_t)node * H + h) * width + y] =
            basin_from_float<basin_bf16>(p.beta[h] * sum);
    }
}

/* A warp looks at 32 nodes for hubs. */
template <bool REVERSE, int H, bool KEYS>
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
                join_key<H>(p, parts, node, h, width);
            else
                join_query<REVERSE, H>(p, parts, node, h, width);
        }
    }
}

#endif
