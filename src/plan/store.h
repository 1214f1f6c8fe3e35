/* The inside of a store: states by name in a backend's memory. */
#ifndef BASIN_PLAN_STORE_H
#define BASIN_PLAN_STORE_H

#include "backend/kernel.h"
#include "basin/plan.h"

typedef struct basin_store_entry {
    char *name;
    basin_shape shape;
    void *memory;
} basin_store_entry;

struct basin_store {
    basin_backend *backend;
    basin_store_entry *entry;
    size_t entries, capacity;
    uint64_t changes; /* of states so far, by plans and by the host, counted from 1 */
    bool share;       /* results of plans lie in one arena: */
    void *arena;      /* it moves when it grows, and then has lost what it held */
    size_t arena_bytes;
    const void *last;  /* the plan that ran last in it */
    basin_rests rests; /* of all plans, since they were taken */
};

/* Makes the shared arena at least so large. */
basin_status basin_store_reserve(basin_store *store, size_t bytes, basin_error *error);

/* Finds a state, or creates it filled with zeros. Its memory never moves. */
basin_status basin_store_demand(int *entry, basin_store *store, const char *name, basin_shape shape,
                                basin_error *error);

/* Copies between host tensors and device memory that holds `count` elements of the backend's REAL
 * type (or int32_t for INDEX), converting where the types differ. */
basin_status basin_device_write(basin_backend *backend, void *device, basin_kind kind,
                                const basin_tensor *from, basin_error *error);
basin_status basin_device_read(basin_backend *backend, basin_tensor *to, const void *device,
                               basin_kind kind, basin_error *error);

#endif
