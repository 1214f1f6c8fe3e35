/* Softmax attention with values over all pairs: bfloat16 operands. See attention/values_tiles.h. */
#include "engine/backend/cuda/attention/values_tiles.h"

BASIN_VALUES_DEFINE(bf16, basin_mma_bf16)
