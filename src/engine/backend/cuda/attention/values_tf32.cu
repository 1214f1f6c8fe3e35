/* Softmax attention with values over all pairs, float rounded to tf32: values_tiles.h. */
#include "engine/backend/cuda/attention/values_tiles.h"

BASIN_VALUES_DEFINE(tf32, basin_mma_tf32)
