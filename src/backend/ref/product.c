/* Matrix products, convolution and pooling. */
#include "backend/ref/ref.h"

static double element(const double *row, const basin_factor *a, const double *column,
                      const basin_factor *b) {
    double sum = 0;
    for (int64_t l = 0; l < a->columns; l++)
        sum += row[l * a->step_column] * column[l * b->step_row];
    return sum;
}

/* Operand a of the epilogue at a place: a number, or a bit of a mask. */
static double operand_at(const basin_frame *frame, int a, int64_t at) {
    const void *data = frame->in[2 + a];
    if (frame->call->in[2 + a].kind != BASIN_INDEX) return ((const double *)data)[at];
    return (double)(((const uint32_t *)data)[at / 32] >> at % 32 & 1);
}

/* Stores one element of the product, through the epilogue if there is one. */
static void emit(const basin_frame *frame, double value, int64_t batch, int64_t i, int64_t j,
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

void basin_ref_matmul(const basin_frame *frame) {
    const basin_call *call = frame->call;
    basin_factor a = basin_factor_of(&call->in[0].shape, call->attr.transpose_a);
    basin_factor b = basin_factor_of(&call->in[1].shape, call->attr.transpose_b);
    const double *x = frame->in[0], *y = frame->in[1];
    int64_t batch = a.batch == 1 ? b.batch : a.batch, place = 0;
    for (int64_t n = 0; n < batch; n++)
        for (int64_t i = 0; i < a.rows; i++)
            for (int64_t j = 0; j < b.columns; j++, place++) {
                const double *row = x + n * a.step_batch + i * a.step_row;
                const double *column = y + n * b.step_batch + j * b.step_column;
                emit(frame, element(row, &a, column, &b), n, i, j, place);
            }
}

/* Convolution (cross-correlation), NHWC: with r = stride i + di - pad and c likewise,
 *   y[b,i,j,o] = sum over di, dj, ch of x[b,r,c,ch] kernel[di,dj,ch,o].
 * Its reverses with respect to x (the transposed convolution) and to the kernel sum the same
 * products; a tap is one (b, i, j, di, dj) of them, and only the target differs. */

typedef struct tap {
    int64_t x, kernel, y; /* where the channels and filters of the tap start in each tensor */
} tap;

/* false where tap n reads the padding of x. */
static bool tap_at(tap *t, const basin_conv_sizes *g, int64_t n) {
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
void basin_ref_conv(const basin_frame *frame) {
    const basin_call *call = frame->call;
    bool to_x = call->op == BASIN_OP_CONV_INPUT, to_kernel = call->op == BASIN_OP_CONV_KERNEL;
    basin_conv_sizes g = basin_conv_sizes_of(call);
    int64_t taps = g.batch * g.out_rows * g.out_columns * g.kernel_rows * g.kernel_columns;
    const double *a = frame->in[0], *b = frame->in[1];
    double *out = frame->out[0];
    tap t;
    basin_ref_clear(frame);
    for (int64_t n = 0; n < taps; n++) {
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

/* Pooling over windows of an image, NHWC. Windows are clipped to the image. Average y = sum / real
 * and its reverse x += y / real; maximum y, and the two moves along its arg max: y added to it
 * (scatter), or another tensor read at it (gather). A window without cells gives 0 and receives
 * nothing. */

static int64_t windows(const basin_pool_sizes *p) {
    return p->batch * p->out_rows * p->out_columns * p->channels;
}

/* The window of element n of y, and where cell (0, 0) of its image and channel lies in x. */
static basin_pool_window window_of(int64_t *corner, const basin_pool_sizes *p, int64_t n) {
    int64_t cells = p->out_rows * p->out_columns, image = n / (cells * p->channels);
    *corner = image * p->rows * p->columns * p->channels + n % p->channels;
    return basin_pool_window_of(p, n / p->channels % cells);
}

void basin_ref_avgpool(const basin_frame *frame) {
    basin_pool_sizes p = basin_pool_sizes_of(frame->call);
    const double *x = frame->in[0];
    double *y = frame->out[0];
    for (int64_t n = 0, corner; n < windows(&p); n++) {
        basin_pool_window w = window_of(&corner, &p, n);
        double sum = 0;
        for (int64_t r = w.top; r < w.bottom; r++)
            for (int64_t c = w.left; c < w.right; c++)
                sum += x[corner + (r * p.columns + c) * p.channels];
        y[n] = w.real ? sum / (double)w.real : 0;
    }
}

void basin_ref_avgpool_reverse(const basin_frame *frame) {
    basin_pool_sizes p = basin_pool_sizes_of(frame->call);
    const double *y = frame->in[0];
    double *x = frame->out[0];
    basin_ref_clear(frame);
    for (int64_t n = 0, corner; n < windows(&p); n++) {
        basin_pool_window w = window_of(&corner, &p, n);
        for (int64_t r = w.top; r < w.bottom; r++)
            for (int64_t c = w.left; c < w.right; c++)
                x[corner + (r * p.columns + c) * p.channels] += y[n] / (double)w.real;
    }
}

/* The cell of the first maximum of window n, or -1 where it is empty. */
static int64_t arg_max(const double *x, const basin_pool_sizes *p, int64_t n) {
    int64_t best = -1, corner;
    basin_pool_window w = window_of(&corner, p, n);
    for (int64_t r = w.top; r < w.bottom; r++)
        for (int64_t c = w.left; c < w.right; c++) {
            int64_t cell = corner + (r * p->columns + c) * p->channels;
            if (best < 0 || x[cell] > x[best]) best = cell;
        }
    return best;
}

/* y[n] = v at the arg max of x over window n; v is x itself, or another tensor. */
void basin_ref_maxpool(const basin_frame *frame) {
    basin_pool_sizes p = basin_pool_sizes_of(frame->call);
    const double *v = frame->in[frame->call->op == BASIN_OP_MAXPOOL_GATHER];
    for (int64_t n = 0; n < windows(&p); n++) {
        int64_t best = arg_max(frame->in[0], &p, n);
        ((double *)frame->out[0])[n] = best < 0 ? 0 : v[best];
    }
}

void basin_ref_maxpool_scatter(const basin_frame *frame) {
    basin_pool_sizes p = basin_pool_sizes_of(frame->call);
    const double *y = frame->in[1];
    basin_ref_clear(frame);
    for (int64_t n = 0; n < windows(&p); n++) {
        int64_t best = arg_max(frame->in[0], &p, n);
        if (best >= 0) ((double *)frame->out[0])[best] += y[n];
    }
}
