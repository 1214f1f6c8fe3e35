/* The inner loops for the baseline processor: SSE2 on x86-64, NEON on arm64; see simd.h. */
#define SIMD_TABLE basin_simd_portable
#include "backend/cpu/simd/simd_body.h"
