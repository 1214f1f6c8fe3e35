/* The choice among the tables of simd.h. */
#include "engine/backend/cpu/simd/simd.h"

#include "engine/backend/device.h"

const basin_simd *basin_simd_select(void) {
    switch (basin_cpu_isa()) {
#if defined(__x86_64__)
    case BASIN_ISA_AVX2: return &basin_simd_avx2;
    case BASIN_ISA_AVX512: return &basin_simd_avx512;
#endif
    default: return &basin_simd_portable; /* on arm64 its vectors of four are NEON */
    }
}
