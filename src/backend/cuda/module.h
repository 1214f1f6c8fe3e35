/* The entry to the CUDA backend. It is a module of its own (libbasin_cuda.so), so that Basin itself
 * needs no CUDA library: load.c opens it when the backend is asked for. */
#ifndef BASIN_BACKEND_CUDA_MODULE_H
#define BASIN_BACKEND_CUDA_MODULE_H

#include "backend/kernel.h"

#define BASIN_CUDA_MODULE "libbasin_cuda.so"
#define BASIN_CUDA_OPEN "basin_cuda_module_open"
#define BASIN_CUDA_OPEN_EAGER "basin_cuda_module_open_eager" /* backend/device.h */

/* Both sides pass the version they were built from; the tables of another one may differ. */
typedef basin_status basin_cuda_opener(basin_backend **backend, const char *version,
                                       basin_error *error);

#endif
