/* Single operations inside: what an open one holds. */
#ifndef BASIN_EAGER_EAGER_H
#define BASIN_EAGER_EAGER_H

#include "backend/device.h"
#include "basin/eager.h"

struct basin_eager {
    basin_backend *backend; /* asked for sizes; on a host each call runs on one of its own */
    bool device;            /* memory is not the host's */
};

#endif
