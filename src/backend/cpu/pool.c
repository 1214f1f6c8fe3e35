/* Pooling over windows of an image, NHWC, and the reverses. Windows are clipped to the image; a
 * window without cells gives 0 and receives nothing. Each image is cut into groups of channels: a
 * group's results touch no other group, so threads take groups and keep the order of windows. */
#include <string.h>

#include "backend/cpu/cpu.h"

enum { GROUP = 64 };

typedef struct geometry {
    int64_t batch, rows, columns, channels, out_rows, out_columns;
    const basin_attr *attr;
} geometry;

static geometry geometry_of(const basin_call *call, const basin_shape *x, const basin_shape *y) {
    return (geometry){x->dim[0], x->dim[1], x->dim[2],  x->dim[3],
                      y->dim[1], y->dim[2], &call->attr};
}

/* A group of channels of one image. */
typedef struct group {
    int64_t x, y; /* where its first channel starts in x and in y */
    int channels;
} group;

static int64_t group_count(const geometry *g) {
    return g->batch * ((g->channels + GROUP - 1) / GROUP);
}

static group group_of(const geometry *g, int64_t n) {
    int64_t per = (g->channels + GROUP - 1) / GROUP, b = n / per, first = n % per * GROUP;
    int64_t left = g->channels - first;
    return (group){b * g->rows * g->columns * g->channels + first,
                   b * g->out_rows * g->out_columns * g->channels + first,
                   (int)(left < GROUP ? left : GROUP)};
}

typedef struct window {
    int64_t top, bottom, left, right; /* rows top .. bottom - 1 */
    int64_t real;                     /* cells */
} window;

/* The window of output cell n = (i, j). */
static window window_of(const geometry *g, int64_t n) {
    const basin_attr *attr = g->attr;
    int64_t top = n / g->out_columns * attr->stride[0] - attr->pad[0];
    int64_t left = n % g->out_columns * attr->stride[1] - attr->pad[1];
    int64_t bottom = top + attr->window[0], right = left + attr->window[1];
    window w = {top < 0 ? 0 : top, bottom > g->rows ? g->rows : bottom, left < 0 ? 0 : left,
                right > g->columns ? g->columns : right, 0};
    if (w.bottom > w.top && w.right > w.left) w.real = (w.bottom - w.top) * (w.right - w.left);
    if (w.real == 0) w.bottom = w.top;
    return w;
}

static void share_groups(const basin_cpu_frame *frame, basin_cpu_part *part, const geometry *g) {
    int64_t cells = g->batch * g->out_rows * g->out_columns * g->channels;
    basin_cpu_share(frame, part, group_count(g), cells * g->attr->window[0] * g->attr->window[1]);
}

static void average_group(float *y, const float *x, const geometry *g, const group *part) {
    for (int64_t n = 0; n < g->out_rows * g->out_columns; n++) {
        window w = window_of(g, n);
        float sum[GROUP] = {0}, inverse = w.real ? 1.0f / (float)w.real : 0.0f;
        for (int64_t r = w.top; r < w.bottom; r++)
            for (int64_t c = w.left; c < w.right; c++) {
                const float *cell = x + part->x + (r * g->columns + c) * g->channels;
                for (int ch = 0; ch < part->channels; ch++) sum[ch] += cell[ch];
            }
        float *to = y + part->y + n * g->channels;
        for (int ch = 0; ch < part->channels; ch++) to[ch] = sum[ch] * inverse;
    }
}

/* Of pooling itself: x is the operand, y the result. */
static geometry forward(const basin_call *call) {
    return geometry_of(call, &call->in[0].shape, &call->out[0].shape);
}

static void average_groups(const basin_cpu_frame *frame, int64_t first, int64_t last) {
    geometry g = forward(frame->call);
    for (int64_t i = first; i < last; i++) {
        group part = group_of(&g, i);
        average_group(frame->out[0], frame->in[0], &g, &part);
    }
}

void basin_cpu_avgpool(const basin_cpu_frame *frame) {
    geometry g = forward(frame->call);
    share_groups(frame, average_groups, &g);
}

static void clear_group(float *x, const geometry *g, const group *part) {
    for (int64_t cell = 0; cell < g->rows * g->columns; cell++)
        memset(x + part->x + cell * g->channels, 0, (size_t)part->channels * sizeof *x);
}

static void spread_group(float *x, const float *y, const geometry *g, const group *part) {
    clear_group(x, g, part);
    for (int64_t n = 0; n < g->out_rows * g->out_columns; n++) {
        window w = window_of(g, n);
        float inverse = w.real ? 1.0f / (float)w.real : 0.0f;
        const float *from = y + part->y + n * g->channels;
        for (int64_t r = w.top; r < w.bottom; r++)
            for (int64_t c = w.left; c < w.right; c++) {
                float *cell = x + part->x + (r * g->columns + c) * g->channels;
                for (int ch = 0; ch < part->channels; ch++) cell[ch] += from[ch] * inverse;
            }
    }
}

static geometry backward(const basin_call *call) {
    return geometry_of(call, &call->out[0].shape, &call->in[0].shape);
}

static void spread_groups(const basin_cpu_frame *frame, int64_t first, int64_t last) {
    geometry g = backward(frame->call);
    for (int64_t i = first; i < last; i++) {
        group part = group_of(&g, i);
        spread_group(frame->out[0], frame->in[0], &g, &part);
    }
}

void basin_cpu_avgpool_reverse(const basin_cpu_frame *frame) {
    geometry g = backward(frame->call);
    share_groups(frame, spread_groups, &g);
}

/* The cell of each channel's first maximum in a window, or -1 where that is empty. */
static void find_maxima(int64_t *best, const float *x, const geometry *g, const group *part,
                        const window *w) {
    float most[GROUP];
    for (int ch = 0; ch < part->channels; ch++) best[ch] = -1, most[ch] = 0.0f;
    for (int64_t r = w->top; r < w->bottom; r++)
        for (int64_t c = w->left; c < w->right; c++) {
            int64_t at = part->x + (r * g->columns + c) * g->channels;
            for (int ch = 0; ch < part->channels; ch++) {
                bool better = best[ch] < 0 || x[at + ch] > most[ch];
                most[ch] = better ? x[at + ch] : most[ch];
                best[ch] = better ? at + ch : best[ch];
            }
        }
}

/* y = v at the maxima of x; v is x itself for MAXPOOL. */
static void take_maxima(const basin_cpu_frame *frame, int64_t first, int64_t last) {
    geometry g = forward(frame->call);
    const float *x = frame->in[0], *v = frame->in[frame->call->op == BASIN_OP_MAXPOOL ? 0 : 1];
    float *y = frame->out[0];
    for (int64_t i = first; i < last; i++) {
        group part = group_of(&g, i);
        int64_t best[GROUP];
        for (int64_t n = 0; n < g.out_rows * g.out_columns; n++) {
            window w = window_of(&g, n);
            find_maxima(best, x, &g, &part, &w);
            float *to = y + part.y + n * g.channels;
            for (int ch = 0; ch < part.channels; ch++) to[ch] = best[ch] < 0 ? 0.0f : v[best[ch]];
        }
    }
}

void basin_cpu_maxpool(const basin_cpu_frame *frame) {
    geometry g = forward(frame->call);
    share_groups(frame, take_maxima, &g);
}

/* Of the scatter: both are operands. */
static geometry scattered(const basin_call *call) {
    return geometry_of(call, &call->in[0].shape, &call->in[1].shape);
}

static void scatter_maxima(const basin_cpu_frame *frame, int64_t first, int64_t last) {
    geometry g = scattered(frame->call);
    const float *x = frame->in[0], *y = frame->in[1];
    float *out = frame->out[0]; /* like x */
    for (int64_t i = first; i < last; i++) {
        group part = group_of(&g, i);
        int64_t best[GROUP];
        clear_group(out, &g, &part);
        for (int64_t n = 0; n < g.out_rows * g.out_columns; n++) {
            window w = window_of(&g, n);
            find_maxima(best, x, &g, &part, &w);
            const float *from = y + part.y + n * g.channels;
            for (int ch = 0; ch < part.channels; ch++)
                if (best[ch] >= 0) out[best[ch]] += from[ch];
        }
    }
}

void basin_cpu_maxpool_scatter(const basin_cpu_frame *frame) {
    geometry g = scattered(frame->call);
    share_groups(frame, scatter_maxima, &g);
}
