/* Sums and maxima over neighbouring axes. A tensor is seen as [outer, middle, inner] and the middle
 * vanishes. Short rows (inner 1) take a warp each. Otherwise the middle is cut into chunks of a
 * size that the shapes decide, a block each; chunk results wait in the workspace and are combined
 * in their order, by the block that comes last or, of very many, by a second launch. Nothing
 * depends on when a block runs. */
#include <type_traits>

#include "engine/backend/cuda/elements.h"
#include "engine/backend/cuda/inside.h"

enum { THREADS = 256, COLUMNS = 32, LANES = THREADS / COLUMNS, NARROW = 32, SHORT = 1024 };

struct add {
    BASIN_DEVICE float start() { return 0.0f; }
    BASIN_DEVICE float of(float a, float b) { return a + b; }
};
struct maximum { /* a NaN stays one */
    BASIN_DEVICE float start() { return -INFINITY; }
    BASIN_DEVICE float of(float a, float b) { return a != a ? a : b > a || b != b ? b : a; }
};

struct extent {
    int64_t outer, middle, inner;
    int64_t chunks, length; /* pieces of the middle, and how long each but the last is */
};

/* How a reduction is cut. */
static extent cut(int64_t outer, int64_t middle, int64_t inner) {
    extent e = {outer, middle, inner, 1, middle};
    if (inner == 1 && middle <= SHORT) return e;
    int64_t blocks = inner <= NARROW ? outer : outer * basin_cuda_ceil(inner, COLUMNS);
    int64_t minimum = inner <= NARROW ? basin_cuda_ceil(4096, inner) : 128; /* a chunk's rows */
    int64_t requested = basin_cuda_ceil(1024, blocks > 0 ? blocks : 1);
    int64_t possible = basin_cuda_ceil(middle, minimum);
    e.chunks = requested < possible ? requested : possible;
    if (e.chunks < 1) e.chunks = 1;
    e.length = basin_cuda_ceil(middle, e.chunks);
    if (e.length > 0) e.chunks = basin_cuda_ceil(middle, e.length);
    if (e.chunks < 1) e.chunks = 1;
    return e;
}

/* Where the last of the blocks that share a result writes it. */
struct ending {
    basin_sink out; /* data NULL: a second launch does */
    unsigned *arrived;
};

/* Combines the chunks' results for `columns` of them from `column` on, threads side by side over as
 * many columns as a block has here; `partial` has room for a number each. */
template <typename Op>
BASIN_DEVICE void end_chunks(const ending &end, const float *chunk, float *partial, const extent &e,
                             int64_t outer, int64_t column, int columns) {
    int own = (int)threadIdx.x % columns, lane = (int)threadIdx.x / columns,
        lanes = THREADS / columns;
    float value = Op::start();
    bool there = lane < lanes && column + own < e.inner;
    for (int64_t i = lane; there && i < e.chunks; i += lanes)
        value = Op::of(value, __ldcg(chunk + (outer * e.chunks + i) * e.inner + column + own));
    partial[threadIdx.x] = value;
    __syncthreads();
    if (!there || lane != 0) return;
    for (int i = 1; i < lanes && i < e.chunks; i++)
        value = Op::of(value, partial[i * columns + own]);
    basin_write_one(end.out, outer * e.inner + column + own, value);
}

/* out [rows] <- x [rows, middle]: a warp per row. */
template <typename Op>
static __global__ void reduce_short(basin_sink out, basin_source x, int64_t rows, int64_t middle) {
    int64_t row = (int64_t)blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    float value = Op::start();
    for (int64_t i = threadIdx.x % 32; i < middle; i += 32)
        value = Op::of(value, basin_read_one(x, row * middle + i));
    for (int step = 16; step > 0; step /= 2)
        value = Op::of(value, __shfl_down_sync(0xffffffffu, value, step));
    if (threadIdx.x % 32 == 0) basin_write_one(out, row, value);
}

/* out [outer, chunks, inner], inner at most 32: block (chunk, outer). Threads lie side by side
 * over rows of `inner`; those of one column meet at the end, in order. */
template <typename Op>
static __global__ void reduce_narrow(basin_sink out, basin_source x, extent e, ending end) {
    __shared__ float partial[THREADS];
    int inner = (int)e.inner, rows = THREADS / inner, active = rows * inner;
    int64_t chunk = blockIdx.x % e.chunks, outer = blockIdx.x / e.chunks;
    int64_t first = chunk * e.length,
            last = first + e.length < e.middle ? first + e.length : e.middle;
    int64_t base = outer * e.middle * inner, all = last * inner;
    float value[4] = {Op::start(), Op::start(), Op::start(), Op::start()};
    if ((int)threadIdx.x < active) {
        int64_t i = first * inner + threadIdx.x;
        for (; i + 3 * (int64_t)active < all; i += 4 * (int64_t)active)
            BASIN_UNROLL (j, 4)
                value[j] = Op::of(value[j], basin_read_one(x, base + i + j * (int64_t)active));
        for (; i < all; i += active) value[0] = Op::of(value[0], basin_read_one(x, base + i));
    }
    partial[threadIdx.x] = Op::of(Op::of(value[0], value[1]), Op::of(value[2], value[3]));
    __syncthreads();
    /* Halve the rows until one is left. */
    for (int left = rows; left > 1;) {
        int half = (left + 1) / 2;
        int row = (int)threadIdx.x / inner;
        if (row + half < left)
            partial[threadIdx.x] =
                Op::of(partial[threadIdx.x], partial[threadIdx.x + half * inner]);
        __syncthreads();
        left = half;
    }
    if ((int)threadIdx.x < inner)
        basin_write_one(out, (outer * e.chunks + chunk) * inner + threadIdx.x,
                        partial[threadIdx.x]);
    if (end.out.data && basin_is_last_block(&end.arrived[outer], (unsigned)e.chunks))
        end_chunks<Op>(end, (const float *)out.data, partial, e, outer, 0, inner);
}

/* out [outer, chunks, inner]: a block takes 32 columns of a chunk, 8 rows at a time. */
template <typename Op>
static __global__ void reduce_wide(basin_sink out, basin_source x, extent e, ending end) {
    __shared__ float partial[LANES][COLUMNS];
    int64_t tiles = (e.inner + COLUMNS - 1) / COLUMNS;
    int64_t tile = blockIdx.x % tiles, rest = blockIdx.x / tiles;
    int64_t chunk = rest % e.chunks, outer = rest / e.chunks;
    int64_t first = chunk * e.length,
            last = first + e.length < e.middle ? first + e.length : e.middle;
    int lane = (int)threadIdx.x / COLUMNS;
    int64_t column = tile * COLUMNS + threadIdx.x % COLUMNS;
    float value[4] = {Op::start(), Op::start(), Op::start(), Op::start()};
    if (column < e.inner) {
        int64_t base = outer * e.middle * e.inner + column, i = first + lane;
        for (; i + 3 * LANES < last; i += 4 * LANES)
            BASIN_UNROLL (j, 4)
                value[j] = Op::of(value[j], basin_read_one(x, base + (i + j * LANES) * e.inner));
        for (; i < last; i += LANES)
            value[0] = Op::of(value[0], basin_read_one(x, base + i * e.inner));
    }
    partial[lane][threadIdx.x % COLUMNS] =
        Op::of(Op::of(value[0], value[1]), Op::of(value[2], value[3]));
    __syncthreads();
    if (lane == 0 && column < e.inner) {
        float sum = partial[0][threadIdx.x];
        for (int i = 1; i < LANES; i++) sum = Op::of(sum, partial[i][threadIdx.x]);
        basin_write_one(out, (outer * e.chunks + chunk) * e.inner + column, sum);
    }
    if (end.out.data && basin_is_last_block(&end.arrived[outer * tiles + tile], (unsigned)e.chunks))
        end_chunks<Op>(end, (const float *)out.data, partial[0], e, outer, tile * COLUMNS, COLUMNS);
}

template <typename Op>
static void launch(basin_cuda *cuda, basin_sink out, basin_source x, const extent *e, ending end) {
    int64_t blocks = e->outer * e->chunks;
    if (e->outer == 0 || e->inner == 0) return;
    if (e->inner == 1 && e->middle <= SHORT)
        reduce_short<Op>
            <<<(unsigned)basin_cuda_ceil(e->outer, THREADS / 32), THREADS, 0, cuda->stream>>>(
                out, x, e->outer, e->middle);
    else if (e->inner <= NARROW)
        reduce_narrow<Op><<<(unsigned)blocks, THREADS, 0, cuda->stream>>>(out, x, *e, end);
    else
        reduce_wide<Op>
            <<<(unsigned)(blocks * basin_cuda_ceil(e->inner, COLUMNS)), THREADS, 0, cuda->stream>>>(
                out, x, *e, end);
    BASIN_CUDA_LAUNCHED(cuda, "a reduction");
}

template <typename Op>
static void reduce(basin_cuda *cuda, basin_sink out, basin_source x, const extent *e,
                   void *workspace) {
    basin_sink parts = {workspace, false, false, false, 1};
    if (e->chunks == 1) {
        launch<Op>(cuda, out, x, e, {});
        return;
    }
    int64_t results = e->outer * (e->inner <= NARROW ? 1 : basin_cuda_ceil(e->inner, COLUMNS));
    if (cuda->arrived && results <= BASIN_CUDA_COUNTERS && e->chunks <= SHORT) {
        launch<Op>(cuda, parts, x, e, {out, cuda->arrived});
        return;
    }
    extent second = {e->outer, e->chunks, e->inner, 1, e->chunks};
    launch<Op>(cuda, parts, x, e, {});
    launch<Op>(cuda, out, basin_source{workspace, false}, &second, {});
}

static size_t bytes_of(const extent *e) {
    return e->chunks == 1 ? 0 : (size_t)(e->outer * e->chunks * e->inner) * sizeof(float);
}

size_t basin_cuda_sum_bytes(int64_t outer, int64_t middle, int64_t inner) {
    extent e = cut(outer, middle, inner);
    return bytes_of(&e);
}

void basin_cuda_sum(const basin_cuda_frame *frame, void *out, basin_kind out_kind, const void *x,
                    basin_kind x_kind, int64_t outer, int64_t middle, int64_t inner,
                    void *workspace) {
    extent e = cut(outer, middle, inner);
    reduce<add>(frame->cuda, basin_sink{out, out_kind == BASIN_NARROW, false, false, 1},
                basin_source{x, x_kind == BASIN_NARROW}, &e, workspace);
}

static extent extent_of(const basin_call *call) {
    const basin_shape *shape = &call->in[0].shape;
    int first = call->attr.axis, last = call->attr.axis + call->attr.count;
    return cut(basin_shape_product(shape, 0, first), basin_shape_product(shape, first, last),
               basin_shape_product(shape, last, shape->rank));
}

size_t basin_cuda_reduce_workspace(const basin_cuda *, const basin_call *call) {
    extent e = extent_of(call);
    return bytes_of(&e);
}

void basin_cuda_reduce(const basin_cuda_frame *frame) {
    extent e = extent_of(frame->call);
    basin_sink out = basin_cuda_sink(frame, 0);
    basin_source x = basin_cuda_source(frame, 0);
    if (frame->call->op == BASIN_OP_SUM)
        reduce<add>(frame->cuda, out, x, &e, frame->workspace);
    else
        reduce<maximum>(frame->cuda, out, x, &e, frame->workspace);
}

/* ---- sums of squares of many tensors ---- */

enum { SQUARES = 16 * THREADS }; /* elements of a block */

struct tensors {
    const float *x[BASIN_MAX_IN];
    int64_t count[BASIN_MAX_IN];
    unsigned first[BASIN_MAX_IN + 1]; /* block */
    int number;
};

static __device__ float block_sum(float value, float *partial) {
    value = basin_warp_sum(value);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < THREADS / 32; i++) sum += partial[i];
    return sum;
}

/* The block that comes last adds what all have left. */
static __global__ void squares(float *out, float *part, tensors t, unsigned *arrived) {
    __shared__ float partial[THREADS / 32];
    int k = 0;
    while (blockIdx.x >= t.first[k + 1]) k++;
    int64_t begin = (int64_t)(blockIdx.x - t.first[k]) * SQUARES, end = begin + SQUARES;
    if (end > t.count[k]) end = t.count[k];
    float value[4] = {0, 0, 0, 0};
    int64_t i = begin + threadIdx.x;
    for (; i + 3 * THREADS < end; i += 4 * THREADS)
        BASIN_UNROLL (j, 4) {
            float x = t.x[k][i + j * THREADS];
            value[j] += x * x;
        }
    for (; i < end; i += THREADS) value[0] += t.x[k][i] * t.x[k][i];
    float sum = block_sum((value[0] + value[1]) + (value[2] + value[3]), partial);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
    if (!basin_is_last_block(arrived, gridDim.x)) return;
    sum = 0;
    for (unsigned j = threadIdx.x; j < gridDim.x; j += THREADS) sum += __ldcg(part + j);
    sum = block_sum(sum, partial);
    if (threadIdx.x == 0) *out = sum;
}

static int64_t square_blocks(const basin_call *call, tensors *t) {
    int64_t blocks = 0;
    for (int k = 0; k < call->ins; k++) {
        int64_t count = basin_shape_product(&call->in[k].shape, 0, call->in[k].shape.rank);
        if (t) t->count[k] = count, t->first[k] = (unsigned)blocks;
        blocks += basin_cuda_ceil(count, SQUARES);
    }
    if (t) t->first[call->ins] = (unsigned)blocks, t->number = call->ins;
    return blocks;
}

size_t basin_cuda_squares_workspace(const basin_cuda *, const basin_call *call) {
    return (size_t)square_blocks(call, NULL) * sizeof(float);
}

void basin_cuda_squares(const basin_cuda_frame *frame) {
    tensors t = {};
    int64_t blocks = square_blocks(frame->call, &t);
    for (int k = 0; k < t.number; k++) t.x[k] = (const float *)frame->in[k];
    float *part = (float *)frame->workspace;
    if (blocks > 0)
        squares<<<(unsigned)blocks, THREADS, 0, frame->stream>>>((float *)frame->out[0], part, t,
                                                                 frame->cuda->arrived);
    else
        BASIN_CUDA_TRY(frame->cuda,
                       cudaMemsetAsync(frame->out[0], 0, sizeof(float), frame->stream));
    BASIN_CUDA_LAUNCHED(frame->cuda, "squares");
}

/* Log-sum-exp, softmax and threshold of rows: lse = m + log sum exp(x - m), m = max(x); y = exp(x -
 * m) / sum. Short rows take a warp, long ones a block. An empty row gives -infinity. */

enum { SOFTMAX_THREADS = 256, SOFTMAX_SHORT = 2048 };

/* The threads of a row meet here; LANES is 32 or SOFTMAX_THREADS. */
template <int LANES, bool SUM> static __device__ float row_reduce(float x, float *shared) {
    x = SUM ? basin_warp_sum(x) : basin_warp_max(x);
    if (LANES == 32) return x;
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    for (int i = 0; i < SOFTMAX_THREADS / 32; i++)
        x = i == 0 ? shared[0] : SUM ? x + shared[i] : fmaxf(x, shared[i]);
    return x;
}

/* lse [rows] and y [rows, n] from x [rows, n]; one of the sinks may be NULL. */
template <int LANES>
static __global__ void softmax_rows(basin_sink lse, basin_sink y, basin_source x, int64_t rows,
                                    int64_t n) {
    __shared__ float shared[SOFTMAX_THREADS / 32];
    int64_t row = (int64_t)blockIdx.x * (SOFTMAX_THREADS / LANES) + threadIdx.x / LANES;
    int lane = (int)threadIdx.x % LANES;
    if (row >= rows) return; /* whole rows of threads leave together */
    float m = -INFINITY, sum = 0;
    for (int64_t i = lane; i < n; i += LANES) m = fmaxf(m, basin_read_one(x, row * n + i));
    m = row_reduce<LANES, false>(m, shared);
    bool endless = isinf(m);
    for (int64_t i = lane; i < n && !endless; i += LANES)
        sum += expf(basin_read_one(x, row * n + i) - m);
    sum = row_reduce<LANES, true>(sum, shared);
    if (endless) sum = 1;
    if (lse.data && lane == 0) basin_write_one(lse, row, m + logf(sum));
    if (!y.data) return;
    for (int64_t i = lane; i < n; i += LANES)
        basin_write_one(y, row * n + i, expf(basin_read_one(x, row * n + i) - m) / sum);
}

/* t with relu(x - t)^power summing to 1, [rows] from x [rows, n]: Newton's steps from below, as on
 * the cpu, about the row's largest number. All threads of a row see the same sums. */
template <int LANES>
static __global__ void threshold_rows(basin_sink y, basin_source x, int64_t rows, int64_t n,
                                      int power) {
    enum { MAX_STEPS = 100 };
    __shared__ float shared[SOFTMAX_THREADS / 32];
    int64_t row = (int64_t)blockIdx.x * (SOFTMAX_THREADS / LANES) + threadIdx.x / LANES;
    int lane = (int)threadIdx.x % LANES;
    if (row >= rows) return; /* whole rows of threads leave together */
    float m = -INFINITY, t = -1;
    for (int64_t i = lane; i < n; i += LANES) m = fmaxf(m, basin_read_one(x, row * n + i));
    m = row_reduce<LANES, false>(m, shared);
    for (int step = 0; step < MAX_STEPS; step++) {
        float sum = 0, slope = 0;
        for (int64_t i = lane; i < n; i += LANES) {
            float over = fmaxf(basin_read_one(x, row * n + i) - m - t, 0.0f);
            sum += power == 1 ? over : over * over;
            slope += power == 1 ? (over > 0 ? 1.0f : 0.0f) : 2 * over;
        }
        sum = row_reduce<LANES, true>(sum, shared);
        slope = row_reduce<LANES, true>(slope, shared);
        float next = t + (sum - 1) / slope;
        if (!(next > t)) break;
        t = next;
    }
    if (lane == 0) basin_write_one(y, row, n > 0 ? m + t : 0.0f);
}

/* Rows of numbers, the last axis of the operand. */
static int64_t rows_of(const basin_cuda_frame *frame, int64_t *n) {
    const basin_shape *shape = &frame->call->in[0].shape;
    *n = basin_shape_last(shape, 1);
    return basin_shape_product(shape, 0, shape->rank - 1);
}

/* Calls f with the lanes of a row and the blocks. */
template <typename F> static void with_lanes(int64_t rows, int64_t n, F f) {
    if (n <= SOFTMAX_SHORT)
        f(std::integral_constant<int, 32>(), (unsigned)basin_cuda_ceil(rows, SOFTMAX_THREADS / 32));
    else
        f(std::integral_constant<int, SOFTMAX_THREADS>(), (unsigned)rows);
}

void basin_cuda_softmax(const basin_cuda_frame *frame) {
    int64_t n, rows = rows_of(frame, &n);
    basin_sink out = basin_cuda_sink(frame, 0), none = {}, lse = none;
    bool alone = frame->call->op == BASIN_OP_LOGSUMEXP;
    if (!alone && frame->call->outs > 1) lse = basin_cuda_sink(frame, 1);
    if (rows == 0) return;
    with_lanes(rows, n, [&](auto lanes, unsigned blocks) {
        softmax_rows<decltype(lanes)::value><<<blocks, SOFTMAX_THREADS, 0, frame->stream>>>(
            alone ? out : lse, alone ? none : out, basin_cuda_source(frame, 0), rows, n);
    });
    BASIN_CUDA_LAUNCHED(frame->cuda, "softmax");
}

void basin_cuda_threshold(const basin_cuda_frame *frame) {
    int64_t n, rows = rows_of(frame, &n);
    if (rows == 0) return;
    with_lanes(rows, n, [&](auto lanes, unsigned blocks) {
        threshold_rows<decltype(lanes)::value><<<blocks, SOFTMAX_THREADS, 0, frame->stream>>>(
            basin_cuda_sink(frame, 0), basin_cuda_source(frame, 0), rows, n,
            frame->call->attr.count);
    });
    BASIN_CUDA_LAUNCHED(frame->cuda, "threshold");
}
