/* The matrix product C = A B of the fast backend, float32 or from bfloat16 factors, with what
 * follows it fused in.
 *
 * C is cut into tiles that stay in registers while k runs; a finished tile goes to C or to the
 * caller's epilogue while it is still in the nearest cache. Every element is summed in the same
 * order whatever the number of threads, the place of the element and the packing of B, so results
 * repeat bit for bit. Nothing here allocates: the caller brings the workspace. */
#ifndef BASIN_BACKEND_GEMM_H
#define BASIN_BACKEND_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes a finished piece of C: tile[r * tile_row + c], r < rows, c < cols, is C[batch][row + r][col
 * + c]; once per element, from several threads at once. */
typedef void (*basin_gemm_epilogue)(void *context, const float *tile, int64_t tile_row,
                                    int64_t batch, int64_t row, int64_t col, int64_t rows,
                                    int64_t cols);

typedef enum basin_gemm_precision {
    BASIN_GEMM_F32,  /* float32 multiply-adds */
    BASIN_GEMM_BF16, /* factors that are bfloat16; only where basin_cpu_bf16 */
} basin_gemm_precision;

/* C[i] = A[i] B[i] for i < batch; strides count elements. Any strides are right; it is fast where
 * one of a_row, a_col is 1 and one of b_row, b_col is 1 (plain or transposed). */
typedef struct basin_gemm {
    int64_t batch, m, n, k;
    const void *a; /* [batch, m, k] float, or bfloat16 (uint16_t) in precision BF16 */
    int64_t a_row, a_col, a_batch;
    const void *b; /* [batch, k, n] likewise */
    int64_t b_row, b_col, b_batch;
    /* NULL, or B as basin_gemm_pack left it for the same precision; one for all the batch. */
    const float *b_packed;
    /* [batch, m, n]: where C goes. With an epilogue it is not touched and may be NULL, but naming
     * the place that the epilogue reads or writes lets it be fetched into the cache in time. */
    float *c;
    int64_t c_row, c_batch;
    bool c_narrow;   /* that place holds bfloat16; with an epilogue only */
    bool accumulate; /* C += A B; without an epilogue only */
    basin_gemm_epilogue epilogue;
    void *context;
    basin_gemm_precision precision;
} basin_gemm;

/* Bytes of workspace, which must be 64-byte aligned, for basin_gemm_run with as many threads. */
size_t basin_gemm_workspace(const basin_gemm *gemm, int threads);
void basin_gemm_run(const basin_gemm *gemm, int threads, void *workspace);

/* B laid out as the product reads it, for weights that are used many times. `packed` is 64-byte
 * aligned and good only within this process: the layout follows the processor. */
size_t basin_gemm_packed_size(int64_t k, int64_t n, basin_gemm_precision precision); /* bytes */
void basin_gemm_pack(float *packed, const void *b, int64_t b_row, int64_t b_col, int64_t k,
                     int64_t n, basin_gemm_precision precision, int threads);

/* C = A B, or C += A B, in float32 and in the calling thread, as basin_gemm_run with one. */
size_t basin_gemm_serial_workspace(int64_t m, int64_t n, int64_t k);
void basin_gemm_serial(float *c, int64_t c_row, const float *a, int64_t a_row, int64_t a_col,
                       const float *b, int64_t b_row, int64_t b_col, int64_t m, int64_t n,
                       int64_t k, bool accumulate, void *workspace);

#endif
