/* Opening a backend by name, and what every backend does through its table. */

#include "base/sized.h"
#include "base/try.h"
#include "engine/backend/device.h"
#include "engine/backend/kernel.h"
#include "engine/backend/op.h"

enum { MAX_THREADS = 4096 };

static basin_status open_named(basin_backend **backend, const char *name, int threads,
                               basin_error *error) {
    if (threads < 0 || threads > MAX_THREADS)
        return basin_fail(error, BASIN_BAD_VALUE, "threads is %d; expected 0 (all cores) to %d",
                          threads, MAX_THREADS);
    if (strcmp(name, "ref") == 0) return basin_backend_open_ref(backend, error);
    if (strcmp(name, "cpu") == 0) return basin_backend_open_cpu(backend, threads, error);
    if (strcmp(name, "cuda") == 0) return basin_backend_open_cuda(backend, true, error);
    return basin_fail(error, BASIN_UNSUPPORTED, "unknown backend '%s'; expected ref, cpu or cuda",
                      name);
}

basin_status basin_backend_open(basin_backend **backend, const basin_compute *compute,
                                basin_error *error) {
    static const basin_compute defaults;
    *backend = NULL;
    BASIN_TRY(BASIN_SIZE_CHECK(compute, "basin_compute", error));
    if (!compute) compute = &defaults;
    BASIN_TRY(
        open_named(backend, compute->backend ? compute->backend : "cpu", compute->threads, error));
    basin_status status = basin_backend_configure(*backend, compute, error);
    if (!status) return BASIN_OK;
    basin_backend_close(*backend);
    *backend = NULL;
    return status;
}

void basin_backend_close(basin_backend *backend) {
    if (backend) backend->table->close(backend);
}

static basin_status check_storage(const basin_backend *backend, basin_dtype storage, bool narrow,
                                  basin_error *error) {
    const basin_backend_table *table = backend->table;
    if (storage == BASIN_F8_E4M3 && !narrow)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "backend %s does not store fp8 here; that takes cuda on a device of "
                          "compute capability 9.0, or ref",
                          table->name);
    if (!narrow && storage != table->real)
        return basin_fail(error, BASIN_UNSUPPORTED, "backend %s does not store %s; expected %s%s",
                          table->name, basin_dtype_name(storage), basin_dtype_name(table->real),
                          table->narrow_size ? " or bf16" : "");
    const char *lacks = narrow && table->narrow_lacks ? table->narrow_lacks(backend) : NULL;
    if (lacks)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "backend %s does not compute in bf16 on this processor, which lacks %s",
                          table->name, lacks);
    return BASIN_OK;
}

basin_status basin_backend_configure(basin_backend *backend, const basin_compute *compute,
                                     basin_error *error) {
    const basin_backend_table *table = backend->table;
    basin_dtype storage = compute->storage ? compute->storage : table->real;
    bool bytes = storage == BASIN_F8_E4M3 && table->byte_size > 0;
    bool narrow = bytes || (storage == BASIN_BF16 && table->narrow_size > 0);
    BASIN_TRY(check_storage(backend, storage, narrow, error));
    backend->products = compute->products;
    backend->narrow = narrow;
    backend->bytes = bytes;
    backend->narrow_min = compute->narrow_min;
    if (narrow && !(backend->narrow_min > 0))
        backend->narrow_min = table->narrow_min > 0 ? table->narrow_min : 0x1p26;
    backend->memory_limit = compute->memory_limit;
    return BASIN_OK;
}

basin_dtype basin_backend_storage(const basin_backend *backend) {
    return backend->bytes ? BASIN_F8_E4M3 : backend->narrow ? BASIN_BF16 : backend->table->real;
}
basin_status basin_backend_wait(basin_backend *backend, basin_error *error) {
    return backend->table->wait(backend, error);
}
int basin_backend_threads(const basin_backend *backend) {
    return backend->table->check ? 0 : backend->threads; /* only devices are checked */
}

const basin_collective *basin_backend_collective(const basin_backend *backend) {
    return backend->table->collective;
}

void basin_backend_get_info(basin_backend_info *info, const basin_backend *backend) {
    basin_backend_info all = {.name = backend->table->name,
                              .dtype = backend->table->real,
                              .threads = basin_backend_threads(backend),
                              .storage = basin_backend_storage(backend),
                              .free_bytes = basin_device_free_bytes(backend)};
    basin_info_fill(info, &all, sizeof all);
}

/* ---- device.h ---- */

basin_status basin_backend_open_like(basin_backend **backend, const basin_backend *other,
                                     basin_error *error) {
    if (other->table->open_beside) return other->table->open_beside(backend, other, error);
    BASIN_TRY(open_named(backend, other->table->name, other->threads, error));
    **backend = *other; /* one of the same kind: table and settings */
    return BASIN_OK;
}
size_t basin_device_free_bytes(const basin_backend *backend) {
    return backend->table->free_bytes ? backend->table->free_bytes(backend) : SIZE_MAX;
}

basin_status basin_backend_open_eager(basin_backend **backend, const basin_compute *compute,
                                      basin_error *error) {
    if (compute && compute->backend && strcmp(compute->backend, "cuda") == 0)
        return basin_backend_open_cuda(backend, false, error);
    return basin_backend_open(backend, compute, error);
}

/* The operations' names: small letters for pointwise ones, capitals for calls; which are slow. */

static const struct {
    const char *name;
    bool slow;
    const char *ref, *cuda; /* the kernels' names */
} ops[BASIN_OP_COUNT] = {
#define FAST false
#define SLOW true
#define LEAF(name, text) {text, false, "none", "none"},
#define POINTWISE(name, text, cost) {text, cost, "pointwise", "pointwise"},
#define CALL(name, rule, ref, cpu, workspace, cuda, ...) {#name, false, #ref, #cuda},
#include "engine/backend/ops.inc"
};

const char *basin_op_name(basin_op op) { return ops[op].name; }
bool basin_op_is_hosts(basin_op op) {
    return strcmp(ops[op].ref, "none") != 0 && strcmp(ops[op].cuda, "none") == 0;
}
bool basin_op_is_slow(basin_op op) { return op < BASIN_OP_COUNT && ops[op].slow; }
