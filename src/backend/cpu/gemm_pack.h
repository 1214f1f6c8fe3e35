/* Rearranges a strip of a matrix so that the product's innermost loop reads it in order. */
#ifndef BASIN_BACKEND_CPU_GEMM_PACK_H
#define BASIN_BACKEND_CPU_GEMM_PACK_H

#include <stdint.h>

#include "backend/cpu/gemm_kernel.h"

/* Cuts `lanes` lanes of k steps into panels [k, width] that follow each other:
 * panel[i][p * width + l] = x[(i * width + l) * lane + p * step], and 0 beyond the last lane.
 * `width` is the kernel's mr or nr. */
void basin_gemm_pack_panels(const basin_gemm_kernel *kernel, float *panels, const float *x,
                            int64_t lane, int64_t step, int64_t lanes, int width, int64_t k);

#endif
