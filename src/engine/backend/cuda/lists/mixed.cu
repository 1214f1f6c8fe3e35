/* Energy attention with any multipliers and mixing, over a list or all pairs, pass by pass; the
 * numbers of every pair and head lie in planes [H, pairs] of the workspace:
 *
 *     dots     r, c
 *     measure  largest score, sum, gw of every query and head after the mixing
 *     weigh    u = w P scale, gz scale, dscale;  unmix  beta t, beta gs, shares of dbeta
 *     sums     dQ, gQ by query, dK, gK by key;   dmix from its chunks' shares
 *
 * A warp takes a chunk of pairs and one head, one lane per pair. With mixing a number after it
 * costs H numbers before it, read from the first-level cache: H^2 reads and multiply-adds per pair
 * and pass.
 */
#include "engine/backend/cuda/lists/walk.h"

struct mixed {
    basin_cuda_walk walk; /* by query */
    const float *beta, *scale, *mix, *w;
    float *r, *c;  /* [H, plane] */
    float *u, *uz; /* [H, plane] after the mixing; without mixing not there */
    float *t, *gs; /* [H, plane] beta t, beta gs; may be r and c */
    int64_t plane;
    struct measured *states;     /* [slots, H] of cut queries */
    basin_cuda_summary *summary; /* [queries, H]; mean: gw */
    float *lse, *gw;             /* [queries, H], or NULL */
    float *out_scale;            /* [pairs, H], or NULL */
    float *slope;                /* [chunks, H] shares of dbeta, or NULL */
    float *corner;               /* [corner_chunks, H, H] shares of dmix, or NULL */
    int64_t corner_piece, corner_chunks;
    int heads;
    bool exclude_self, causal;
    bool added; /* scale is a bias */
};

struct measured {
    float maximum, total, gain;
};

/* Entry g after the mixing of a pair's numbers before it, each times its beta. */
BASIN_DEVICE float mixed_at(const mixed &p, const float *plane, int64_t i, int g) {
    if (!p.mix) return p.beta[g] * plane[g * p.plane + i];
    float sum = 0;
    for (int h = 0; h < p.heads; h++)
        sum = fmaf(__ldg(p.beta + h) * plane[h * p.plane + i], __ldg(p.mix + h * p.heads + g), sum);
    return sum;
}

/* What pair i multiplies the score of head g by, and what it adds. */
BASIN_DEVICE float2 factor_and_bias(const mixed &p, int64_t i, int g) {
    float scale = p.scale ? p.scale[i * p.heads + g] : 1.0f;
    if (p.added) return {1.0f, p.scale ? scale : 0.0f};
    return {scale, 0.0f};
}

/* Whether pair i of a query is left out. */
BASIN_DEVICE bool is_left_out(const mixed &p, int64_t node, int64_t i) {
    if (!(p.exclude_self || p.causal) || p.walk.start) return false;
    int64_t key = i % p.walk.across, query = node % p.walk.own;
    return (p.exclude_self && key == query) || (p.causal && key > query);
}

BASIN_DEVICE measured both(const measured &a, const measured &b) {
    float maximum = fmaxf(a.maximum, b.maximum);
    if (maximum == basin_minus_infinity()) return a;
    float keep = basin_exp2(a.maximum - maximum), add = basin_exp2(b.maximum - maximum);
    return {maximum, a.total * keep + b.total * add, a.gain * keep + b.gain * add};
}

template <basin_cuda_mode MODE>
BASIN_DEVICE void close(const mixed &p, const measured &s, int64_t node, int g) {
    int64_t at = node * p.heads + g;
    bool any = s.total > 0;
    float inverse = any ? 1.0f / s.total : 0.0f, gw = s.gain * inverse;
    if (p.lse) p.lse[at] = any ? s.maximum * BASIN_LN_2 + logf(s.total) : 0.0f;
    if (MODE == BASIN_CUDA_VALUE) return;
    if (p.gw) p.gw[at] = gw;
    p.summary[at] = {any ? s.maximum : 0.0f, p.w[at] * inverse, gw, 0.0f};
}

template <basin_cuda_mode MODE>
static __global__ void __launch_bounds__(BASIN_WALK_WARPS * 32) measure(mixed p) {
    int64_t task = basin_cuda_walk_task(), chunk = task % p.walk.chunks;
    int g = (int)(task / p.walk.chunks), lane = threadIdx.x % 32;
    if (g >= p.heads) return;
    basin_cuda_walker walker(p.walk, chunk);
    while (walker.more()) {
        basin_cuda_fragment f = walker.next(p.walk);
        measured s = {basin_minus_infinity(), 0, 0};
        for (int64_t i = f.begin + lane; i < f.end; i += 32) {
            if (is_left_out(p, f.node, i)) continue;
            float2 by = factor_and_bias(p, i, g);
            float z = fmaf(mixed_at(p, p.r, i, g), by.x, by.y) * BASIN_LOG2_E;
            float gain = MODE == BASIN_CUDA_REVERSE ? by.x * mixed_at(p, p.c, i, g) : 0.0f;
            s = both(s, {z, 1.0f, gain});
        }
        for (int step = 16; step > 0; step /= 2)
            s = both(s, {__shfl_xor_sync(0xffffffffu, s.maximum, step),
                         __shfl_xor_sync(0xffffffffu, s.total, step),
                         __shfl_xor_sync(0xffffffffu, s.gain, step)});
        if (lane != 0) continue;
        if (f.continues || f.continued)
            p.states[basin_cuda_fragment_slot(f, chunk) * p.heads + g] = s;
        else
            close<MODE>(p, s, f.node, g);
    }
}

/* Queries that were cut, or have no pairs; a thread per query and head. */
template <basin_cuda_mode MODE> static __global__ void join_states(mixed p) {
    int64_t task = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, node = task / p.heads;
    int g = (int)(task % p.heads);
    if (node >= p.walk.nodes) return;
    basin_cuts cuts(p.walk, node);
    if (cuts.count == 1) return;
    measured s = {basin_minus_infinity(), 0, 0};
    for (int64_t i = 0; i < cuts.count; i++) s = both(s, p.states[cuts.slot(i) * p.heads + g]);
    close<MODE>(p, s, node, g);
}

/* One pair after the mixing; returns its share of dbeta or gbeta where nothing mixes. */
template <basin_cuda_mode MODE>
BASIN_DEVICE float weigh_pair(const mixed &p, int64_t node, int64_t i, int g) {
    int64_t at = g * p.plane + i;
    float4 q = *(const float4 *)&p.summary[node * p.heads + g]; /* maximum, w / total, gw */
    float2 by = factor_and_bias(p, i, g);
    float scale = by.x, beta = p.beta[g];
    float y = mixed_at(p, p.r, i, g), r = p.r[at];
    float wp = is_left_out(p, node, i)
                   ? 0.0f
                   : q.y * basin_exp2(fmaf(y, scale, by.y) * BASIN_LOG2_E - q.x);
    float u = wp * scale, uz = 0, share = u * r, slope = p.added ? wp : wp * y;
    if (MODE == BASIN_CUDA_REVERSE) {
        float v = mixed_at(p, p.c, i, g), gz = wp * (scale * v - q.z);
        uz = gz * scale;
        share = u * p.c[at] + uz * r;
        slope = p.added ? gz : wp * v + gz * y;
    }
    if (p.out_scale) p.out_scale[i * p.heads + g] = slope;
    if (p.mix) {
        p.u[at] = u;
        if (MODE == BASIN_CUDA_REVERSE) p.uz[at] = uz;
    } else {
        p.t[at] = beta * u;
        if (MODE == BASIN_CUDA_REVERSE) p.gs[at] = beta * uz;
    }
    return share;
}

template <basin_cuda_mode MODE>
static __global__ void __launch_bounds__(BASIN_WALK_WARPS * 32) weigh(mixed p) {
    int64_t task = basin_cuda_walk_task(), chunk = task % p.walk.chunks;
    int g = (int)(task / p.walk.chunks), lane = threadIdx.x % 32;
    if (g >= p.heads) return;
    basin_cuda_walker walker(p.walk, chunk);
    int64_t end = walker.end, begin = chunk * p.walk.piece, last = begin + p.walk.piece;
    float share = 0;
    while (walker.more()) {
        basin_cuda_fragment f = walker.next(p.walk);
        for (int64_t i = f.begin + lane; i < f.end; i += 32)
            share += weigh_pair<MODE>(p, f.node, i, g);
    }
    share = basin_warp_sum(share);
    if (p.slope && !p.mix && lane == 0) p.slope[chunk * p.heads + g] = share;
    if (last > p.walk.capacity) last = p.walk.capacity;
    for (int64_t i = (end > begin ? end : begin) + lane; p.out_scale && i < last; i += 32)
        p.out_scale[i * p.heads + g] = 0;
}

/* The pairs of a chunk of `piece`, whatever their queries. */
BASIN_DEVICE void chunk_of(int64_t &begin, int64_t &end, const basin_cuda_walk &walk, int64_t piece,
                           int64_t chunk) {
    int64_t total = basin_cuda_walk_start(walk, walk.nodes);
    begin = chunk * piece;
    end = begin + piece < total ? begin + piece : total;
}

/* t[h] = sum_g mix[h,g] u[g], and gs. */
template <basin_cuda_mode MODE>
static __global__ void __launch_bounds__(BASIN_WALK_WARPS * 32) unmix(mixed p) {
    int64_t task = basin_cuda_walk_task(), chunk = task % p.walk.chunks, begin, end;
    int h = (int)(task / p.walk.chunks), lane = threadIdx.x % 32;
    if (h >= p.heads) return;
    float beta = p.beta[h], share = 0;
    chunk_of(begin, end, p.walk, p.walk.piece, chunk);
    for (int64_t i = begin + lane; i < end; i += 32) {
        int64_t at = h * p.plane + i;
        float t = 0, gs = 0, r = p.r[at];
        for (int g = 0; g < p.heads; g++) {
            float mix = __ldg(p.mix + h * p.heads + g);
            t = fmaf(mix, p.u[g * p.plane + i], t);
            if (MODE == BASIN_CUDA_REVERSE) gs = fmaf(mix, p.uz[g * p.plane + i], gs);
        }
        share += MODE == BASIN_CUDA_REVERSE ? t * p.c[at] + gs * r : t * r;
        p.t[at] = beta * t;
        if (MODE == BASIN_CUDA_REVERSE) p.gs[at] = beta * gs;
    }
    share = basin_warp_sum(share);
    if (p.slope && lane == 0) p.slope[chunk * p.heads + h] = share;
}

/* A chunk's share of dmix[h,g] = sum beta r[h] u[g], gmix = sum beta (c[h] u[g] + r[h] uz[g]). */
template <basin_cuda_mode MODE>
static __global__ void __launch_bounds__(BASIN_WALK_WARPS * 32) corners(mixed p) {
    int64_t task = basin_cuda_walk_task(), chunk = task % p.corner_chunks, begin, end;
    int64_t corner = task / p.corner_chunks, corners = (int64_t)p.heads * p.heads;
    if (corner >= corners) return;
    int h = (int)(corner / p.heads), g = (int)(corner % p.heads), lane = threadIdx.x % 32;
    float sum = 0;
    chunk_of(begin, end, p.walk, p.corner_piece, chunk);
    for (int64_t i = begin + lane; i < end; i += 32) {
        float r = p.r[h * p.plane + i], u = p.u[g * p.plane + i];
        if (MODE == BASIN_CUDA_REVERSE)
            sum += p.c[h * p.plane + i] * u + r * p.uz[g * p.plane + i];
        else
            sum += r * u;
    }
    sum = basin_warp_sum(sum);
    if (lane == 0) p.corner[chunk * corners + corner] = p.beta[h] * sum;
}

/* ---- launching ---- */

struct mixed_space {
    mixed p;
    char *sums, *beta_sum, *mix_sum;
};

static size_t lay_out(mixed_space *s, const basin_cuda_heads *at, basin_cuda_mode mode,
                      void *workspace) {
    basin_cuda_arena arena = {(char *)workspace, 0};
    bool reverse = mode == BASIN_CUDA_REVERSE;
    int64_t H = at->heads, queries = at->batch * at->queries;
    *s = {};
    mixed *p = &s->p;
    p->walk = basin_cuda_walk_of(at, false);
    p->plane = basin_cuda_ceil(at->pairs, 32) * 32;
    p->r = basin_cuda_take<float>(&arena, H * p->plane);
    p->states = basin_cuda_take<measured>(&arena, 2 * p->walk.chunks * H);
    if (mode == BASIN_CUDA_VALUE) return arena.used;
    p->c = reverse ? basin_cuda_take<float>(&arena, H * p->plane) : NULL;
    p->u = at->mix ? basin_cuda_take<float>(&arena, H * p->plane) : NULL;
    p->uz = at->mix && reverse ? basin_cuda_take<float>(&arena, H * p->plane) : NULL;
    p->t = at->out_mix ? basin_cuda_take<float>(&arena, H * p->plane) : p->r;
    p->gs = at->out_mix && reverse ? basin_cuda_take<float>(&arena, H * p->plane) : p->c;
    p->summary = basin_cuda_take<basin_cuda_summary>(&arena, queries * H);
    size_t by_query = basin_cuda_pair_sums_bytes(p->walk, H, at->width);
    s->sums = basin_cuda_take<char>(&arena, (int64_t)by_query); /* as many chunks by key */
    if (at->out_beta) {
        p->slope = basin_cuda_take<float>(&arena, p->walk.chunks * H);
        s->beta_sum =
            basin_cuda_take<char>(&arena, (int64_t)basin_cuda_sum_bytes(1, p->walk.chunks, H));
    }
    if (at->out_mix) {
        p->corner_piece = p->walk.piece < 128 ? 128 : p->walk.piece; /* a lane takes four pairs */
        p->corner_chunks = basin_cuda_ceil(at->pairs, p->corner_piece);
        p->corner = basin_cuda_take<float>(&arena, p->corner_chunks * H * H);
        s->mix_sum = basin_cuda_take<char>(
            &arena, (int64_t)basin_cuda_sum_bytes(1, p->corner_chunks, H * H));
    }
    return arena.used;
}

size_t basin_cuda_mixed_workspace(const basin_cuda_heads *at, basin_cuda_mode mode) {
    mixed_space s;
    return lay_out(&s, at, mode, NULL);
}

template <basin_cuda_mode MODE>
static void weights(const basin_cuda_frame *frame, const basin_cuda_heads *at, const mixed &p) {
    unsigned blocks = basin_cuda_walk_blocks(p.walk.chunks * p.heads),
             threads = BASIN_WALK_WARPS * 32;
    measure<MODE><<<blocks, threads, 0, frame->stream>>>(p);
    BASIN_CUDA_LAUNCHED(frame->cuda, "attention, measure");
    join_states<MODE>
        <<<(unsigned)basin_cuda_ceil(p.walk.nodes * p.heads, 128), 128, 0, frame->stream>>>(p);
    BASIN_CUDA_LAUNCHED(frame->cuda, "attention, cut rows");
    if constexpr (MODE != BASIN_CUDA_VALUE) {
        weigh<MODE><<<blocks, threads, 0, frame->stream>>>(p);
        BASIN_CUDA_LAUNCHED(frame->cuda, "attention, weigh");
        if (at->mix) unmix<MODE><<<blocks, threads, 0, frame->stream>>>(p);
        BASIN_CUDA_LAUNCHED(frame->cuda, "attention, unmix");
        if (at->mix && at->out_mix)
            corners<MODE><<<basin_cuda_walk_blocks(p.corner_chunks * p.heads * p.heads), threads, 0,
                            frame->stream>>>(p);
        BASIN_CUDA_LAUNCHED(frame->cuda, "attention, corners");
    }
}

/* dq and dk, or gq and gk: one sum, or two where the cotangent across is there. */
static void sums(const basin_cuda_frame *frame, const basin_cuda_heads *at, const mixed_space *s,
                 basin_cuda_mode mode, bool by_key) {
    const mixed *p = &s->p;
    void *out = by_key ? at->out_k : at->out_q;
    const void *y = by_key ? at->q : at->k, *y2 = by_key ? at->a : at->b;
    basin_pair_numbers t = {p->t, 1, p->plane}, gs = {p->gs, 1, p->plane}, none = {};
    bool reverse = mode == BASIN_CUDA_REVERSE;
    if (!out) return;
    basin_cuda_pair_sums(frame, out, at->kind, reverse ? gs : t, y, reverse && y2 ? t : none, y2,
                         basin_cuda_walk_of(at, by_key), at->heads, at->width, s->sums);
}

void basin_cuda_mixed(const basin_cuda_frame *frame, const basin_cuda_heads *at,
                      basin_cuda_mode mode) {
    mixed_space s;
    lay_out(&s, at, mode, frame->workspace);
    mixed *p = &s.p;
    bool reverse = mode == BASIN_CUDA_REVERSE;
    p->beta = at->beta, p->scale = at->scale, p->mix = at->mix, p->w = at->w;
    p->lse = at->lse, p->gw = at->gw, p->out_scale = at->out_scale;
    p->heads = (int)at->heads, p->exclude_self = at->exclude_self;
    p->causal = at->causal, p->added = at->added;
    basin_cuda_pair_dots(frame, {p->r, 1, p->plane}, {p->c, 1, p->plane}, at->kind, at->q,
                         reverse ? at->a : NULL, at->k, reverse ? at->b : NULL, p->walk, at->heads,
                         at->width, false);
    if (mode == BASIN_CUDA_VALUE) return weights<BASIN_CUDA_VALUE>(frame, at, *p);
    if (reverse)
        weights<BASIN_CUDA_REVERSE>(frame, at, *p);
    else
        weights<BASIN_CUDA_FORCE>(frame, at, *p);
    sums(frame, at, &s, mode, false);
    sums(frame, at, &s, mode, true);
    if (at->out_beta)
        basin_cuda_sum(frame, at->out_beta, BASIN_REAL, p->slope, BASIN_REAL, 1, p->walk.chunks,
                       at->heads, s.beta_sum);
    if (at->out_mix && at->mix)
        basin_cuda_sum(frame, at->out_mix, BASIN_REAL, p->corner, BASIN_REAL, 1, p->corner_chunks,
                       at->heads * at->heads, s.mix_sum);
}
