/* Walking shapes: dense row-major strides, and the strides of an operand that is broadcast.
 * Strides count elements. Host backends and plans share these; nothing here touches numbers. */
#ifndef BASIN_BACKEND_SHAPE_H
#define BASIN_BACKEND_SHAPE_H

#include "basin/tensor.h"

/* Axes, and the strides of an operand along them. */
typedef struct basin_axes {
    basin_shape shape;
    int64_t stride[BASIN_MAX_RANK];
} basin_axes;

/* The product of the dimensions first .. last - 1; 1 where there is none. */
static inline int64_t basin_shape_product(const basin_shape *shape, int first, int last) {
    int64_t product = 1;
    for (int i = first; i < last; i++) product *= shape->dim[i];
    return product;
}

/* Dimension `back` counted from the last, which is 1; 1 where there are fewer. */
static inline int64_t basin_shape_last(const basin_shape *shape, int back) {
    return shape->rank < back ? 1 : shape->dim[shape->rank - back];
}

/* The rows of a tensor seen as a matrix. */
static inline int64_t basin_shape_rows(const basin_shape *shape) {
    return basin_shape_product(shape, 0, shape->rank - 1);
}

/* stride[i] of a dense tensor, for each of its axes. */
static inline void basin_shape_strides(int64_t stride[BASIN_MAX_RANK], const basin_shape *shape) {
    int64_t step = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= shape->dim[i];
    }
}

/* stride[i] of a dense operand of shape `from` along axis i of `to`: shapes are aligned at their
 * last axes, and an axis that is missing or 1 in `from` is repeated, so its stride is 0. */
static inline void basin_shape_broadcast(int64_t stride[BASIN_MAX_RANK], const basin_shape *from,
                                         const basin_shape *to) {
    int64_t own[BASIN_MAX_RANK];
    int missing = to->rank - from->rank;
    basin_shape_strides(own, from);
    for (int i = 0; i < to->rank; i++)
        stride[i] = i < missing || from->dim[i - missing] == 1 ? 0 : own[i - missing];
}

/* A permutation, whose axis i is axis axes[i] of `from`, as the result's axes (those of one element
 * dropped, neighbours that `from` walks as one joined; at least one) and the operand's strides. */
static inline basin_axes basin_shape_permuted(const basin_shape *from, const int8_t *axes) {
    int64_t own[BASIN_MAX_RANK];
    basin_axes a = {{0, {0}}, {0}};
    basin_shape_strides(own, from);
    for (int i = 0; i < from->rank; i++) {
        int64_t dim = from->dim[axes[i]], stride = own[axes[i]];
        bool joins = a.shape.rank > 0 && a.stride[a.shape.rank - 1] == stride * dim;
        if (dim == 1) continue;
        if (!joins) a.shape.dim[a.shape.rank++] = 1;
        a.shape.dim[a.shape.rank - 1] *= dim;
        a.stride[a.shape.rank - 1] = stride;
    }
    if (a.shape.rank == 0) a.shape.rank = 1, a.shape.dim[0] = a.stride[0] = 1;
    return a;
}

/* Where element `i` (row-major over the first `axes` axes of `shape`) lies under `stride`. */
static inline int64_t basin_shape_offset(int64_t i, const basin_shape *shape, int axes,
                                         const int64_t *stride) {
    int64_t offset = 0;
    for (int axis = axes - 1; axis >= 0; axis--) {
        offset += i % shape->dim[axis] * stride[axis];
        i /= shape->dim[axis];
    }
    return offset;
}

#endif
