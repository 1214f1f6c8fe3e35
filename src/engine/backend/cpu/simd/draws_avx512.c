/* Random draws for AVX-512; see simd.h. */
#define DRAW_NORMAL basin_simd_normal_avx512
#define DRAW_UNIFORM basin_simd_uniform_avx512
#include "engine/backend/cpu/simd/draws_body.h"
