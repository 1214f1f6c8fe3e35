/* Convolution and pooling. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/gemm.h"
#include "base/sort.h"

enum { SLAB = 1 << 20 }; /* floats of P at a time, at least one row of the output */

/* Rows (b, i) of the output in a slab. */
static int64_t slab_rows(const basin_conv_sizes *g) {
    int64_t row = g->out_columns * g->patch;
    int64_t rows = row > 0 && row < SLAB ? SLAB / row : 1;
    return basin_int_max(1, basin_int_min(rows, g->batch * g->out_rows));
}

/* The part of kernel row di that meets the image, for output cell (i, j): the offset of its first
 * cell in x, the first kernel column and how many. */
typedef struct reach {
    int64_t x, first, count;
} reach;

static reach reach_of(const basin_conv_sizes *g, int64_t b, int64_t i, int64_t j, int64_t di) {
    int64_t r = g->stride[0] * i + di - g->pad[0], c = g->stride[1] * j - g->pad[1];
    int64_t first = c < 0 ? -c : 0, last = g->columns - c;
    if (last > g->kernel_columns) last = g->kernel_columns;
    if (r < 0 || r >= g->rows || last <= first) return (reach){0, 0, 0};
    return (reach){((b * g->rows + r) * g->columns + c + first) * g->channels, first, last - first};
}

/* One row of P. */
static void gather_patch(float *to, const float *x, const basin_conv_sizes *g, int64_t cell) {
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
    const basin_frame *frame;
    const basin_conv_sizes *g;
    int64_t first, last;
    float *patches;
} slab;

static void gather_cells(const void *context, int64_t begin, int64_t end) {
    const slab *s = context;
    for (int64_t n = begin; n < end; n++)
        gather_patch(s->patches + n * s->g->patch, s->frame->in[0], s->g,
                     s->first * s->g->out_columns + n);
}

static void gather_slab(slab *s) {
    int64_t cells = (s->last - s->first) * s->g->out_columns;
    basin_team_run(gather_cells, s, cells, 0, basin_cpu_team(s->frame, cells * s->g->patch));
}

/* Adds to row `at` = (b, r) of x what the output rows first .. last - 1 send there. */
static void scatter_row(const basin_frame *frame, float *x, const float *patches,
                        const basin_conv_sizes *g, int64_t at, int64_t first, int64_t last) {
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

static void scatter_some(const void *context, int64_t begin, int64_t end) {
    const slab *s = context;
    for (int64_t at = slab_top(s) + begin; at < slab_top(s) + end; at++)
        scatter_row(s->frame, s->frame->out[0], s->patches, s->g, at, s->first, s->last);
}

static void scatter_slab(slab *s) {
    const basin_conv_sizes *g = s->g;
    int64_t end = ((s->last - 1) / g->out_rows + 1) * g->rows;
    int team = basin_cpu_team(s->frame, (s->last - s->first) * g->out_columns * g->patch);
    basin_team_run(scatter_some, s, end - slab_top(s), 0, team);
}

/* The product of a slab of `rows` output rows, without addresses. */
static basin_gemm product_of(const basin_call *call, const basin_conv_sizes *g, int64_t rows) {
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

static int64_t patches_size(const basin_conv_sizes *g) {
    return (slab_rows(g) * g->out_columns * g->patch + 15) / 16 * 16;
}

size_t basin_cpu_conv_workspace(const basin_call *call, int threads) {
    basin_conv_sizes g = basin_conv_sizes_of(call);
    size_t most = 0;
    const int64_t sizes[] = {slab_rows(&g), g.batch * g.out_rows % slab_rows(&g)};
    for (int i = 0; i < 2; i++) {
        basin_gemm p = product_of(call, &g, sizes[i]);
        size_t bytes = sizes[i] ? basin_gemm_workspace(&p, threads) : 0;
        if (bytes > most) most = bytes;
    }
    return (size_t)patches_size(&g) * sizeof(float) + most;
}

/* What a product writes: everything, unless there is nothing to multiply. */
static void clear_output(const basin_frame *frame) {
    int64_t count = basin_shape_count(frame->call->out[0].shape);
    memset(frame->out[0], 0, (size_t)count * sizeof(float));
}

void basin_cpu_conv(const basin_frame *frame) {
    const basin_call *call = frame->call;
    basin_conv_sizes g = basin_conv_sizes_of(call);
    float *patches = frame->workspace, *out = frame->out[0];
    int64_t all = g.batch * g.out_rows, cell = g.out_columns * g.filters;
    clear_output(frame);
    if (g.patch == 0 || g.filters == 0 || g.out_columns == 0) return;
    for (int64_t first = 0, last; first < all; first = last) {
        last = basin_int_min(first + slab_rows(&g), all);
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

/* A group of channels of one image. */
typedef struct group {
    int64_t x, y; /* where its first channel starts in x and in y */
    int channels;
} group;

static int64_t groups_of(const basin_pool_sizes *g) { return basin_int_ceil(g->channels, GROUP); }

static group group_of(const basin_pool_sizes *g, int64_t n) {
    int64_t b = n / groups_of(g), first = n % groups_of(g) * GROUP;
    return (group){b * g->rows * g->columns * g->channels + first,
                   b * g->out_rows * g->out_columns * g->channels + first,
                   (int)basin_int_min(g->channels - first, GROUP)};
}

static void share_groups(const basin_frame *frame, basin_cpu_part *part) {
    basin_pool_sizes g = basin_pool_sizes_of(frame->call);
    int64_t cells = g.batch * g.out_rows * g.out_columns * g.channels;
    basin_cpu_share(frame, part, g.batch * groups_of(&g),
                    cells * g.attr->window[0] * g.attr->window[1]);
}

static void average_groups(const basin_frame *frame, int64_t first, int64_t last) {
    basin_pool_sizes g = basin_pool_sizes_of(frame->call);
    int64_t windows = g.out_rows * g.out_columns;
    for (int64_t i = first * windows; i < last * windows; i++) {
        group part = group_of(&g, i / windows);
        basin_pool_window w = basin_pool_window_of(&g, i % windows);
        float sum[GROUP] = {0}, inverse = w.real ? 1.0f / (float)w.real : 0.0f;
        for (int64_t r = w.top; r < w.bottom; r++)
            for (int64_t c = w.left; c < w.right; c++) {
                const float *cell =
                    (const float *)frame->in[0] + part.x + (r * g.columns + c) * g.channels;
                for (int ch = 0; ch < part.channels; ch++) sum[ch] += cell[ch];
            }
        float *to = (float *)frame->out[0] + part.y + i % windows * g.channels;
        for (int ch = 0; ch < part.channels; ch++) to[ch] = sum[ch] * inverse;
    }
}

void basin_cpu_avgpool(const basin_frame *frame) { share_groups(frame, average_groups); }

static void clear_group(float *x, const basin_pool_sizes *g, const group *part) {
    for (int64_t cell = 0; cell < g->rows * g->columns; cell++)
        memset(x + part->x + cell * g->channels, 0, (size_t)part->channels * sizeof *x);
}

static void spread_groups(const basin_frame *frame, int64_t first, int64_t last) {
    basin_pool_sizes g = basin_pool_sizes_of(frame->call);
    for (int64_t i = first; i < last; i++) {
        group part = group_of(&g, i);
        const float *from = (const float *)frame->in[0] + part.y;
        clear_group(frame->out[0], &g, &part);
        for (int64_t n = 0; n < g.out_rows * g.out_columns; n++, from += g.channels) {
            basin_pool_window w = basin_pool_window_of(&g, n);
            float inverse = w.real ? 1.0f / (float)w.real : 0.0f;
            for (int64_t r = w.top; r < w.bottom; r++)
                for (int64_t c = w.left; c < w.right; c++) {
                    float *cell =
                        (float *)frame->out[0] + part.x + (r * g.columns + c) * g.channels;
                    for (int ch = 0; ch < part.channels; ch++) cell[ch] += from[ch] * inverse;
                }
        }
    }
}

void basin_cpu_avgpool_reverse(const basin_frame *frame) { share_groups(frame, spread_groups); }

/* The cell of each channel's first maximum in a window, or -1 where that is empty. */
static void find_maxima(int64_t *best, const float *x, const basin_pool_sizes *g, const group *part,
                        const basin_pool_window *w) {
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
static void take_maxima(const basin_frame *frame, int64_t first, int64_t last) {
    basin_pool_sizes g = basin_pool_sizes_of(frame->call);
    const float *x = frame->in[0], *v = frame->in[frame->call->op == BASIN_OP_MAXPOOL ? 0 : 1];
    float *y = frame->out[0];
    for (int64_t i = first; i < last; i++) {
        group part = group_of(&g, i);
        int64_t best[GROUP];
        for (int64_t n = 0; n < g.out_rows * g.out_columns; n++) {
            basin_pool_window w = basin_pool_window_of(&g, n);
            find_maxima(best, x, &g, &part, &w);
            float *to = y + part.y + n * g.channels;
            for (int ch = 0; ch < part.channels; ch++) to[ch] = best[ch] < 0 ? 0.0f : v[best[ch]];
        }
    }
}

void basin_cpu_maxpool(const basin_frame *frame) { share_groups(frame, take_maxima); }

static void scatter_maxima(const basin_frame *frame, int64_t first, int64_t last) {
    basin_pool_sizes g = basin_pool_sizes_of(frame->call);
    const float *x = frame->in[0], *y = frame->in[1];
    float *out = frame->out[0]; /* like x */
    for (int64_t i = first; i < last; i++) {
        group part = group_of(&g, i);
        int64_t best[GROUP];
        clear_group(out, &g, &part);
        for (int64_t n = 0; n < g.out_rows * g.out_columns; n++) {
            basin_pool_window w = basin_pool_window_of(&g, n);
            find_maxima(best, x, &g, &part, &w);
            const float *from = y + part.y + n * g.channels;
            for (int ch = 0; ch < part.channels; ch++)
                if (best[ch] >= 0) out[best[ch]] += from[ch];
        }
    }
}

void basin_cpu_maxpool_scatter(const basin_frame *frame) { share_groups(frame, scatter_maxima); }
