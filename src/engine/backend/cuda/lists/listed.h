/* Energy attention over a CSR list of pairs without mixing and biases. Nothing is stored for a
 * pair: two walks, by query and by key, each of which reads the rows of the other side once and
 * computes the scores itself.
 *
 *     by query  with a running largest score:  e = 2^(beta' r - maximum),  d = c - center
 *         force    total += e   slope += e r   sum += e K
 *         reverse  gain += e d   gain_slope += e d r
 *                  sum += e (B + beta d K)     plain += e K
 *     and at the end, offset = gain / total, mean = center + offset:
 *         dQ = beta w / total sum              gQ = beta w / total (sum - beta offset plain)
 *     by key, with the summaries of the queries:  t = weight 2^(beta' r - maximum)
 *         dK = beta sum t Q                    gK = beta sum (t A + t beta (c - mean) Q)
 *
 * The center, the c of a fragment's first pair, keeps the difference of two near sums small. A
 * multiplier s of a pair makes its rows s K and s B, or s Q and s A: r, c and the weights of sums
 * are multiplied. Its derivative, where it is requested, is written by key:
 *         dscale = t beta r                    gscale = t beta (c + beta (s c - mean) r)
 *
 * Short lists (molecules) are walked a node a warp, and nothing is cut. A group of G lanes holds a
 * head of a row (listed.cu); or, with L < G, all heads of it, L lanes each (listed.cu). For .cu
 * files only.
 */
#ifndef BASIN_BACKEND_CUDA_ATTENTION_LISTED_H
#define BASIN_BACKEND_CUDA_ATTENTION_LISTED_H

#include "engine/backend/cuda/lists/walk.h"

struct listed {
    basin_cuda_walk walk;        /* of the side at hand */
    const void *x, *x2, *y, *y2; /* T: own rows and those across; x2, y2: reverse, or NULL */
    void *out;                   /* T, like x, or NULL */
    const float *beta, *w;
    float *lse, *gw, *slope;     /* [queries, H], or NULL */
    basin_cuda_summary *summary; /* [H, queries] */
    float *sums;                 /* [slots, H, parts, Y] of cut nodes */
    struct running *states;      /* [slots, H]; by query */
    const float *scale;          /* [pairs, H], or NULL */
    float *out_scale;            /* the same; by key */
    int heads, width;
    bool whole; /* one warp per node: nothing is cut */
};

/* The running sums of a query and head. */
struct running {
    float maximum, total, slope, gain, gain_slope, center, unused[2];
};

/* ---- the other ends of a chunk's pairs ---- */

/* Their numbers, a lane each: those of 32 pairs, of the next 32, and of 32 on their way. */
struct ends {
    const int32_t *other;
    int64_t base, last;
    int now, next, later;

    BASIN_METHOD ends(const basin_cuda_walk &walk, int64_t begin, int64_t end)
        : other(walk.other), base(begin), last(end > 0 ? end - 1 : 0), now(load(begin)),
          next(load(begin + 32)), later(load(begin + 64)) {}
    BASIN_METHOD int load(int64_t first) const {
        int64_t i = first + threadIdx.x % 32;
        return __ldg(other + (i < last ? i : last));
    }
    /* Prepares of() for `pair` and the 31 after it; whether it moved on. Pairs come in order. */
    BASIN_METHOD bool reach(int64_t pair) {
        if (pair < base + 32) return false;
        now = next, next = later, base += 32;
        later = load(base + 64);
        return true;
    }
    BASIN_METHOD int64_t of(int64_t pair) const {
        int i = (int)(pair - base);
        int a = __shfl_sync(0xffffffffu, now, i & 31), b = __shfl_sync(0xffffffffu, next, i & 31);
        return i < 32 ? a : b;
    }
};

/* The numbers of pair `at`, at or after `base`. The force, which has more warps, reads them where
 * they are: prefetching took as long in bfloat16, and longer at the size of Amazon. */
template <basin_cuda_mode MODE, typename T>
BASIN_DEVICE int64_t other_end(ends &across, int64_t base, int64_t at) {
    if (MODE != BASIN_CUDA_REVERSE || sizeof(T) != sizeof(basin_bf16))
        return __ldg(across.other + at);
    across.reach(base);
    return across.of(at);
}

/* The multiplier of a pair and head, by its number in CSR order. */
BASIN_DEVICE float multiplier(const listed &p, int64_t pair, int h) {
    return p.scale ? __ldg(p.scale + pair * p.heads + h) : 1.0f;
}

/* What a warp walks: a chunk, or a node. */
BASIN_DEVICE basin_cuda_walker walker_of(const listed &p, int64_t task) {
    return p.whole ? basin_cuda_walker(p.walk, task, true) : basin_cuda_walker(p.walk, task);
}

/* ---- by query ---- */

/* One pair more: r and, in reverse, c, both times the multiplier; the rows are y (K), y2 (B). */
template <basin_cuda_mode MODE, typename R>
BASIN_DEVICE void take(running &s, R &sum, R &plain, const R &y, const R &y2, float r, float c,
                       float beta, float scale, bool on) {
    float z = r * (beta * BASIN_LOG2_E);
    if (on && z > s.maximum) {
        float factor = basin_exp2(s.maximum - z);
        if (s.maximum == basin_minus_infinity()) s.center = c;
        s.total *= factor, s.slope *= factor, s.gain *= factor, s.gain_slope *= factor;
        if (MODE != BASIN_CUDA_VALUE) sum.times(factor);
        if (MODE == BASIN_CUDA_REVERSE) plain.times(factor);
        s.maximum = z;
    }
    float e = on ? basin_exp2(z - s.maximum) : 0.0f;
    s.total += e;
    if (MODE == BASIN_CUDA_VALUE) return;
    s.slope = fmaf(e, r, s.slope);
    float weight = e * scale;
    if (MODE == BASIN_CUDA_FORCE) {
        sum.add(weight, y);
        return;
    }
    float d = c - s.center;
    s.gain = fmaf(e, d, s.gain);
    s.gain_slope = fmaf(e * d, r, s.gain_slope);
    sum.add(weight, y2);
    sum.add(weight * beta * d, y);
    plain.add(weight, y);
}

/* The groups of a warp become one: all under the largest score, about the first's center. */
template <basin_cuda_mode MODE, int G, typename R>
BASIN_DEVICE void join(running &s, R &sum, R &plain, float beta) {
    float maximum = basin_groups_max<G>(s.maximum);
    float factor = s.maximum == basin_minus_infinity() ? 0.0f : basin_exp2(s.maximum - maximum);
    s.maximum = maximum;
    if (MODE == BASIN_CUDA_REVERSE) {
        float center = __shfl_sync(0xffffffffu, s.center, threadIdx.x % G);
        float shift = factor == 0.0f ? 0.0f : s.center - center;
        s.gain = fmaf(shift, s.total, s.gain);
        s.gain_slope = fmaf(shift, s.slope, s.gain_slope);
        s.center = center;
        sum.add(beta * shift, plain);
        s.gain = basin_groups_sum<G>(s.gain * factor);
        s.gain_slope = basin_groups_sum<G>(s.gain_slope * factor);
        plain.times(factor);
        plain.join();
    }
    s.total = basin_groups_sum<G>(s.total * factor);
    if (MODE == BASIN_CUDA_VALUE) return;
    s.slope = basin_groups_sum<G>(s.slope * factor);
    sum.times(factor);
    sum.join();
}

/* What a query's sums come to; the factors of its rows of sums. */
struct closing {
    float factor, plain; /* out = factor (sum + plain times the plain sums) */
};
template <basin_cuda_mode MODE>
BASIN_DEVICE closing close(const listed &p, const running &s, int64_t node, int h, bool writes) {
    int64_t at = node * p.heads + h;
    float beta = p.beta[h], w = p.w ? p.w[at] : 0.0f;
    bool any = s.total > 0;
    float inverse = any ? 1.0f / s.total : 0.0f, offset = s.gain * inverse;
    float mean = any ? s.center + offset : 0.0f, factor = beta * w * inverse;
    if (writes) {
        if (p.lse) p.lse[at] = any ? s.maximum * BASIN_LN_2 + logf(s.total) : 0.0f;
        if (p.gw) p.gw[at] = beta * mean;
        if (p.slope)
            p.slope[at] = MODE == BASIN_CUDA_REVERSE
                              ? w * mean + factor * (s.gain_slope - offset * s.slope)
                              : w * inverse * s.slope;
        if (p.summary)
            *(float4 *)&p.summary[h * p.walk.nodes + node] =
                make_float4(any ? s.maximum : 0.0f, w * inverse, mean, 0.0f);
    }
    return {factor, -beta * offset};
}

/* What a warp walks, and the head of a lane: the warp's head, or one per lane among all heads of a
 * node. `first` is true in one lane of the warp for a head. */
struct errand {
    int64_t chunk, step,
        shift; /* chunk or node; distance between rows; offset of the first column */
    int head, width, group;
    bool there, first;
};
template <int G, int L> BASIN_DEVICE errand errand_of(const listed &p) {
    int64_t task = basin_cuda_walk_task(), tasks = p.whole ? p.walk.nodes : p.walk.chunks;
    int lane = threadIdx.x % 32;
    errand e = {task % tasks, (int64_t)p.heads * p.width};
    e.there = task / tasks < (L < G ? 1 : p.heads);
    e.head = L < G ? lane % G / L : (int)(task / tasks);
    e.shift = L < G ? 0 : (int64_t)e.head * p.width;
    e.width = L < G ? p.heads * p.width : p.width;
    e.group = lane / G, e.first = lane < G && lane % L == 0;
    return e;
}

template <basin_cuda_mode MODE, typename T, typename R, int G, int L>
static __global__ void __launch_bounds__(BASIN_WALK_WARPS * 32) by_query(listed p) {
    errand e = errand_of<G, L>(p);
    int64_t step = e.step, shift = e.shift, chunk = e.chunk;
    int h = e.head, group = e.group;
    if (!e.there) return;
    float beta = p.beta[h];
    basin_cuda_walker walker = walker_of(p, chunk);
    ends across(p.walk, walker.at, walker.end);
    for (bool more = p.whole || walker.more(); more; more = walker.more()) {
        basin_cuda_fragment f = walker.next(p.walk);
        running s = {basin_minus_infinity()};
        R x, x2, sum, plain, y, y2;
        x.load((const T *)p.x + f.node * step + shift, e.width);
        x2.clear(), sum.clear(), plain.clear(), y2.clear();
        if (MODE == BASIN_CUDA_REVERSE && p.x2)
            x2.load((const T *)p.x2 + f.node * step + shift, e.width);
#pragma unroll MODE == BASIN_CUDA_REVERSE ? 1 : 2
        for (int64_t base = f.begin; base < f.end; base += 32 / G) {
            bool on = base + group < f.end;
            int64_t at = on ? base + group : f.end - 1;
            int64_t other = other_end<MODE, T>(across, base, at);
            y.load((const T *)p.y + other * step + shift, e.width);
            float r = x.part(y), c = 0, scale = multiplier(p, at, h);
            if (MODE == BASIN_CUDA_REVERSE) {
                if (p.y2) y2.load((const T *)p.y2 + other * step + shift, e.width);
                c = scale * basin_group_sum<L>(x2.part(y) + x.part(y2));
            }
            take<MODE>(s, sum, plain, y, y2, scale * basin_group_sum<L>(r), c, beta, scale, on);
        }
        join<MODE, G>(s, sum, plain, beta);
        if (f.continues || f.continued) {
            int64_t slot = basin_cuda_fragment_slot(f, chunk) * p.heads + h;
            if (threadIdx.x % 32 == 0) p.states[slot] = s;
            if (MODE == BASIN_CUDA_VALUE || !p.out) continue;
            enum { PARTS = MODE == BASIN_CUDA_REVERSE ? 2 : 1 };
            sum.leave(p.sums + slot * PARTS * p.width, p.width);
            if (PARTS == 2) plain.leave(p.sums + (slot * PARTS + 1) * p.width, p.width);
        } else {
            closing end = close<MODE>(p, s, f.node, h, e.first);
            if (MODE == BASIN_CUDA_VALUE || !p.out) continue;
            if (MODE == BASIN_CUDA_REVERSE) sum.add(end.plain, plain);
            sum.store((T *)p.out + f.node * step + shift, end.factor, e.width);
        }
    }
}

/* ---- by key ---- */

/* Behind the last pair multipliers have no part in anything. */
BASIN_DEVICE void clear_rest(const listed &p) {
    int64_t end = p.walk.capacity * p.heads, step = (int64_t)gridDim.x * blockDim.x;
    int64_t i = basin_cuda_walk_start(p.walk, p.walk.nodes) * p.heads;
    for (i += (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < end; i += step)
        p.out_scale[i] = 0;
}

template <basin_cuda_mode MODE, typename T, typename R, int G, int L>
static __global__ void __launch_bounds__(BASIN_WALK_WARPS * 32) by_key(listed p) {
    errand e = errand_of<G, L>(p);
    int64_t step = e.step, shift = e.shift, chunk = e.chunk;
    int h = e.head, group = e.group;
    if (p.out_scale) clear_rest(p);
    if (!e.there) return;
    float beta = p.beta[h], rate = beta * BASIN_LOG2_E;
    const float4 *summary = (const float4 *)p.summary + h * p.walk.across;
    basin_cuda_walker walker = walker_of(p, chunk);
    ends across(p.walk, walker.at, walker.end);
    for (bool more = p.whole || walker.more(); more; more = walker.more()) {
        basin_cuda_fragment f = walker.next(p.walk);
        R x, x2, sum, y, y2;
        x.load((const T *)p.x + f.node * step + shift, e.width);
        x2.clear(), sum.clear(), y2.clear();
        if (MODE == BASIN_CUDA_REVERSE && p.x2)
            x2.load((const T *)p.x2 + f.node * step + shift, e.width);
#pragma unroll MODE == BASIN_CUDA_REVERSE ? 1 : 2
        for (int64_t base = f.begin; base < f.end; base += 32 / G) {
            bool on = base + group < f.end;
            int64_t at = on ? base + group : f.end - 1;
            int64_t other = other_end<MODE, T>(across, base, at);
            float4 q = __ldg(summary + other); /* maximum, weight, mean */
            y.load((const T *)p.y + other * step + shift, e.width);
            float r = basin_group_sum<L>(x.part(y)), c = 0;
            if (MODE == BASIN_CUDA_REVERSE) {
                if (p.y2) y2.load((const T *)p.y2 + other * step + shift, e.width);
                c = basin_group_sum<L>(x2.part(y) + x.part(y2));
            }
            int64_t pair = p.scale ? __ldg(p.walk.pair + at) : 0;
            float scale = multiplier(p, pair, h), d = beta * (scale * c - q.z);
            float t = on ? q.y * basin_exp2(scale * r * rate - q.x) : 0.0f;
            if (p.out_scale && on && threadIdx.x % L == 0)
                p.out_scale[pair * p.heads + h] =
                    t * beta * (MODE == BASIN_CUDA_REVERSE ? fmaf(d, r, c) : r);
            t *= scale;
            if (MODE == BASIN_CUDA_REVERSE) {
                sum.add(t, y2);
                t *= d;
            }
            sum.add(t, y);
        }
        if (!p.out) continue;
        sum.join();
        if (f.continues || f.continued)
            sum.leave(p.sums + (basin_cuda_fragment_slot(f, chunk) * p.heads + h) * p.width,
                      p.width);
        else
            sum.store((T *)p.out + f.node * step + shift, beta, e.width);
    }
}

/* ---- launching ---- */

struct listed_space {
    basin_cuda_summary *summary;
    float *slope, *sums;
    running *states;
    char *sum;
};

static inline size_t lay_out(listed_space *s, const basin_cuda_heads *at, basin_cuda_mode mode,
                             void *workspace) {
    basin_cuda_arena arena = {(char *)workspace, 0};
    int64_t slots = 2 * basin_cuda_walk_of(at, false).chunks,
            parts = mode == BASIN_CUDA_REVERSE ? 2 : 1;
    *s = {};
    s->states = basin_cuda_take<running>(&arena, slots * at->heads);
    if (mode == BASIN_CUDA_VALUE) return arena.used;
    s->sums = basin_cuda_take<float>(&arena, slots * at->heads * parts * at->width);
    if (at->out_k || at->out_scale)
        s->summary = basin_cuda_take<basin_cuda_summary>(&arena, at->queries * at->heads);
    if (at->out_beta) {
        s->slope = basin_cuda_take<float>(&arena, at->queries * at->heads);
        size_t bytes = basin_cuda_sum_bytes(1, at->queries, at->heads);
        s->sum = basin_cuda_take<char>(&arena, (int64_t)bytes);
    }
    return arena.used;
}

static const int64_t SHORT = 8192; /* pairs of a list that warps walk node by node */

static inline listed describe(const basin_cuda_heads *at, basin_cuda_mode mode,
                              const listed_space *s, bool keys) {
    listed p = {};
    bool reverse = mode == BASIN_CUDA_REVERSE;
    p.walk = basin_cuda_walk_of(at, keys);
    p.x = keys ? at->k : at->q, p.y = keys ? at->q : at->k;
    p.x2 = !reverse ? NULL : keys ? at->b : at->a, p.y2 = !reverse ? NULL : keys ? at->a : at->b;
    p.out = mode == BASIN_CUDA_VALUE ? NULL : keys ? at->out_k : at->out_q;
    p.beta = at->beta, p.w = mode == BASIN_CUDA_VALUE ? NULL : at->w;
    p.lse = at->lse, p.gw = at->gw, p.slope = s->slope, p.summary = s->summary;
    p.sums = s->sums, p.states = s->states;
    p.heads = (int)at->heads, p.width = (int)at->width;
    p.scale = at->scale, p.out_scale = keys ? at->out_scale : NULL;
    p.whole = at->pairs <= SHORT;
    return p;
}

/* Calls walk(mode, space), the mode as a type, and sums the shares of dbeta or gbeta. */
template <typename F>
static inline void run_walks(const basin_cuda_frame *frame, const basin_cuda_heads *at,
                             basin_cuda_mode mode, F walk) {
    listed_space s;
    lay_out(&s, at, mode, frame->workspace);
    if (mode == BASIN_CUDA_VALUE)
        walk(std::integral_constant<basin_cuda_mode, BASIN_CUDA_VALUE>(), &s);
    else if (mode == BASIN_CUDA_FORCE)
        walk(std::integral_constant<basin_cuda_mode, BASIN_CUDA_FORCE>(), &s);
    else
        walk(std::integral_constant<basin_cuda_mode, BASIN_CUDA_REVERSE>(), &s);
    if (s.slope)
        basin_cuda_sum(frame, at->out_beta, BASIN_REAL, s.slope, BASIN_REAL, 1, at->queries,
                       at->heads, s.sum);
}

#endif
