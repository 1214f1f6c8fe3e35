/* The inner loops of energy attention for AVX-512. */
#include "engine/backend/cpu/attention/kernels_body.h"

const basin_attention_kernels basin_attention_kernels_avx512 = ATTENTION_KERNELS;
