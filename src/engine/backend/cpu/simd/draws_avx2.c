/* Random draws for AVX2; see simd.h. */
#define DRAW_NORMAL basin_simd_normal_avx2
#define DRAW_UNIFORM basin_simd_uniform_avx2
#include "engine/backend/cpu/simd/draws_body.h"
