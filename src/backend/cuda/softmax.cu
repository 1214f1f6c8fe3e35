/* Log-sum-exp, softmax and threshold of rows: lse = m + log sum exp(x - m) with m = max(x), so that
 * nothing overflows; y = exp(x - m) / sum. A row takes a warp where it is short and a block where
 * it is long. The log-sum-exp of nothing is -infinity. */
#include "backend/cuda/elements.h"
#include "backend/cuda/inside.h"

enum { THREADS = 256, SHORT = 2048 };

/* The threads of a row meet here; LANES is 32 or THREADS. */
template <int LANES> static __device__ float row_max(float x, float *shared) {
    x = basin_warp_max(x);
    if (LANES == 32) return x;
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    for (int i = 0; i < THREADS / 32; i++) x = i == 0 ? shared[0] : fmaxf(x, shared[i]);
    return x;
}

template <int LANES> static __device__ float row_sum(float x, float *shared) {
    x = basin_warp_sum(x);
    if (LANES == 32) return x;
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    for (int i = 0; i < THREADS / 32; i++) x = i == 0 ? shared[0] : x + shared[i];
    return x;
}

/* lse [rows] or y [rows, n] from x [rows, n]; the other sink is NULL. */
template <int LANES>
static __global__ void softmax_rows(basin_sink lse, basin_sink y, basin_source x, int64_t rows,
                                    int64_t n) {
    __shared__ float shared[THREADS / 32];
    int64_t row = (int64_t)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    int lane = (int)threadIdx.x % LANES;
    if (row >= rows) return; /* whole rows of threads leave together */
    float m = -INFINITY, sum = 0;
    for (int64_t i = lane; i < n; i += LANES) m = fmaxf(m, basin_read_one(x, row * n + i));
    m = row_max<LANES>(m, shared);
    bool endless = isinf(m);
    for (int64_t i = lane; i < n && !endless; i += LANES)
        sum += expf(basin_read_one(x, row * n + i) - m);
    sum = row_sum<LANES>(sum, shared);
    if (endless) sum = 1;
    if (lse.data && lane == 0) basin_write_one(lse, row, m + logf(sum));
    if (!y.data) return;
    for (int64_t i = lane; i < n; i += LANES)
        basin_write_one(y, row * n + i, expf(basin_read_one(x, row * n + i) - m) / sum);
}

void basin_cuda_softmax(const basin_cuda_frame *frame) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t n = shape->rank > 0 ? shape->dim[shape->rank - 1] : 1;
    int64_t rows = basin_shape_product(shape, 0, shape->rank - 1);
    basin_sink out = basin_cuda_sink(frame, 0), none = {};
    basin_source x = basin_cuda_source(frame, 0);
    bool lse = frame->call->op == BASIN_OP_LOGSUMEXP;
    if (rows == 0) return;
    if (n <= SHORT)
        softmax_rows<32>
            <<<(unsigned)basin_cuda_ceil(rows, THREADS / 32), THREADS, 0, frame->stream>>>(
                lse ? out : none, lse ? none : out, x, rows, n);
    else
        softmax_rows<THREADS><<<(unsigned)rows, THREADS, 0, frame->stream>>>(
            lse ? out : none, lse ? none : out, x, rows, n);
    BASIN_CUDA_LAUNCHED(frame->cuda, "softmax");
}

/* t with relu(x - t)^power summing to 1, [rows] from x [rows, n]: Newton's steps from below, as on
 * the cpu, about the row's largest number. All threads of a row see the same sums. */
template <int LANES>
static __global__ void threshold_rows(basin_sink y, basin_source x, int64_t rows, int64_t n,
                                      int power) {
    enum { MOST_STEPS = 100 };
    __shared__ float shared[THREADS / 32];
    int64_t row = (int64_t)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    int lane = (int)threadIdx.x % LANES;
    if (row >= rows) return; /* whole rows of threads leave together */
    float m = -INFINITY, t = -1;
    for (int64_t i = lane; i < n; i += LANES) m = fmaxf(m, basin_read_one(x, row * n + i));
    m = row_max<LANES>(m, shared);
    for (int step = 0; step < MOST_STEPS; step++) {
        float sum = 0, slope = 0;
        for (int64_t i = lane; i < n; i += LANES) {
            float over = fmaxf(basin_read_one(x, row * n + i) - m - t, 0.0f);
            sum += power == 1 ? over : over * over;
            slope += power == 1 ? (over > 0 ? 1.0f : 0.0f) : 2 * over;
        }
        sum = row_sum<LANES>(sum, shared);
        slope = row_sum<LANES>(slope, shared);
        float next = t + (sum - 1) / slope;
        if (!(next > t)) break;
        t = next;
    }
    if (lane == 0) basin_write_one(y, row, n > 0 ? m + t : 0.0f);
}

void basin_cuda_threshold(const basin_cuda_frame *frame) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t n = shape->rank > 0 ? shape->dim[shape->rank - 1] : 1;
    int64_t rows = basin_shape_product(shape, 0, shape->rank - 1);
    basin_sink y = basin_cuda_sink(frame, 0);
    basin_source x = basin_cuda_source(frame, 0);
    int power = frame->call->attr.count;
    if (rows == 0) return;
    if (n <= SHORT)
        threshold_rows<32>
            <<<(unsigned)basin_cuda_ceil(rows, THREADS / 32), THREADS, 0, frame->stream>>>(
                y, x, rows, n, power);
    else
        threshold_rows<THREADS>
            <<<(unsigned)rows, THREADS, 0, frame->stream>>>(y, x, rows, n, power);
    BASIN_CUDA_LAUNCHED(frame->cuda, "threshold");
}
