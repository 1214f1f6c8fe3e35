/* The inner loops of energy attention for AVX2 with FMA. */
#include "engine/backend/cpu/attention/kernels_body.h"

const basin_attention_kernels basin_attention_kernels_avx2 = ATTENTION_KERNELS;
