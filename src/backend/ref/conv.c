/* Convolution (cross-correlation), NHWC: with r = stride i + di - pad and c likewise,
 *   y[b,i,j,o] = sum over di, dj, ch of x[b,r,c,ch] kernel[di,dj,ch,o].
 * Its reverses with respect to x (the transposed convolution) and to the kernel sum the same
 * products; a tap is one (b, i, j, di, dj) of them, and only the target differs. */
#include "backend/ref/ref.h"

typedef struct geometry {
    int64_t batch, rows, columns, channels; /* x */
    int64_t out_rows, out_columns, filters; /* y: [batch, out_rows, out_columns, filters] */
    int64_t kernel_rows, kernel_columns;    /* kernel: [.., .., channels, filters] */
    const int32_t *stride, *pad;
    int64_t taps;
} geometry;

static geometry geometry_of(const basin_attr *attr, const basin_shape *x, const basin_shape *kernel,
                            const basin_shape *y) {
    geometry g = {.batch = x->dim[0],
                  .rows = x->dim[1],
                  .columns = x->dim[2],
                  .channels = x->dim[3],
                  .out_rows = y->dim[1],
                  .out_columns = y->dim[2],
                  .filters = y->dim[3],
                  .kernel_rows = kernel->dim[0],
                  .kernel_columns = kernel->dim[1],
                  .stride = attr->stride,
                  .pad = attr->pad};
    g.taps = g.batch * g.out_rows * g.out_columns * g.kernel_rows * g.kernel_columns;
    return g;
}

typedef struct tap {
    int64_t x, kernel, y; /* where the channels and filters of the tap start in each tensor */
} tap;

/* false where tap n reads the padding of x. */
static bool tap_at(tap *t, const geometry *g, int64_t n) {
    int64_t dj = n % g->kernel_columns, di = n / g->kernel_columns % g->kernel_rows;
    int64_t cell = n / (g->kernel_columns * g->kernel_rows);
    int64_t j = cell % g->out_columns, i = cell / g->out_columns % g->out_rows;
    int64_t b = cell / (g->out_columns * g->out_rows);
    int64_t r = g->stride[0] * i + di - g->pad[0], c = g->stride[1] * j + dj - g->pad[1];
    t->x = ((b * g->rows + r) * g->columns + c) * g->channels;
    t->kernel = (di * g->kernel_columns + dj) * g->channels * g->filters;
    t->y = cell * g->filters;
    return r >= 0 && r < g->rows && c >= 0 && c < g->columns;
}

void basin_ref_conv(const basin_ref_frame *frame) {
    const basin_call *call = frame->call;
    geometry g =
        geometry_of(&call->attr, &call->in[0].shape, &call->in[1].shape, &call->out[0].shape);
    const double *x = frame->in[0], *kernel = frame->in[1];
    double *y = frame->out[0];
    tap t;
    basin_ref_clear(frame);
    for (int64_t n = 0; n < g.taps; n++) {
        if (!tap_at(&t, &g, n)) continue;
        for (int64_t ch = 0; ch < g.channels; ch++)
            for (int64_t o = 0; o < g.filters; o++)
                y[t.y + o] += x[t.x + ch] * kernel[t.kernel + ch * g.filters + o];
    }
}

void basin_ref_conv_input(const basin_ref_frame *frame) {
    const basin_call *call = frame->call;
    geometry g =
        geometry_of(&call->attr, &call->out[0].shape, &call->in[1].shape, &call->in[0].shape);
    const double *y = frame->in[0], *kernel = frame->in[1];
    double *x = frame->out[0];
    tap t;
    basin_ref_clear(frame);
    for (int64_t n = 0; n < g.taps; n++) {
        if (!tap_at(&t, &g, n)) continue;
        for (int64_t ch = 0; ch < g.channels; ch++)
            for (int64_t o = 0; o < g.filters; o++)
                x[t.x + ch] += y[t.y + o] * kernel[t.kernel + ch * g.filters + o];
    }
}

void basin_ref_conv_kernel(const basin_ref_frame *frame) {
    const basin_call *call = frame->call;
    geometry g =
        geometry_of(&call->attr, &call->in[0].shape, &call->out[0].shape, &call->in[1].shape);
    const double *x = frame->in[0], *y = frame->in[1];
    double *kernel = frame->out[0];
    tap t;
    basin_ref_clear(frame);
    for (int64_t n = 0; n < g.taps; n++) {
        if (!tap_at(&t, &g, n)) continue;
        for (int64_t ch = 0; ch < g.channels; ch++)
            for (int64_t o = 0; o < g.filters; o++)
                kernel[t.kernel + ch * g.filters + o] += x[t.x + ch] * y[t.y + o];
    }
}
