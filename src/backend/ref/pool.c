/* Pooling over windows of an image, NHWC. Windows are clipped to the image; `real` below is the
 * number of cells left. Average y = sum / real and its reverse x += y / real; maximum y, and the
 * two moves along its arg max: y added to it (scatter), or another tensor read at it (gather).
 * A window without cells gives 0 and receives nothing. */
#include "backend/ref/ref.h"

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

static int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

/* The window in x of element n of y. */
static window window_of(int64_t n, const image *x, const image *y, const basin_attr *attr) {
    int64_t ch = n % y->channels, j = n / y->channels % y->columns;
    int64_t i = n / (y->channels * y->columns) % y->rows;
    int64_t b = n / (y->channels * y->columns * y->rows);
    int64_t top = i * attr->stride[0] - attr->pad[0], left = j * attr->stride[1] - attr->pad[1];
    window w = {.b = b,
                .ch = ch,
                .top = at_least(top, 0),
                .bottom = at_most(top + attr->window[0], x->rows),
                .left = at_least(left, 0),
                .right = at_most(left + attr->window[1], x->columns)};
    w.real = at_least(w.bottom - w.top, 0) * at_least(w.right - w.left, 0);
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

/* y[n] = v at the arg max of x over window n. */
static void read_maxima(double *y, const double *x, const double *v, const basin_call *call) {
    image x_image = image_of(&call->in[0]), y_image = image_of(&call->out[0]);
    for (int64_t n = 0; n < image_count(&y_image); n++) {
        window w = window_of(n, &x_image, &y_image, &call->attr);
        int64_t best = arg_max(x, &x_image, &w);
        y[n] = best < 0 ? 0 : v[best];
    }
}

void basin_ref_maxpool(const basin_ref_frame *frame) {
    read_maxima(frame->out[0], frame->in[0], frame->in[0], frame->call);
}

void basin_ref_maxpool_gather(const basin_ref_frame *frame) {
    read_maxima(frame->out[0], frame->in[0], frame->in[1], frame->call);
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
