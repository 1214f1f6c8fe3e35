/* The life of what single operations run on. */
#include "eager/eager.h"

#include <stdlib.h>
#include <string.h>

basin_status basin_eager_open(basin_eager **eager, const char *backend, int threads,
                              basin_error *error) {
    *eager = NULL;
    basin_eager *made = calloc(1, sizeof *made);
    if (!made)
        return basin_fail(error, BASIN_NO_MEMORY, "backend %s: out of memory for its state",
                          backend);
    basin_status status = basin_backend_open_eager(&made->backend, backend, threads, error);
    if (status) {
        free(made);
        return status;
    }
    made->device = basin_backend_eager(made->backend) != NULL;
    *eager = made;
    return BASIN_OK;
}

void basin_eager_close(basin_eager *eager) {
    if (!eager) return;
    basin_backend_close(eager->backend);
    free(eager);
}

const char *basin_eager_backend(const basin_eager *eager) {
    return basin_backend_name(eager->backend);
}
