/* Energy attention over all pairs: bfloat16 operands. See attention/dense.h. */
#include "engine/backend/cuda/attention/dense.h"

BASIN_DENSE_DEFINE(bf16, basin_mma_bf16)
