/* Moving numbers: permutations, slices, pads, concatenation. They only copy, so they take elements
 * of any kind by their size. Rows travel 16 bytes at a time where everything is a multiple of that;
 * a permutation that moves the last axis goes through tiles in shared memory, so that both sides
 * are read and written in order. */
#include "backend/cuda/elements.h"
#include "backend/cuda/inside.h"

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

/* to[row, start + i] = from[row, skip + i] for i < span; rows of to_width and from_width units.
 * With `clear`, everything else of `to` becomes zero. */
struct spans {
    int64_t rows, to_width, from_width, start, skip, span;
    bool clear;
};

template <typename T>
static __global__ void copy_spans(T *to, const T *from, spans s, basin_divisor by) {
    int64_t width = s.clear ? s.to_width : s.span, count = s.rows * width;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * THREADS) {
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
    int64_t per = inner; /* bytes of one step along the axis */
    int64_t size = (int64_t)unit;
    spans s = {rows,
               a->dim[axis] * per / size,
               b->dim[axis] * per / size,
               start * per / size,
               skip * per / size,
               span * per / size,
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

void basin_cuda_concat(const basin_cuda_frame *frame) {
    const basin_call *call = frame->call;
    int axis = call->attr.axis;
    int64_t start = 0;
    for (int i = 0; i < call->ins; i++) {
        int64_t span = call->in[i].shape.dim[axis];
        copy_span(frame, &call->out[0], frame->out[0], start, &call->in[i], frame->in[i], 0, span,
                  axis, false);
        start += span;
    }
}

/* ---- permutations ---- */

/* The result's axes after joining those that stay neighbours, and the operand's stride along each.
 */
struct permutation {
    int rank;
    int64_t dim[BASIN_MAX_RANK], stride[BASIN_MAX_RANK];
};

static permutation permutation_of(const basin_call *call) {
    const basin_shape *out = &call->out[0].shape;
    int64_t own[BASIN_MAX_RANK];
    permutation p = {};
    basin_shape_strides(own, &call->in[0].shape);
    for (int i = 0; i < out->rank; i++) {
        int64_t stride = own[call->attr.axes[i]];
        if (out->dim[i] == 1) continue;
        if (p.rank > 0 && p.stride[p.rank - 1] == stride * out->dim[i]) {
            p.dim[p.rank - 1] *= out->dim[i];
            p.stride[p.rank - 1] = stride;
        } else {
            p.dim[p.rank] = out->dim[i];
            p.stride[p.rank++] = stride;
        }
    }
    if (p.rank == 0) p.rank = 1, p.dim[0] = 1, p.stride[0] = 1;
    return p;
}

/* Where outer element n (over the first `axes` axes of p) lies in the operand. */
static __device__ __forceinline__ int64_t place_of(int64_t n, const permutation &p, int axes) {
    int64_t at = 0;
    for (int i = axes - 1; i >= 0; i--) {
        int64_t next =
            n < (int64_t)1 << 32 ? (int64_t)((uint32_t)n / (uint32_t)p.dim[i]) : n / p.dim[i];
        at += (n - next * p.dim[i]) * p.stride[i];
        n = next;
    }
    return at;
}

/* The last axis stays last: rows of p.dim[rank - 1] units are copied. */
template <typename T>
static __global__ void permute_rows(T *to, const T *from, permutation p, int64_t count) {
    int64_t width = p.dim[p.rank - 1];
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * THREADS) {
        int64_t row =
            count < (int64_t)1 << 32 ? (int64_t)((uint32_t)i / (uint32_t)width) : i / width;
        to[i] = from[place_of(row, p, p.rank - 1) + (i - row * width)];
    }
}

/* The operand's last axis is the result's axis `moved`; tiles of that axis by the result's last. */
struct tiling {
    permutation rest; /* the axes other than the two; its strides are the operand's */
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
    for (int i = t.rest.rank - 1; i >= 0; i--) {
        int64_t r = rest % t.rest.dim[i];
        rest /= t.rest.dim[i];
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

static tiling tiling_of(const permutation *p, int moved) {
    tiling t = {};
    int64_t own[BASIN_MAX_RANK], step = 1;
    for (int i = p->rank - 1; i >= 0; i--) {
        own[i] = step;
        step *= p->dim[i];
    }
    for (int i = 0; i < p->rank - 1; i++) {
        if (i == moved) continue;
        t.rest.dim[t.rest.rank] = p->dim[i];
        t.rest.stride[t.rest.rank] = p->stride[i];
        t.to_stride[t.rest.rank++] = own[i];
    }
    t.moved_dim = p->dim[moved], t.moved_to = own[moved];
    t.last_dim = p->dim[p->rank - 1], t.last_from = p->stride[p->rank - 1];
    t.moved_tiles = basin_cuda_ceil(t.moved_dim, TILE);
    t.last_tiles = basin_cuda_ceil(t.last_dim, TILE);
    return t;
}

static void run_rows(const basin_cuda_frame *frame, permutation p, int64_t count, size_t size) {
    int64_t bytes = p.dim[p.rank - 1] * (int64_t)size, strides = 0;
    for (int i = 0; i < p.rank - 1; i++) strides |= p.stride[i] * (int64_t)size;
    size_t unit = unit_of(bytes, strides, 0, 0);
    int64_t times = (int64_t)(unit / size);
    p.dim[p.rank - 1] /= times;
    for (int i = 0; i < p.rank - 1; i++) p.stride[i] /= times;
    count /= times;
    unsigned grid = basin_cuda_grid(frame->cuda, count, THREADS);
    with_unit(unit, [&](auto zero) {
        using T = decltype(zero);
        permute_rows<T><<<grid, THREADS, 0, frame->stream>>>((T *)frame->out[0],
                                                             (const T *)frame->in[0], p, count);
    });
}

void basin_cuda_permute(const basin_cuda_frame *frame) {
    permutation p = permutation_of(frame->call);
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
    while (moved < p.rank - 1 && p.stride[moved] != 1) moved++;
    if (moved == p.rank - 1)
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
