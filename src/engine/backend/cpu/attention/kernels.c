/* Inner loops of energy attention for the baseline (SSE2, NEON), and the choice of tables. */
#include "engine/backend/cpu/attention/kernels_body.h"
#include "engine/backend/device.h"

static const basin_attention_kernels baseline = ATTENTION_KERNELS;

const basin_attention_kernels *basin_attention_kernels_find(void) {
    switch (basin_cpu_isa()) {
#if defined(__x86_64__)
    case BASIN_ISA_AVX2: return &basin_attention_kernels_avx2;
    case BASIN_ISA_AVX512: return &basin_attention_kernels_avx512;
#endif
    default: return &baseline;
    }
}
