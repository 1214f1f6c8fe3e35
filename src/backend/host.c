/* Host memory behind the backend interface; see host.h. */
#include "backend/host.h"

#include <string.h>

#include "base/memory.h"

void *basin_host_alloc(basin_backend *backend, size_t bytes) {
    (void)backend;
    return basin_large_new(bytes);
}

void basin_host_free(basin_backend *backend, void *memory) {
    (void)backend;
    basin_aligned_free(memory);
}

void basin_host_copy_in(basin_backend *backend, void *device, const void *host, size_t bytes) {
    (void)backend;
    if (bytes) memcpy(device, host, bytes);
}

void basin_host_copy_out(basin_backend *backend, void *host, const void *device, size_t bytes) {
    (void)backend;
    if (bytes) memcpy(host, device, bytes);
}

void basin_host_fill_zero(basin_backend *backend, void *device, size_t bytes) {
    (void)backend;
    if (bytes) memset(device, 0, bytes);
}
