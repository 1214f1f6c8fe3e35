/* Energy attention over all pairs: tf32 products of floats. See attention/dense.h. */
#include "engine/backend/cuda/attention/dense.h"

BASIN_DENSE_DEFINE(tf32, basin_mma_tf32)
