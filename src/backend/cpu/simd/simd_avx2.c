/* The inner loops for AVX2 and FMA; see simd.h. */
#define SIMD_TABLE basin_simd_avx2
#include "backend/cpu/simd/simd_body.h"
