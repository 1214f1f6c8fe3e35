/* Softmax attention with values over all pairs, float by three tf32 products: values_tiles.h. */
#include "engine/backend/cuda/attention/values_tiles.h"

BASIN_VALUES_DEFINE(f32, basin_mma_f32)
