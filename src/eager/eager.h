/* Single operations inside: what an open one holds, and the way of bfloat16 through kernels that
 * compute in float. */
#ifndef BASIN_EAGER_EAGER_H
#define BASIN_EAGER_EAGER_H

#include "backend/device.h"
#include "basin/eager.h"

struct basin_eager {
    basin_backend *backend; /* asked for sizes; on a host each call runs on one of its own */
    bool device;            /* memory is not the host's */
};

/* Sizes, type and pattern; then pointers, of which `bytes` of workspace, and a host's list. */
basin_status basin_eager_check_sizes(const basin_eager *eager, basin_eager_operation operation,
                                     const basin_eager_attention *at, basin_error *error);
basin_status basin_eager_check_operands(const basin_eager *eager, basin_eager_operation operation,
                                        const basin_eager_attention *at, size_t bytes,
                                        basin_error *error);

/* Bytes for float copies of all bfloat16 operands that there are. */
size_t basin_eager_wide_bytes(const basin_eager_attention *at);
/* The same job in float, copies in `room`; and its results as bfloat16 where the first one wants
 * them. */
basin_eager_attention basin_eager_widen(const basin_eager_attention *at, void *room);
void basin_eager_narrow(const basin_eager_attention *at, const basin_eager_attention *wide);

#endif
