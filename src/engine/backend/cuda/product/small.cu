/* Small products of float32, with their epilogues:
 *
 *     D = relu?(alpha A B + beta C + of_more E + bias [n]), 0 where the mask is not above 0
 *
 * A block computes 32 x 64 elements, a thread 4 x 4 of them. Sums over many tokens, the gradients
 * of weights, are cut into parts by their length only; the block that comes last adds the parts in
 * their order. */
#include "engine/backend/cuda/elements.h"
#include "engine/backend/cuda/inside.h"

enum { THREADS = 128, ROWS = 32, COLUMNS = 64, DEPTH = 32, EACH = 4, PART = 128 };

struct small {
    const float *a, *b; /* [m, k], [k, n], or their transposes */
    const float *c, *more, *bias, *mask;
    float *d; /* [m, n] */
    float alpha, beta, of_more;
    int m, n, k;
    int parts;       /* of each sum */
    float4 *partial; /* where tiles leave their parts, and count them */
    unsigned *arrived;
    bool transposed_a, transposed_b, relu,
        wide; /* wide: rows are read and written four at a time */
};

struct tiles {
    float a[DEPTH][ROWS + 4], b[DEPTH][COLUMNS + 4];
};

/* A thread's share of the next tiles of the factors. */
struct carried {
    float a[DEPTH * ROWS / THREADS], b[DEPTH * COLUMNS / THREADS];
};

/* Which element of a tile of A (row, depth) or of B (column, depth) is number `at`, so that
 * neighbours are neighbours in memory. */
BASIN_DEVICE int2 place_of(int at, int across, bool deep) {
    return deep ? make_int2(at / DEPTH, at % DEPTH) : make_int2(at % across, at / across);
}

BASIN_DEVICE void fetch(carried &x, const small &p, int row, int column, int depth, int end) {
    BASIN_UNROLL (i, DEPTH * ROWS / THREADS) {
        int2 at = place_of((int)threadIdx.x + i * THREADS, ROWS, !p.transposed_a);
        int r = row + at.x, k = depth + at.y;
        bool in = r < p.m && k < end;
        x.a[i] = in ? p.a[p.transposed_a ? (int64_t)k * p.m + r : (int64_t)r * p.k + k] : 0.0f;
    }
    BASIN_UNROLL (i, DEPTH * COLUMNS / THREADS) {
        int2 at = place_of((int)threadIdx.x + i * THREADS, COLUMNS, p.transposed_b);
        int c = column + at.x, k = depth + at.y;
        bool in = c < p.n && k < end;
        x.b[i] = in ? p.b[p.transposed_b ? (int64_t)c * p.k + k : (int64_t)k * p.n + c] : 0.0f;
    }
}

BASIN_DEVICE void put(tiles &s, const carried &x, const small &p) {
    BASIN_UNROLL (i, DEPTH * ROWS / THREADS) {
        int2 at = place_of((int)threadIdx.x + i * THREADS, ROWS, !p.transposed_a);
        s.a[at.y][at.x] = x.a[i];
    }
    BASIN_UNROLL (i, DEPTH * COLUMNS / THREADS) {
        int2 at = place_of((int)threadIdx.x + i * THREADS, COLUMNS, p.transposed_b);
        s.b[at.y][at.x] = x.b[i];
    }
}

/* Where a thread's elements begin within the tile. */
BASIN_DEVICE int own_row() { return (int)threadIdx.x / 16 * EACH; }
BASIN_DEVICE int own_column() { return (int)threadIdx.x % 16 * EACH; }

BASIN_DEVICE void accumulate(float (&sum)[EACH][EACH], const tiles &s) {
#pragma unroll 8
    for (int k = 0; k < DEPTH; k++) {
        float4 x = *(const float4 *)&s.a[k][own_row()], y = *(const float4 *)&s.b[k][own_column()];
        float u[EACH] = {x.x, x.y, x.z, x.w}, v[EACH] = {y.x, y.y, y.z, y.w};
        BASIN_UNROLL (i, EACH)
            BASIN_UNROLL (j, EACH) sum[i][j] = fmaf(u[i], v[j], sum[i][j]);
    }
}

BASIN_DEVICE void multiply(float (&sum)[EACH][EACH], tiles &s, const small &p, int row, int column,
                           int begin, int end) {
    carried x;
    fetch(x, p, row, column, begin, end);
    for (int k = begin; k < end; k += DEPTH) {
        __syncthreads();
        put(s, x, p);
        __syncthreads();
        if (k + DEPTH < end) fetch(x, p, row, column, k + DEPTH, end);
        accumulate(sum, s);
    }
}

/* Leaves a part's sums; true in the block that comes last, with the sums of all parts. */
BASIN_DEVICE bool join_parts(float (&sum)[EACH][EACH], const small &p, int tile, int part) {
    float4 *all = p.partial + (int64_t)tile * p.parts * EACH * THREADS;
    float4 *own = all + (int64_t)part * EACH * THREADS;
    BASIN_UNROLL (i, EACH)
        own[i * THREADS + threadIdx.x] = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
    if (!basin_is_last_block(&p.arrived[tile], (unsigned)p.parts)) return false;
    BASIN_UNROLL (i, EACH) {
        float4 x = make_float4(0, 0, 0, 0);
        for (int k = 0; k < p.parts; k++) {
            float4 y = __ldcg(&all[((int64_t)k * EACH + i) * THREADS + threadIdx.x]);
            x.x += y.x, x.y += y.y, x.z += y.z, x.w += y.w;
        }
        sum[i][0] = x.x, sum[i][1] = x.y, sum[i][2] = x.z, sum[i][3] = x.w;
    }
    return true;
}

/* Up to four neighbours of a row; `count` of them are there. */
BASIN_DEVICE void read_four(float (&x)[EACH], const float *from, int count, bool wide) {
    if (wide) {
        float4 y = *(const float4 *)from;
        x[0] = y.x, x[1] = y.y, x[2] = y.z, x[3] = y.w;
        return;
    }
    BASIN_UNROLL (j, EACH) x[j] = j < count ? from[j] : 0.0f;
}

BASIN_DEVICE void write_four(float *to, const float (&x)[EACH], int count, bool wide) {
    if (wide) {
        *(float4 *)to = make_float4(x[0], x[1], x[2], x[3]);
        return;
    }
    BASIN_UNROLL (j, EACH)
        if (j < count) to[j] = x[j];
}

BASIN_DEVICE void add_four(float (&x)[EACH], float by, const float *from, int count, bool wide) {
    float y[EACH];
    if (!from) return;
    read_four(y, from, count, wide);
    BASIN_UNROLL (j, EACH) x[j] = fmaf(by, y[j], x[j]);
}

/* The epilogue, for four neighbours of a row. */
BASIN_DEVICE void finish(const small &p, const float (&sum)[EACH], int row, int column) {
    int64_t at = (int64_t)row * p.n + column;
    int count = p.n - column;
    float x[EACH], mask[EACH];
    if (row >= p.m || count <= 0) return;
    BASIN_UNROLL (j, EACH) x[j] = p.alpha * sum[j];
    add_four(x, p.beta, p.c ? p.c + at : NULL, count, p.wide);
    add_four(x, p.of_more, p.more ? p.more + at : NULL, count, p.wide);
    add_four(x, 1.0f, p.bias ? p.bias + column : NULL, count, p.wide);
    if (p.mask) read_four(mask, p.mask + at, count, p.wide);
    BASIN_UNROLL (j, EACH) {
        if (p.relu) x[j] = x[j] <= 0 ? 0.0f : x[j];
        if (p.mask) x[j] *= mask[j] > 0 ? 1.0f : 0.0f;
    }
    write_four(p.d + at, x, count, p.wide);
}

static __global__ void __launch_bounds__(THREADS) small_product(const small p) {
    __shared__ __align__(16) tiles s;
    int across = (p.n + COLUMNS - 1) / COLUMNS, all = across * ((p.m + ROWS - 1) / ROWS);
    int tile = (int)blockIdx.x % all, part = (int)blockIdx.x / all;
    int row = tile / across * ROWS, column = tile % across * COLUMNS;
    int begin = p.parts > 1 ? part * PART : 0;
    int end = p.parts > 1 && begin + PART < p.k ? begin + PART : p.k;
    float sum[EACH][EACH] = {};
    multiply(sum, s, p, row, column, begin, end);
    if (p.parts > 1 && !join_parts(sum, p, tile, part)) return;
    BASIN_UNROLL (r, EACH) finish(p, sum[r], row + own_row() + r, column + own_column());
}

/* ---- launching ---- */

static bool is_plain(const basin_operand *operand) {
    return operand->kind == BASIN_REAL && operand->block >= 0 && !operand->stride &&
           operand->shape.rank == 2;
}

static int64_t depth_of(const basin_call *call) {
    return call->in[0].shape.dim[call->attr.transpose_a ? 0 : 1];
}

bool basin_cuda_small_fits(const basin_cuda *cuda, const basin_call *call) {
    if (!cuda->arrived || call->op != BASIN_OP_MATMUL || call->outs != 1 || call->byte_copies ||
        !is_plain(&call->in[0]) || !is_plain(&call->in[1]) || !is_plain(&call->out[0]) ||
        call->attr.products == BASIN_PRODUCTS_TF32)
        return false;
    const int64_t *dim = call->out[0].shape.dim;
    basin_form f = basin_form_with_more(call->program, call);
    bool bits = f.known && f.mask >= 0 && call->in[2 + f.mask].kind == BASIN_INDEX;
    double work = (double)dim[0] * (double)dim[1] * (double)depth_of(call);
    return f.known && f.step < 0 && !bits && work > 0 && work <= 0x1p24;
}

static const float *operand(const basin_cuda_frame *frame, int number) {
    return number < 0 ? NULL : (const float *)frame->in[2 + number];
}

static bool is_wide(const small *p) {
    uintptr_t all = (uintptr_t)p->c | (uintptr_t)p->more | (uintptr_t)p->bias | (uintptr_t)p->mask |
                    (uintptr_t)p->d;
    return p->n % EACH == 0 && all % sizeof(float4) == 0;
}

static small small_of(const basin_cuda_frame *frame) {
    const basin_call *call = frame->call;
    basin_form f = basin_form_with_more(call->program, call);
    small p = {};
    p.a = (const float *)frame->in[0], p.b = (const float *)frame->in[1];
    p.d = (float *)frame->out[0];
    p.c = operand(frame, f.c), p.more = operand(frame, f.more);
    p.bias = operand(frame, f.row), p.mask = operand(frame, f.mask);
    p.alpha = (float)f.alpha, p.beta = (float)f.beta, p.of_more = (float)f.of_more;
    p.m = (int)call->out[0].shape.dim[0], p.n = (int)call->out[0].shape.dim[1];
    p.k = (int)depth_of(call);
    p.transposed_a = call->attr.transpose_a, p.transposed_b = call->attr.transpose_b;
    p.relu = f.relu, p.wide = is_wide(&p);
    p.parts = 1;
    return p;
}

void basin_cuda_small_run(const basin_cuda_frame *frame) {
    basin_cuda *cuda = frame->cuda;
    small p = small_of(frame);
    int64_t tiles = basin_cuda_ceil(p.m, ROWS) * basin_cuda_ceil(p.n, COLUMNS);
    int64_t parts = basin_cuda_ceil(p.k, PART), room = EACH * THREADS * sizeof(float4);
    if (basin_cuda_codes_collecting(cuda)) return;
    if (tiles * parts * room <= (int64_t)cuda->lt_bytes && tiles <= BASIN_CUDA_COUNTERS &&
        tiles * parts <= 1024)
        p.parts = (int)parts;
    p.partial = (float4 *)cuda->lt_workspace, p.arrived = cuda->arrived;
    small_product<<<(unsigned)(tiles * p.parts), THREADS, 0, cuda->stream>>>(p);
    BASIN_CUDA_LAUNCHED(cuda, "small products");
}
