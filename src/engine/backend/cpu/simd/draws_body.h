/* Random draws for the instruction set of the including file, which defines DRAW_NORMAL and
 * DRAW_UNIFORM and is compiled without fused multiply-adds: the numbers of basin/random.h. */
#include "engine/backend/cpu/simd/simd.h"
#include "engine/core/philox.h"

void DRAW_NORMAL(float *out, uint64_t seed, uint64_t stream, uint64_t first, size_t count) {
    basin_philox_fill(out, NULL, basin_philox_normals, seed, stream, first, count);
}

void DRAW_UNIFORM(float *out, uint64_t seed, uint64_t stream, uint64_t first, size_t count) {
    basin_philox_fill(out, NULL, basin_philox_uniforms, seed, stream, first, count);
}
