/* The inner loops for AVX2 and FMA; see simd.h. */
#define SIMD_TABLE basin_simd_avx2
#define SIMD_NORMAL basin_simd_normal_avx2
#define SIMD_UNIFORM basin_simd_uniform_avx2
#include "engine/backend/cpu/simd/simd_body.h"
