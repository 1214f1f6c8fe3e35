/* Operations of the caller's own on backends that compute later and so cannot call a function of
 * the host: they compile the source that comes with it. */
#ifndef BASIN_BACKEND_OWN_H
#define BASIN_BACKEND_OWN_H

#include "backend/op.h"
#include "basin/backend.h"

#define BASIN_OWN_EXTENSION "own"

typedef struct basin_own_table {
    /* Whether the source compiles; an error names the operation and what the compiler says. */
    basin_status (*check)(basin_backend *backend, const basin_own_code *code, basin_error *error);
} basin_own_table;

/* NULL for a backend that compiles none. */
const basin_own_table *basin_backend_own(const basin_backend *backend);

#endif
