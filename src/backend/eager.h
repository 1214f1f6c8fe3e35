/* Single calls on a stream of the caller's, for backends that have streams. A backend opened for
 * them alone takes little memory and no plans. */
#ifndef BASIN_BACKEND_EAGER_H
#define BASIN_BACKEND_EAGER_H

#include "backend/kernel.h"

#define BASIN_EAGER_EXTENSION "eager"

/* On the device that is the calling thread's; threads may share the backend. */
typedef struct basin_eager_table {
    size_t (*workspace)(const basin_backend *backend, const basin_call *call);
    /* Queues the call; block[i] is the address of block i. */
    basin_status (*run)(const basin_backend *backend, const basin_call *call, void *const *block,
                        void *stream, basin_error *error);
} basin_eager_table;

/* NULL where `run` of the backend's own table does, finished when it returns. */
const basin_eager_table *basin_backend_eager(const basin_backend *backend);
/* A backend for single calls; only on cuda another than basin_backend_open's. */
basin_status basin_backend_open_eager(basin_backend **backend, const basin_compute *compute,
                                      basin_error *error);

#endif
