/* The inner loops for the baseline processor: SSE2 on x86-64, NEON on arm64; see simd.h. */
#define SIMD_TABLE basin_simd_portable
#define SIMD_NORMAL basin_random_fill_normal
#define SIMD_UNIFORM basin_random_fill_uniform
#include "basin/random.h"
#include "engine/core/philox.h"

#include "engine/backend/cpu/simd/simd_body.h"
