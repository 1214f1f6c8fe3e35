/* Layer norm with a gain: g = gamma n + delta, n = (x - mean) / s, s = sqrt(var + eps). Its reverse
 * for a cotangent c of g:
 *   dx = gamma / s (c - mean(c) - n mean(c n)), dgamma = sum c n, ddelta = sum over rows of c;
 * perhaps with r added to dx, and dx written a second time for products to read. Where gamma is a
 * gain of each column, it multiplies c in dx, and dgamma is a sum over rows as ddelta is. A row of
 * up to 1024 numbers stays in the registers of one warp; a longer one is read by a block. Sums over
 * rows: each block leaves its own in the workspace; few are summed by the last block, many by
 * separate launches (reduce.cu). */
#include "engine/backend/cuda/elements.h"
#include "engine/backend/cuda/inside.h"

enum { THREADS = 256, ROWS = THREADS / 32 };

/* A warp's row in registers: vector i of lane l holds elements (l + 32 i) V ... */
template <int V, int ITEMS> struct row_of { float v[ITEMS][V]; };

template <int V, int ITEMS>
BASIN_DEVICE void load_row(row_of<V, ITEMS> *row, basin_source x, int64_t at, int width) {
    int lane = (int)threadIdx.x % 32;
    BASIN_UNROLL (i, ITEMS) {
        int j = (lane + 32 * i) * V;
        if (j < width)
            basin_read<V>(row->v[i], x, at + j);
        else
            for (int k = 0; k < V; k++) row->v[i][k] = 0;
    }
}

/* Asks for a row that will be read soon, a line of the cache by one lane. */
template <int V, int ITEMS> BASIN_DEVICE void prefetch_row(basin_source x, int64_t at, int width) {
    int lane = (int)threadIdx.x % 32, size = x.narrow ? 2 : 4;
    BASIN_UNROLL (i, ITEMS) {
        int j = (lane + 32 * i) * V;
        if (j < width && lane * V * size % 128 == 0)
            asm volatile("prefetch.global.L2 [%0];" ::"l"((const char *)x.data + (at + j) * size));
    }
}

/* Centres the row (what is beyond its width stays 0) and returns 1 / s. */
template <int V, int ITEMS>
BASIN_DEVICE float centre_row(row_of<V, ITEMS> *row, int width, float epsilon) {
    int lane = (int)threadIdx.x % 32;
    float sum = 0, square = 0;
    BASIN_UNROLL (i, ITEMS)
        BASIN_UNROLL (k, V) sum += row->v[i][k];
    float mean = basin_warp_sum(sum) / (float)width;
    BASIN_UNROLL (i, ITEMS)
        BASIN_UNROLL (k, V) {
            row->v[i][k] = (lane + 32 * i) * V < width ? row->v[i][k] - mean : 0;
            square += row->v[i][k] * row->v[i][k];
        }
    return 1.0f / sqrtf(basin_warp_sum(square) / (float)width + epsilon);
}

/* Blocks begin with the last rows: these were written last, and are in the cache. */
template <int V, int ITEMS>
static __global__ void __launch_bounds__(THREADS)
    norm_rows(basin_sink g, basin_sink byte_copy, basin_source x, const float *gamma, bool each,
              const float *delta, int64_t rows, int width, float epsilon) {
    int64_t i = (int64_t)(gridDim.x - 1 - blockIdx.x) * ROWS + threadIdx.x / 32, at = i * width;
    int lane = (int)threadIdx.x % 32;
    row_of<V, ITEMS> row;
    if (i >= rows) return;
    load_row(&row, x, at, width);
    float gain = (each ? 1 : *gamma) * centre_row(&row, width, epsilon);
    BASIN_UNROLL (k, ITEMS) {
        int j = (lane + 32 * k) * V;
        if (j >= width) continue;
        float offset[V], own[V];
        basin_read<V>(offset, basin_source{delta, false}, j);
        if (each) {
            basin_read<V>(own, basin_source{gamma, false}, j);
            BASIN_UNROLL (l, V) row.v[k][l] = gain * row.v[k][l] * own[l] + offset[l];
        } else {
            BASIN_UNROLL (l, V) row.v[k][l] = gain * row.v[k][l] + offset[l];
        }
        basin_write_any<V>(g, at + j, row.v[k]);
        if (byte_copy.data) basin_write_any<V>(byte_copy, at + j, row.v[k]);
    }
}

/* Where the reverse reads and writes. */
struct reverse_of {
    basin_sink dx, again, byte_copy;
    float *
        gammas; /* sums of c n, of a block's rows [blocks], of long rows one each [rows]; or NULL */
    float *deltas; /* sums of c over a block's rows [blocks, width]; or NULL */
    float *gains;  /* of c n, where each column has a gain, of long rows c n itself; or NULL */
    basin_source x, c, r;
    const float *gamma;
    unsigned *arrived;            /* not NULL: the last block sums over blocks, into these */
    float *all_gamma, *all_delta; /* [1] or [width], [width], or NULL */
};

/* dx of a warp's row, once n and the cotangent are there with their sums. */
template <int V, int ITEMS>
BASIN_DEVICE void write_row(const reverse_of &o, const row_of<V, ITEMS> &n,
                            const row_of<V, ITEMS> &cotangent, int64_t at, int width, float gain,
                            float mean, float mean_dot) {
    int lane = (int)threadIdx.x % 32;
    BASIN_UNROLL (k, ITEMS) {
        int j = (lane + 32 * k) * V;
        if (j >= width) continue;
        float out[V], more[V] = {};
        if (o.r.data) basin_read<V>(more, o.r, at + j);
        BASIN_UNROLL (l, V)
            out[l] = gain * (cotangent.v[k][l] - mean - n.v[k][l] * mean_dot) + more[l];
        basin_write<V>(o.dx, at + j, out);
        if (o.again.data) basin_write_any<V>(o.again, at + j, out);
        if (o.byte_copy.data) basin_write_any<V>(o.byte_copy, at + j, out);
    }
}

/* What the warps of a block have summed over their rows, together. */
template <int V, int ITEMS>
BASIN_DEVICE void join_rows(float *to, const row_of<V, ITEMS> &sums, int width) {
    __shared__ float shared[ROWS][32 * V * ITEMS];
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    __syncthreads();
    BASIN_UNROLL (k, ITEMS)
        BASIN_UNROLL (l, V) shared[warp][(lane + 32 * k) * V + l] = sums.v[k][l];
    __syncthreads();
    for (int j = (int)threadIdx.x; j < width; j += THREADS) {
        float sum = 0;
        for (int i = 0; i < ROWS; i++) sum += shared[i][j];
        to[(int64_t)blockIdx.x * width + j] = sum;
    }
}

static __device__ void join_gammas(const reverse_of &o, float gamma) {
    __shared__ float gammas[ROWS];
    if (threadIdx.x % 32 == 0) gammas[threadIdx.x / 32] = gamma;
    __syncthreads();
    if (threadIdx.x == 0) {
        float sum = 0;
        for (int i = 0; i < ROWS; i++) sum += gammas[i];
        o.gammas[blockIdx.x] = sum;
    }
}

/* out [width] = sums over the parts [parts, width], by a block, threads over columns. */
static __device__ void sum_parts(float *out, const float *part, int parts, int width,
                                 float *shared) {
    int lanes = width < THREADS ? THREADS / width : 1, across = width < THREADS ? width : THREADS;
    int lane = (int)threadIdx.x / across;
    for (int first = 0; first < width; first += across) {
        int column = first + (int)threadIdx.x % across;
        float sum = 0;
        if (lane < lanes && column < width)
            for (int i = lane; i < parts; i += lanes) sum += __ldcg(part + i * width + column);
        __syncthreads();
        shared[threadIdx.x] = sum;
        __syncthreads();
        if (lane != 0 || column >= width) continue;
        for (int i = 1; i < lanes && i < parts; i++) sum += shared[i * across + threadIdx.x];
        out[column] = sum;
    }
}

/* A block takes `turns` times as many neighbouring rows as it has warps. */
template <int V, int ITEMS, bool EACH>
static __global__ void __launch_bounds__(THREADS)
    reverse_rows(reverse_of o, int64_t rows, int turns, int width, float epsilon) {
    row_of<V, ITEMS> delta = {}, gains = {};
    float gamma = 0;
    for (int turn = 0; turn < turns; turn++) {
        int64_t i = ((int64_t)blockIdx.x * turns + turn) * ROWS + threadIdx.x / 32;
        if (i >= rows) break;
        row_of<V, ITEMS> n, cotangent;
        load_row(&n, o.x, i * width, width);
        load_row(&cotangent, o.c, i * width, width);
        if (o.r.data) prefetch_row<V, ITEMS>(o.r, i * width, width);
        if (turn + 1 < turns && i + ROWS < rows) {
            prefetch_row<V, ITEMS>(o.x, (i + ROWS) * width, width);
            prefetch_row<V, ITEMS>(o.c, (i + ROWS) * width, width);
        }
        float inverse = centre_row(&n, width, epsilon), sum = 0, dot = 0;
        BASIN_UNROLL (k, ITEMS) {
            float own[V];
            int j = ((int)threadIdx.x % 32 + 32 * k) * V;
            if (EACH && j < width) basin_read<V>(own, basin_source{o.gamma, false}, j);
            BASIN_UNROLL (l, V) {
                n.v[k][l] *= inverse;
                delta.v[k][l] += cotangent.v[k][l];
                if (EACH) gains.v[k][l] += cotangent.v[k][l] * n.v[k][l];
                if (EACH) cotangent.v[k][l] = j < width ? cotangent.v[k][l] * own[l] : 0;
                sum += cotangent.v[k][l];
                dot += cotangent.v[k][l] * n.v[k][l];
            }
        }
        sum = basin_warp_sum(sum), dot = basin_warp_sum(dot);
        gamma += dot;
        if (o.dx.data)
            write_row(o, n, cotangent, i * width, width, (EACH ? 1 : *o.gamma) * inverse,
                      sum / (float)width, dot / (float)width);
    }
    if (o.deltas) join_rows(o.deltas, delta, width);
    if (EACH && o.gains) join_rows(o.gains, gains, width);
    if (!EACH && o.gammas) join_gammas(o, gamma);
    if (!o.arrived || !basin_is_last_block(o.arrived, gridDim.x)) return;
    __shared__ float shared[THREADS];
    if (o.all_gamma && !EACH) sum_parts(o.all_gamma, o.gammas, (int)gridDim.x, 1, shared);
    if (o.all_gamma && EACH) sum_parts(o.all_gamma, o.gains, (int)gridDim.x, width, shared);
    if (o.all_delta) sum_parts(o.all_delta, o.deltas, (int)gridDim.x, width, shared);
}

/* ---- long rows: a block each ---- */

static __device__ float block_sum(float x, float *shared) {
    x = basin_warp_sum(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (int i = 0; i < ROWS; i++) x += shared[i];
    return x;
}

struct moments {
    float mean, inverse;
};

static __device__ moments long_moments(basin_source x, int64_t at, int width, float epsilon,
                                       float *shared) {
    float sum = 0, square = 0;
    for (int j = (int)threadIdx.x; j < width; j += THREADS) sum += basin_read_one(x, at + j);
    float mean = block_sum(sum, shared) / (float)width;
    for (int j = (int)threadIdx.x; j < width; j += THREADS) {
        float d = basin_read_one(x, at + j) - mean;
        square += d * d;
    }
    return {mean, 1.0f / sqrtf(block_sum(square, shared) / (float)width + epsilon)};
}

static __device__ void write_one(basin_sink to, int64_t i, float x) {
    const float one[1] = {x};
    if (to.data) basin_write_any<1>(to, i, one);
}

static __global__ void norm_long(basin_sink g, basin_sink byte_copy, basin_source x,
                                 const float *gamma, bool each, const float *delta, int width,
                                 float epsilon) {
    __shared__ float shared[ROWS];
    int64_t at = (int64_t)blockIdx.x * width;
    moments m = long_moments(x, at, width, epsilon, shared);
    float gain = (each ? 1 : *gamma) * m.inverse;
    for (int j = (int)threadIdx.x; j < width; j += THREADS) {
        float y = basin_read_one(x, at + j) - m.mean;
        if (each)
            y = gain * y * gamma[j] + delta[j];
        else
            y = gain * y + delta[j];
        write_one(g, at + j, y);
        write_one(byte_copy, at + j, y);
    }
}

static __global__ void reverse_long(reverse_of o, bool each, int width, float epsilon) {
    __shared__ float shared[ROWS];
    int64_t at = (int64_t)blockIdx.x * width;
    moments m = long_moments(o.x, at, width, epsilon, shared);
    float sum = 0, dot = 0;
    for (int j = (int)threadIdx.x; j < width; j += THREADS) {
        float cotangent = basin_read_one(o.c, at + j);
        float centred = basin_read_one(o.x, at + j) - m.mean;
        if (o.gains) o.gains[at + j] = cotangent * centred * m.inverse;
        if (each) cotangent *= o.gamma[j];
        sum += cotangent;
        dot += cotangent * centred * m.inverse;
    }
    sum = block_sum(sum, shared), dot = block_sum(dot, shared);
    if (o.gammas && threadIdx.x == 0) o.gammas[blockIdx.x] = dot;
    if (!o.dx.data) return;
    float gain = (each ? 1 : *o.gamma) * m.inverse, mean = sum / (float)width,
          mean_dot = dot / (float)width;
    for (int j = (int)threadIdx.x; j < width; j += THREADS) {
        float n = (basin_read_one(o.x, at + j) - m.mean) * m.inverse;
        float c = basin_read_one(o.c, at + j) * (each ? o.gamma[j] : 1);
        float out = gain * (c - mean - n * mean_dot);
        if (o.r.data) out += basin_read_one(o.r, at + j);
        basin_write_one(o.dx, at + j, out);
        write_one(o.again, at + j, out);
        write_one(o.byte_copy, at + j, out);
    }
}

/* ---- the operations ---- */

typedef struct table {
    int64_t rows;
    int width;
    bool each; /* a gain of each column */
} table;

static table table_of(const basin_call *call) {
    const basin_shape *shape = &call->in[0].shape;
    return {basin_shape_product(shape, 0, shape->rank - 1), (int)shape->dim[shape->rank - 1],
            call->in[1].shape.rank > 0};
}

/* Calls f with the numbers V and ITEMS for the width as types; false where the row is too long. */
template <int N> struct constant { static const int value = N; };
template <typename F> static bool with_row(int width, F f) {
#define ROW(v, items)                                                                              \
    if (width % (v) == 0 && width <= 32 * (v) * (items))                                           \
    return f(constant<v>(), constant<items>()), true
    ROW(4, 1);
    ROW(4, 2);
    ROW(4, 3);
    ROW(4, 4);
    ROW(4, 6);
    ROW(4, 8);
    ROW(1, 4);
    ROW(1, 16);
#undef ROW
    return false;
}

void basin_cuda_layernorm(const basin_cuda_frame *frame) {
    table t = table_of(frame->call);
    basin_sink g = basin_cuda_sink(frame, 0), byte_copy = {};
    if (frame->call->byte_copies)
        byte_copy = basin_cuda_sink_of(frame->byte_copy[0], &frame->call->byte_copy[0]);
    basin_source x = basin_cuda_source(frame, 0);
    const float *gamma = (const float *)frame->in[1], *delta = (const float *)frame->in[2];
    float epsilon = (float)frame->call->attr.value;
    if (t.rows == 0 || t.width == 0) return;
    bool done = with_row(t.width, [&](auto v, auto items) {
        norm_rows<decltype(v)::value, decltype(items)::value>
            <<<(unsigned)basin_cuda_ceil(t.rows, ROWS), THREADS, 0, frame->stream>>>(
                g, byte_copy, x, gamma, t.each, delta, t.rows, t.width, epsilon);
    });
    if (!done)
        norm_long<<<(unsigned)t.rows, THREADS, 0, frame->stream>>>(g, byte_copy, x, gamma, t.each,
                                                                   delta, t.width, epsilon);
    BASIN_CUDA_LAUNCHED(frame->cuda, "layernorm");
}

/* How the rows of a reverse are cut: as their number says. */
struct share {
    int64_t parts; /* blocks; for long rows, the rows themselves */
    int turns;
    bool is_long;
};

static share share_of(const table *t) {
    const int64_t maximum = t->each ? 512 : 2048;
    int64_t groups = basin_cuda_ceil(t->rows, ROWS), turns = basin_cuda_ceil(groups, maximum);
    bool is_long = !with_row(t->width, [](auto, auto) {});
    if (is_long) return {t->rows, 1, true};
    return {turns > 0 ? basin_cuda_ceil(groups, turns) : 0, (int)turns, false};
}

static size_t aligned(int64_t floats) { return ((size_t)floats * sizeof(float) + 63) / 64 * 64; }

/* Sums of c n of a part. */
static int64_t gammas_of(const table *t) { return t->each ? t->width : 1; }

/* Workspace: sums of c n, of c [parts, width] unless rows are long, and their sums'. */
size_t basin_cuda_layernorm_reverse_workspace(const basin_cuda *, const basin_call *call) {
    table t = table_of(call);
    share s = share_of(&t);
    bool gamma = call->out[1].block >= 0, delta = call->out[2].block >= 0;
    size_t scratch = gamma ? basin_cuda_sum_bytes(1, s.parts, gammas_of(&t)) : 0;
    if (delta && basin_cuda_sum_bytes(1, s.parts, t.width) > scratch)
        scratch = basin_cuda_sum_bytes(1, s.parts, t.width);
    return (gamma ? aligned(s.parts * gammas_of(&t)) : 0) +
           (delta && !s.is_long ? aligned(s.parts * t.width) : 0) + scratch;
}

static void launch_reverse(const basin_cuda_frame *frame, const reverse_of *o, const table *t,
                           const share *s) {
    float epsilon = (float)frame->call->attr.value;
    bool requested = o->dx.data || o->gammas || o->gains || o->deltas;
    if (t->rows == 0 || t->width == 0 || !requested) return;
    bool done = with_row(t->width, [&](auto v, auto items) {
        auto kernel = t->each ? reverse_rows<decltype(v)::value, decltype(items)::value, true>
                              : reverse_rows<decltype(v)::value, decltype(items)::value, false>;
        kernel<<<(unsigned)s->parts, THREADS, 0, frame->stream>>>(*o, t->rows, s->turns, t->width,
                                                                  epsilon);
    });
    if (!done)
        reverse_long<<<(unsigned)t->rows, THREADS, 0, frame->stream>>>(*o, t->each, t->width,
                                                                       epsilon);
    BASIN_CUDA_LAUNCHED(frame->cuda, "layernorm reverse");
}

void basin_cuda_layernorm_reverse(const basin_cuda_frame *frame) {
    const basin_call *call = frame->call;
    table t = table_of(call);
    share s = share_of(&t);
    reverse_of o = {};
    char *free = (char *)frame->workspace;
    o.dx = basin_cuda_sink(frame, 0);
    if (call->outs > 3) o.again = basin_cuda_sink(frame, 3);
    if (call->byte_copies)
        o.byte_copy = basin_cuda_sink_of(frame->byte_copy[0], &call->byte_copy[0]);
    o.x = basin_cuda_source(frame, 0), o.c = basin_cuda_source(frame, 2);
    if (call->ins > 3) o.r = basin_cuda_source(frame, 3);
    o.gamma = (const float *)frame->in[1];
    float *gammas = frame->out[1] ? (float *)free : NULL;
    (t.each ? o.gains : o.gammas) = gammas;
    if (gammas) free += aligned(s.parts * gammas_of(&t));
    if (frame->out[2] && !s.is_long) o.deltas = (float *)free, free += aligned(s.parts * t.width);
    const int64_t few = 256;
    bool at_once = frame->cuda->arrived && !s.is_long && s.parts <= few && t.rows > 0 &&
                   t.width > 0 && (gammas || o.deltas) && call->out[2].kind == BASIN_REAL;
    if (at_once) {
        o.arrived = frame->cuda->arrived;
        o.all_gamma = (float *)frame->out[1], o.all_delta = (float *)frame->out[2];
    }
    launch_reverse(frame, &o, &t, &s);
    if (at_once) return;
    if (frame->out[1])
        basin_cuda_sum(frame, frame->out[1], BASIN_REAL, gammas, BASIN_REAL, 1,
                       t.width > 0 ? s.parts : 0, gammas_of(&t), free);
    if (frame->out[2])
        basin_cuda_sum(frame, frame->out[2], call->out[2].kind, s.is_long ? frame->in[2] : o.deltas,
                       s.is_long ? call->in[2].kind : BASIN_REAL, 1, s.parts, t.width, free);
}
