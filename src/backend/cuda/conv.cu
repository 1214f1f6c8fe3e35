/* Convolution and pooling. */
#include "backend/cuda/elements.h"
#include "backend/cuda/inside.h"

enum { THREADS = 256 };
static const int64_t PATCH_BYTES = (int64_t)128
                                   << 20; /* of the workspace, unless one image is more */

struct geometry {
    int64_t batch;
    int rows, columns, channels;        /* x */
    int out_rows, out_columns, filters; /* y */
    int kernel_rows, kernel_columns;
    int stride[2], pad[2];
    int64_t taps, cells; /* numbers of a patch; patches of an image */
    int64_t images;      /* at a time */
};

static geometry geometry_of(const basin_call *call) {
    bool to_x = call->op == BASIN_OP_CONV_INPUT, to_kernel = call->op == BASIN_OP_CONV_KERNEL;
    const int64_t *x = to_x ? call->out[0].shape.dim : call->in[0].shape.dim;
    const int64_t *kernel = to_kernel ? call->out[0].shape.dim : call->in[1].shape.dim;
    const int64_t *y = to_x        ? call->in[0].shape.dim
                       : to_kernel ? call->in[1].shape.dim
                                   : call->out[0].shape.dim;
    geometry g = {};
    g.batch = x[0];
    g.rows = (int)x[1], g.columns = (int)x[2], g.channels = (int)x[3];
    g.out_rows = (int)y[1], g.out_columns = (int)y[2], g.filters = (int)y[3];
    g.kernel_rows = (int)kernel[0], g.kernel_columns = (int)kernel[1];
    for (int i = 0; i < 2; i++) g.stride[i] = call->attr.stride[i], g.pad[i] = call->attr.pad[i];
    g.taps = (int64_t)g.kernel_rows * g.kernel_columns * g.channels;
    g.cells = (int64_t)g.out_rows * g.out_columns;
    int64_t image = g.cells * g.taps * (int64_t)sizeof(float);
    g.images = image > 0 ? PATCH_BYTES / image : g.batch;
    if (g.images < 1) g.images = 1;
    if (g.images > g.batch) g.images = g.batch;
    return g;
}

size_t basin_cuda_conv_workspace(const basin_cuda *, const basin_call *call) {
    geometry g = geometry_of(call);
    return (size_t)(g.images * g.cells * g.taps) * sizeof(float);
}

/* patches [images, cells, taps] of the images from `first` on; 0 in the padding. */
static __global__ void cut_patches(float *patches, basin_source x, int64_t first, int64_t count,
                                   geometry g) {
    BASIN_GRID (n, count, THREADS) {
        int64_t tap = n % g.taps, cell = n / g.taps;
        int ch = (int)(tap % g.channels), dj = (int)(tap / g.channels % g.kernel_columns);
        int di = (int)(tap / g.channels / g.kernel_columns);
        int j = (int)(cell % g.out_columns), i = (int)(cell / g.out_columns % g.out_rows);
        int64_t b = first + cell / g.cells;
        int r = g.stride[0] * i + di - g.pad[0], c = g.stride[1] * j + dj - g.pad[1];
        bool inside = r >= 0 && r < g.rows && c >= 0 && c < g.columns;
        patches[n] =
            inside ? basin_read_one(x, ((b * g.rows + r) * g.columns + c) * g.channels + ch) : 0.0f;
    }
}

/* x = the sum of the patches' numbers that lie on each cell. */
static __global__ void join_patches(basin_sink x, const float *patches, int64_t first,
                                    int64_t count, geometry g) {
    BASIN_GRID (n, count, THREADS) {
        int ch = (int)(n % g.channels), c = (int)(n / g.channels % g.columns);
        int r = (int)(n / g.channels / g.columns % g.rows);
        int64_t b = n / g.channels / g.columns / g.rows;
        float sum = 0;
        for (int di = 0; di < g.kernel_rows; di++) {
            int i = r + g.pad[0] - di;
            if (i < 0 || i % g.stride[0] || i / g.stride[0] >= g.out_rows) continue;
            for (int dj = 0; dj < g.kernel_columns; dj++) {
                int j = c + g.pad[1] - dj;
                if (j < 0 || j % g.stride[1] || j / g.stride[1] >= g.out_columns) continue;
                int64_t cell = (b * g.out_rows + i / g.stride[0]) * g.out_columns + j / g.stride[1];
                sum += patches[cell * g.taps + ((int64_t)di * g.kernel_columns + dj) * g.channels +
                               ch];
            }
        }
        basin_write_one(x, first * g.rows * g.columns * g.channels + n, sum);
    }
}

static uint32_t alignment_of(const void *a, const void *b, const void *d) {
    uintptr_t bits = (uintptr_t)a | (uintptr_t)b | (uintptr_t)d;
    uint32_t alignment = 4;
    while (alignment < 64 && bits % (2 * alignment) == 0) alignment *= 2;
    return alignment;
}

static void multiply(const basin_cuda_frame *frame, float *d, const float *a, const float *b,
                     int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b,
                     bool add) {
    basin_cuda_product p = {};
    p.unit = p.scale = 1;
    p.batch = 1, p.m = m, p.n = n, p.k = k;
    p.transpose_a = transpose_a, p.transpose_b = transpose_b;
    p.products = frame->call->attr.products == BASIN_PRODUCTS_TF32 ? BASIN_PRODUCTS_TF32 : 0;
    p.add = add;
    p.alpha = p.beta = 1;
    p.alignment = alignment_of(a, b, d);
    basin_cuda_product_run(frame->cuda, &p, d, a, b, add ? d : NULL, NULL);
}

/* One group of images; operands are float (plans keep convolutions wide). */
static void run_images(const basin_cuda_frame *frame, const geometry *g, int64_t first,
                       int64_t images) {
    float *patches = (float *)frame->workspace, *out = (float *)frame->out[0];
    const float *second = (const float *)frame->in[1];
    int64_t cells = images * g->cells, count = cells * g->taps,
            y_at = first * g->cells * g->filters;
    unsigned grid = basin_cuda_grid(frame->cuda, count, THREADS);
    if (frame->call->op == BASIN_OP_CONV_INPUT) {
        const float *y = (const float *)frame->in[0] + y_at;
        int64_t pixels = images * g->rows * g->columns * g->channels;
        multiply(frame, patches, y, second, cells, g->taps, g->filters, false, true, false);
        join_patches<<<basin_cuda_grid(frame->cuda, pixels, THREADS), THREADS, 0, frame->stream>>>(
            basin_cuda_sink(frame, 0), patches, first, pixels, *g);
        BASIN_CUDA_LAUNCHED(frame->cuda, "patches to an image");
        return;
    }
    cut_patches<<<grid, THREADS, 0, frame->stream>>>(patches, basin_cuda_source(frame, 0), first,
                                                     count, *g);
    BASIN_CUDA_LAUNCHED(frame->cuda, "patches of an image");
    if (frame->call->op == BASIN_OP_CONV)
        multiply(frame, out + y_at, patches, second, cells, g->filters, g->taps, false, false,
                 false);
    else
        multiply(frame, out, patches, second + y_at, g->taps, g->filters, cells, true, false,
                 first > 0);
}

void basin_cuda_conv(const basin_cuda_frame *frame) {
    geometry g = geometry_of(frame->call);
    const basin_shape *out = &frame->call->out[0].shape;
    int64_t count = basin_shape_product(out, 0, out->rank);
    if (count == 0) return;
    if (g.batch * g.cells * g.taps * g.filters == 0) { /* a sum over nothing */
        BASIN_CUDA_TRY(frame->cuda, cudaMemsetAsync(frame->out[0], 0, (size_t)count * sizeof(float),
                                                    frame->stream));
        return;
    }
    for (int64_t first = 0; first < g.batch; first += g.images)
        run_images(frame, &g, first, g.batch - first < g.images ? g.batch - first : g.images);
}

/* Pooling over windows of an image, NHWC. Windows are clipped to the image; `real` is the number of
 * cells left. Each thread computes one element of the result: where results lie in the image, it
 * visits the windows that its cell belongs to, in their order, so no two threads add to one number.
 * A window without cells gives 0 and receives nothing. */

struct picture {
    int rows, columns, channels;
};

struct pooling {
    picture x, y;
    int window[2], stride[2], pad[2];
    int64_t count; /* elements of the result */
};

static pooling pooling_of(const basin_attr *attr, const basin_operand *x, const basin_operand *y) {
    const int64_t *a = x->shape.dim, *b = y->shape.dim;
    pooling p = {};
    p.x = {(int)a[1], (int)a[2], (int)a[3]};
    p.y = {(int)b[1], (int)b[2], (int)b[3]};
    for (int i = 0; i < 2; i++)
        p.window[i] = attr->window[i], p.stride[i] = attr->stride[i], p.pad[i] = attr->pad[i];
    return p;
}

/* Element n of an image. */
struct cell {
    int64_t b;
    int r, c, ch;
};

static __device__ cell cell_of(int64_t n, picture m) {
    cell at;
    at.ch = (int)(n % m.channels);
    n /= m.channels;
    at.c = (int)(n % m.columns);
    n /= m.columns;
    at.r = (int)(n % m.rows);
    at.b = n / m.rows;
    return at;
}

static __device__ int64_t place(picture m, int64_t b, int r, int c, int ch) {
    return ((b * m.rows + r) * m.columns + c) * m.channels + ch;
}

struct window {
    int top, bottom, left, right; /* rows top .. bottom - 1 */
};

static __device__ window window_at(const pooling &p, int i, int j) {
    int top = i * p.stride[0] - p.pad[0], left = j * p.stride[1] - p.pad[1];
    return {max(top, 0), min(top + p.window[0], p.x.rows), max(left, 0),
            min(left + p.window[1], p.x.columns)};
}

static __device__ int real_cells(window w) {
    return max(w.bottom - w.top, 0) * max(w.right - w.left, 0);
}

/* The cell of the first maximum of the window; -1 where it is empty. */
static __device__ int64_t arg_max(basin_source x, const pooling &p, int64_t b, int ch, window w) {
    int64_t best = -1;
    float most = 0;
    for (int r = w.top; r < w.bottom; r++)
        for (int c = w.left; c < w.right; c++) {
            int64_t at = place(p.x, b, r, c, ch);
            float value = basin_read_one(x, at);
            if (best < 0 || value > most) best = at, most = value;
        }
    return best;
}

static __global__ void average(basin_sink y, basin_source x, pooling p) {
    BASIN_GRID (n, p.count, THREADS) {
        cell at = cell_of(n, p.y);
        window w = window_at(p, at.r, at.c);
        int real = real_cells(w);
        float sum = 0;
        for (int r = w.top; r < w.bottom; r++)
            for (int c = w.left; c < w.right; c++)
                sum += basin_read_one(x, place(p.x, at.b, r, c, at.ch));
        basin_write_one(y, n, real ? sum / (float)real : 0.0f);
    }
}

/* y[n] = v at the arg max of x over window n. */
static __global__ void read_maxima(basin_sink y, basin_source x, basin_source v, pooling p) {
    BASIN_GRID (n, p.count, THREADS) {
        cell at = cell_of(n, p.y);
        int64_t best = arg_max(x, p, at.b, at.ch, window_at(p, at.r, at.c));
        basin_write_one(y, n, best < 0 ? 0.0f : basin_read_one(v, best));
    }
}

/* The windows i with i stride - pad <= r < i stride - pad + window, among `count`: first .. last.
 */
static __device__ int first_window(int r, int stride, int pad, int size) {
    int least = r + pad - size + 1;
    return least <= 0 ? 0 : (least + stride - 1) / stride;
}
static __device__ int last_window(int r, int stride, int pad, int count) {
    return min((r + pad) / stride, count - 1);
}

/* MAXIMUM: y added where the cell is its window's first maximum; else y spread evenly. */
template <bool MAXIMUM>
static __global__ void spread(basin_sink out, basin_source x, basin_source y, pooling p) {
    BASIN_GRID (n, p.count, THREADS) {
        cell at = cell_of(n, p.x);
        int bottom = last_window(at.r, p.stride[0], p.pad[0], p.y.rows);
        int right = last_window(at.c, p.stride[1], p.pad[1], p.y.columns);
        float sum = 0;
        for (int i = first_window(at.r, p.stride[0], p.pad[0], p.window[0]); i <= bottom; i++)
            for (int j = first_window(at.c, p.stride[1], p.pad[1], p.window[1]); j <= right; j++) {
                window w = window_at(p, i, j);
                float value = basin_read_one(y, place(p.y, at.b, i, j, at.ch));
                if (!MAXIMUM)
                    sum += value / (float)real_cells(w);
                else if (arg_max(x, p, at.b, at.ch, w) == n)
                    sum += value;
            }
        basin_write_one(out, n, sum);
    }
}

/* Calls f(blocks, pooling); x and y are numbers of operands, -1 that of the result. */
template <typename F> static void pool(const basin_cuda_frame *frame, int x, int y, F f) {
    const basin_call *call = frame->call;
    pooling p = pooling_of(&call->attr, x < 0 ? &call->out[0] : &call->in[x],
                           y < 0 ? &call->out[0] : &call->in[y]);
    p.count = basin_shape_product(&call->out[0].shape, 0, 4);
    if (p.count == 0) return;
    f(basin_cuda_grid(frame->cuda, p.count, THREADS), p);
    BASIN_CUDA_LAUNCHED(frame->cuda, "pooling");
}

void basin_cuda_avgpool(const basin_cuda_frame *frame) {
    pool(frame, 0, -1, [&](unsigned grid, const pooling &p) {
        average<<<grid, THREADS, 0, frame->stream>>>(basin_cuda_sink(frame, 0),
                                                     basin_cuda_source(frame, 0), p);
    });
}

void basin_cuda_avgpool_reverse(const basin_cuda_frame *frame) {
    pool(frame, -1, 0, [&](unsigned grid, const pooling &p) {
        spread<false><<<grid, THREADS, 0, frame->stream>>>(
            basin_cuda_sink(frame, 0), basin_source{NULL, false}, basin_cuda_source(frame, 0), p);
    });
}

void basin_cuda_maxpool(const basin_cuda_frame *frame) {
    int v = frame->call->op == BASIN_OP_MAXPOOL_GATHER;
    pool(frame, 0, -1, [&](unsigned grid, const pooling &p) {
        read_maxima<<<grid, THREADS, 0, frame->stream>>>(
            basin_cuda_sink(frame, 0), basin_cuda_source(frame, 0), basin_cuda_source(frame, v), p);
    });
}

void basin_cuda_maxpool_scatter(const basin_cuda_frame *frame) {
    pool(frame, 0, 1, [&](unsigned grid, const pooling &p) {
        spread<true><<<grid, THREADS, 0, frame->stream>>>(
            basin_cuda_sink(frame, 0), basin_cuda_source(frame, 0), basin_cuda_source(frame, 1), p);
    });
}
