/* Opening a backend by name, and what every backend does through its table. */
#include <string.h>

#include "backend/collective.h"
#include "backend/crop.h"
#include "backend/device.h"
#include "backend/eager.h"
#include "backend/kernel.h"
#include "backend/own.h"

basin_status basin_backend_open(basin_backend **backend, const char *name, int threads,
                                basin_error *error) {
    *backend = NULL;
    if (!name) name = "";
    if (threads < 0)
        return basin_fail(error, BASIN_BAD_VALUE, "%d threads; wanted 0 (all cores) or more",
                          threads);
    if (strcmp(name, "ref") == 0) return basin_backend_open_ref(backend, error);
    if (strcmp(name, "cpu") == 0) return basin_backend_open_cpu(backend, threads, error);
    if (strcmp(name, "cuda") == 0) return basin_backend_open_cuda(backend, error);
    return basin_fail(error, BASIN_UNSUPPORTED, "there is no backend '%s'; wanted ref, cpu or cuda",
                      name);
}

void basin_backend_close(basin_backend *backend) {
    if (backend) backend->table->close(backend);
}

const char *basin_backend_name(const basin_backend *backend) { return backend->table->name; }
basin_dtype basin_backend_dtype(const basin_backend *backend) { return backend->table->real; }
void basin_backend_set_products(basin_backend *backend, basin_products products) {
    backend->products = products;
}
basin_status basin_backend_set_storage(basin_backend *backend, basin_dtype dtype,
                                       basin_error *error) {
    bool bytes = dtype == BASIN_F8_E4M3 && backend->table->byte_size > 0;
    bool narrow = bytes || (dtype == BASIN_BF16 && backend->table->narrow_size > 0);
    if (dtype == BASIN_F8_E4M3 && !bytes)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "backend %s does not store fp8 here; that takes cuda on a device of "
                          "compute capability 9.0, or ref",
                          backend->table->name);
    if (!narrow && dtype != backend->table->real)
        return basin_fail(error, BASIN_UNSUPPORTED, "backend %s does not store %s; wanted %s%s",
                          backend->table->name, basin_dtype_name(dtype),
                          basin_dtype_name(backend->table->real),
                          backend->table->narrow_size ? " or bf16" : "");
    const char *lacks =
        narrow && backend->table->narrow_lacks ? backend->table->narrow_lacks(backend) : NULL;
    if (lacks)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "backend %s does not compute in bf16 on this processor, which lacks %s",
                          backend->table->name, lacks);
    backend->narrow = narrow;
    backend->bytes = bytes;
    backend->narrow_least =
        backend->table->narrow_least > 0 ? backend->table->narrow_least : BASIN_NARROW_LEAST;
    return BASIN_OK;
}
void basin_backend_set_narrow_least(basin_backend *backend, double multiply_adds) {
    backend->narrow_least = multiply_adds;
}
void basin_backend_set_memory_limit(basin_backend *backend, size_t bytes) {
    backend->memory_limit = bytes;
}
basin_dtype basin_backend_storage(const basin_backend *backend) {
    return backend->bytes ? BASIN_F8_E4M3 : backend->narrow ? BASIN_BF16 : backend->table->real;
}
basin_status basin_backend_wait(basin_backend *backend, basin_error *error) {
    return backend->table->wait(backend, error);
}
int basin_backend_threads(const basin_backend *backend) { return backend->threads; }

/* ---- device.h, crop.h, collective.h, eager.h ---- */

void *basin_device_alloc(basin_backend *backend, size_t bytes) {
    return backend->table->alloc(backend, bytes);
}
void basin_device_free(basin_backend *backend, void *memory) {
    backend->table->free(backend, memory);
}
basin_status basin_backend_open_beside(basin_backend **backend, const basin_backend *other,
                                       basin_error *error) {
    if (other->table->open_beside) return other->table->open_beside(backend, other, error);
    basin_status status = basin_backend_open(backend, other->table->name, other->threads, error);
    if (!status) **backend = *other; /* one of the same kind: table and settings */
    return status;
}
void basin_device_copy_in(basin_backend *backend, void *device, const void *host, size_t bytes) {
    backend->table->copy_in(backend, device, host, bytes);
}
basin_status basin_device_copy_out(basin_backend *backend, void *host, const void *device,
                                   size_t bytes, basin_error *error) {
    backend->table->copy_out(backend, host, device, bytes);
    return backend->table->wait(backend, error);
}
size_t basin_device_free_bytes(basin_backend *backend) {
    return backend->table->free_bytes ? backend->table->free_bytes(backend) : SIZE_MAX;
}

static const void *extension(const basin_backend *backend, const char *name) {
    const basin_backend_table *table = backend->table;
    return table->extension ? table->extension(backend, name) : NULL;
}

const basin_crop_table *basin_backend_crops(const basin_backend *backend) {
    return extension(backend, BASIN_CROP_EXTENSION);
}

const basin_collective_table *basin_backend_collective(const basin_backend *backend) {
    return extension(backend, BASIN_COLLECTIVE_EXTENSION);
}

const basin_own_table *basin_backend_own(const basin_backend *backend) {
    return extension(backend, BASIN_OWN_EXTENSION);
}

basin_status basin_backend_open_eager(basin_backend **backend, const char *name, int threads,
                                      basin_error *error) {
    if (strcmp(name, "cuda") == 0) return basin_backend_open_cuda_eager(backend, error);
    return basin_backend_open(backend, name, threads, error);
}

const basin_eager_table *basin_backend_eager(const basin_backend *backend) {
    return extension(backend, BASIN_EAGER_EXTENSION);
}
