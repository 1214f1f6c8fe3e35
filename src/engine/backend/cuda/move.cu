/* Moving numbers: permutations, slices, pads, concatenation, of elements of any kind by size. Rows
 * travel 16 bytes at a time where they can; a permutation that moves the last axis goes through
 * tiles in shared memory. */
#include <cub/device/device_radix_sort.cuh>

#include "engine/backend/cuda/elements.h"
#include "engine/backend/cuda/inside.h"

enum { THREADS = 256, TILE = 32, TILE_ROWS = 8 };

static size_t element_size(const basin_operand *operand) {
    return operand->kind == BASIN_NARROW ? sizeof(basin_bf16) : 4;
}

/* Calls f with a zero of a type of `size` bytes, one of 2, 4, 8, 16. */
template <typename F> static void with_unit(size_t size, F f) {
    switch (size) {
    case 16: f(uint4()); break;
    case 8: f(uint2()); break;
    case 4: f(uint32_t()); break;
    default: f(uint16_t()); break;
    }
}

/* The largest unit of 16, 8, 4, 2 bytes that divides all of these. */
static size_t unit_of(int64_t a, int64_t b, int64_t c, int64_t d) {
    size_t unit = 16;
    while (unit > 2 &&
           (a % (int64_t)unit || b % (int64_t)unit || c % (int64_t)unit || d % (int64_t)unit))
        unit /= 2;
    return unit;
}

/* ---- spans of rows ---- */

/* to[row, start + i] = from[row, skip + i], i < span; with `clear` the rest of `to` is zero. */
struct spans {
    int64_t rows, to_width, from_width, start, skip, span;
    bool clear;
};

template <typename T>
static __global__ void copy_spans(T *to, const T *from, spans s, basin_divisor by) {
    int64_t width = s.clear ? s.to_width : s.span, count = s.rows * width;
    BASIN_GRID (i, count, THREADS) {
        int64_t row = count < (int64_t)1 << 31 ? basin_divide((uint32_t)i, by) : i / width;
        int64_t column = i - row * width, inside = s.clear ? column - s.start : column;
        T value = {};
        if (inside >= 0 && inside < s.span) value = from[row * s.from_width + s.skip + inside];
        to[row * s.to_width + (s.clear ? column : s.start + column)] = value;
    }
}

/* Copies `span` elements along `axis`; see copy_span of the reference backend. */
static void copy_span(const basin_cuda_frame *frame, const basin_operand *to_operand, void *to,
                      int64_t start, const basin_operand *from_operand, const void *from,
                      int64_t skip, int64_t span, int axis, bool clear) {
    const basin_shape *a = &to_operand->shape, *b = &from_operand->shape;
    int64_t inner = basin_shape_product(a, axis + 1, a->rank) * (int64_t)element_size(to_operand);
    int64_t rows = basin_shape_product(a, 0, axis);
    size_t unit = unit_of(a->dim[axis] * inner, b->dim[axis] * inner, start * inner | skip * inner,
                          span * inner);
    auto units = [&](int64_t n) { return n * inner / (int64_t)unit; };
    spans s = {rows,         units(a->dim[axis]), units(b->dim[axis]),
               units(start), units(skip),         units(span),
               clear};
    int64_t width = clear ? s.to_width : s.span, count = rows * width;
    if (count == 0) return;
    basin_divisor by = basin_divisor_of(width);
    unsigned grid = basin_cuda_grid(frame->cuda, count, THREADS);
    with_unit(unit, [&](auto zero) {
        using T = decltype(zero);
        copy_spans<T><<<grid, THREADS, 0, frame->stream>>>((T *)to, (const T *)from, s, by);
    });
    BASIN_CUDA_LAUNCHED(frame->cuda, "a copy of rows");
}

void basin_cuda_slice(const basin_cuda_frame *frame) {
    const basin_call *call = frame->call;
    int axis = call->attr.axis;
    copy_span(frame, &call->out[0], frame->out[0], 0, &call->in[0], frame->in[0], call->attr.start,
              call->out[0].shape.dim[axis], axis, false);
}

void basin_cuda_pad(const basin_cuda_frame *frame) {
    const basin_call *call = frame->call;
    int axis = call->attr.axis;
    copy_span(frame, &call->out[0], frame->out[0], call->attr.start, &call->in[0], frame->in[0], 0,
              call->in[0].shape.dim[axis], axis, true);
}

/* Floats of several operands, stored as bfloat16 side by side: to[row, first[i] + j] = from[i][row,
 * j]. */
struct narrow_parts {
    const float *from[BASIN_MAX_IN];
    int64_t first[BASIN_MAX_IN + 1], rows;
    int parts;
};

static __global__ void concat_narrow(basin_bf16 *to, const narrow_parts p) {
    int64_t width = p.first[p.parts];
    BASIN_GRID (i, p.rows * width, THREADS) {
        int64_t row = i / width, column = i - row * width;
        int part = 0;
        while (column >= p.first[part + 1]) part++;
        int64_t own = p.first[part + 1] - p.first[part];
        to[i] = __float2bfloat16_rn(p.from[part][row * own + column - p.first[part]]);
    }
}

static void run_concat_narrow(const basin_cuda_frame *frame) {
    const basin_call *call = frame->call;
    int axis = call->attr.axis;
    const basin_shape *out = &call->out[0].shape;
    int64_t inner = basin_shape_product(out, axis + 1, out->rank);
    narrow_parts p = {};
    p.rows = basin_shape_product(out, 0, axis), p.parts = call->ins;
    for (int i = 0; i < call->ins; i++) {
        p.from[i] = (const float *)frame->in[i];
        p.first[i + 1] = p.first[i] + call->in[i].shape.dim[axis] * inner;
    }
    int64_t count = p.rows * p.first[p.parts];
    if (!count) return;
    unsigned grid = basin_cuda_grid(frame->cuda, count, THREADS);
    concat_narrow<<<grid, THREADS, 0, frame->stream>>>((basin_bf16 *)frame->out[0], p);
    BASIN_CUDA_LAUNCHED(frame->cuda, "concatenation");
}

void basin_cuda_concat(const basin_cuda_frame *frame) {
    const basin_call *call = frame->call;
    int axis = call->attr.axis;
    int64_t start = 0;
    if (call->out[0].kind == BASIN_NARROW && call->in[0].kind == BASIN_REAL) {
        run_concat_narrow(frame);
        return;
    }
    for (int i = 0; i < call->ins; i++) {
        int64_t span = call->in[i].shape.dim[axis];
        copy_span(frame, &call->out[0], frame->out[0], start, &call->in[i], frame->in[i], 0, span,
                  axis, false);
        start += span;
    }
}

/* ---- permutations ---- */

/* Where outer element n (over the first `axes` axes of p) lies in the operand. */
BASIN_DEVICE int64_t place_of(int64_t n, const basin_axes &p, int axes) {
    int64_t at = 0;
    for (int i = axes - 1; i >= 0; i--) {
        int64_t next = n < (int64_t)1 << 32 ? (int64_t)((uint32_t)n / (uint32_t)p.shape.dim[i])
                                            : n / p.shape.dim[i];
        at += (n - next * p.shape.dim[i]) * p.stride[i];
        n = next;
    }
    return at;
}

/* The last axis stays last: rows of p.shape.dim[rank - 1] units are copied. */
template <typename T>
static __global__ void permute_rows(T *to, const T *from, basin_axes p, int64_t count) {
    int64_t width = p.shape.dim[p.shape.rank - 1];
    BASIN_GRID (i, count, THREADS) {
        int64_t row =
            count < (int64_t)1 << 32 ? (int64_t)((uint32_t)i / (uint32_t)width) : i / width;
        to[i] = from[place_of(row, p, p.shape.rank - 1) + (i - row * width)];
    }
}

/* The operand's last axis is the result's axis `moved`; tiles of that axis by the result's last. */
struct tiling {
    basin_axes rest; /* the axes other than the two; its strides are the operand's */
    int64_t to_stride[BASIN_MAX_RANK]; /* of the rest, in the result */
    int64_t moved_dim, moved_to;       /* size, and stride in the result */
    int64_t last_dim, last_from;       /* size, and stride in the operand */
    int64_t moved_tiles, last_tiles;
};

template <typename T> static __global__ void permute_tiles(T *to, const T *from, tiling t) {
    __shared__ T tile[TILE][TILE + 1];
    int64_t block = blockIdx.x;
    int64_t moved = block % t.moved_tiles * TILE;
    block /= t.moved_tiles;
    int64_t last = block % t.last_tiles * TILE, rest = block / t.last_tiles;
    int64_t from_at = 0, to_at = 0;
    for (int i = t.rest.shape.rank - 1; i >= 0; i--) {
        int64_t r = rest % t.rest.shape.dim[i];
        rest /= t.rest.shape.dim[i];
        from_at += r * t.rest.stride[i];
        to_at += r * t.to_stride[i];
    }
    for (int i = (int)threadIdx.y; i < TILE; i += TILE_ROWS)
        if (last + i < t.last_dim && moved + threadIdx.x < t.moved_dim)
            tile[i][threadIdx.x] = from[from_at + (last + i) * t.last_from + moved + threadIdx.x];
    __syncthreads();
    for (int i = (int)threadIdx.y; i < TILE; i += TILE_ROWS)
        if (moved + i < t.moved_dim && last + threadIdx.x < t.last_dim)
            to[to_at + (moved + i) * t.moved_to + last + threadIdx.x] = tile[threadIdx.x][i];
}

static tiling tiling_of(const basin_axes *p, int moved) {
    tiling t = {};
    int64_t own[BASIN_MAX_RANK];
    basin_shape_strides(own, &p->shape);
    for (int i = 0; i < p->shape.rank - 1; i++) {
        if (i == moved) continue;
        t.rest.shape.dim[t.rest.shape.rank] = p->shape.dim[i];
        t.rest.stride[t.rest.shape.rank] = p->stride[i];
        t.to_stride[t.rest.shape.rank++] = own[i];
    }
    t.moved_dim = p->shape.dim[moved], t.moved_to = own[moved];
    t.last_dim = p->shape.dim[p->shape.rank - 1], t.last_from = p->stride[p->shape.rank - 1];
    t.moved_tiles = basin_cuda_ceil(t.moved_dim, TILE);
    t.last_tiles = basin_cuda_ceil(t.last_dim, TILE);
    return t;
}

static void run_rows(const basin_cuda_frame *frame, basin_axes p, int64_t count, size_t size) {
    int64_t bytes = p.shape.dim[p.shape.rank - 1] * (int64_t)size, strides = 0;
    for (int i = 0; i < p.shape.rank - 1; i++) strides |= p.stride[i] * (int64_t)size;
    size_t unit = unit_of(bytes, strides, 0, 0);
    int64_t times = (int64_t)(unit / size);
    p.shape.dim[p.shape.rank - 1] /= times;
    for (int i = 0; i < p.shape.rank - 1; i++) p.stride[i] /= times;
    count /= times;
    unsigned grid = basin_cuda_grid(frame->cuda, count, THREADS);
    with_unit(unit, [&](auto zero) {
        using T = decltype(zero);
        permute_rows<T><<<grid, THREADS, 0, frame->stream>>>((T *)frame->out[0],
                                                             (const T *)frame->in[0], p, count);
    });
}

void basin_cuda_permute(const basin_cuda_frame *frame) {
    basin_axes p = basin_shape_permuted(&frame->call->in[0].shape, frame->call->attr.axes);
    int64_t count =
        basin_shape_product(&frame->call->out[0].shape, 0, frame->call->out[0].shape.rank);
    size_t size = element_size(&frame->call->out[0]);
    int moved = 0;
    if (count == 0) return;
    if (basin_kind_is_byte(frame->call->out[0].kind)) {
        const basin_operand *from = &frame->call->in[0];
        basin_cuda_bytes_turn(frame->cuda, frame->out[0], frame->in[0], from->stride,
                              from->shape.dim[0], from->shape.dim[1]);
        return;
    }
    while (moved < p.shape.rank - 1 && p.stride[moved] != 1) moved++;
    if (moved == p.shape.rank - 1)
        run_rows(frame, p, count, size);
    else {
        tiling t = tiling_of(&p, moved);
        int64_t blocks = count / t.moved_dim / t.last_dim * t.moved_tiles * t.last_tiles;
        with_unit(size, [&](auto zero) {
            using T = decltype(zero);
            permute_tiles<T><<<(unsigned)blocks, dim3(TILE, TILE_ROWS), 0, frame->stream>>>(
                (T *)frame->out[0], (const T *)frame->in[0], t);
        });
    }
    BASIN_CUDA_LAUNCHED(frame->cuda, "permute");
}

/* Rows by index. GATHER copies them. SCATTER sums them: positions are sorted by their row (stable),
 * and every row of the result adds up its own in that order. */

enum { ROWS_THREADS = 256, WARPS = ROWS_THREADS / 32 };

/* ---- indices as numbers, and numbers as the nearest of 0 .. limit - 1 ---- */

static __global__ void from_index(basin_sink out, const int32_t *index, int64_t count) {
    BASIN_GRID (i, count, ROWS_THREADS) basin_write_one(out, i, (float)index[i]);
}

static __global__ void to_index(int32_t *out, basin_source x, int64_t count, int64_t limit) {
    BASIN_GRID (i, count, ROWS_THREADS) {
        double nearest = floor((double)basin_read_one(x, i) + 0.5);
        out[i] = nearest > 0 ? (int32_t)fmin(nearest, (double)(limit - 1)) : 0;
    }
}

void basin_cuda_convert_index(const basin_cuda_frame *frame) {
    const basin_call *call = frame->call;
    int64_t count = basin_shape_product(&call->out[0].shape, 0, call->out[0].shape.rank);
    if (count == 0) return;
    unsigned grid = basin_cuda_grid(frame->cuda, count, ROWS_THREADS);
    if (call->op == BASIN_OP_FROM_INDEX)
        from_index<<<grid, ROWS_THREADS, 0, frame->stream>>>(basin_cuda_sink(frame, 0),
                                                             (const int32_t *)frame->in[0], count);
    else
        to_index<<<grid, ROWS_THREADS, 0, frame->stream>>>(
            (int32_t *)frame->out[0], basin_cuda_source(frame, 0), count, call->attr.start);
    BASIN_CUDA_LAUNCHED(frame->cuda, "convert index");
}

/* ---- gather ---- */

template <typename T>
static __global__ void gather_rows(T *out, const T *table, const int32_t *index, int64_t n,
                                   int64_t rows, int64_t width, basin_cuda_reporter reporter) {
    int64_t count = n * width;
    BASIN_GRID (i, count, ROWS_THREADS) {
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

void basin_cuda_gather(const basin_cuda_frame *frame) {
    const basin_shape *table = &frame->call->in[0].shape;
    int64_t n = basin_shape_product(&frame->call->in[1].shape, 0, frame->call->in[1].shape.rank);
    int64_t size = frame->call->out[0].kind == BASIN_NARROW ? 2 : 4;
    int64_t bytes = basin_shape_product(table, 1, table->rank) * size, rows = table->dim[0];
    if (n == 0 || bytes == 0) return;
    with_unit(bytes % 16 == 0  ? 16
              : bytes % 4 == 0 ? 4
                               : 2,
              [&](auto zero) {
                  using T = decltype(zero);
                  int64_t width = bytes / (int64_t)sizeof(T);
                  unsigned grid = basin_cuda_grid(frame->cuda, n * width, ROWS_THREADS);
                  gather_rows<T><<<grid, ROWS_THREADS, 0, frame->stream>>>(
                      (T *)frame->out[0], (const T *)frame->in[0], (const int32_t *)frame->in[1], n,
                      rows, width, basin_cuda_reporter_of(frame));
              });
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

/* Indices that point nowhere are sorted after the last row. */
static __global__ void prepare_keys(uint32_t *key, int32_t *position, const int32_t *index,
                                    int64_t n, int64_t rows, basin_cuda_reporter reporter) {
    BASIN_GRID (i, n, ROWS_THREADS) {
        int32_t to = index[i];
        bool inside = to >= 0 && to < rows;
        if (!inside && to != -1) basin_cuda_report(reporter, i, to, -1, rows);
        key[i] = inside ? (uint32_t)to : (uint32_t)rows;
        position[i] = (int32_t)i;
    }
}

/* first[v]: the first place in the sorted list whose row is v or more. */
static __global__ void find_first(int32_t *first, const uint32_t *sorted, int64_t n, int64_t rows) {
    int64_t v = (int64_t)blockIdx.x * ROWS_THREADS + threadIdx.x;
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

/* Block (tile of 32 columns, row v): warp w adds positions w, w + 8, ..; then in order. */
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
    for (int base = 0; base < n; base += ROWS_THREADS) {
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

/* The same where most rows get few: one warp per row and 32 columns scans the list and adds the
 * matches as it finds them. */
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

size_t basin_cuda_scatter_workspace(const basin_cuda *, const basin_call *call) {
    int64_t n = index_count(call);
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
        scatter_sparse<<<(unsigned)basin_cuda_ceil(blocks, WARPS), ROWS_THREADS, 0,
                         frame->stream>>>(basin_cuda_sink(frame, 0), basin_cuda_source(frame, 0),
                                          index, (int)n, rows, width,
                                          basin_cuda_reporter_of(frame));
        BASIN_CUDA_LAUNCHED(cuda, "scatter");
        return;
    }
    if (n <= FEW && rows <= FEW_ROWS) {
        scatter_few<<<blocks, ROWS_THREADS, 0, frame->stream>>>(
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
    prepare_keys<<<basin_cuda_grid(cuda, n, ROWS_THREADS), ROWS_THREADS, 0, frame->stream>>>(
        key, position, index, n, rows, basin_cuda_reporter_of(frame));
    BASIN_CUDA_LAUNCHED(cuda, "scatter");
    BASIN_CUDA_TRY(cuda, cub::DeviceRadixSort::SortPairs(base + s.temporary, s.temporary_bytes, key,
                                                         sorted, position, order, (int)n, 0, s.bits,
                                                         frame->stream));
    find_first<<<(unsigned)basin_cuda_ceil(rows + 1, ROWS_THREADS), ROWS_THREADS, 0,
                 frame->stream>>>(first, sorted, n, rows);
    BASIN_CUDA_LAUNCHED(cuda, "scatter");
    sum_rows<<<blocks, ROWS_THREADS, 0, frame->stream>>>(
        basin_cuda_sink(frame, 0), basin_cuda_source(frame, 0), order, first, width);
    BASIN_CUDA_LAUNCHED(cuda, "scatter");
}
