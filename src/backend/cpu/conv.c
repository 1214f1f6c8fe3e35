/* Convolution (cross-correlation), NHWC, as matrix products: with the patch of x under output cell
 * (b, i, j) laid out as a row of P [cells, kh kw C], y = P K, dK = P^T y, and the transposed
 * convolution adds the rows of y K^T back to where they came from. P exists one slab of output
 * rows at a time. */
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
