/* Matrix products, convolution and pooling. */
#include "backend/ref/ref.h"
#include "backend/shape.h"
#include "base/sort.h"

typedef struct factor {
    const double *data;
    int64_t batch, rows, columns; /* as used in the product, after transposition */
    int64_t step_batch, step_row, step_column;
} factor;

/* A factor with one matrix is used for every batch entry. */
static factor factor_of(const void *data, const basin_shape *shape, bool transposed) {
    int64_t rows = shape->dim[shape->rank - 2], columns = shape->dim[shape->rank - 1];
    int64_t batch = basin_shape_product(shape, 0, shape->rank - 2);
    factor f = {data, batch, rows, columns, batch == 1 ? 0 : rows * columns, columns, 1};
    if (transposed) {
        f.rows = columns, f.columns = rows;
        f.step_row = 1, f.step_column = columns;
    }
    return f;
}

static double element(const factor *a, const factor *b, int64_t batch, int64_t i, int64_t j) {
    const double *row = a->data + batch * a->step_batch + i * a->step_row;
    const double *column = b->data + batch * b->step_batch + j * b->step_column;
    double sum = 0;
    for (int64_t l = 0; l < a->columns; l++)
        sum += row[l * a->step_column] * column[l * b->step_row];
    return sum;
}

/* Operand a of the epilogue at a place: a number, or a bit of a mask. */
static double operand_at(const basin_ref_frame *frame, int a, int64_t at) {
    const void *data = frame->in[2 + a];
    if (frame->call->in[2 + a].kind != BASIN_INDEX) return ((const double *)data)[at];
    return (double)(((const uint32_t *)data)[at / 32] >> at % 32 & 1);
}

/* Stores one element of the product, through the epilogue if there is one. */
static void emit(const basin_ref_frame *frame, double value, int64_t batch, int64_t i, int64_t j,
                 int64_t place) {
    const basin_call *call = frame->call;
    const basin_program *program = call->program;
    double registers[BASIN_MAX_REGISTERS], number[BASIN_MAX_IN];
    const void *in[BASIN_MAX_IN];
    const int64_t at[BASIN_MAX_IN] = {0};
    if (!program) {
        ((double *)frame->out[0])[place] = value;
        return;
    }
    for (int a = 0; a + 2 < call->ins; a++) {
        const int64_t *stride = program->stride[a];
        number[a] = operand_at(frame, a, batch * stride[0] + i * stride[1] + j * stride[2]);
        in[a] = &number[a];
    }
    basin_ref_program(registers, program, in, at, value);
    for (int o = 0; o < program->stores; o++)
        if (frame->out[o]) ((double *)frame->out[o])[place] = registers[program->store[o]];
    if (call->outs > program->stores) { /* a mask, of rows that fill their words */
        uint32_t *word = (uint32_t *)frame->out[1] + place / 32;
        uint32_t bit = (uint32_t)1 << place % 32;
        *word = registers[program->store[0]] > 0 ? *word | bit : *word & ~bit;
    }
}

void basin_ref_matmul(const basin_ref_frame *frame) {
    const basin_call *call = frame->call;
    factor a = factor_of(frame->in[0], &call->in[0].shape, call->attr.transpose_a);
    factor b = factor_of(frame->in[1], &call->in[1].shape, call->attr.transpose_b);
    int64_t batch = a.batch == 1 ? b.batch : a.batch, place = 0;
    for (int64_t n = 0; n < batch; n++)
        for (int64_t i = 0; i < a.rows; i++)
            for (int64_t j = 0; j < b.columns; j++, place++)
                emit(frame, element(&a, &b, n, i, j), n, i, j, place);
}

/* Convolution (cross-correlation), NHWC: with r = stride i + di - pad and c likewise,
 *   y[b,i,j,o] = sum over di, dj, ch of x[b,r,c,ch] kernel[di,dj,ch,o].
 * Its reverses with respect to x (the transposed convolution) and to the kernel sum the same
 * products; a tap is one (b, i, j, di, dj) of them, and only the target differs. */

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

/* All three: the operands are two of x, kernel and y, and the result is the third. */
void basin_ref_conv(const basin_ref_frame *frame) {
    const basin_call *call = frame->call;
    const basin_shape *first = &call->in[0].shape, *second = &call->in[1].shape,
                      *result = &call->out[0].shape;
    bool to_x = call->op == BASIN_OP_CONV_INPUT, to_kernel = call->op == BASIN_OP_CONV_KERNEL;
    geometry g = to_x        ? geometry_of(&call->attr, result, second, first)
                 : to_kernel ? geometry_of(&call->attr, first, result, second)
                             : geometry_of(&call->attr, first, second, result);
    const double *a = frame->in[0], *b = frame->in[1];
    double *out = frame->out[0];
    tap t;
    basin_ref_clear(frame);
    for (int64_t n = 0; n < g.taps; n++) {
        if (!tap_at(&t, &g, n)) continue;
        for (int64_t ch = 0; ch < g.channels; ch++)
            for (int64_t o = 0; o < g.filters; o++) {
                int64_t x = t.x + ch, kernel = t.kernel + ch * g.filters + o, y = t.y + o;
                if (to_x)
                    out[x] += a[y] * b[kernel];
                else if (to_kernel)
                    out[kernel] += a[x] * b[y];
                else
                    out[y] += a[x] * b[kernel];
            }
    }
}

/* Pooling over windows of an image, NHWC. Windows are clipped to the image; `real` below is
 * the number of cells left. Average y = sum / real and its reverse x += y / real; maximum y, and
 * the two moves along its arg max: y added to it (scatter), or another tensor read at it (gather).
 * A window without cells gives 0 and receives nothing. */

typedef struct image {
    int64_t batch, rows, columns, channels;
} image;

static image image_of(const basin_operand *operand) {
    const int64_t *dim = operand->shape.dim;
    return (image){dim[0], dim[1], dim[2], dim[3]};
}

static int64_t image_count(const image *m) { return m->batch * m->rows * m->columns * m->channels; }

/* Where cell (b, r, c, ch) lies. */
static int64_t cell_at(const image *m, int64_t b, int64_t r, int64_t c, int64_t ch) {
    return ((b * m->rows + r) * m->columns + c) * m->channels + ch;
}

typedef struct window {
    int64_t b, ch, top, bottom, left, right; /* rows top .. bottom - 1 */
    int64_t real;
} window;

/* The window in x of element n of y. */
static window window_of(int64_t n, const image *x, const image *y, const basin_attr *attr) {
    int64_t ch = n % y->channels, j = n / y->channels % y->columns;
    int64_t i = n / (y->channels * y->columns) % y->rows;
    int64_t b = n / (y->channels * y->columns * y->rows);
    int64_t top = i * attr->stride[0] - attr->pad[0], left = j * attr->stride[1] - attr->pad[1];
    window w = {.b = b,
                .ch = ch,
                .top = basin_int_max(top, 0),
                .bottom = basin_int_min(top + attr->window[0], x->rows),
                .left = basin_int_max(left, 0),
                .right = basin_int_min(left + attr->window[1], x->columns)};
    w.real = basin_int_max(w.bottom - w.top, 0) * basin_int_max(w.right - w.left, 0);
    return w;
}

void basin_ref_avgpool(const basin_ref_frame *frame) {
    const basin_call *call = frame->call;
    image x_image = image_of(&call->in[0]), y_image = image_of(&call->out[0]);
    const double *x = frame->in[0];
    double *y = frame->out[0];
    for (int64_t n = 0; n < image_count(&y_image); n++) {
        window w = window_of(n, &x_image, &y_image, &call->attr);
        double sum = 0;
        for (int64_t r = w.top; r < w.bottom; r++)
            for (int64_t c = w.left; c < w.right; c++) sum += x[cell_at(&x_image, w.b, r, c, w.ch)];
        y[n] = w.real ? sum / (double)w.real : 0;
    }
}

void basin_ref_avgpool_reverse(const basin_ref_frame *frame) {
    const basin_call *call = frame->call;
    image x_image = image_of(&call->out[0]), y_image = image_of(&call->in[0]);
    const double *y = frame->in[0];
    double *x = frame->out[0];
    basin_ref_clear(frame);
    for (int64_t n = 0; n < image_count(&y_image); n++) {
        window w = window_of(n, &x_image, &y_image, &call->attr);
        for (int64_t r = w.top; r < w.bottom; r++)
            for (int64_t c = w.left; c < w.right; c++)
                x[cell_at(&x_image, w.b, r, c, w.ch)] += y[n] / (double)w.real;
    }
}

/* The cell of the first maximum of the window, or -1 where it is empty. */
static int64_t arg_max(const double *x, const image *x_image, const window *w) {
    int64_t best = -1;
    for (int64_t r = w->top; r < w->bottom; r++)
        for (int64_t c = w->left; c < w->right; c++) {
            int64_t cell = cell_at(x_image, w->b, r, c, w->ch);
            if (best < 0 || x[cell] > x[best]) best = cell;
        }
    return best;
}

/* y[n] = v at the arg max of x over window n; v is x itself, or another tensor. */
void basin_ref_maxpool(const basin_ref_frame *frame) {
    const basin_call *call = frame->call;
    image x_image = image_of(&call->in[0]), y_image = image_of(&call->out[0]);
    const double *x = frame->in[0], *v = frame->in[call->op == BASIN_OP_MAXPOOL_GATHER];
    double *y = frame->out[0];
    for (int64_t n = 0; n < image_count(&y_image); n++) {
        window w = window_of(n, &x_image, &y_image, &call->attr);
        int64_t best = arg_max(x, &x_image, &w);
        y[n] = best < 0 ? 0 : v[best];
    }
}

void basin_ref_maxpool_scatter(const basin_ref_frame *frame) {
    const basin_call *call = frame->call;
    image x_image = image_of(&call->in[0]), y_image = image_of(&call->in[1]);
    const double *x = frame->in[0], *y = frame->in[1];
    double *out = frame->out[0]; /* like x */
    basin_ref_clear(frame);
    for (int64_t n = 0; n < image_count(&y_image); n++) {
        window w = window_of(n, &x_image, &y_image, &call->attr);
        int64_t best = arg_max(x, &x_image, &w);
        if (best >= 0) out[best] += y[n];
    }
}
