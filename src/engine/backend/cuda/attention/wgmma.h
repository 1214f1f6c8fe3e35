/* Products of a warpgroup (wgmma, sm_90a) for tables of bfloat16 or half in shared memory, 64 wide:
 * rows of 128 bytes one after the other from a multiple of 1,024 bytes on, the 16-byte pieces of
 * row r lying at (piece ^ r % 8), which is the hardware's 128-byte swizzle. The same bytes serve
 * either way: summed over the columns (scores) or over the rows (weighted sums of rows).
 *
 * As in attention/mma.h, with g = lane / 4 and t = lane % 4, a thread of warp w holds of each 64 x
 * 8 of a result rows 16 w + g and 16 w + g + 8, columns 2t and 2t + 1; results as they are,
 * rounded, are the left operand of the next product.
 *
 * Products are queued: fence before the first one after registers were written, close after the
 * last, and wait before results are read. */
#ifndef BASIN_BACKEND_CUDA_ATTENTION_WGMMA_H
#define BASIN_BACKEND_CUDA_ATTENTION_WGMMA_H

#include <type_traits>

#include "engine/backend/cuda/attention/dense.h"
#include "engine/backend/cuda/attention/mma.h"

BASIN_DEVICE void basin_wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
BASIN_DEVICE void basin_wgmma_close() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/* Waits until at most PENDING of the closed groups are unfinished. */
template <int PENDING> BASIN_DEVICE void basin_wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}
/* Keeps the compiler from moving uses of a result before the wait. */
template <int N> BASIN_DEVICE void basin_wgmma_pin(float (&x)[N]) {
    BASIN_UNROLL (i, N) asm volatile("" : "+f"(x[i])::"memory");
}

/* A table's descriptor: its address, 1,024 bytes from 8 rows to the next, the swizzle. In units of
 * 16 bytes, so that one adds 8 for a row, 2 for 16 columns. */
BASIN_DEVICE uint64_t basin_wgmma_table(const void *table) {
    return (uint64_t)(basin_shared_address(table) & 0x3ffff) >> 4 | (uint64_t)64 << 16 |
           (uint64_t)64 << 32 | (uint64_t)1 << 62;
}

/* Results of a product, "+f" or "=f" as `how` says, and how the instruction names them. */
#define BASIN_F4(how, d, i) how(d[i]), how(d[i + 1]), how(d[i + 2]), how(d[i + 3])
#define BASIN_F8(how, d, i) BASIN_F4(how, d, i), BASIN_F4(how, d, i + 4)
#define BASIN_F16(how, d) BASIN_F8(how, d, 0), BASIN_F8(how, d, 8)
#define BASIN_F32(how, d) BASIN_F16(how, d), BASIN_F8(how, d, 16), BASIN_F8(how, d, 24)
#define BASIN_F40(how, d) BASIN_F32(how, d), BASIN_F8(how, d, 32)
#define BASIN_F48(how, d) BASIN_F40(how, d), BASIN_F8(how, d, 40)
#define BASIN_F56(how, d) BASIN_F48(how, d), BASIN_F8(how, d, 48)
#define BASIN_R16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define BASIN_R32                                                                                  \
    BASIN_R16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define BASIN_R40 BASIN_R32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define BASIN_R48 BASIN_R40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define BASIN_R56 BASIN_R48 ", %48, %49, %50, %51, %52, %53, %54, %55"

/* `results` (+)= left right, numbers of `type`, the columns of the left side being summed over; add
 * "0": without what the results were, of which the compiler then need not keep anything ("=f"). */
#define BASIN_WGMMA(type, columns, names, left, right, swapped, add, results, ...)                 \
    asm volatile("{.reg .pred p; setp.ne.b32 p, " add ", 0;"                                       \
                 "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" names   \
                 "}, " left ", " right ", p, 1, 1, " swapped ";}"                                  \
                 : results                                                                         \
                 : __VA_ARGS__)

/* The two kinds of numbers. */
struct basin_wgmma_bf16 {};
struct basin_wgmma_half {};

/* r [64, N] (+)= x [64, 16] y^T [16, N], both in tables. */
template <typename T, bool ADD, int HALF>
BASIN_DEVICE void basin_wgmma_scores(float (&r)[HALF], uint64_t x, uint64_t y) {
    static_assert(HALF == 16 || HALF == 32 || HALF == 40 || HALF == 48 || HALF == 56,
                  "a known width");
    constexpr bool NARROW = std::is_same<T, basin_wgmma_bf16>::value;
#define BASIN_SCORES(half, columns, left, right)                                                   \
    if constexpr (HALF == half && ADD && NARROW)                                                   \
        BASIN_WGMMA("bf16", columns, BASIN_R##half, left, right, "0, 0", "1",                      \
                    BASIN_F##half("+f", r), "l"(x), "l"(y));                                       \
    if constexpr (HALF == half && !ADD && NARROW)                                                  \
        BASIN_WGMMA("bf16", columns, BASIN_R##half, left, right, "0, 0", "0",                      \
                    BASIN_F##half("=f", r), "l"(x), "l"(y));                                       \
    if constexpr (HALF == half && ADD && !NARROW)                                                  \
        BASIN_WGMMA("f16", columns, BASIN_R##half, left, right, "0, 0", "1",                       \
                    BASIN_F##half("+f", r), "l"(x), "l"(y));                                       \
    if constexpr (HALF == half && !ADD && !NARROW)                                                 \
    BASIN_WGMMA("f16", columns, BASIN_R##half, left, right, "0, 0", "0", BASIN_F##half("=f", r),   \
                "l"(x), "l"(y))
    BASIN_SCORES(16, "32", "%16", "%17");
    BASIN_SCORES(32, "64", "%32", "%33");
    BASIN_SCORES(40, "80", "%40", "%41");
    BASIN_SCORES(48, "96", "%48", "%49");
    BASIN_SCORES(56, "112", "%56", "%57");
#undef BASIN_SCORES
}

/* sum [64, 64] (+)= weights [64, 16] y [16, 64]: 16 rows of a table, weighed. */
template <typename T, bool ADD>
BASIN_DEVICE void basin_wgmma_rows(float (&sum)[32], const uint32_t (&weight)[4], uint64_t y) {
    constexpr bool NARROW = std::is_same<T, basin_wgmma_bf16>::value;
#define BASIN_ROWS(type, add, how)                                                                 \
    BASIN_WGMMA(type, "64", BASIN_R32, "{%32, %33, %34, %35}", "%36", "1", add,                    \
                BASIN_F32(how, sum), "r"(weight[0]), "r"(weight[1]), "r"(weight[2]),               \
                "r"(weight[3]), "l"(y))
    if constexpr (ADD && NARROW) BASIN_ROWS("bf16", "1", "+f");
    if constexpr (!ADD && NARROW) BASIN_ROWS("bf16", "0", "=f");
    if constexpr (ADD && !NARROW) BASIN_ROWS("f16", "1", "+f");
    if constexpr (!ADD && !NARROW) BASIN_ROWS("f16", "0", "=f");
#undef BASIN_ROWS
}

/* r [64, N] (+)= rows `first` .. + 63 of x times rows `from` .. + N - 1 of y, 64 columns summed. */
template <typename T, bool ADD, int HALF>
BASIN_DEVICE void basin_wgmma_multiply(float (&r)[HALF], const char *x, int first, const char *y,
                                       int from) {
    uint64_t own = basin_wgmma_table(x) + (uint64_t)first * 8;
    uint64_t other = basin_wgmma_table(y) + (uint64_t)from * 8;
    basin_wgmma_scores<T, ADD>(r, own, other);
#pragma unroll
    for (int step = 1; step < 4; step++)
        basin_wgmma_scores<T, true>(r, own + step * 2, other + step * 2);
}

/* sum [64, 64] (+)= weights [64, 16 STEPS] times rows of y from `from` on. */
template <typename T, bool ADD, int STEPS>
BASIN_DEVICE void basin_wgmma_sum(float (&sum)[32], const uint32_t (&w)[STEPS][4], const char *y,
                                  int from) {
    uint64_t other = basin_wgmma_table(y) + (uint64_t)from * 8;
    basin_wgmma_rows<T, ADD>(sum, w[0], other);
#pragma unroll
    for (int step = 1; step < STEPS; step++)
        basin_wgmma_rows<T, true>(sum, w[step], other + step * 128);
}

/* Rows first .. first + 63 of a head on their way into a table, by a warpgroup: zeros beyond its
 * rows and columns, or where there is none (x is NULL). */
BASIN_DEVICE void basin_wgmma_fetch(char *table, const basin_bf16 *x, int64_t step, int first,
                                    int rows, int width, const void *somewhere) {
    int row = (int)threadIdx.x % 128 / 8, piece = (int)threadIdx.x % 8;
    char *to = table + row * 128 + (piece ^ row % 8) * 16;
    const basin_bf16 *from = x + (int64_t)(first + row) * step + piece * 8;
    bool wide = x && piece * 8 < width;
    BASIN_UNROLL (i, 4) {
        bool there = wide && first + row + i * 16 < rows;
        basin_copy_async(to + i * 2048, there ? (const void *)(from + i * 16 * step) : somewhere,
                         there ? 16 : 0);
    }
}

/* ---- barriers in shared memory, by address; the parity is that of passes before ---- */

BASIN_DEVICE void barrier_new(uint32_t barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}
BASIN_DEVICE void barrier_wait(uint32_t barrier, uint32_t parity) {
    asm volatile("{.reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}
BASIN_DEVICE void barrier_arrive(uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

#endif
