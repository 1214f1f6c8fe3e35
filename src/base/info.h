/* What the engine says about a backend and this machine, as values. */
#ifndef BASIN_BASE_INFO_H
#define BASIN_BASE_INFO_H

#include "basin/backend.h"
#include "basin/machine.h"

static inline basin_backend_info basin_backend_info_of(const basin_backend *backend) {
    basin_backend_info info = {.size = sizeof info};
    basin_backend_get_info(&info, backend);
    return info;
}

static inline basin_machine_info basin_machine_info_now(void) {
    basin_machine_info info = {.size = sizeof info};
    basin_machine_get_info(&info);
    return info;
}

#endif
