/* The life of what single operations run on. */
#include "eager/eager.h"

#include <stdlib.h>

#include "base/try.h"

basin_status basin_eager_open(basin_eager **eager, const basin_compute *compute,
                              basin_error *error) {
    *eager = NULL;
    BASIN_FREE_AT_EXIT basin_eager *made = NULL;
    BASIN_TRY(BASIN_NEW(&made, 1, "a backend of single operations", error));
    BASIN_TRY(basin_backend_open_eager(&made->backend, compute, error));
    made->device = basin_backend_eager(made->backend) != NULL;
    *eager = made;
    made = NULL;
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
