/* Convolution and pooling. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/gemm.h"

enum { SLAB = 1 << 20 }; /* floats of P at a time, at least one row of the output */

typedef struct geometry {
    int64_t batch, rows, columns, channels; /* x */
    int64_t out_rows, out_columns, filters; /* y: [batch, out_rows, out_columns, filters] */
    int64_t kernel_rows, kernel_columns;    /* kernel: [.., .., channels, filters] */
    const int32_t *stride, *pad;
    int64_t patch; /* kernel_rows * kernel_columns * channels */
    int64_t slab;  /* rows (b, i) of the output in a slab */
} geometry;

static geometry geometry_of(const basin_call *call) {
    const basin_shape *x = &call->in[0].shape, *kernel = &call->in[1].shape;
    const basin_shape *y = &call->out[0].shape;
    if (call->op == BASIN_OP_CONV_INPUT) y = &call->in[0].shape, x = &call->out[0].shape;
    if (call->op == BASIN_OP_CONV_KERNEL) y = &call->in[1].shape, kernel = &call->out[0].shape;
    geometry g = {.batch = x->dim[0],
                  .rows = x->dim[1],
                  .columns = x->dim[2],
                  .channels = x->dim[3],
                  .out_rows = y->dim[1],
                  .out_columns = y->dim[2],
                  .filters = y->dim[3],
                  .kernel_rows = kernel->dim[0],
                  .kernel_columns = kernel->dim[1],
                  .stride = call->attr.stride,
                  .pad = call->attr.pad};
    g.patch = g.kernel_rows * g.kernel_columns * g.channels;
    int64_t row = g.out_columns * g.patch, all = g.batch * g.out_rows;
    g.slab = row > 0 && row < SLAB ? SLAB / row : 1;
    if (g.slab > all) g.slab = all > 0 ? all : 1;
    return g;
}

/* The part of kernel row di that meets the image, for output cell (i, j): the offset of its first
 * cell in x, the first kernel column and how many. */
typedef struct reach {
    int64_t x, first, count;
} reach;

static reach reach_of(const geometry *g, int64_t b, int64_t i, int64_t j, int64_t di) {
    int64_t r = g->stride[0] * i + di - g->pad[0], c = g->stride[1] * j - g->pad[1];
    int64_t first = c < 0 ? -c : 0, last = g->columns - c;
    if (last > g->kernel_columns) last = g->kernel_columns;
    if (r < 0 || r >= g->rows || last <= first) return (reach){0, 0, 0};
    return (reach){((b * g->rows + r) * g->columns + c + first) * g->channels, first, last - first};
}

/* One row of P. */
static void gather_patch(float *to, const float *x, const geometry *g, int64_t cell) {
    int64_t j = cell % g->out_columns, i = cell / g->out_columns % g->out_rows;
    int64_t b = cell / (g->out_columns * g->out_rows), width = g->kernel_columns * g->channels;
    for (int64_t di = 0; di < g->kernel_rows; di++, to += width) {
        reach in = reach_of(g, b, i, j, di);
        int64_t before = in.first * g->channels, count = in.count * g->channels;
        memset(to, 0, (size_t)before * sizeof *to);
        memcpy(to + before, x + in.x, (size_t)count * sizeof *to);
        memset(to + before + count, 0, (size_t)(width - before - count) * sizeof *to);
    }
}

/* A slab: output rows first .. last - 1, and their P. */
typedef struct slab {
    const basin_cpu_frame *frame;
    const geometry *g;
    int64_t first, last;
    float *patches;
} slab;

static void gather_cells(const void *context, int64_t begin, int64_t end, int place) {
    const slab *s = context;
    (void)place;
    for (int64_t n = begin; n < end; n++)
        gather_patch(s->patches + n * s->g->patch, s->frame->in[0], s->g,
                     s->first * s->g->out_columns + n);
}

static void gather_slab(slab *s) {
    int64_t cells = (s->last - s->first) * s->g->out_columns;
    basin_team_run(gather_cells, s, cells, 0, basin_cpu_team(s->frame, cells * s->g->patch));
}

/* Adds to row `at` = (b, r) of x what the output rows first .. last - 1 send there. */
static void scatter_row(const basin_cpu_frame *frame, float *x, const float *patches,
                        const geometry *g, int64_t at, int64_t first, int64_t last) {
    int64_t b = at / g->rows, r = at % g->rows;
    for (int64_t n = first; n < last; n++) {
        int64_t i = n % g->out_rows, di = r + g->pad[0] - g->stride[0] * i;
        if (n / g->out_rows != b || di < 0 || di >= g->kernel_rows) continue;
        for (int64_t j = 0; j < g->out_columns; j++) {
            reach in = reach_of(g, b, i, j, di);
            const float *from = patches + ((n - first) * g->out_columns + j) * g->patch;
            from += (di * g->kernel_columns + in.first) * g->channels;
            frame->simd->axpy(x + in.x, 1.0f, from, in.count * g->channels);
        }
    }
}

/* The first row of x that a slab may send to. */
static int64_t slab_top(const slab *s) { return s->first / s->g->out_rows * s->g->rows; }

static void scatter_some(const void *context, int64_t begin, int64_t end, int place) {
    const slab *s = context;
    (void)place;
    for (int64_t at = slab_top(s) + begin; at < slab_top(s) + end; at++)
        scatter_row(s->frame, s->frame->out[0], s->patches, s->g, at, s->first, s->last);
}

static void scatter_slab(slab *s) {
    const geometry *g = s->g;
    int64_t end = ((s->last - 1) / g->out_rows + 1) * g->rows;
    int team = basin_cpu_team(s->frame, (s->last - s->first) * g->out_columns * g->patch);
    basin_team_run(scatter_some, s, end - slab_top(s), 0, team);
}

/* The product of a slab of `rows` output rows, without addresses. */
static basin_gemm product_of(const basin_call *call, const geometry *g, int64_t rows) {
    int64_t cells = rows * g->out_columns;
    basin_gemm p = {.batch = 1};
    if (call->op == BASIN_OP_CONV) { /* y [cells, O] = P [cells, patch] K [patch, O] */
        p.m = cells, p.n = g->filters, p.k = g->patch;
        p.a_row = g->patch, p.a_col = 1, p.b_row = g->filters, p.b_col = 1;
    } else if (call->op == BASIN_OP_CONV_INPUT) { /* P = y [cells, O] K^T [O, patch] */
        p.m = cells, p.n = g->patch, p.k = g->filters;
        p.a_row = g->filters, p.a_col = 1, p.b_row = 1, p.b_col = g->filters;
    } else { /* K [patch, O] += P^T [patch, cells] y [cells, O] */
        p.m = g->patch, p.n = g->filters, p.k = cells;
        p.a_row = 1, p.a_col = g->patch, p.b_row = g->filters, p.b_col = 1;
    }
    p.c_row = p.n, p.c_batch = p.m * p.n;
    return p;
}

static int64_t patches_size(const geometry *g) {
    return (g->slab * g->out_columns * g->patch + 15) / 16 * 16;
}

size_t basin_cpu_conv_workspace(const basin_call *call, int threads) {
    geometry g = geometry_of(call);
    size_t most = 0;
    const int64_t sizes[] = {g.slab, g.batch * g.out_rows % g.slab};
    for (int i = 0; i < 2; i++) {
        basin_gemm p = product_of(call, &g, sizes[i]);
        size_t bytes = sizes[i] ? basin_gemm_workspace(&p, threads) : 0;
        if (bytes > most) most = bytes;
    }
    return (size_t)patches_size(&g) * sizeof(float) + most;
}

/* What a product writes: everything, unless there is nothing to multiply. */
static void clear_output(const basin_cpu_frame *frame) {
    int64_t count = basin_shape_count(frame->call->out[0].shape);
    memset(frame->out[0], 0, (size_t)count * sizeof(float));
}

void basin_cpu_conv(const basin_cpu_frame *frame) {
    const basin_call *call = frame->call;
    geometry g = geometry_of(call);
    float *patches = frame->workspace, *out = frame->out[0];
    int64_t all = g.batch * g.out_rows, cell = g.out_columns * g.filters;
    clear_output(frame);
    if (g.patch == 0 || g.filters == 0 || g.out_columns == 0) return;
    for (int64_t first = 0; first < all; first += g.slab) {
        int64_t last = first + g.slab < all ? first + g.slab : all;
        basin_gemm p = product_of(call, &g, last - first);
        slab s = {frame, &g, first, last, patches};
        if (call->op != BASIN_OP_CONV_INPUT) gather_slab(&s);
        if (call->op == BASIN_OP_CONV) {
            p.a = patches, p.b = frame->in[1], p.c = out + first * cell;
        } else if (call->op == BASIN_OP_CONV_INPUT) {
            p.a = (const float *)frame->in[0] + first * cell, p.b = frame->in[1], p.c = patches;
        } else {
            p.a = patches, p.b = (const float *)frame->in[1] + first * cell, p.c = out;
            p.accumulate = first > 0;
        }
        basin_gemm_run(&p, frame->threads, patches + patches_size(&g));
        if (call->op == BASIN_OP_CONV_INPUT) scatter_slab(&s);
    }
}

/* Pooling over windows of an image, NHWC, and the reverses. Windows are clipped to the image;
 * a window without cells gives 0 and receives nothing. Each image is cut into groups of channels: a
 * group's results touch no other group, so threads take groups and keep the order of windows. */

enum { GROUP = 64 };

typedef struct pool_geometry {
    int64_t batch, rows, columns, channels, out_rows, out_columns;
    const basin_attr *attr;
} pool_geometry;

static pool_geometry pool_geometry_of(const basin_call *call) {
    const basin_shape *in = &call->in[0].shape, *out = &call->out[0].shape;
    bool back = call->op == BASIN_OP_AVGPOOL_REVERSE, both = call->op == BASIN_OP_MAXPOOL_SCATTER;
    const basin_shape *x = back ? out : in, *y = back ? in : both ? &call->in[1].shape : out;
    return (pool_geometry){x->dim[0], x->dim[1], x->dim[2],  x->dim[3],
                           y->dim[1], y->dim[2], &call->attr};
}

/* A group of channels of one image. */
typedef struct group {
    int64_t x, y; /* where its first channel starts in x and in y */
    int channels;
} group;

static int64_t group_count(const pool_geometry *g) {
    return g->batch * ((g->channels + GROUP - 1) / GROUP);
}

static group group_of(const pool_geometry *g, int64_t n) {
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
static window window_of(const pool_geometry *g, int64_t n) {
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

static void share_groups(const basin_cpu_frame *frame, basin_cpu_part *part) {
    pool_geometry g = pool_geometry_of(frame->call);
    int64_t cells = g.batch * g.out_rows * g.out_columns * g.channels;
    basin_cpu_share(frame, part, group_count(&g), cells * g.attr->window[0] * g.attr->window[1]);
}

static void average_group(float *y, const float *x, const pool_geometry *g, const group *part) {
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

static void average_groups(const basin_cpu_frame *frame, int64_t first, int64_t last) {
    pool_geometry g = pool_geometry_of(frame->call);
    for (int64_t i = first; i < last; i++) {
        group part = group_of(&g, i);
        average_group(frame->out[0], frame->in[0], &g, &part);
    }
}

void basin_cpu_avgpool(const basin_cpu_frame *frame) { share_groups(frame, average_groups); }

static void clear_group(float *x, const pool_geometry *g, const group *part) {
    for (int64_t cell = 0; cell < g->rows * g->columns; cell++)
        memset(x + part->x + cell * g->channels, 0, (size_t)part->channels * sizeof *x);
}

static void spread_group(float *x, const float *y, const pool_geometry *g, const group *part) {
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

static void spread_groups(const basin_cpu_frame *frame, int64_t first, int64_t last) {
    pool_geometry g = pool_geometry_of(frame->call);
    for (int64_t i = first; i < last; i++) {
        group part = group_of(&g, i);
        spread_group(frame->out[0], frame->in[0], &g, &part);
    }
}

void basin_cpu_avgpool_reverse(const basin_cpu_frame *frame) { share_groups(frame, spread_groups); }

/* The cell of each channel's first maximum in a window, or -1 where that is empty. */
static void find_maxima(int64_t *best, const float *x, const pool_geometry *g, const group *part,
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
    pool_geometry g = pool_geometry_of(frame->call);
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

void basin_cpu_maxpool(const basin_cpu_frame *frame) { share_groups(frame, take_maxima); }

static void scatter_maxima(const basin_cpu_frame *frame, int64_t first, int64_t last) {
    pool_geometry g = pool_geometry_of(frame->call);
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
    share_groups(frame, scatter_maxima);
}
