/* Softmax attention with values over all pairs: floats, three tf32 products for one. See
 * attention/values_tiles.h. */
#include "backend/cuda/attention/values_tiles.h"

BASIN_VALUES_DEFINE(f32, basin_mma_f32)
