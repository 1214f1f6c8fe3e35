/* Pooling over windows of an image, NHWC. Windows are clipped to the image; `real` is the number of
 * cells left. Each thread computes one element of the result: where results lie in the image, it
 * visits the windows that its cell belongs to, in their order, so no two threads add to one number.
 * A window without cells gives 0 and receives nothing. */
#include "backend/cuda/elements.h"
#include "backend/cuda/inside.h"

enum { THREADS = 256 };

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

#define EACH(n, count)                                                                             \
    (int64_t n = (int64_t)blockIdx.x * THREADS + threadIdx.x; n < (count);                         \
     n += (int64_t)gridDim.x * THREADS)

static __global__ void average(basin_sink y, basin_source x, pooling p) {
    for
        EACH(n, p.count) {
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
    for
        EACH(n, p.count) {
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
    for
        EACH(n, p.count) {
            cell at = cell_of(n, p.x);
            int bottom = last_window(at.r, p.stride[0], p.pad[0], p.y.rows);
            int right = last_window(at.c, p.stride[1], p.pad[1], p.y.columns);
            float sum = 0;
            for (int i = first_window(at.r, p.stride[0], p.pad[0], p.window[0]); i <= bottom; i++)
                for (int j = first_window(at.c, p.stride[1], p.pad[1], p.window[1]); j <= right;
                     j++) {
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

/* The operand number of x and y among the inputs (-1: the output). */
static bool prepare(pooling *p, const basin_cuda_frame *frame, int x, int y) {
    const basin_call *call = frame->call;
    *p = pooling_of(&call->attr, x < 0 ? &call->out[0] : &call->in[x],
                    y < 0 ? &call->out[0] : &call->in[y]);
    p->count = basin_shape_product(&call->out[0].shape, 0, 4);
    return p->count > 0;
}

static unsigned grid_of(const basin_cuda_frame *frame, const pooling *p) {
    return basin_cuda_grid(frame->cuda, p->count, THREADS);
}

void basin_cuda_avgpool(const basin_cuda_frame *frame) {
    pooling p;
    if (!prepare(&p, frame, 0, -1)) return;
    average<<<grid_of(frame, &p), THREADS, 0, frame->stream>>>(basin_cuda_sink(frame, 0),
                                                               basin_cuda_source(frame, 0), p);
    BASIN_CUDA_LAUNCHED(frame->cuda, "average pooling");
}

void basin_cuda_avgpool_reverse(const basin_cuda_frame *frame) {
    pooling p;
    if (!prepare(&p, frame, -1, 0)) return;
    spread<false><<<grid_of(frame, &p), THREADS, 0, frame->stream>>>(
        basin_cuda_sink(frame, 0), basin_source{NULL, false}, basin_cuda_source(frame, 0), p);
    BASIN_CUDA_LAUNCHED(frame->cuda, "the reverse of average pooling");
}

void basin_cuda_maxpool(const basin_cuda_frame *frame) {
    pooling p;
    int v = frame->call->op == BASIN_OP_MAXPOOL_GATHER;
    if (!prepare(&p, frame, 0, -1)) return;
    read_maxima<<<grid_of(frame, &p), THREADS, 0, frame->stream>>>(
        basin_cuda_sink(frame, 0), basin_cuda_source(frame, 0), basin_cuda_source(frame, v), p);
    BASIN_CUDA_LAUNCHED(frame->cuda, "maximum pooling");
}

void basin_cuda_maxpool_scatter(const basin_cuda_frame *frame) {
    pooling p;
    if (!prepare(&p, frame, 0, 1)) return;
    spread<true><<<grid_of(frame, &p), THREADS, 0, frame->stream>>>(
        basin_cuda_sink(frame, 0), basin_cuda_source(frame, 0), basin_cuda_source(frame, 1), p);
    BASIN_CUDA_LAUNCHED(frame->cuda, "the reverse of maximum pooling");
}
