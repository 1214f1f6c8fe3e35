/* Allocation and copies for the tables of backends that compute in the host's memory. */
#ifndef BASIN_BACKEND_HOST_H
#define BASIN_BACKEND_HOST_H

#include "backend/kernel.h"

void *basin_host_alloc(basin_backend *backend, size_t bytes);
void basin_host_free(basin_backend *backend, void *memory);
void basin_host_copy_in(basin_backend *backend, void *device, const void *host, size_t bytes);
void basin_host_copy_out(basin_backend *backend, void *host, const void *device, size_t bytes);
void basin_host_fill_zero(basin_backend *backend, void *device, size_t bytes);

#endif
