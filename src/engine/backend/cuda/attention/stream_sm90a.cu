/* Energy attention over all pairs of long sequences of bfloat16, heads of 33 to 64, on sm_90's
 * warpgroup products.
 *
 * A block of four warps has 64 own rows of one head; the other side streams through shared memory
 * in tiles of 64 rows. By query these are the keys, by key the queries; with x, x2 the own rows and
 * y, y2 the streamed ones (attention/dense.h),
 *
 *     r = x y^T    c = x2 y^T + x y2^T    sum over y of  p y  (force),  p y2 + gs y  (reverse)
 *
 * The reverse by query goes once, before the mean of c is known: with p = 2^(z' - maximum) and c
 * less an estimate c0 of the mean, from the first tile,
 *
 *     sum = sum of p y2 + p beta (c - c0) y    more = sum of p y    gain = sum of p beta (c - c0)
 *     gq = beta w / total (sum - gain / total more)
 *
 * The largest score is only raised where it grew by more than 2^8: then everything summed so far is
 * multiplied. By key, the sums over a tile are computed while the next one's scores are. */
#include "engine/backend/cuda/attention/dense.h"
#include "engine/backend/cuda/attention/dense_rows.h"
#include "engine/backend/cuda/attention/wgmma.h"

namespace {

enum {
    ROWS = BASIN_STREAM_ROWS,
    SUMS = 32,          /* of a thread: two rows, every fourth pair of columns */
    TABLE = ROWS * 128, /* bytes */
    MIN_NODES = 256,
};

typedef basin_wgmma_bf16 number;

template <basin_cuda_mode MODE, bool BY_KEY> struct stream_shape {
    enum {
        REVERSE = MODE == BASIN_CUDA_REVERSE,
        TABLES = REVERSE ? 2 : 1,
        KNOWN = TABLES * TABLE, /* where a stage has what is known of its queries */
        STAGE = KNOWN + (BY_KEY ? 1024 : 0),
        BLOCKS = REVERSE ? (BY_KEY ? 3 : 2) : 4, /* on a multiprocessor at a time */
        STAGES = REVERSE && BY_KEY ? 3 : 4,
        AHEAD = STAGES - 2, /* tiles on their way; one is read for scores, one for sums */
        BYTES = TABLES * TABLE + STAGES * STAGE,
    };
    static_assert(BLOCKS * (BYTES + 1024) <= 228 * 1024, "shared memory has room for all blocks");
};

/* What the key side needs to know of the queries of a head, [padded] each: P |w| is 2^(z' - level),
 * and the lowest bit of `level` the sign of w; gs is P (beta c + shift). */
struct stream_known {
    float *level, *shift;
};

BASIN_DEVICE stream_known known_of(const basin_dense_launch &p, int queries, int64_t set) {
    int64_t padded = (queries + ROWS - 1) / ROWS * ROWS;
    float *known = (float *)p.summary + set * 2 * padded;
    return {known, known + padded};
}

/* ---- a tile's way into shared memory ---- */

struct stream_side {
    const basin_bf16 *x; /* the head's first row; NULL: zeros */
    int64_t step;
    int nodes, width;
};

BASIN_DEVICE void fetch(char *table, const stream_side &from, int first, const void *somewhere) {
    basin_wgmma_fetch(table, from.x, from.step, first, from.nodes, from.width, somewhere);
}

template <basin_cuda_mode MODE, bool BY_KEY> struct stream_block {
    typedef stream_shape<MODE, BY_KEY> S;
    const basin_dense_launch &p;
    char *own, *stages;
    stream_side x, x2, y, y2;
    stream_known known; /* of the queries, on either side */
    int entry, head, first, warp, g, t;
    float beta, scale,
        left_out; /* scale: beta / log 2, never 0; left_out: a score without weight */

    BASIN_METHOD stream_side side(const void *table, int nodes, int64_t step) const {
        const basin_bf16 *rows = (const basin_bf16 *)table;
        return {rows ? rows + (int64_t)entry * nodes * step + (int64_t)head * p.width : NULL, step,
                nodes, p.width};
    }

    BASIN_METHOD stream_block(const basin_dense_launch &launch, char *shared)
        : p(launch), own(shared), stages(shared + S::TABLES * TABLE) {
        int set = (int)blockIdx.x / p.blocks;
        first = (int)blockIdx.x % p.blocks * ROWS;
        entry = set / p.heads, head = set % p.heads;
        warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
        g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
        x = side(p.x, p.own, p.step_x), y = side(p.y, p.other, p.step_y);
        x2 = side(p.x2, p.own, p.step_x2), y2 = side(p.y2, p.other, p.step_y2);
        known = known_of(p, BY_KEY ? p.other : p.own, set);
        beta = p.beta[head], scale = beta * BASIN_LOG2_E;
        if (fabsf(scale) < 1e-30f) scale = 1e-30f;
        left_out = scale > 0 ? basin_minus_infinity() : -basin_minus_infinity();
    }

    BASIN_METHOD char *stage(int tile) const { return stages + tile % S::STAGES * S::STAGE; }

    BASIN_METHOD void fetch_own() {
        fetch(own, x, first, p.x);
        if (S::REVERSE) fetch(own + TABLE, x2, first, p.x);
    }

    BASIN_METHOD void fetch_tile(int tile) {
        char *to = stage(tile);
        fetch(to, y, tile * ROWS, p.x);
        if (S::REVERSE) fetch(to + TABLE, y2, tile * ROWS, p.x);
        if (BY_KEY && threadIdx.x < (S::REVERSE ? 32 : 16)) { /* levels, then shifts */
            int i = (int)threadIdx.x;
            const float *from = (i < 16 ? known.level : known.shift - 64) + tile * ROWS + i * 4;
            basin_copy_async(to + S::KNOWN + i * 16, from, 16);
        }
    }

    /* Queues r, and in reverse c, of the own rows against a tile's. */
    BASIN_METHOD void multiply(float (&r)[SUMS], float (&c)[SUMS], int tile) const {
        const char *other = stage(tile);
        basin_wgmma_fence();
        basin_wgmma_multiply<number, false>(r, own, 0, other, 0);
        if (S::REVERSE) {
            basin_wgmma_multiply<number, false>(c, own + TABLE, 0, other, 0);
            basin_wgmma_multiply<number, true>(c, own, 0, other + TABLE, 0);
        }
        basin_wgmma_close();
    }

    /* Pairs beyond the other side's end, of a node with itself, and of tokens in the wrong order;
     * tiles that hold only such pairs are skipped. */
    BASIN_METHOD void leave_out(float (&r)[SUMS], int tile) const {
        int row = first + warp * 16 + g, column = tile * ROWS + 2 * t;
        bool end = !BY_KEY && tile * ROWS + ROWS > p.other;
        if (!end && !((p.exclude_self || p.order != 0) && tile * ROWS == first)) return;
        BASIN_UNROLL (i, SUMS) {
            int n = column + i / 4 * 8 + i % 2, m = row + i / 2 % 2 * 8;
            if (n >= p.other || (p.exclude_self && m == n) || (m - n) * p.order < 0)
                r[i] = left_out;
        }
    }

    BASIN_METHOD void write(const float (&sum)[SUMS], const float factor[2]) const {
        BASIN_UNROLL (i, 2) {
            int row = first + warp * 16 + g + i * 8;
            basin_bf16 *out = (basin_bf16 *)p.out + ((int64_t)entry * p.own + row) * p.step_out +
                              (int64_t)head * p.width + 2 * t;
            BASIN_UNROLL (j, ROWS / 8)
                if (row < p.own && j * 8 < p.width)
                    basin_dense_store(out + j * 8, sum[j * 4 + i * 2] * factor[i],
                                      sum[j * 4 + i * 2 + 1] * factor[i]);
        }
    }
};

/* ---- weights ---- */

/* Left operands of the next products: p, and in reverse p beta (c - mean). */
struct stream_weights {
    uint32_t p[ROWS / 16][4], s[ROWS / 16][4];
};

BASIN_DEVICE void pack(uint32_t (&to)[4], const float (&x)[8]) {
    BASIN_UNROLL (i, 4) to[i] = basin_mma_bf16::two(x[2 * i], x[2 * i + 1]);
}

/* Sums over the two rows of a thread, over the thread's columns only, except `maximum`. */
struct stream_rows {
    float maximum[2], total[2], gain[2];
    float base[2];                    /* reverse: beta c0 */
    float slope[2], bend[2], mean[2]; /* for dbeta: p r; for gbeta p beta (c - c0) r and p c */
};

/* The largest score of each row of a tile, in units of log 2. */
BASIN_DEVICE void largest(float (&maximum)[2], const float (&r)[SUMS], float scale) {
    float m[4] = {r[0], r[1], r[2], r[3]};
    if (scale > 0) {
#pragma unroll
        for (int i = 4; i < SUMS; i++) m[i % 4] = fmaxf(m[i % 4], r[i]);
        maximum[0] = fmaxf(m[0], m[1]), maximum[1] = fmaxf(m[2], m[3]);
    } else {
#pragma unroll
        for (int i = 4; i < SUMS; i++) m[i % 4] = fminf(m[i % 4], r[i]);
        maximum[0] = fminf(m[0], m[1]), maximum[1] = fminf(m[2], m[3]);
    }
    maximum[0] = basin_quad_max(maximum[0] * scale),
    maximum[1] = basin_quad_max(maximum[1] * scale);
}

BASIN_DEVICE void shrink(float (&sum)[SUMS], const float factor[2]) {
    BASIN_UNROLL (i, SUMS) sum[i] *= factor[i / 2 % 2];
}

/* Raises the largest scores where a tile's are so much larger that weights might grow too large. */
template <basin_cuda_mode MODE, bool SLOPE>
BASIN_DEVICE void raise(stream_rows &s, float (&sum)[SUMS], float (&more)[SUMS],
                        const float (&r)[SUMS], float scale) {
    float maximum[2], factor[2];
    largest(maximum, r, scale);
    bool grew = maximum[0] > s.maximum[0] + 8 || maximum[1] > s.maximum[1] + 8;
    if (!__any_sync(0xffffffffu, grew)) return;
    BASIN_UNROLL (i, 2) {
        maximum[i] = fmaxf(maximum[i], s.maximum[i]);
        factor[i] = basin_exp2(s.maximum[i] - maximum[i]);
        s.maximum[i] = maximum[i], s.total[i] *= factor[i], s.gain[i] *= factor[i];
        if (SLOPE) s.slope[i] *= factor[i], s.bend[i] *= factor[i], s.mean[i] *= factor[i];
    }
    if (MODE != BASIN_CUDA_VALUE) shrink(sum, factor);
    if (MODE == BASIN_CUDA_REVERSE) shrink(more, factor);
}

/* An estimate of the mean of c: that of the first tile. */
BASIN_DEVICE void estimate(stream_rows &s, const float (&r)[SUMS], const float (&c)[SUMS],
                           float scale, float beta) {
    float total[2] = {}, gain[2] = {};
    BASIN_UNROLL (i, SUMS) {
        float p = basin_exp2(fmaf(r[i], scale, -s.maximum[i / 2 % 2]));
        total[i / 2 % 2] += p;
        gain[i / 2 % 2] = fmaf(p, c[i], gain[i / 2 % 2]);
    }
    BASIN_UNROLL (i, 2)
        s.base[i] =
            beta * __fdividef(basin_quad_sum(gain[i]), fmaxf(basin_quad_sum(total[i]), 1e-30f));
}

/* Weights by query. */
template <basin_cuda_mode MODE, bool SLOPE>
BASIN_DEVICE void weigh(stream_weights &w, stream_rows &s, const float (&r)[SUMS],
                        const float (&c)[SUMS], float scale, float beta) {
    BASIN_UNROLL (step, ROWS / 16) {
        float p[8], bent[8];
        BASIN_UNROLL (e, 8) {
            int n = step * 8 + e, i = e / 2 % 2;
            p[e] = basin_exp2(fmaf(r[n], scale, -s.maximum[i]));
            s.total[i] += p[e];
            /* A left-out score is infinite. */
            float score = SLOPE && p[e] > 0 ? r[n] : 0;
            if (SLOPE) s.slope[i] = fmaf(p[e], score, s.slope[i]);
            if (MODE != BASIN_CUDA_REVERSE) continue;
            bent[e] = p[e] * fmaf(c[n], beta, -s.base[i]);
            s.gain[i] += bent[e];
            if (SLOPE) s.bend[i] = fmaf(bent[e], score, s.bend[i]);
            if (SLOPE) s.mean[i] = fmaf(p[e], c[n], s.mean[i]);
        }
        if (MODE != BASIN_CUDA_VALUE) pack(w.p[step], p);
        if (MODE == BASIN_CUDA_REVERSE) pack(w.s[step], bent);
    }
}

BASIN_DEVICE float signed_as(float x, float level) {
    return __uint_as_float(__float_as_uint(x) ^ (__float_as_uint(level) << 31));
}

/* Weights by key: columns are queries, `known` their levels and shifts in shared memory. */
template <basin_cuda_mode MODE>
BASIN_DEVICE void weigh_known(stream_weights &w, const float (&r)[SUMS], const float (&c)[SUMS],
                              const float *known, float scale, float beta, int t) {
    BASIN_UNROLL (step, ROWS / 16) {
        float p[8], bent[8];
        BASIN_UNROLL (half, 2) {
            int column = step * 16 + half * 8 + 2 * t;
            float2 level = *(const float2 *)(known + column), shift = make_float2(0, 0);
            if (MODE == BASIN_CUDA_REVERSE) shift = *(const float2 *)(known + ROWS + column);
            BASIN_UNROLL (e, 4) {
                int n = step * 8 + half * 4 + e;
                float at = e % 2 ? level.y : level.x, move = e % 2 ? shift.y : shift.x;
                float weight = signed_as(basin_exp2(fmaf(r[n], scale, -at)), at);
                p[half * 4 + e] = weight;
                if (MODE == BASIN_CUDA_REVERSE)
                    bent[half * 4 + e] = weight * fmaf(c[n], beta, move);
            }
        }
        pack(w.p[step], p);
        if (MODE == BASIN_CUDA_REVERSE) pack(w.s[step], bent);
    }
}

/* Queues the sums over a tile. */
template <basin_cuda_mode MODE, bool BY_KEY>
BASIN_DEVICE void gather(float (&sum)[SUMS], float (&more)[SUMS], const stream_weights &w,
                         const char *tile) {
    if (MODE == BASIN_CUDA_VALUE) return;
    basin_wgmma_fence();
    if (MODE == BASIN_CUDA_REVERSE) {
        basin_wgmma_sum<number, true>(sum, w.p, tile + TABLE, 0);
        basin_wgmma_sum<number, true>(sum, w.s, tile, 0);
        if (!BY_KEY) basin_wgmma_sum<number, true>(more, w.p, tile, 0);
    } else {
        basin_wgmma_sum<number, true>(sum, w.p, tile, 0);
    }
    basin_wgmma_close();
}

/* ---- what a query comes to ---- */

BASIN_DEVICE float level_of(float maximum, float total, float w) {
    if (w == 0 || total == 0) return 3e38f;
    unsigned level = __float_as_uint(maximum + __log2f(total) - __log2f(fabsf(w)));
    return __uint_as_float((level & ~1u) | (w < 0 ? 1u : 0u));
}

/* The share of a row in dbeta or gbeta, but for its w; `gain` is divided by the total already. */
template <basin_cuda_mode MODE>
BASIN_DEVICE float slope_of(const stream_rows &s, int i, float inverse, float gain) {
    float slope = basin_quad_sum(s.slope[i]) * inverse;
    if (MODE != BASIN_CUDA_REVERSE) return slope;
    return (basin_quad_sum(s.mean[i]) + basin_quad_sum(s.bend[i])) * inverse - gain * slope;
}

/* Both rows of a thread: what is asked for of them, and the factors of the sums and of `more`. */
template <basin_cuda_mode MODE, bool SLOPE>
BASIN_DEVICE void close(float factor[2], float drop[2], const stream_block<MODE, false> &b,
                        const stream_rows &s) {
    const basin_dense_launch &p = b.p;
    BASIN_UNROLL (i, 2) {
        int query = b.first + b.warp * 16 + b.g + i * 8;
        int64_t at = ((int64_t)b.entry * p.own + query) * p.heads + b.head;
        float w = query < p.own && p.w ? p.w[at] : 0.0f, total = basin_quad_sum(s.total[i]);
        float inverse = total > 0 ? 1.0f / total : 0.0f, gain = basin_quad_sum(s.gain[i]) * inverse;
        float slope = SLOPE ? slope_of<MODE>(s, i, inverse, gain) : 0;
        factor[i] = b.beta * w * inverse, drop[i] = -gain;
        if (b.t != 0) continue;
        if (query < p.own && p.lse)
            p.lse[at] = total > 0 ? fmaf(s.maximum[i], BASIN_LN_2, logf(total)) : 0.0f;
        if (SLOPE && query < p.own) p.slope[at] = w * slope;
        if (query < p.own && p.gw) p.gw[at] = s.base[i] + gain;
        if (p.summary) b.known.level[query] = level_of(s.maximum[i], total, w);
        if (p.summary && MODE == BASIN_CUDA_REVERSE) b.known.shift[query] = -(s.base[i] + gain);
    }
}

/* ---- the kernel ---- */

template <basin_cuda_mode MODE, bool BY_KEY, bool SLOPE>
__global__ void __launch_bounds__(128, stream_shape<MODE, BY_KEY>::BLOCKS)
    stream_kernel(const __grid_constant__ basin_dense_launch p) {
    typedef stream_shape<MODE, BY_KEY> S;
    extern __shared__ __align__(1024) char shared[];
    stream_block<MODE, BY_KEY> b(p, shared);
    stream_rows s = {{-1e30f, -1e30f}};
    stream_weights w;
    float r[SUMS], c[SUMS], sum[SUMS] = {}, more[SUMS] = {};
    int begin = p.order < 0 ? b.first / ROWS : 0; /* causal blocks skip tiles */
    int end = p.order > 0 ? b.first / ROWS + 1 : (p.other + ROWS - 1) / ROWS;
    b.fetch_own();
    BASIN_UNROLL (i, S::AHEAD) {
        if (begin + i < end) b.fetch_tile(begin + i);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int tile = begin; tile < end; tile++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(S::AHEAD - 1) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (tile + S::AHEAD < end) b.fetch_tile(tile + S::AHEAD);
        asm volatile("cp.async.commit_group;" ::: "memory");
        b.multiply(r, c, tile);
        basin_wgmma_wait<0>();
        basin_wgmma_pin(r);
        if (S::REVERSE) basin_wgmma_pin(c);
        if (MODE != BASIN_CUDA_VALUE) basin_wgmma_pin(sum);
        if (S::REVERSE && !BY_KEY) basin_wgmma_pin(more);
        b.leave_out(r, tile);
        if (BY_KEY) {
            weigh_known<MODE>(w, r, c, (const float *)(b.stage(tile) + S::KNOWN), b.scale, b.beta,
                              b.t);
        } else {
            raise<MODE, SLOPE>(s, sum, more, r, b.scale);
            if (S::REVERSE && tile == 0) estimate(s, r, c, b.scale, b.beta);
            weigh<MODE, SLOPE>(w, s, r, c, b.scale, b.beta);
        }
        gather<MODE, BY_KEY>(sum, more, w, b.stage(tile));
        /* By query, sums may be multiplied next; ptxas requires them to be finished before. */
        if (!BY_KEY) basin_wgmma_wait<0>();
    }
    basin_wgmma_wait<0>();
    if (MODE != BASIN_CUDA_VALUE) basin_wgmma_pin(sum);
    float factor[2] = {b.beta, b.beta}, drop[2];
    if constexpr (!BY_KEY) close<MODE, SLOPE>(factor, drop, b, s);
    if (S::REVERSE && !BY_KEY) {
        basin_wgmma_pin(more);
        BASIN_UNROLL (i, SUMS) sum[i] = fmaf(drop[i / 2 % 2], more[i], sum[i]);
    }
    if (MODE != BASIN_CUDA_VALUE && p.out) b.write(sum, factor);
}

template <basin_cuda_mode MODE, bool BY_KEY, bool SLOPE>
static cudaError_t start(const basin_dense_launch *p, cudaStream_t stream) {
    enum { BYTES = stream_shape<MODE, BY_KEY>::BYTES };
    void (*kernel)(const basin_dense_launch) = stream_kernel<MODE, BY_KEY, SLOPE>;
    cudaError_t code =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
    if (code == cudaSuccess)
        code = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                    cudaSharedmemCarveoutMaxShared);
    if (code != cudaSuccess) return code;
    kernel<<<(unsigned)p->tasks, 128, BYTES, stream>>>(*p);
    return cudaGetLastError();
}

} // namespace

bool basin_stream_fits(const basin_cuda *cuda, const basin_cuda_heads *at) {
    enum { BYTES = stream_shape<BASIN_CUDA_REVERSE, false>::BYTES };
    return at->kind == BASIN_NARROW && cuda->capability == 90 && at->queries >= MIN_NODES &&
           at->keys >= MIN_NODES && at->width > 32 && at->width <= 64 && at->width % 8 == 0 &&
           BYTES <= cuda->shared_limit;
}

template <basin_cuda_mode MODE>
static cudaError_t start_side(const basin_dense_launch *p, bool by_key, cudaStream_t stream) {
    return by_key     ? start<MODE, true, false>(p, stream)
           : p->slope ? start<MODE, false, true>(p, stream)
                      : start<MODE, false, false>(p, stream);
}

cudaError_t basin_stream_start(const basin_dense_launch *p, basin_cuda_mode mode, bool by_key,
                               cudaStream_t stream) {
    if (mode == BASIN_CUDA_VALUE) return start<BASIN_CUDA_VALUE, false, false>(p, stream);
    return mode == BASIN_CUDA_FORCE ? start_side<BASIN_CUDA_FORCE>(p, by_key, stream)
                                    : start_side<BASIN_CUDA_REVERSE>(p, by_key, stream);
}
