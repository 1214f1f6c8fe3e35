/* Log-sum-exp and softmax over the keys that causal queries see, x [rows, N, M, H], and the
 * reverse; the equations are in ref/causal.c. A block takes a few queries. Their scores go through
 * shared memory (the workspace where they are too long), so that global memory is read and written
 * in order, and a warp takes the keys of one head of one query. What a query does not see is not
 * read. Draws are made where they are needed and written nowhere. */
#include "backend/cuda/elements.h"
#include "backend/cuda/inside.h"
#include "base/philox.h"

enum { WARPS = 8, SHARED = 48 * 1024, LARGE_BLOCKS = 4 };
enum causal_mode { LOGSUMEXP, SOFTMAX, REVERSE };

struct causal {
    basin_source x, c;
    basin_sink y;
    const uint32_t *seed; /* [2] or NULL */
    uint32_t stream;
    uint32_t limit; /* a share is kept where the upper 24 bits of its word are above */
    float kept;     /* and is multiplied by this */
    float factor;
    int64_t rows; /* all queries of all sequences */
    int queries, keys, heads, length /* keys heads */, offset /* query n sees n + offset keys */;
    int group;    /* queries of a block at a time */
    float *space; /* in place of shared memory, or NULL */
    int64_t block_floats;
};

/* Numbers that a query sees; 0 behind the last query. */
static __device__ __forceinline__ int seen(const causal &a, int64_t row) {
    if (row >= a.rows) return 0;
    return min((int)(row % a.queries) + a.offset, a.keys) * a.heads;
}

/* Drops some of V numbers, the first of which is element `first`. */
template <int V>
static __device__ __forceinline__ void drop(float (&x)[V], const causal &a, int64_t first) {
#pragma unroll
    for (int i = 0; i < V; i += 4) {
        uint64_t call = (uint64_t)(first + i) / 4;
        uint32_t word[4] = {(uint32_t)call, (uint32_t)(call >> 32), a.stream, 0};
        uint32_t key[2] = {a.seed[0], a.seed[1]};
#pragma unroll
        for (int round = 0; round < 10; round++, basin_philox_next(key))
            basin_philox_round(word, key);
#pragma unroll
        for (int j = 0; j < 4 && i + j < V; j++) {
            uint32_t own = V >= 4 ? word[j] : word[(first + j) % 4];
            x[i + j] *= own >> 8 > a.limit ? a.kept : 0.0f;
        }
    }
}

/* Scores of the group's queries, and the cotangents of their shares, as floats. */
template <causal_mode MODE, int V>
static __device__ void load(const causal &a, float *score, float *cotangent, int64_t first) {
    int chunks = a.length / V;
    for (int i = (int)threadIdx.x; i < a.group * chunks; i += (int)blockDim.x) {
        int r = i / chunks, e = (i - r * chunks) * V;
        int64_t row = first + r, at = row * a.length + e;
        float x[V];
        if (e >= seen(a, row)) continue;
        basin_read<V>(x, a.x, at);
#pragma unroll
        for (int j = 0; j < V; j++) score[r * a.length + e + j] = x[j] * a.factor;
        if (MODE != REVERSE) continue;
        basin_read<V>(x, a.c, at);
        if (a.seed) drop<V>(x, a, at);
#pragma unroll
        for (int j = 0; j < V; j++) cotangent[r * a.length + e + j] = x[j];
    }
}

/* exp(score - maximum) in place of the scores; total [group, H] gets 1 / sum and the mean of the
 * cotangents. */
template <causal_mode MODE>
static __device__ void sum_up(const causal &a, float *score, const float *cotangent, float2 *total,
                              int64_t first) {
    int lane = (int)threadIdx.x % 32;
    for (int i = (int)threadIdx.x / 32; i < a.group * a.heads; i += (int)blockDim.x / 32) {
        int r = i / a.heads, h = i - r * a.heads, base = r * a.length;
        int end = seen(a, first + r);
        float most = -INFINITY, sum = 0, mean = 0;
        for (int e = lane * a.heads + h; e < end; e += 32 * a.heads)
            most = fmaxf(most, score[base + e]);
        most = basin_warp_max(most);
        for (int e = lane * a.heads + h; e < end; e += 32 * a.heads) {
            float share = expf(score[base + e] - most);
            sum += share;
            if (MODE == REVERSE) mean += share * cotangent[base + e];
            if (MODE != LOGSUMEXP) score[base + e] = share;
        }
        sum = basin_warp_sum(sum);
        if (MODE == REVERSE) mean = basin_warp_sum(mean);
        if (lane > 0 || first + r >= a.rows) continue;
        if (MODE == LOGSUMEXP)
            basin_write_one(a.y, first * a.heads + i, end > 0 ? most + logf(sum) : 0.0f);
        else
            total[i] = end > 0 ? make_float2(1 / sum, mean / sum) : make_float2(0, 0);
    }
}

template <causal_mode MODE, int V>
static __device__ void store(const causal &a, const float *score, const float *cotangent,
                             const float2 *total, int64_t first) {
    int chunks = a.length / V;
    for (int i = (int)threadIdx.x; i < a.group * chunks; i += (int)blockDim.x) {
        int r = i / chunks, e = (i - r * chunks) * V, h = e % a.heads;
        int64_t row = first + r, at = row * a.length + e;
        int end = seen(a, row);
        float y[V];
        if (row >= a.rows) continue;
#pragma unroll
        for (int j = 0; j < V; j++) {
            bool inside = e + j < end;
            float2 t = total[r * a.heads + h];
            float share = inside ? score[r * a.length + e + j] * t.x : 0.0f;
            if (MODE == SOFTMAX) y[j] = share;
            if (MODE == REVERSE)
                y[j] = inside ? a.factor * share * (cotangent[r * a.length + e + j] - t.y) : 0.0f;
            h = h + 1 < a.heads ? h + 1 : 0;
        }
        if (MODE == SOFTMAX && a.seed && e < end) drop<V>(y, a, at);
        basin_write<V>(a.y, at, y);
    }
}

template <causal_mode MODE, int V> static __global__ void causal_rows(const causal a) {
    extern __shared__ float4 shared[];
    float *score = a.space ? a.space + blockIdx.x * a.block_floats : (float *)shared;
    float *cotangent = score + (int64_t)a.group * a.length;
    float2 *total =
        (float2 *)(MODE == REVERSE ? cotangent + (int64_t)a.group * a.length : cotangent);
    for (int64_t first = (int64_t)blockIdx.x * a.group; first < a.rows;
         first += (int64_t)gridDim.x * a.group) {
        load<MODE, V>(a, score, cotangent, first);
        __syncthreads();
        sum_up<MODE>(a, score, cotangent, total, first);
        __syncthreads();
        if (MODE != LOGSUMEXP) store<MODE, V>(a, score, cotangent, total, first);
        __syncthreads();
    }
}

/* Floats that a block works in: scores, cotangents, and two numbers for each head. */
static int64_t floats_of(const basin_call *call, int64_t length, int64_t heads, int64_t group) {
    bool reverse = call->op == BASIN_OP_CAUSAL_SOFTMAX_REVERSE;
    return basin_cuda_ceil(group * (length * (reverse ? 2 : 1) + 2 * heads), 4) * 4;
}

static causal sizes_of(const basin_call *call) {
    const basin_shape *s = &call->in[0].shape;
    causal a = {};
    a.queries = (int)s->dim[s->rank - 3], a.keys = (int)s->dim[s->rank - 2];
    a.heads = (int)s->dim[s->rank - 1], a.length = a.keys * a.heads;
    a.rows = basin_shape_product(s, 0, s->rank - 2);
    a.offset = call->attr.exclude_self ? 0 : 1;
    a.group = a.heads > 0 && a.heads < WARPS ? WARPS / a.heads : 1;
    while (a.group > 1 && floats_of(call, a.length, a.heads, a.group) * 4 > SHARED) a.group--;
    a.block_floats = floats_of(call, a.length, a.heads, a.group);
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
    int seed = reverse ? 2 : 1;
    causal a = sizes_of(call);
    if (a.rows == 0 || a.heads == 0) return;
    a.x = basin_cuda_source(frame, 0), a.y = basin_cuda_sink(frame, 0);
    if (reverse) a.c = basin_cuda_source(frame, 1);
    if (call->ins > seed) a.seed = (const uint32_t *)frame->in[seed];
    a.stream = call->attr.stream, a.factor = (float)call->attr.value;
    a.limit = (uint32_t)(call->attr.drop * 0x1p24), a.kept = (float)(1 / (1 - call->attr.drop));
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
