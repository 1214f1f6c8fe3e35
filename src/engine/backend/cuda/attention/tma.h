/* Copies of boxes of a tensor into shared memory by the copy engine (TMA, sm_90). */
#ifndef BASIN_BACKEND_CUDA_ATTENTION_TMA_H
#define BASIN_BACKEND_CUDA_ATTENTION_TMA_H

#include <cuda.h>
#include <cudaTypedefs.h>

#include "engine/backend/cuda/attention/attention.h"

/* The thread arrives; the barrier also waits for `bytes` bytes of copies. */
BASIN_DEVICE void barrier_expect(uint32_t barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}
/* A box of a tensor of four axes from x, y, z, w on. */
BASIN_DEVICE void barrier_fetch(uint32_t to, const CUtensorMap *map, int x, int y, int z, int w,
                                uint32_t barrier) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier)
                 : "memory");
}

typedef PFN_cuTensorMapEncodeTiled_v12000 basin_encoder;

/* The driver's function that describes tensors to the copy engine; NULL where it has none. */
static inline basin_encoder basin_tma_encoder() {
    static const basin_encoder kept = [] {
        void *found = NULL;
        cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
        cudaError_t code = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
                                                            cudaEnableDefault, &result);
#else
        cudaError_t code =
            cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result);
#endif
        if (code != cudaSuccess) cudaGetLastError();
        bool good = code == cudaSuccess && result == cudaDriverEntryPointSuccess;
        return good ? (basin_encoder)found : NULL;
    }();
    return kept;
}

#endif
