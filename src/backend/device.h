/* The memory of a backend, for those who keep something there besides plans and stores; backends
 * for several threads; and what there is of CUDA, for those who only tell of it. */
#ifndef BASIN_BACKEND_DEVICE_H
#define BASIN_BACKEND_DEVICE_H

#include <stdbool.h>

#include "basin/backend.h"

/* Another backend like `other`, its settings included, for a thread of its own. They may be closed
 * in any order. */
basin_status basin_backend_open_beside(basin_backend **backend, const basin_backend *other,
                                       basin_error *error);

/* NULL where there is no memory. */
void *basin_device_alloc(basin_backend *backend, size_t bytes);
void basin_device_free(basin_backend *backend, void *memory);
/* The host's memory may change as soon as it returns. */
void basin_device_copy_in(basin_backend *backend, void *device, const void *host, size_t bytes);
/* Waits for what was queued. */
basin_status basin_device_copy_out(basin_backend *backend, void *host, const void *device,
                                   size_t bytes, basin_error *error);
/* Bytes that could still be allocated; SIZE_MAX where that is not known. */
size_t basin_device_free_bytes(basin_backend *backend);

/* Whether the files are there: opens nothing, so whether they work remains to be seen. */
bool basin_cuda_module_present(void);
bool basin_cuda_driver_present(void);

#endif
