/* Operations of the caller's own: its function at every element of the operands, broadcast. */
#include "backend/ref/ref.h"
#include "backend/shape.h"

void basin_ref_own(const basin_ref_frame *frame) {
    const basin_call *call = frame->call;
    const basin_shape *shape = &call->out[0].shape;
    int64_t stride[BASIN_OWN_INS][BASIN_MAX_RANK], count = basin_shape_count(*shape);
    for (int a = 0; a < call->ins; a++) basin_shape_broadcast(stride[a], &call->in[a].shape, shape);
    for (int64_t i = 0; i < count; i++) {
        double x[BASIN_OWN_INS];
        for (int a = 0; a < call->ins; a++)
            x[a] = ((const double *)
                        frame->in[a])[basin_shape_offset(i, shape, shape->rank, stride[a])];
        ((double *)frame->out[0])[i] = call->attr.function(x, call->attr.context);
    }
}
