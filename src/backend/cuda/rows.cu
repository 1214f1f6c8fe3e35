/* Rows by index. GATHER copies them. SCATTER sums them: positions are sorted by the row they go to
 * (a stable sort, so each row's stay in their order), and every row of the result adds up its own,
 * in that order. */
#include <cub/device/device_radix_sort.cuh>

#include "backend/cuda/elements.h"
#include "backend/cuda/inside.h"

enum { THREADS = 256, WARPS = THREADS / 32 };

/* ---- indices as numbers, and numbers as the nearest of 0 .. limit - 1 ---- */

static __global__ void from_index(basin_sink out, const int32_t *index, int64_t count) {
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * THREADS)
        basin_write_one(out, i, (float)index[i]);
}

static __global__ void to_index(int32_t *out, basin_source x, int64_t count, int64_t limit) {
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * THREADS) {
        double nearest = floor((double)basin_read_one(x, i) + 0.5);
        out[i] = nearest > 0 ? (int32_t)fmin(nearest, (double)(limit - 1)) : 0;
    }
}

void basin_cuda_convert_index(const basin_cuda_frame *frame) {
    const basin_call *call = frame->call;
    int64_t count = basin_shape_product(&call->out[0].shape, 0, call->out[0].shape.rank);
    if (count == 0) return;
    unsigned grid = basin_cuda_grid(frame->cuda, count, THREADS);
    if (call->op == BASIN_OP_FROM_INDEX)
        from_index<<<grid, THREADS, 0, frame->stream>>>(basin_cuda_sink(frame, 0),
                                                        (const int32_t *)frame->in[0], count);
    else
        to_index<<<grid, THREADS, 0, frame->stream>>>(
            (int32_t *)frame->out[0], basin_cuda_source(frame, 0), count, call->attr.start);
    BASIN_CUDA_LAUNCHED(frame->cuda, "convert index");
}

/* ---- gather ---- */

template <typename T>
static __global__ void gather_rows(T *out, const T *table, const int32_t *index, int64_t n,
                                   int64_t rows, int64_t width, basin_cuda_reporter reporter) {
    int64_t count = n * width;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * THREADS) {
        int64_t row =
            count < (int64_t)1 << 32 ? (int64_t)((uint32_t)i / (uint32_t)width) : i / width;
        int64_t column = i - row * width, from = index[row];
        T value = {};
        if (from >= 0 && from < rows)
            value = table[from * width + column];
        else if (from != -1 && column == 0)
            basin_cuda_report(reporter, row, from, -1, rows);
        out[i] = value;
    }
}

template <typename T>
static void gather(const basin_cuda_frame *frame, int64_t n, int64_t rows, int64_t bytes) {
    int64_t width = bytes / (int64_t)sizeof(T);
    gather_rows<T><<<basin_cuda_grid(frame->cuda, n * width, THREADS), THREADS, 0, frame->stream>>>(
        (T *)frame->out[0], (const T *)frame->in[0], (const int32_t *)frame->in[1], n, rows, width,
        basin_cuda_reporter_of(frame));
}

void basin_cuda_gather(const basin_cuda_frame *frame) {
    const basin_shape *table = &frame->call->in[0].shape;
    int64_t n = basin_shape_product(&frame->call->in[1].shape, 0, frame->call->in[1].shape.rank);
    int64_t size = frame->call->out[0].kind == BASIN_NARROW ? 2 : 4;
    int64_t bytes = basin_shape_product(table, 1, table->rank) * size, rows = table->dim[0];
    if (n == 0 || bytes == 0) return;
    if (bytes % 16 == 0)
        gather<uint4>(frame, n, rows, bytes);
    else if (bytes % 4 == 0)
        gather<uint32_t>(frame, n, rows, bytes);
    else
        gather<uint16_t>(frame, n, rows, bytes);
    BASIN_CUDA_LAUNCHED(frame->cuda, "gather");
}

/* ---- scatter ---- */

/* Where things lie in the workspace. */
struct sorting {
    size_t key, sorted, position, order, first, temporary, bytes; /* offsets; the whole */
    size_t temporary_bytes;
    int bits;
};

static size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

static sorting sorting_of(int64_t n, int64_t rows) {
    sorting s = {};
    size_t list = aligned((size_t)n * sizeof(int32_t));
    while (s.bits < 32 && ((int64_t)1 << s.bits) <= rows) s.bits++;
    s.key = 0, s.sorted = list, s.position = 2 * list, s.order = 3 * list, s.first = 4 * list;
    s.temporary = s.first + aligned((size_t)(rows + 1) * sizeof(int32_t));
    cub::DeviceRadixSort::SortPairs(NULL, s.temporary_bytes, (const uint32_t *)NULL,
                                    (uint32_t *)NULL, (const int32_t *)NULL, (int32_t *)NULL,
                                    (int)n, 0, s.bits);
    s.bytes = s.temporary + aligned(s.temporary_bytes) + 256; /* to begin at a multiple of 256 */
    return s;
}

/* What points nowhere is sorted behind the last row. */
static __global__ void prepare_keys(uint32_t *key, int32_t *position, const int32_t *index,
                                    int64_t n, int64_t rows, basin_cuda_reporter reporter) {
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * THREADS) {
        int32_t to = index[i];
        bool inside = to >= 0 && to < rows;
        if (!inside && to != -1) basin_cuda_report(reporter, i, to, -1, rows);
        key[i] = inside ? (uint32_t)to : (uint32_t)rows;
        position[i] = (int32_t)i;
    }
}

/* first[v]: the first place in the sorted list whose row is v or more. */
static __global__ void find_first(int32_t *first, const uint32_t *sorted, int64_t n, int64_t rows) {
    int64_t v = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (v > rows) return;
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (sorted[middle] < (uint32_t)v)
            low = middle + 1;
        else
            high = middle;
    }
    first[v] = (int32_t)low;
}

/* Block (tile of 32 columns, row v): warp w adds positions w, w + 8, ..; the warps' sums meet in
 * order. */
static __global__ void sum_rows(basin_sink out, basin_source values, const int32_t *order,
                                const int32_t *first, int64_t width) {
    __shared__ float partial[WARPS][32];
    int64_t tiles = (width + 31) / 32;
    int64_t row = blockIdx.x / tiles, column = blockIdx.x % tiles * 32 + threadIdx.x % 32;
    int warp = (int)threadIdx.x / 32;
    int32_t last = first[row + 1];
    float sum = 0;
    for (int32_t i = first[row] + warp; i < last; i += WARPS)
        if (column < width) sum += basin_read_one(values, order[i] * width + column);
    partial[warp][threadIdx.x % 32] = sum;
    __syncthreads();
    if (warp == 0 && column < width) {
        for (int i = 1; i < WARPS; i++) sum += partial[i][threadIdx.x];
        basin_write_one(out, row * width + column, sum);
    }
}

/* The same at once, where lists are short: each block looks through all of the list for the
 * positions of its row, and keeps their order. */
enum { FEW = 2048, FEW_ROWS = 4096 };
static __global__ void scatter_few(basin_sink out, basin_source values, const int32_t *index, int n,
                                   int64_t rows, int64_t width, basin_cuda_reporter reporter) {
    __shared__ float partial[WARPS][32];
    __shared__ int32_t order[FEW];
    __shared__ int found[WARPS];
    int64_t tiles = (width + 31) / 32;
    int64_t row = blockIdx.x / tiles, column = blockIdx.x % tiles * 32 + threadIdx.x % 32;
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, count = 0;
    for (int base = 0; base < n; base += THREADS) {
        int i = base + (int)threadIdx.x;
        int32_t to = i < n ? __ldg(index + i) : -1;
        if (blockIdx.x == 0 && (to < -1 || to >= rows))
            basin_cuda_report(reporter, i, to, -1, rows);
        unsigned here = __ballot_sync(0xffffffffu, to == row);
        if (lane == 0) found[warp] = __popc(here);
        __syncthreads();
        int before = count;
        for (int w = 0; w < WARPS; w++) {
            if (w < warp) before += found[w];
            count += found[w];
        }
        if (to == row) order[before + __popc(here & ((1u << lane) - 1))] = i;
        __syncthreads();
    }
    float sum = 0;
    for (int i = warp; i < count; i += WARPS)
        if (column < width) sum += basin_read_one(values, order[i] * width + column);
    partial[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && column < width) {
        for (int i = 1; i < WARPS; i++) sum += partial[i][lane];
        basin_write_one(out, row * width + column, sum);
    }
}

/* The same where most rows get few: a warp a row and 32 columns looks through the list and adds
 * what it finds as it goes. */
static __global__ void scatter_sparse(basin_sink out, basin_source values, const int32_t *index,
                                      int n, int64_t rows, int64_t width,
                                      basin_cuda_reporter reporter) {
    int64_t tiles = (width + 31) / 32, task = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    int64_t row = task / tiles;
    int lane = (int)threadIdx.x % 32;
    int64_t column = task % tiles * 32 + lane;
    if (row >= rows) return;
    float sum = 0;
    for (int base = 0; base < n; base += 32) {
        int32_t to = base + lane < n ? __ldg(index + base + lane) : -1;
        if (task == 0 && (to < -1 || to >= rows))
            basin_cuda_report(reporter, base + lane, to, -1, rows);
        for (unsigned here = __ballot_sync(0xffffffffu, to == row); here; here &= here - 1) {
            int64_t i = base + __ffs((int)here) - 1;
            if (column < width) sum += basin_read_one(values, i * width + column);
        }
    }
    if (column < width) basin_write_one(out, row * width + column, sum);
}

static int64_t index_count(const basin_call *call) {
    return basin_shape_product(&call->in[1].shape, 0, call->in[1].shape.rank);
}

size_t basin_cuda_scatter_workspace(const basin_cuda *cuda, const basin_call *call) {
    int64_t n = index_count(call);
    (void)cuda;
    int64_t rows = call->out[0].shape.dim[0];
    return n == 0 || (n <= FEW && rows <= FEW_ROWS) ? 0 : sorting_of(n, rows).bytes;
}

static void clear(const basin_cuda_frame *frame, int64_t count) {
    size_t size = frame->call->out[0].kind == BASIN_NARROW ? 2 : 4;
    BASIN_CUDA_TRY(frame->cuda,
                   cudaMemsetAsync(frame->out[0], 0, (size_t)count * size, frame->stream));
}

void basin_cuda_scatter(const basin_cuda_frame *frame) {
    basin_cuda *cuda = frame->cuda;
    const basin_shape *shape = &frame->call->out[0].shape;
    const int32_t *index = (const int32_t *)frame->in[1];
    int64_t n = index_count(frame->call), rows = shape->dim[0];
    int64_t width = basin_shape_product(shape, 1, shape->rank);
    if (rows == 0 || width == 0) return;
    if (n == 0) {
        clear(frame, rows * width);
        return;
    }
    unsigned blocks = (unsigned)(rows * basin_cuda_ceil(width, 32));
    if (n <= FEW && rows <= FEW_ROWS && n <= 4 * rows) {
        scatter_sparse<<<(unsigned)basin_cuda_ceil(blocks, WARPS), THREADS, 0, frame->stream>>>(
            basin_cuda_sink(frame, 0), basin_cuda_source(frame, 0), index, (int)n, rows, width,
            basin_cuda_reporter_of(frame));
        BASIN_CUDA_LAUNCHED(cuda, "scatter");
        return;
    }
    if (n <= FEW && rows <= FEW_ROWS) {
        scatter_few<<<blocks, THREADS, 0, frame->stream>>>(
            basin_cuda_sink(frame, 0), basin_cuda_source(frame, 0), index, (int)n, rows, width,
            basin_cuda_reporter_of(frame));
        BASIN_CUDA_LAUNCHED(cuda, "scatter");
        return;
    }
    sorting s = sorting_of(n, rows);
    char *base = (char *)(((uintptr_t)frame->workspace + 255) / 256 * 256);
    uint32_t *key = (uint32_t *)(base + s.key), *sorted = (uint32_t *)(base + s.sorted);
    int32_t *position = (int32_t *)(base + s.position), *order = (int32_t *)(base + s.order);
    int32_t *first = (int32_t *)(base + s.first);
    prepare_keys<<<basin_cuda_grid(cuda, n, THREADS), THREADS, 0, frame->stream>>>(
        key, position, index, n, rows, basin_cuda_reporter_of(frame));
    BASIN_CUDA_LAUNCHED(cuda, "scatter");
    BASIN_CUDA_TRY(cuda, cub::DeviceRadixSort::SortPairs(base + s.temporary, s.temporary_bytes, key,
                                                         sorted, position, order, (int)n, 0, s.bits,
                                                         frame->stream));
    find_first<<<(unsigned)basin_cuda_ceil(rows + 1, THREADS), THREADS, 0, frame->stream>>>(
        first, sorted, n, rows);
    BASIN_CUDA_LAUNCHED(cuda, "scatter");
    sum_rows<<<blocks, THREADS, 0, frame->stream>>>(
        basin_cuda_sink(frame, 0), basin_cuda_source(frame, 0), order, first, width);
    BASIN_CUDA_LAUNCHED(cuda, "scatter");
}
