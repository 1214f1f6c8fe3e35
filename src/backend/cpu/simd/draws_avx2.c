/* Random draws for AVX2: the numbers of basin/random.h. */
#include "backend/cpu/simd/simd.h"
#include "base/philox_fill.h"

void basin_simd_normal_avx2(float *out, uint64_t seed, uint64_t stream, uint64_t first,
                            size_t count) {
    basin_philox_fill(out, NULL, basin_philox_normals, seed, stream, first, count);
}

void basin_simd_uniform_avx2(float *out, uint64_t seed, uint64_t stream, uint64_t first,
                             size_t count) {
    basin_philox_fill(out, NULL, basin_philox_uniforms, seed, stream, first, count);
}
