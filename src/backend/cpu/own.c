/* Operations of the caller's own: its function, in double, at every element of the operands, which
 * are broadcast. Threads share rows. */
#include "backend/cpu/cpu.h"
#include "backend/shape.h"

static void own_rows(const basin_cpu_frame *frame, int64_t first, int64_t last) {
    const basin_call *call = frame->call;
    const basin_shape *shape = &call->out[0].shape;
    int outer = shape->rank > 0 ? shape->rank - 1 : 0;
    int64_t width = basin_cpu_width(shape), stride[BASIN_OWN_INS][BASIN_MAX_RANK] = {{0}};
    float *y = frame->out[0];
    for (int a = 0; a < call->ins; a++) basin_shape_broadcast(stride[a], &call->in[a].shape, shape);
    for (int64_t row = first; row < last; row++) {
        int64_t at[BASIN_OWN_INS];
        for (int a = 0; a < call->ins; a++)
            at[a] = basin_shape_offset(row, shape, outer, stride[a]);
        for (int64_t i = 0; i < width; i++) {
            double x[BASIN_OWN_INS];
            for (int a = 0; a < call->ins; a++)
                x[a] = (double)((const float *)frame->in[a])[at[a] + i * stride[a][outer]];
            y[row * width + i] = (float)call->attr.function(x, call->attr.context);
        }
    }
}

void basin_cpu_own(const basin_cpu_frame *frame) {
    const basin_shape *shape = &frame->call->out[0].shape;
    int64_t rows = basin_cpu_rows(shape);
    basin_cpu_share(frame, own_rows, rows, 8 * rows * basin_cpu_width(shape));
}
