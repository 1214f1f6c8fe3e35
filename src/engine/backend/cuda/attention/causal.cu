/* Log-sum-exp and softmax over the keys that causal queries see, x [rows, N, M, H], and the
 * reverse; the equations are in ref/rows.c. A block takes a few queries. Their scores go through
 * shared memory (the workspace where they are too long), so that global memory is read and written
 * in order, and a warp takes the keys of one head of one query. In bfloat16 a warp takes a whole
 * query in registers instead, where it fits. What a query does not see is not read. */
#include "engine/backend/cuda/elements.h"
#include "engine/backend/cuda/inside.h"

enum { WARPS = 8, SHARED = 48 * 1024, LARGE_BLOCKS = 4 };
enum causal_mode { LOGSUMEXP, SOFTMAX, REVERSE };

struct causal {
    basin_source x, c;
    basin_sink y;
    float factor;
    int64_t rows; /* all queries of all sequences */
    int queries, keys, heads, length /* keys heads */, offset /* query n sees n + offset keys */;
    int group;                         /* queries of a block at a time */
    basin_divisor by_heads, by_chunks; /* chunks: vectors of a row */
    basin_divisor by_queries;
    float *space; /* in place of shared memory, or NULL */
    int64_t row_floats,
        block_floats; /* floats for the scores of a group; for everything a block needs */
};

/* The queries that a block works on: their first row, and its place in its sequence. */
struct batch {
    int64_t first;
    int place;
};

/* The number of keys that query r sees; 0 past the last query. */
BASIN_DEVICE int seen(const causal &a, const batch &b, int r) {
    if (b.first + r >= a.rows) return 0;
    int n = b.place + r;
    if (n >= a.queries) n %= a.queries;
    return min(n + a.offset, a.keys) * a.heads;
}

/* V neighbouring floats of shared memory; eight go as two vectors: no bank conflicts. */
template <int V> BASIN_DEVICE void put(float *to, const float (&x)[V]) {
    if constexpr (V == 8) {
        ((float4 *)to)[0] = make_float4(x[0], x[1], x[2], x[3]);
        ((float4 *)to)[1] = make_float4(x[4], x[5], x[6], x[7]);
    } else {
        for (int j = 0; j < V; j++) to[j] = x[j];
    }
}
template <int V> BASIN_DEVICE void take(float (&x)[V], const float *from) {
    if constexpr (V == 8) {
        float4 low = ((const float4 *)from)[0], high = ((const float4 *)from)[1];
        x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
        x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
    } else {
        for (int j = 0; j < V; j++) x[j] = from[j];
    }
}

/* Scores of the group's queries, and the cotangents of their shares, as floats. */
template <causal_mode MODE, int V>
static __device__ void load(const causal &a, float *score, float *cotangent, const batch &b) {
    int chunks = a.length / V;
    for (int i = (int)threadIdx.x; i < a.group * chunks; i += (int)blockDim.x) {
        int r = (int)basin_divide((uint32_t)i, a.by_chunks), e = (i - r * chunks) * V;
        int64_t at = (b.first + r) * a.length + e;
        float x[V];
        if (e >= seen(a, b, r)) continue;
        basin_read<V>(x, a.x, at);
        BASIN_UNROLL (j, V) x[j] *= a.factor;
        put<V>(score + r * a.length + e, x);
        if (MODE != REVERSE) continue;
        basin_read<V>(x, a.c, at);
        put<V>(cotangent + r * a.length + e, x);
    }
}

/* exp(score - maximum) in place; total [group, H] gets 1 / sum and the mean of the cotangents. */
template <causal_mode MODE>
static __device__ void sum_up(const causal &a, float *score, const float *cotangent, float2 *total,
                              const batch &b) {
    int lane = (int)threadIdx.x % 32;
    for (int i = (int)threadIdx.x / 32; i < a.group * a.heads; i += (int)blockDim.x / 32) {
        int r = (int)basin_divide((uint32_t)i, a.by_heads), h = i - r * a.heads;
        int base = r * a.length, end = seen(a, b, r);
        float maximum = -INFINITY, sum = 0, mean = 0;
        for (int e = lane * a.heads + h; e < end; e += 32 * a.heads)
            maximum = fmaxf(maximum, score[base + e]);
        maximum = basin_warp_max(maximum);
        for (int e = lane * a.heads + h; e < end; e += 32 * a.heads) {
            float share = expf(score[base + e] - maximum);
            sum += share;
            if (MODE == REVERSE) mean += share * cotangent[base + e];
            if (MODE != LOGSUMEXP) score[base + e] = share;
        }
        sum = basin_warp_sum(sum);
        if (MODE == REVERSE) mean = basin_warp_sum(mean);
        if (lane > 0 || b.first + r >= a.rows) continue;
        if (MODE == LOGSUMEXP)
            basin_write_one(a.y, b.first * a.heads + i, end > 0 ? maximum + logf(sum) : 0.0f);
        else
            total[i] = end > 0 ? make_float2(1 / sum, mean / sum) : make_float2(0, 0);
    }
}

template <causal_mode MODE, int V>
static __device__ void store(const causal &a, const float *score, const float *cotangent,
                             const float2 *total, const batch &b) {
    int chunks = a.length / V;
    for (int i = (int)threadIdx.x; i < a.group * chunks; i += (int)blockDim.x) {
        int r = (int)basin_divide((uint32_t)i, a.by_chunks), e = (i - r * chunks) * V;
        int h = e - (int)basin_divide((uint32_t)e, a.by_heads) * a.heads, end = seen(a, b, r);
        int64_t at = (b.first + r) * a.length + e;
        float y[V] = {}, c[V] = {};
        if (b.first + r >= a.rows) continue;
        if (e < end) take<V>(y, score + r * a.length + e);
        if (e < end && MODE == REVERSE) take<V>(c, cotangent + r * a.length + e);
#pragma unroll
        for (int j = 0; j < V && e < end; j++) {
            float2 t = total[r * a.heads + h];
            float share = y[j] * t.x;
            if (MODE == REVERSE) share *= a.factor * (c[j] - t.y);
            y[j] = e + j < end ? share : 0.0f;
            h = h + 1 < a.heads ? h + 1 : 0;
        }
        basin_write<V>(a.y, at, y);
    }
}

template <causal_mode MODE, int V> static __global__ void causal_rows(const causal a) {
    extern __shared__ float4 shared[];
    float *space = a.space ? a.space + blockIdx.x * a.block_floats : (float *)shared;
    float *score = space, *cotangent = space + a.row_floats; /* the latter only in the reverse */
    float2 *total = (float2 *)(space + (MODE == REVERSE ? 2 : 1) * a.row_floats);
    for (batch b = {(int64_t)blockIdx.x * a.group, 0}; b.first < a.rows;
         b.first += (int64_t)gridDim.x * a.group) {
        b.place = (int)(b.first % a.queries);
        load<MODE, V>(a, score, cotangent, b);
        __syncthreads();
        sum_up<MODE>(a, score, cotangent, total, b);
        __syncthreads();
        if (MODE != LOGSUMEXP) store<MODE, V>(a, score, cotangent, total, b);
        __syncthreads();
    }
}

/* ---- bfloat16: a warp takes a query ---- */

/* A lane takes so many neighbouring numbers at a time that they are whole vectors of eight and
 * whole keys: which head each is of is then known when this is compiled. */
template <int H> struct unit {
    static constexpr int common = H % 8 == 0 ? 8 : H % 4 == 0 ? 4 : H % 2 == 0 ? 2 : 1;
    static constexpr int size = 8 / common * H, vectors = size / 8;
};

/* A warp's numbers of one turn. Memory is read and written in order; where a lane has several
 * vectors these change places in shared memory [32 vectors]. */
template <int H>
BASIN_DEVICE void fetch(float (&x)[unit<H>::size], const uint4 *from, int end, int first,
                        uint4 *shared) {
    constexpr int vectors = unit<H>::vectors;
    int lane = (int)threadIdx.x % 32;
    uint4 own[vectors];
    BASIN_UNROLL (i, vectors) {
        int v = first / 8 + 32 * i + lane;
        own[i] = v * 8 < end ? from[v] : make_uint4(0, 0, 0, 0);
    }
    if constexpr (vectors > 1) {
        __syncwarp();
        BASIN_UNROLL (i, vectors) shared[32 * i + lane] = own[i];
        __syncwarp();
        BASIN_UNROLL (i, vectors) own[i] = shared[lane * vectors + i];
    }
    BASIN_UNROLL (i, vectors) {
        const uint32_t two[4] = {own[i].x, own[i].y, own[i].z, own[i].w};
        BASIN_UNROLL (j, 4) {
            x[8 * i + 2 * j] = __uint_as_float(two[j] << 16);
            x[8 * i + 2 * j + 1] = __uint_as_float(two[j] & 0xffff0000u);
        }
    }
}

template <int H>
BASIN_DEVICE void deliver(uint4 *to, const float (&y)[unit<H>::size], int length, int first,
                          uint4 *shared) {
    constexpr int vectors = unit<H>::vectors;
    int lane = (int)threadIdx.x % 32;
    uint4 own[vectors];
    BASIN_UNROLL (i, vectors) {
        uint32_t two[4];
        BASIN_UNROLL (j, 4) {
            __nv_bfloat162 pair = __floats2bfloat162_rn(y[8 * i + 2 * j], y[8 * i + 2 * j + 1]);
            two[j] = *(const uint32_t *)&pair;
        }
        own[i] = make_uint4(two[0], two[1], two[2], two[3]);
    }
    if constexpr (vectors > 1) {
        __syncwarp();
        BASIN_UNROLL (i, vectors) shared[lane * vectors + i] = own[i];
        __syncwarp();
        BASIN_UNROLL (i, vectors) own[i] = shared[32 * i + lane];
    }
    BASIN_UNROLL (i, vectors) {
        int v = first / 8 + 32 * i + lane;
        if (v * 8 < length) to[v] = own[i];
    }
}

/* exp(score - maximum of its head), 0 of what is not seen; what exp was multiplied by to have sum 1
 * goes into inverse. Scores come as they are in memory. */
template <int H, int TURNS>
BASIN_DEVICE void exponentials(float (&x)[TURNS][unit<H>::size], float (&inverse)[H], float factor,
                               int end) {
    constexpr int U = unit<H>::size;
    const float scale = factor * 1.44269504f; /* exp2 is one instruction */
    int mine = (int)threadIdx.x % 32 * U;
    float maximum[H];
    BASIN_UNROLL (h, H) maximum[h] = -INFINITY, inverse[h] = 0;
    BASIN_UNROLL (i, TURNS)
        BASIN_UNROLL (j, U) {
            x[i][j] = 32 * U * i + mine + j < end ? x[i][j] * scale : -INFINITY;
            maximum[j % H] = fmaxf(maximum[j % H], x[i][j]);
        }
    BASIN_UNROLL (h, H) maximum[h] = end > 0 ? basin_warp_max(maximum[h]) : 0.0f;
    BASIN_UNROLL (i, TURNS)
        BASIN_UNROLL (j, U) {
            x[i][j] = exp2f(x[i][j] - maximum[j % H]);
            inverse[j % H] += x[i][j];
        }
    BASIN_UNROLL (h, H) inverse[h] = end > 0 ? 1 / basin_warp_sum(inverse[h]) : 0.0f;
}

/* Cotangents become those of the scores. */
template <int H, int TURNS>
BASIN_DEVICE void turn_back(float (&x)[TURNS][unit<H>::size],
                            const float (&c)[TURNS][unit<H>::size], const float (&inverse)[H],
                            float factor) {
    constexpr int U = unit<H>::size;
    float mean[H] = {};
    BASIN_UNROLL (i, TURNS)
        BASIN_UNROLL (j, U) mean[j % H] += x[i][j] * c[i][j];
    BASIN_UNROLL (h, H) mean[h] = basin_warp_sum(mean[h]) * inverse[h];
    BASIN_UNROLL (i, TURNS)
        BASIN_UNROLL (j, U) x[i][j] *= inverse[j % H] * factor * (c[i][j] - mean[j % H]);
}

template <causal_mode MODE, int H, int TURNS>
static __global__ void __launch_bounds__(32 * WARPS) causal_warps(const causal a) {
    constexpr int U = unit<H>::size, vectors = unit<H>::vectors;
    __shared__ uint4 space[WARPS][vectors > 1 ? 32 * vectors : 1];
    int warp = (int)threadIdx.x / 32;
    int64_t row = (int64_t)blockIdx.x * WARPS + warp, at = row * a.length;
    if (row >= a.rows) return;
    int n = (int)((uint32_t)row - basin_divide((uint32_t)row, a.by_queries) * (uint32_t)a.queries);
    int end = min(n + a.offset, a.keys) * H;
    float x[TURNS][U], c[TURNS][U], inverse[H];
    BASIN_UNROLL (i, TURNS) {
        int first = 32 * U * i;
        fetch<H>(x[i], (const uint4 *)((const basin_bf16 *)a.x.data + at), end, first, space[warp]);
        if (MODE != REVERSE) continue;
        fetch<H>(c[i], (const uint4 *)((const basin_bf16 *)a.c.data + at), end, first, space[warp]);
    }
    exponentials<H, TURNS>(x, inverse, a.factor, end);
    if (MODE == REVERSE) turn_back<H, TURNS>(x, c, inverse, a.factor);
    BASIN_UNROLL (i, TURNS) {
        int first = 32 * U * i;
#pragma unroll
        for (int j = 0; j < U && MODE == SOFTMAX; j++) x[i][j] *= inverse[j % H];
        deliver<H>((uint4 *)((basin_bf16 *)a.y.data + at), x[i], a.length, first, space[warp]);
    }
}

/* Numbers that a lane keeps, at most. */
enum { KEPT = 56 };

template <causal_mode MODE, int H, int TURNS>
static bool launch_warps(const basin_cuda_frame *frame, const causal &a) {
    constexpr int U = unit<H>::size;
    if constexpr (U * TURNS > KEPT) {
        return false;
    } else {
        if (a.length > 32 * U * TURNS) return launch_warps<MODE, H, 2 * TURNS>(frame, a);
        unsigned grid = (unsigned)basin_cuda_ceil(a.rows, WARPS);
        causal_warps<MODE, H, TURNS><<<grid, 32 * WARPS, 0, frame->stream>>>(a);
        BASIN_CUDA_LAUNCHED(frame->cuda, "causal softmax");
        return true;
    }
}

/* False where the kernels above do not take it. */
template <causal_mode MODE> static bool run_warps(const basin_cuda_frame *frame, const causal &a) {
    bool narrow = a.x.narrow && a.y.narrow && (MODE != REVERSE || a.c.narrow);
    if (!narrow || a.length % 8 != 0 || a.rows >= (int64_t)1 << 31) return false;
    switch (a.heads) {
    case 1: return launch_warps<MODE, 1, 1>(frame, a);
    case 2: return launch_warps<MODE, 2, 1>(frame, a);
    case 3: return launch_warps<MODE, 3, 1>(frame, a);
    case 4: return launch_warps<MODE, 4, 1>(frame, a);
    case 5: return launch_warps<MODE, 5, 1>(frame, a);
    case 6: return launch_warps<MODE, 6, 1>(frame, a);
    case 7: return launch_warps<MODE, 7, 1>(frame, a);
    case 8: return launch_warps<MODE, 8, 1>(frame, a);
    default: return false;
    }
}

/* ---- the operations ---- */

/* Floats of a group's scores; all that a block works in: scores, cotangents, two per head. */
static int64_t row_floats_of(const causal *a, int64_t group) {
    return basin_cuda_ceil(group * a->length, 4) * 4;
}
static int64_t floats_of(const basin_call *call, const causal *a, int64_t group) {
    bool reverse = call->op == BASIN_OP_CAUSAL_SOFTMAX_REVERSE;
    int64_t totals = basin_cuda_ceil(2 * group * a->heads, 4) * 4;
    return row_floats_of(a, group) * (reverse ? 2 : 1) + totals;
}

static causal sizes_of(const basin_call *call) {
    const basin_shape *s = &call->in[0].shape;
    causal a = {};
    a.queries = (int)s->dim[s->rank - 3], a.keys = (int)s->dim[s->rank - 2];
    a.heads = (int)s->dim[s->rank - 1], a.length = a.keys * a.heads;
    a.rows = basin_shape_product(s, 0, s->rank - 2);
    a.offset = call->attr.exclude_self ? 0 : 1;
    a.group = a.heads > 0 && a.heads < WARPS ? WARPS / a.heads : 1;
    while (a.group > 1 && floats_of(call, &a, a.group) * 4 > SHARED) a.group--;
    a.row_floats = row_floats_of(&a, a.group), a.block_floats = floats_of(call, &a, a.group);
    a.by_heads = basin_divisor_of(a.heads);
    a.by_queries = basin_divisor_of(a.queries);
    a.by_chunks = basin_divisor_of(a.length % 8 == 0 ? a.length / 8 : a.length);
    return a;
}

static unsigned large_grid(const basin_cuda *cuda) {
    return (unsigned)cuda->multiprocessors * LARGE_BLOCKS;
}

size_t basin_cuda_causal_workspace(const basin_cuda *cuda, const basin_call *call) {
    causal a = sizes_of(call);
    if (a.block_floats * 4 <= SHARED) return 0;
    return (size_t)a.block_floats * sizeof(float) * large_grid(cuda);
}

template <causal_mode MODE>
static void launch(const basin_cuda_frame *frame, const causal &a, unsigned grid) {
    int warps = a.group * a.heads < WARPS ? a.group * a.heads : WARPS;
    size_t bytes = a.space ? 0 : (size_t)a.block_floats * sizeof(float);
    if (a.length % 8 == 0)
        causal_rows<MODE, 8><<<grid, 32 * warps, bytes, frame->stream>>>(a);
    else
        causal_rows<MODE, 1><<<grid, 32 * warps, bytes, frame->stream>>>(a);
    BASIN_CUDA_LAUNCHED(frame->cuda, "causal softmax");
}

void basin_cuda_causal(const basin_cuda_frame *frame) {
    const basin_call *call = frame->call;
    bool reverse = call->op == BASIN_OP_CAUSAL_SOFTMAX_REVERSE;
    causal a = sizes_of(call);
    if (a.rows == 0 || a.heads == 0) return;
    a.x = basin_cuda_source(frame, 0), a.y = basin_cuda_sink(frame, 0);
    if (reverse) a.c = basin_cuda_source(frame, 1);
    a.factor = (float)call->attr.value;
    if (reverse ? run_warps<REVERSE>(frame, a)
                : call->op == BASIN_OP_CAUSAL_SOFTMAX && run_warps<SOFTMAX>(frame, a))
        return;
    bool large = a.block_floats * 4 > SHARED;
    if (large) a.space = (float *)frame->workspace;
    int64_t groups = basin_cuda_ceil(a.rows, a.group);
    unsigned grid =
        large && groups > large_grid(frame->cuda) ? large_grid(frame->cuda) : (unsigned)groups;
    if (reverse)
        launch<REVERSE>(frame, a, grid);
    else if (call->op == BASIN_OP_CAUSAL_SOFTMAX)
        launch<SOFTMAX>(frame, a, grid);
    else
        launch<LOGSUMEXP>(frame, a, grid);
}
