/* Moving numbers: permutations, slices, pads, concatenation, and rows gathered or summed by index.
 * All but SCATTER only copy, so they take REAL and INDEX elements alike. */
#include <math.h>
#include <string.h>

#include "backend/ref/ref.h"
#include "backend/shape.h"

static size_t element_size(const basin_operand *operand) {
    return operand->kind == BASIN_INDEX ? sizeof(int32_t) : sizeof(double);
}

/* out axis i is in axis axes[i]. */
void basin_ref_permute(const basin_ref_frame *frame) {
    const basin_call *call = frame->call;
    const basin_shape *shape = &call->out[0].shape;
    size_t size = element_size(&call->out[0]);
    int64_t own[BASIN_MAX_RANK], stride[BASIN_MAX_RANK];
    basin_shape_strides(own, &call->in[0].shape);
    for (int i = 0; i < shape->rank; i++) stride[i] = own[call->attr.axes[i]];
    int64_t count = basin_shape_count(*shape);
    for (int64_t i = 0; i < count; i++) {
        int64_t from = basin_shape_offset(i, shape, shape->rank, stride);
        memcpy((char *)frame->out[0] + (size_t)i * size,
               (const char *)frame->in[0] + (size_t)from * size, size);
    }
}

/* Copies `span` elements along `axis` from `from` (at from_start) to `to` (at to_start); the two
 * agree in every other axis. */
static void copy_span(void *to, const basin_operand *to_operand, int64_t to_start, const void *from,
                      const basin_operand *from_operand, int64_t from_start, int64_t span,
                      int axis) {
    const basin_shape *a = &to_operand->shape, *b = &from_operand->shape;
    int64_t outer = basin_shape_product(a, 0, axis);
    size_t inner = (size_t)basin_shape_product(a, axis + 1, a->rank) * element_size(to_operand);
    if (span <= 0 || inner == 0) return;
    for (int64_t i = 0; i < outer; i++)
        memcpy((char *)to + (size_t)(i * a->dim[axis] + to_start) * inner,
               (const char *)from + (size_t)(i * b->dim[axis] + from_start) * inner,
               (size_t)span * inner);
}

void basin_ref_slice(const basin_ref_frame *frame) {
    const basin_call *call = frame->call;
    int axis = call->attr.axis;
    copy_span(frame->out[0], &call->out[0], 0, frame->in[0], &call->in[0], call->attr.start,
              call->out[0].shape.dim[axis], axis);
}

void basin_ref_pad(const basin_ref_frame *frame) {
    const basin_call *call = frame->call;
    int axis = call->attr.axis;
    size_t bytes = (size_t)basin_shape_count(call->out[0].shape) * element_size(&call->out[0]);
    memset(frame->out[0], 0, bytes);
    copy_span(frame->out[0], &call->out[0], call->attr.start, frame->in[0], &call->in[0], 0,
              call->in[0].shape.dim[axis], axis);
}

void basin_ref_concat(const basin_ref_frame *frame) {
    const basin_call *call = frame->call;
    int axis = call->attr.axis;
    int64_t start = 0;
    for (int i = 0; i < call->ins; i++) {
        int64_t span = call->in[i].shape.dim[axis];
        copy_span(frame->out[0], &call->out[0], start, frame->in[i], &call->in[i], 0, span, axis);
        start += span;
    }
}

/* out[i] = table[index[i]]; zeros where the index is -1. */
void basin_ref_gather(const basin_ref_frame *frame) {
    const basin_call *call = frame->call;
    const basin_shape *table = &call->in[0].shape;
    const int32_t *index = frame->in[1]; /* [n] */
    int64_t n = basin_shape_count(call->in[1].shape), rows = table->dim[0];
    size_t bytes = (size_t)basin_shape_product(table, 1, table->rank) * element_size(&call->out[0]);
    for (int64_t i = 0; i < n; i++) {
        char *to = (char *)frame->out[0] + (size_t)i * bytes;
        bool inside = index[i] >= 0 && index[i] < rows;
        if (inside)
            memcpy(to, (const char *)frame->in[0] + (size_t)index[i] * bytes, bytes);
        else
            memset(to, 0, bytes);
        if (!inside && index[i] != -1) basin_ref_bad_index(frame, "gather", i, index[i], -1, rows);
    }
}

/* out[v] = sum of values[i] over the i with index[i] = v. */
void basin_ref_scatter(const basin_ref_frame *frame) {
    const basin_call *call = frame->call;
    const basin_shape *shape = &call->out[0].shape;
    const double *values = frame->in[0]; /* [n, R] */
    const int32_t *index = frame->in[1]; /* [n] */
    double *out = frame->out[0];         /* [rows, R] */
    int64_t n = basin_shape_count(call->in[1].shape), rows = shape->dim[0];
    int64_t width = basin_shape_product(shape, 1, shape->rank);
    basin_ref_clear(frame);
    for (int64_t i = 0; i < n; i++) {
        if (index[i] >= 0 && index[i] < rows) {
            for (int64_t j = 0; j < width; j++) out[index[i] * width + j] += values[i * width + j];
        } else if (index[i] != -1)
            basin_ref_bad_index(frame, "scatter", i, index[i], -1, rows);
    }
}

void basin_ref_from_index(const basin_ref_frame *frame) {
    const int32_t *index = frame->in[0];
    double *out = frame->out[0];
    int64_t count = basin_shape_count(frame->call->out[0].shape);
    for (int64_t i = 0; i < count; i++) out[i] = index[i];
}

/* The nearest of 0 .. start - 1. */
void basin_ref_to_index(const basin_ref_frame *frame) {
    const double *x = frame->in[0];
    int32_t *out = frame->out[0];
    int64_t count = basin_shape_count(frame->call->out[0].shape), limit = frame->call->attr.start;
    for (int64_t i = 0; i < count; i++) {
        double nearest = floor(x[i] + 0.5);
        out[i] = nearest > 0 ? (int32_t)fmin(nearest, (double)(limit - 1)) : 0;
    }
}
