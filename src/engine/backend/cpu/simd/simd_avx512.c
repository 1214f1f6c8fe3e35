/* The inner loops for AVX-512; see simd.h. */
#define SIMD_TABLE basin_simd_avx512
#define SIMD_NORMAL basin_simd_normal_avx512
#define SIMD_UNIFORM basin_simd_uniform_avx512
#include "engine/backend/cpu/simd/simd_body.h"
