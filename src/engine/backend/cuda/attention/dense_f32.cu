/* Energy attention over all pairs: floats, three tf32 products for one. See attention/dense.h. */
#include "engine/backend/cuda/attention/dense.h"

BASIN_DENSE_DEFINE(f32, basin_mma_f32)
