/* Products of small tiles on tensor cores (mma.sync, sm_80 and later), in three precisions behind
 * one interface. A tile lies in shared memory, [rows, width] with `ld` elements a row.
 *
 * With g = lane / 4 and t = lane % 4, a result fragment c[4] of 16 x 8 holds (g, 2t), (g, 2t + 1),
 * (g + 8, 2t), (g + 8, 2t + 1). Two such neighbours (bf16), or one (tf32, whose summation index is
 * permuted to fit), are the left operand of the next product as they are.
 *
 *     left(tile, row, k)          rows row .. row + 15, columns k .. k + K - 1
 *     right(b, tile, row, k)      b[0], b[1]: the transposes of rows row .. row + 7, + 8 .. + 15
 *     right_rows(b, tile, row, n) rows row .. row + K - 1 as the summation index, columns n .. + 7
 *                                 and n + 8 .. + 15
 *     again(c)                    results as the left operand: K columns of them */
#ifndef BASIN_BACKEND_CUDA_ATTENTION_MMA_H
#define BASIN_BACKEND_CUDA_ATTENTION_MMA_H

#include "engine/backend/cuda/attention/attention.h"

BASIN_DEVICE uint32_t basin_shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* bfloat16 operands, float sums: m16n8k16. */
struct basin_mma_bf16 {
    typedef basin_bf16 T;
    /* Rows of ld = width + PAD lie in different banks. EXACT: as good as products of floats. */
    enum { K = 16, PAD = 8, UNROLL = 4, EXACT = 0 };
    struct left_t {
        uint32_t v[4];
    };
    struct right_t {
        uint32_t v[2];
    };

    BASIN_DEVICE left_t left(const T *tile, int ld, int row, int k) {
        int lane = threadIdx.x % 32;
        left_t a;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a.v[0]), "=r"(a.v[1]), "=r"(a.v[2]), "=r"(a.v[3])
                     : "r"(basin_shared_address(tile + (row + lane % 16) * ld + k + lane / 16 * 8))
                     : "memory");
        return a;
    }

    BASIN_DEVICE void right(right_t b[2], const T *tile, int ld, int row, int k) {
        int lane = threadIdx.x % 32;
        int at = (row + lane / 16 * 8 + lane % 8) * ld + k + lane / 8 % 2 * 8;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(b[0].v[0]), "=r"(b[0].v[1]), "=r"(b[1].v[0]), "=r"(b[1].v[1])
                     : "r"(basin_shared_address(tile + at))
                     : "memory");
    }

    BASIN_DEVICE void right_rows(right_t b[2], const T *tile, int ld, int row, int n) {
        int lane = threadIdx.x % 32;
        int at = (row + lane % 16) * ld + n + lane / 16 * 8;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(b[0].v[0]), "=r"(b[0].v[1]), "=r"(b[1].v[0]), "=r"(b[1].v[1])
                     : "r"(basin_shared_address(tile + at))
                     : "memory");
    }

    BASIN_DEVICE uint32_t two(float low, float high) {
        uint32_t both;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
        return both;
    }

    BASIN_DEVICE left_t again(const float (*c)[4]) {
        return {{two(c[0][0], c[0][1]), two(c[0][2], c[0][3]), two(c[1][0], c[1][1]),
                 two(c[1][2], c[1][3])}};
    }

    BASIN_DEVICE void add(float c[4], const left_t &a, const right_t &b) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(b.v[0]),
                       "r"(b.v[1]));
    }
};

BASIN_DEVICE uint32_t basin_tf32(float x) {
    uint32_t rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
    return rounded;
}

BASIN_DEVICE void basin_mma_tf32_add(float c[4], const uint32_t a[4], const uint32_t b[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* A volatile load: several products read the same numbers, and keeping them would spill. */
BASIN_DEVICE float basin_shared_float(const float *p) {
    float x;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(basin_shared_address(p)) : "memory");
    return x;
}

/* Where the elements of m16n8k8's operands lie. `number` makes an operand of floats. */
template <typename number> struct basin_mma_k8 {
    typedef float T;
    enum { K = 8, PAD = 4, UNROLL = 2, EXACT = number::EXACT };
    typedef typename number::left_t left_t;
    typedef typename number::right_t right_t;

    BASIN_DEVICE left_t left(const T *tile, int ld, int row, int k) {
        int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        const T *at = tile + (row + g) * ld + k + t;
        return number::left(basin_shared_float(at), basin_shared_float(at + 8 * ld),
                            basin_shared_float(at + 4), basin_shared_float(at + 8 * ld + 4));
    }

    BASIN_DEVICE void right(right_t b[2], const T *tile, int ld, int row, int k) {
        int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        const T *at = tile + (row + g) * ld + k + t;
        b[0] = number::right(basin_shared_float(at), basin_shared_float(at + 4));
        at += 8 * ld;
        b[1] = number::right(basin_shared_float(at), basin_shared_float(at + 4));
    }

    /* Summation index t stands for row 2t, t + 4 for row 2t + 1, as in again(). */
    BASIN_DEVICE void right_rows(right_t b[2], const T *tile, int ld, int row, int n) {
        int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        const T *at = tile + (row + 2 * t) * ld + n + g;
        b[0] = number::right(basin_shared_float(at), basin_shared_float(at + ld));
        b[1] = number::right(basin_shared_float(at + 8), basin_shared_float(at + ld + 8));
    }

    BASIN_DEVICE left_t again(const float (*c)[4]) {
        return number::left(c[0][0], c[0][2], c[0][1], c[0][3]);
    }

    BASIN_DEVICE void add(float c[4], const left_t &a, const right_t &b) { number::add(c, a, b); }
};

/* One tf32 product: a relative error of 2^-11 in each operand. */
struct basin_number_tf32 {
    enum { EXACT = 0 };
    struct left_t {
        uint32_t v[4];
    };
    struct right_t {
        uint32_t v[2];
    };
    BASIN_DEVICE left_t left(float a, float b, float c, float d) {
        return {{basin_tf32(a), basin_tf32(b), basin_tf32(c), basin_tf32(d)}};
    }
    BASIN_DEVICE right_t right(float a, float b) { return {{basin_tf32(a), basin_tf32(b)}}; }
    BASIN_DEVICE void add(float c[4], const left_t &a, const right_t &b) {
        basin_mma_tf32_add(c, a.v, b.v);
    }
};

/* Three tf32 products for one of floats, each split into a high and a low part: about 2^-21. */
struct basin_number_f32 {
    enum { EXACT = 1 };
    struct left_t {
        uint32_t high[4], low[4];
    };
    struct right_t {
        uint32_t high[2], low[2];
    };
    BASIN_DEVICE void split(uint32_t &high, uint32_t &low, float x) {
        high = basin_tf32(x);
        low = basin_tf32(x - __uint_as_float(high));
    }
    BASIN_DEVICE left_t left(float a, float b, float c, float d) {
        left_t x;
        split(x.high[0], x.low[0], a), split(x.high[1], x.low[1], b);
        split(x.high[2], x.low[2], c), split(x.high[3], x.low[3], d);
        return x;
    }
    BASIN_DEVICE right_t right(float a, float b) {
        right_t x;
        split(x.high[0], x.low[0], a), split(x.high[1], x.low[1], b);
        return x;
    }
    BASIN_DEVICE void add(float c[4], const left_t &a, const right_t &b) {
        basin_mma_tf32_add(c, a.low, b.high);
        basin_mma_tf32_add(c, a.high, b.low);
        basin_mma_tf32_add(c, a.high, b.high);
    }
};

typedef basin_mma_k8<basin_number_tf32> basin_mma_tf32;
typedef basin_mma_k8<basin_number_f32> basin_mma_f32;

#endif
