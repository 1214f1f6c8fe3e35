/* The 4 x 8 tile of the matrix product in the compiler's own vectors, for any processor. */
#include <string.h>

#include "backend/cpu/gemm/kernel.h"

enum { MR = 4, NR = 8 };

typedef float vector __attribute__((vector_size(16)));

static inline vector load(const float *from) {
    vector value;
    memcpy(&value, from, sizeof value);
    return value;
}

static void tile(float *c, int64_t c_row, const float *a, const float *b, int64_t k, int rows,
                 int cols, bool accumulate, const basin_gemm_ahead *ahead) {
    (void)ahead;
    vector sum[MR][2] = {{{0}}};
    for (int64_t p = 0; p < k; p++, a += MR, b += NR) {
        vector b0 = load(b), b1 = load(b + 4);
#pragma GCC unroll 4
        for (int r = 0; r < MR; r++) {
            sum[r][0] += a[r] * b0;
            sum[r][1] += a[r] * b1;
        }
    }
    float whole[MR * NR];
    memcpy(whole, sum, sizeof whole);
    basin_gemm_tile_copy(c, c_row, whole, NR, rows, cols, accumulate);
}

const basin_gemm_kernel basin_gemm_kernel_portable = {.mr = MR,
                                                      .nr = NR,
                                                      .unit = 1,
                                                      .halves = 2,
                                                      .a_block = 48 * 1024,
                                                      .tile = tile,
                                                      .pack = basin_gemm_panels_pack,
                                                      .turn = basin_gemm_panel_turn};
