/* Moving numbers: permutations, slices, pads, concatenation, and rows gathered or summed by index.
 * REAL and INDEX elements both have four bytes here, so one form of each copy serves both. */
#include <math.h>

#include "base/sort.h"
#include "engine/backend/cpu/cpu.h"
#include "engine/backend/shape.h"

enum { TILE = 16 };

static void copy(float *to, const float *from, int64_t n) {
    if (n >= 64)
        memcpy(to, from, (size_t)n * sizeof *to);
    else
        for (int64_t i = 0; i < n; i++) to[i] = from[i];
}

/* Rows first .. last - 1 of the output, each contiguous in the operand too. */
static void copy_rows(float *to, const float *from, const basin_axes *w, int64_t first,
                      int64_t last) {
    int outer = w->shape.rank - 1;
    int64_t width = w->shape.dim[outer], index[BASIN_MAX_RANK], offset = 0, rest = first;
    for (int axis = outer - 1; axis >= 0; axis--) {
        index[axis] = rest % w->shape.dim[axis];
        offset += index[axis] * w->stride[axis];
        rest /= w->shape.dim[axis];
    }
    for (int64_t row = first; row < last; row++) {
        copy(to + row * width, from + offset, width);
        for (int axis = outer - 1; axis >= 0; axis--) {
            offset += w->stride[axis];
            if (++index[axis] < w->shape.dim[axis]) break;
            offset -= index[axis] * w->stride[axis];
            index[axis] = 0;
        }
    }
}

/* to[i, j] = from[j, i] for i < rows, j < cols, in tiles that both sides read within few lines. */
static void transpose(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows,
                      int64_t cols) {
    for (int64_t j = 0; j < cols; j += TILE) {
        int64_t max = basin_int_min(cols - j, TILE);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t k = 0; k < max; k++) to[i * to_row + j + k] = from[(j + k) * from_row + i];
    }
}

/* Transpositions of the last axis of the output and the operand's axis of stride 1. */
typedef struct transposition {
    float *to;
    const float *from;
    int64_t rows, columns;    /* of each: the other axis, the last one */
    int64_t to_row, from_row; /* strides */
    int64_t tiles;            /* of rows */
    basin_shape others;       /* and their strides */
    int64_t out_stride[BASIN_MAX_RANK], in_stride[BASIN_MAX_RANK];
} transposition;

static void transpose_tiles(const void *context, int64_t first, int64_t last) {
    const transposition *t = context;
    for (int64_t piece = first; piece < last; piece++) {
        int64_t at = piece / t->tiles, row = piece % t->tiles * TILE;
        int64_t to_at = basin_shape_offset(at, &t->others, t->others.rank, t->out_stride);
        int64_t from_at = basin_shape_offset(at, &t->others, t->others.rank, t->in_stride);
        transpose(t->to + to_at + row * t->to_row, t->to_row, t->from + from_at + row, t->from_row,
                  basin_int_min(t->rows - row, TILE), t->columns);
    }
}

static void transpose_all(float *to, const float *from, const basin_axes *w, int unit, int team) {
    int last = w->shape.rank - 1;
    int64_t dense[BASIN_MAX_RANK];
    transposition t = {.to = to, .from = from, .rows = w->shape.dim[unit]};
    basin_shape_strides(dense, &w->shape);
    for (int i = 0; i < last; i++) {
        if (i == unit) continue;
        t.out_stride[t.others.rank] = dense[i];
        t.in_stride[t.others.rank] = w->stride[i];
        t.others.dim[t.others.rank++] = w->shape.dim[i];
    }
    t.columns = w->shape.dim[last], t.to_row = dense[unit], t.from_row = w->stride[last];
    t.tiles = (t.rows + TILE - 1) / TILE;
    int64_t outer = basin_shape_product(&t.others, 0, t.others.rank);
    basin_parallel_for(transpose_tiles, &t, outer * t.tiles, 0, team);
}

static void permute_rows(const basin_frame *frame, int64_t first, int64_t last) {
    basin_axes w = basin_shape_permuted(&frame->call->in[0].shape, frame->call->attr.axes);
    copy_rows(frame->out[0], frame->in[0], &w, first, last);
}

void basin_cpu_permute(const basin_frame *frame) {
    basin_axes w = basin_shape_permuted(&frame->call->in[0].shape, frame->call->attr.axes);
    int64_t count = basin_shape_product(&w.shape, 0, w.shape.rank);
    int last = w.shape.rank - 1, unit = 0;
    if (count == 0) return;
    if (w.stride[last] == 1) {
        basin_cpu_share(frame, permute_rows, count / w.shape.dim[last], count);
    } else {
        while (w.stride[unit] != 1) unit++;
        transpose_all(frame->out[0], frame->in[0], &w, unit, basin_cpu_team(frame, count));
    }
}

/* Runs of `run` elements: run i goes from `from` + i from_step to `to` + i to_step. */
typedef struct runs {
    float *to;
    int64_t to_step;
    const float *from;
    int64_t from_step, run;
} runs;

static void copy_some(const void *context, int64_t first, int64_t last) {
    const runs *r = context;
    for (int64_t i = first; i < last; i++)
        copy(r->to + i * r->to_step, r->from + i * r->from_step, r->run);
}

static void copy_runs(const basin_frame *frame, runs r, int64_t count) {
    if (r.run > 0)
        basin_parallel_for(copy_some, &r, count, 0, basin_cpu_team(frame, r.run * count));
}

void basin_cpu_slice(const basin_frame *frame) {
    const basin_call *call = frame->call;
    const basin_shape *in = &call->in[0].shape, *out = &call->out[0].shape;
    int axis = call->attr.axis;
    int64_t inner = basin_shape_product(in, axis + 1, in->rank);
    runs r = {.to = frame->out[0],
              .to_step = out->dim[axis] * inner,
              .from = (const float *)frame->in[0] + call->attr.start * inner,
              .from_step = in->dim[axis] * inner,
              .run = out->dim[axis] * inner};
    copy_runs(frame, r, basin_shape_product(in, 0, axis));
}

static void pad_rows(const basin_frame *frame, int64_t first, int64_t last) {
    const basin_call *call = frame->call;
    const basin_shape *in = &call->in[0].shape, *out = &call->out[0].shape;
    int axis = call->attr.axis;
    int64_t inner = basin_shape_product(in, axis + 1, in->rank), row = out->dim[axis] * inner;
    int64_t before = call->attr.start * inner, run = in->dim[axis] * inner;
    const float *from = frame->in[0];
    for (int64_t i = first; i < last; i++) {
        float *at = (float *)frame->out[0] + i * row;
        memset(at, 0, (size_t)before * sizeof *at);
        copy(at + before, from + i * run, run);
        memset(at + before + run, 0, (size_t)(row - before - run) * sizeof *at);
    }
}

void basin_cpu_pad(const basin_frame *frame) {
    const basin_shape *out = &frame->call->out[0].shape;
    int64_t rows = basin_shape_product(out, 0, frame->call->attr.axis);
    int64_t count = basin_shape_count(*out);
    if (count > 0) basin_cpu_share(frame, pad_rows, rows, count);
}

void basin_cpu_concat(const basin_frame *frame) {
    const basin_call *call = frame->call;
    const basin_shape *out = &call->out[0].shape;
    int axis = call->attr.axis;
    int64_t inner = basin_shape_product(out, axis + 1, out->rank), start = 0;
    for (int i = 0; i < call->ins; i++) {
        int64_t run = call->in[i].shape.dim[axis] * inner;
        runs r = {(float *)frame->out[0] + start, out->dim[axis] * inner, frame->in[i], run, run};
        copy_runs(frame, r, basin_shape_product(out, 0, axis));
        start += run;
    }
}

/* out[i] = table[index[i]]; zeros where the index is -1. */
static void gather_rows(const basin_frame *frame, int64_t first, int64_t last) {
    const basin_shape *shape = &frame->call->in[0].shape;
    const float *table = frame->in[0];   /* [rows, width] */
    const int32_t *index = frame->in[1]; /* [n] */
    float *out = frame->out[0];          /* [n, width] */
    int64_t rows = shape->dim[0], width = basin_shape_product(shape, 1, shape->rank);
    for (int64_t i = first; i < last; i++) {
        if (index[i] >= 0 && index[i] < rows)
            copy(out + i * width, table + index[i] * width, width);
        else
            memset(out + i * width, 0, (size_t)width * sizeof *out);
        if (index[i] < -1 || index[i] >= rows)
            basin_host_bad_index(frame, "gather", i, index[i], -1, rows);
    }
}

void basin_cpu_gather(const basin_frame *frame) {
    int64_t n = basin_shape_count(frame->call->in[1].shape);
    basin_cpu_share(frame, gather_rows, n, basin_shape_count(frame->call->out[0].shape));
}

/* out[v] = sum of values[i] with index[i] = v, in order. A piece is a range of rows v. */
static void scatter_rows(const void *context, int64_t first, int64_t last) {
    const basin_frame *frame = context;
    const basin_shape *shape = &frame->call->out[0].shape;
    const float *values = frame->in[0];  /* [n, width] */
    const int32_t *index = frame->in[1]; /* [n] */
    float *out = frame->out[0];          /* [rows, width] */
    int64_t n = basin_shape_count(frame->call->in[1].shape);
    int64_t width = basin_shape_product(shape, 1, shape->rank);
    memset(out + first * width, 0, (size_t)((last - first) * width) * sizeof *out);
    for (int64_t i = 0; i < n; i++)
        if (index[i] >= first && index[i] < last)
            frame->simd->axpy(out + index[i] * width, 1.0f, values + i * width, width);
}

void basin_cpu_scatter(const basin_frame *frame) {
    const basin_call *call = frame->call;
    const int32_t *index = frame->in[1]; /* [n] */
    int64_t n = basin_shape_count(call->in[1].shape), rows = call->out[0].shape.dim[0];
    int team = basin_cpu_team(frame, basin_shape_count(call->in[0].shape));
    basin_parallel_for(scatter_rows, frame, rows, (rows + team - 1) / team, team);
    for (int64_t i = 0; i < n; i++)
        if (index[i] < -1 || index[i] >= rows)
            basin_host_bad_index(frame, "scatter", i, index[i], -1, rows);
}

void basin_cpu_from_index(const basin_frame *frame) {
    const int32_t *index = frame->in[0];
    float *out = frame->out[0];
    int64_t count = basin_shape_count(frame->call->out[0].shape);
    for (int64_t i = 0; i < count; i++) out[i] = (float)index[i];
}

/* The nearest of 0 .. start - 1. */
void basin_cpu_to_index(const basin_frame *frame) {
    const float *x = frame->in[0];
    int32_t *out = frame->out[0];
    int64_t count = basin_shape_count(frame->call->out[0].shape), limit = frame->call->attr.start;
    for (int64_t i = 0; i < count; i++) {
        double nearest = floor((double)x[i] + 0.5);
        out[i] = nearest > 0 ? (int32_t)fmin(nearest, (double)(limit - 1)) : 0;
    }
}
