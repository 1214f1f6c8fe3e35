/* Stores: named states in a backend's memory, and the copies in and out of it. */
#include "plan/store.h"
#include "plan/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

basin_status basin_store_new(basin_store **store, basin_backend *backend, basin_error *error) {
    *store = calloc(1, sizeof **store);
    if (!*store) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a store");
    (*store)->backend = backend;
    (*store)->changes = 1;
    return BASIN_OK;
}

void basin_store_free(basin_store *store) {
    if (!store) return;
    for (size_t i = 0; i < store->entries; i++) {
        store->backend->table->free(store->backend, store->entry[i].memory);
        free(store->entry[i].name);
    }
    store->backend->table->free(store->backend, store->arena);
    free(store->entry);
    free(store);
}

void basin_store_share_results(basin_store *store) { store->share = !store->backend->table->check; }
bool basin_store_shares_results(const basin_store *store) { return store->share; }

basin_status basin_store_reserve(basin_store *store, size_t bytes, basin_error *error) {
    const basin_backend_table *table = store->backend->table;
    if (store->arena && bytes <= store->arena_bytes) return BASIN_OK;
    table->free(store->backend, store->arena);
    store->last = NULL;
    store->arena = table->alloc(store->backend, bytes);
    store->arena_bytes = store->arena ? bytes : 0;
    if (store->arena) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "plans need %.4g GiB of memory for their results",
                      (double)bytes / 0x1p30);
}

basin_rests basin_store_take_rests(basin_store *store) {
    basin_rests rests = store->rests;
    store->rests = (basin_rests){0};
    return rests;
}

int basin_store_count(const basin_store *store) { return (int)store->entries; }
const char *basin_store_name(const basin_store *store, int i) { return store->entry[i].name; }
basin_shape basin_store_shape(const basin_store *store, int i) { return store->entry[i].shape; }

static int find(const basin_store *store, const char *name) {
    for (size_t i = 0; i < store->entries; i++)
        if (strcmp(store->entry[i].name, name) == 0) return (int)i;
    return -1;
}

static basin_status create(basin_store *store, const char *name, basin_shape shape,
                           basin_error *error) {
    const basin_backend_table *table = store->backend->table;
    size_t bytes;
    int64_t count = basin_shape_count(shape);
    basin_store_entry entry = {.shape = shape};
    bool ok = count >= 0 && basin_size_multiply(&bytes, (size_t)count, table->real_size) &&
              basin_array_reserve((void **)&store->entry, &store->capacity, store->entries + 1,
                                  sizeof entry);
    if (ok) entry.name = basin_string_copy(name);
    if (entry.name) entry.memory = table->alloc(store->backend, bytes);
    if (!entry.memory) {
        free(entry.name);
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the state '%s'", name);
    }
    table->fill_zero(store->backend, entry.memory, bytes);
    store->entry[store->entries++] = entry;
    return BASIN_OK;
}

basin_status basin_store_demand(int *entry, basin_store *store, const char *name, basin_shape shape,
                                basin_error *error) {
    char a[BASIN_SHAPE_TEXT], b[BASIN_SHAPE_TEXT];
    *entry = find(store, name);
    if (*entry < 0) {
        *entry = (int)store->entries;
        return create(store, name, shape, error);
    }
    basin_shape found = store->entry[*entry].shape;
    if (basin_shape_equal(found, shape)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_SHAPE, "the state '%s' has shape %s, wanted %s", name,
                      basin_shape_print(a, found), basin_shape_print(b, shape));
}

/* The host type of device memory. */
static basin_dtype host_dtype(const basin_backend *backend, basin_kind kind) {
    return kind == BASIN_REAL ? backend->table->real : BASIN_I32;
}

basin_status basin_device_write(basin_backend *backend, void *device, basin_kind kind,
                                const basin_tensor *from, basin_error *error) {
    const basin_backend_table *table = backend->table;
    basin_dtype dtype = host_dtype(backend, kind);
    size_t bytes = (size_t)basin_shape_count(from->shape) * basin_dtype_size(dtype);
    if (from->dtype == dtype) {
        table->copy_in(backend, device, from->data, bytes);
        return BASIN_OK;
    }
    basin_tensor converted;
    basin_status status = basin_tensor_new(&converted, dtype, from->shape, error);
    if (!status) status = basin_tensor_convert(&converted, from, error);
    if (!status) table->copy_in(backend, device, converted.data, bytes);
    basin_tensor_free(&converted);
    return status;
}

basin_status basin_device_read(basin_backend *backend, basin_tensor *to, const void *device,
                               basin_kind kind, basin_error *error) {
    const basin_backend_table *table = backend->table;
    basin_dtype dtype = host_dtype(backend, kind);
    size_t bytes = (size_t)basin_shape_count(to->shape) * basin_dtype_size(dtype);
    if (to->dtype == dtype) {
        table->copy_out(backend, to->data, device, bytes);
        return table->wait(backend, error);
    }
    basin_tensor raw;
    basin_status status = basin_tensor_new(&raw, dtype, to->shape, error);
    if (!status) {
        table->copy_out(backend, raw.data, device, bytes);
        status = table->wait(backend, error);
    }
    if (!status) status = basin_tensor_convert(to, &raw, error);
    basin_tensor_free(&raw);
    return status;
}

basin_status basin_store_write(basin_store *store, const char *name, const basin_tensor *tensor,
                               basin_error *error) {
    int i;
    basin_status status = basin_store_demand(&i, store, name, tensor->shape, error);
    if (status) return status;
    store->changes++;
    return basin_device_write(store->backend, store->entry[i].memory, BASIN_REAL, tensor, error);
}

void *basin_store_memory(basin_store *store, const char *name, bool change) {
    int i = find(store, name);
    if (i >= 0 && change) store->changes++;
    return i < 0 ? NULL : store->entry[i].memory;
}

basin_status basin_store_read(basin_store *store, const char *name, basin_tensor *tensor,
                              basin_error *error) {
    int i = find(store, name);
    *tensor = (basin_tensor){0};
    if (i < 0) return basin_fail(error, BASIN_BAD_VALUE, "there is no state '%s'", name);
    basin_status status =
        basin_tensor_new(tensor, store->backend->table->real, store->entry[i].shape, error);
    if (!status)
        status =
            basin_device_read(store->backend, tensor, store->entry[i].memory, BASIN_REAL, error);
    if (status) basin_tensor_free(tensor);
    return status;
}
