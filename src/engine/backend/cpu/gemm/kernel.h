/* What an instruction set provides for the matrix product: the tile that lives in registers. */
#ifndef BASIN_BACKEND_CPU_GEMM_KERNEL_H
#define BASIN_BACKEND_CPU_GEMM_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/backend/gemm.h"

/* To be fetched into the caches meanwhile: the rows that this tile will end in, c_row bytes apart
 * (NULL: none), and a piece of B's next panel. It lies in memory that is there: fetches of pages
 * that are not cost a walk through the page table each. */
typedef struct basin_gemm_ahead {
    const char *c;
    int64_t c_row;
    const float *b;
    int b_pieces;  /* into which that panel is cut: 8, fewer where it has fewer tiles; 0: 8 */
    bool c_narrow; /* the tile ends in bfloat16 numbers, half as wide */
} basin_gemm_ahead;

enum { BASIN_GEMM_WIDE = 4 }; /* panels of B that tile_wide takes at once, at most */

/* A is packed into panels of mr rows, B into panels of nr columns; a panel holds all of its lanes
 * (rows or columns) for one step of k, or one unit of steps, after the other. */
typedef struct basin_gemm_kernel basin_gemm_kernel;
struct basin_gemm_kernel {
    int mr, nr;
    int unit;       /* a panel's k is filled up with zeros to a multiple of this */
    int halves;     /* 16-bit words that a number takes in a panel: 2 for float32 */
    int64_t a_rows; /* rows of A at a time, at most; 0: as gemm.c has them */
    int64_t direct_k;
    int direct_rows;
    bool direct_shared; /* only where threads share a product, and would each pack rows of A */
    int64_t a_block;    /* floats of A to be packed at a time: about a third of the L2 cache */
    /* C = A B or C += A B for a tile, rows <= mr, cols <= nr requested; sums have one order, by k.
     */
    void (*tile)(float *c, int64_t c_row, const float *a /* panel */, const float *b /* panel */,
                 int64_t k, int rows, int cols, bool accumulate, const basin_gemm_ahead *ahead);
    /* The same with A in place, rows a_row apart: for k a multiple of `unit` and at most `direct_k`
     * (0: any), rows a multiple of `direct_rows`. NULL: A is always packed. */
    void (*tile_direct)(float *c, int64_t c_row, const void *a, int64_t a_row, const float *b,
                        int64_t k, int rows, int cols, bool accumulate,
                        const basin_gemm_ahead *ahead);
    /* The same with A where it is, rows side by side and steps a_col apart; NULL: A is packed. */
    void (*tile_columns)(float *c, int64_t c_row, const void *a, int64_t a_col, const float *b,
                         int64_t k, int rows, int cols, bool accumulate,
                         const basin_gemm_ahead *ahead);
    /* C = A B for at most mr / BASIN_GEMM_WIDE rows, with A where it is, and 1, 2 or 4 panels of B,
     * `panel` floats apart, to [rows, panels nr]; the same sums. NULL: there is none. */
    void (*tile_wide)(float *c, const float *a, int64_t a_row, int64_t a_col, const float *b,
                      int64_t panel, int64_t k, int rows, int panels);
    /* Packs lanes x[l * lane + p * step], l < lanes, p < k, into panels, the last filled up with
     * zeros: columns of B if `right`, else rows of A; float, or bfloat16 (`halves` 1). */
    void (*pack)(const basin_gemm_kernel *kernel, bool right, float *panels, const void *x,
                 int64_t lane, int64_t step, int64_t lanes, int64_t k);
    /* For basin_gemm_panels_pack: panel[p * width + l] = x[l * lane + p], p < k, l < width. */
    void (*turn)(float *panel, const float *x, int64_t lane, int width, int64_t k);
    void (*begin)(void), (*end)(void); /* around the tiles of a thread, or NULL */
    /* Multiply-adds that stay in registers, of numbers from data; returns the number of operations.
     * NULL: tiles reach the same speed. */
    double (*peak)(float *data, int64_t rounds);
};

/* A table whose tiles are MR x NR, by `tile`; blocks of A have `kilofloats` * 1024 floats. */
#define BASIN_GEMM_KERNEL(unit_, halves_, kilofloats, pack_, ...)                                  \
    {                                                                                              \
        .mr = MR, .nr = NR, .unit = unit_, .halves = halves_, .a_block = (kilofloats)*1024,        \
        .tile = tile, .pack = pack_, __VA_ARGS__                                                   \
    }

extern const basin_gemm_kernel basin_gemm_kernel_portable;
extern const basin_gemm_kernel basin_gemm_kernel_neon;
extern const basin_gemm_kernel basin_gemm_kernel_avx2;
extern const basin_gemm_kernel basin_gemm_kernel_avx512;
/* For bfloat16 factors. */
extern const basin_gemm_kernel basin_gemm_kernel_narrow_amx;
extern const basin_gemm_kernel basin_gemm_kernel_narrow_avx512;
extern const basin_gemm_kernel basin_gemm_kernel_narrow_neon;

/* The one that this processor uses for a precision. */
const basin_gemm_kernel *basin_gemm_kernel_find(basin_gemm_precision precision);

/* `pack` for panels of float32. */
void basin_gemm_panels_pack(const basin_gemm_kernel *kernel, bool right, float *panels,
                            const void *x, int64_t lane, int64_t step, int64_t lanes, int64_t k);
/* `pack` for panels of bfloat16 that hold `unit` steps of each lane together. */
void basin_gemm_narrow_pack(const basin_gemm_kernel *kernel, bool right, float *panels,
                            const void *x, int64_t lane, int64_t step, int64_t lanes, int64_t k);
/* `turn` for processors whose vectors hold four floats. */
void basin_gemm_panel_turn(float *panel, const float *x, int64_t lane, int width, int64_t k);

/* Writes a full tile's requested part to C, for kernels that compute tiles whole. */
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

/* `tile` by a tile_fixed, which computes all columns of a constant number of rows. */
#define BASIN_GEMM_TILE                                                                            \
    static void tile(float *c, int64_t c_row, const float *a, const float *b, int64_t k, int rows, \
                     int cols, bool accumulate, const basin_gemm_ahead *ahead) {                   \
        if (cols == NR && rows == MR) {                                                            \
            tile_fixed(c, c_row, a, b, k, MR, accumulate, ahead);                                  \
            return;                                                                                \
        }                                                                                          \
        float whole[MR * NR];                                                                      \
        if (rows <= 4) /* one takes as long */                                                     \
            tile_fixed(whole, NR, a, b, k, 4, false, ahead);                                       \
        else                                                                                       \
            tile_fixed(whole, NR, a, b, k, MR, false, ahead);                                      \
        basin_gemm_tile_copy(c, c_row, whole, NR, rows, cols, accumulate);                         \
    }

/* Cases of a switch over the rows of a tile; ROWS is the includer's. */
/* clang-format off */
#define BASIN_GEMM_ROWS_7 ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6) ROWS(7)
#define BASIN_GEMM_ROWS_14 \
    BASIN_GEMM_ROWS_7 ROWS(8) ROWS(9) ROWS(10) ROWS(11) ROWS(12) ROWS(13) ROWS(14)
/* clang-format on */

#endif
