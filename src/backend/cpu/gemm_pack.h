/* Rearranges a strip of a matrix so that the product's innermost loop reads it in order. */
#ifndef BASIN_BACKEND_CPU_GEMM_PACK_H
#define BASIN_BACKEND_CPU_GEMM_PACK_H

#include <stdint.h>

/* panel[p * width + l] = x[l * lane + p * step] for l < lanes, and 0 for lanes <= l < width. */
void basin_gemm_pack_panel(float *panel /* [k, width] */, const float *x, int64_t lane,
                           int64_t step, int lanes, int width, int64_t k);

#endif
