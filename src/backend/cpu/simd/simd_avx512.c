/* The inner loops for AVX-512; see simd.h. */
#define SIMD_TABLE basin_simd_avx512
#include "backend/cpu/simd/simd_body.h"
