/* Processes that have joined: what backend.cu and collective.cu alone know of the state. */
#ifndef BASIN_BACKEND_CUDA_COLLECTIVE_H
#define BASIN_BACKEND_CUDA_COLLECTIVE_H

#include "backend/cuda/inside.h"
extern "C" {
#include "backend/device.h"
}

struct basin_cuda_nccl; /* the library, and those who have joined */

/* Every basin_cuda is one of these. */
struct basin_cuda_state : basin_cuda {
    basin_cuda_nccl *nccl; /* NULL before processes join */
};

extern const basin_collective_table basin_cuda_collectives;
void basin_cuda_nccl_free(basin_cuda *cuda);

#endif
