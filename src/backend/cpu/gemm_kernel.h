/* What an instruction set provides for the matrix product: the tile that lives in registers. */
#ifndef BASIN_BACKEND_CPU_GEMM_KERNEL_H
#define BASIN_BACKEND_CPU_GEMM_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

/* What will be wanted soon, to be fetched into the caches meanwhile: the rows of C that this tile
 * will end in, and a piece of the panel of B that comes next. Never read, so any address will do.
 */
typedef struct basin_gemm_ahead {
    const float *c;
    int64_t c_row;
    const float *b;
} basin_gemm_ahead;

typedef struct basin_gemm_kernel {
    int mr, nr;
    /* C = A B or C += A B for one tile, rows <= mr and cols <= nr of it wanted. Each element is
     * one chain of fused multiply-adds in the order of k, begun at 0. */
    void (*tile)(float *c, int64_t c_row, const float *a /* [k, mr] */,
                 const float *b /* [k, nr] */, int64_t k, int rows, int cols, bool accumulate,
                 const basin_gemm_ahead *ahead);
    /* panel[p * width + l] = x[l * lane + p] for l < width, which is mr or nr, and p < k. */
    void (*turn)(float *panel, const float *x, int64_t lane, int width, int64_t k);
} basin_gemm_kernel;

extern const basin_gemm_kernel basin_gemm_kernel_portable;
extern const basin_gemm_kernel basin_gemm_kernel_neon;
extern const basin_gemm_kernel basin_gemm_kernel_avx2;
extern const basin_gemm_kernel basin_gemm_kernel_avx512;

/* `turn` for processors whose vectors hold four floats. */
void basin_gemm_turn(float *panel, const float *x, int64_t lane, int width, int64_t k);

/* Writes a full tile's wanted part to C, for kernels that compute tiles whole. */
static inline void basin_gemm_tile_copy(float *c, int64_t c_row, const float *tile /* [rows, nr] */,
                                        int64_t nr, int rows, int cols, bool accumulate) {
    for (int r = 0; r < rows; r++) {
        float *to = c + r * c_row;
        const float *from = tile + r * nr;
        if (accumulate)
            for (int j = 0; j < cols; j++) to[j] += from[j];
        else
            for (int j = 0; j < cols; j++) to[j] = from[j];
    }
}

#endif
