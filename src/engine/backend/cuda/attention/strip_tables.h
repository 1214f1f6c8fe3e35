/* One head of one batch entry in shared memory, and its results. See strip_sm90a.cu. */
#ifndef BASIN_BACKEND_CUDA_ATTENTION_STRIP_TABLES_H
#define BASIN_BACKEND_CUDA_ATTENTION_STRIP_TABLES_H

#include "engine/backend/cuda/attention/dense_rows.h"
#include "engine/backend/cuda/attention/wgmma.h"

enum {
    ROWS = 208,                        /* of a table; the others of a strip */
    WIDTH = 64,                        /* columns of a table */
    SUMS = WIDTH / 2,                  /* of a thread: two rows, every fourth pair of columns */
    TABLE_BYTES = ROWS * 128,          /* a multiple of 1,024 */
    BEHIND_BYTES = (256 - ROWS) * 128, /* the last 64 own rows reach beyond the last table */
    MIN_NODES = ROWS - 15,             /* only the last 16 columns are looked at for the end */
    STRIPS_END = ROWS / 64 * 64,       /* rows after the whole strips: the rest, */
    REST = 8,                          /* where they are no more than these */
};

/* What the key side needs of each query, and what warps exchange; after the last table. */
struct strip_queries {
    float level[ROWS]; /* P |w| in units of w is 2^(z' - level), 0 where there is no query */
    float w[ROWS];     /* at first w, then its sign */
    float shift[ROWS]; /* reverse: - beta mean of c under P, as gs has its units */
    union {
        int exponent[5][4];     /* floats: of the largest q, k, a, b, w, as each warp saw them */
        float rest[4][REST][4]; /* bfloat16: of the rest, sums over each warp's others */
    };
    union {
        float maximum[4][REST];        /* of the rest: the largest score each warp saw, */
        float4 sum[3][WIDTH / 16][32]; /* then what lanes of warps 1 to 3 have of its results */
    };
};
static_assert(sizeof(strip_queries) >= BEHIND_BYTES, "whole strips stay within shared memory");

enum { Q, K, A, B, W };

/* Floats: a table holds x / unit. Products r are then in units of q k, c in units of a k = b q, gs
 * in units of c / q k, so that P a and gs q have the same; weights are lifted from 1 to 2^LIFT,
 * small ones being subnormal halves. */
template <typename T> struct strip_block {
    enum { WIDE = sizeof(T) == 4, LIFT = WIDE ? 10 : 0 };
    typedef typename std::conditional<WIDE, basin_wgmma_half, basin_wgmma_bf16>::type number;
    char *q, *k, *a, *b; /* tables in shared memory */
    strip_queries *known;
    int64_t entry;
    int head, warp, g, t;
    float unit_q, unit_k, unit_a, unit_b, unit_c, unit_w, per_w;
    float sign;        /* of all w, where they agree */
    bool mixed;        /* where not */
    float beta, steep; /* steep: beta in units of r */
    float scale;       /* steep / log 2, never 0, so that a left-out pair weighs nothing */
    float left_out;    /* the score of a left-out pair */
};

/* ---- bfloat16 ---- */

BASIN_DEVICE void copy_async(uint32_t shared, const void *global, int from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
                 "r"(from)
                 : "memory");
}

/* One head's rows of bfloat16; zeros beyond `nodes` rows, `width` columns, where x is NULL. */
BASIN_DEVICE void fetch(const strip_block<basin_bf16> &s, char *table, const basin_bf16 *x,
                        int nodes, int64_t step, const basin_strip_launch &p) {
    int row = (int)threadIdx.x / 8, piece = (int)threadIdx.x % 8;
    uint32_t to = basin_shared_address(table) + (uint32_t)(row * 128 + ((piece ^ row % 8) * 16));
    const basin_bf16 *from =
        x + (s.entry * nodes + row) * step + (int64_t)s.head * p.width + piece * 8;
    bool wide = x && piece * 8 < p.width;
    BASIN_UNROLL (i, ROWS / 16) {
        bool there = wide && row + i * 16 < nodes;
        copy_async(to + (uint32_t)i * 2048, there ? (const void *)(from + i * 16 * step) : p.q,
                   there ? 16 : 0);
    }
}

BASIN_DEVICE void fetch_all(strip_block<basin_bf16> &s, const basin_strip_launch &p, float,
                            bool reverse) {
    fetch(s, s.q, (const basin_bf16 *)p.q, p.queries, p.step.q, p);
    fetch(s, s.k, (const basin_bf16 *)p.k, p.keys, p.step.k, p);
    if (reverse) {
        fetch(s, s.a, (const basin_bf16 *)p.a, p.queries, p.step.a, p);
        fetch(s, s.b, (const basin_bf16 *)p.b, p.keys, p.step.b, p);
    }
    s.unit_q = s.unit_k = s.unit_a = s.unit_b = s.unit_c = s.unit_w = s.per_w = 1;
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* ---- floats ---- */

/* A thread's share of a table: 8 columns of every 16th row. */
struct strip_share {
    float4 x[ROWS / 16][2];
};

BASIN_DEVICE uint32_t two_halves(float low, float high) {
    uint32_t both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

/* The exponent to divide by, so that the warp's largest is in 2^10 .. 2^11. Zeros: none. */
BASIN_DEVICE int exponent_of(float largest) {
    int e = (__float_as_int(basin_warp_max(largest)) >> 23) - 127 - 10;
    return max(-60, min(60, e));
}

BASIN_DEVICE float power_of_two(int e) {
    return __int_as_float((max(-126, min(127, e)) + 127) << 23);
}

BASIN_DEVICE void take(strip_share &v, const strip_block<float> &s, const float *x, int nodes,
                       int64_t step, int which, const basin_strip_launch &p) {
    int row = (int)threadIdx.x / 8, column = (int)threadIdx.x % 8 * 8;
    const float *from = x + (s.entry * nodes + row) * step + (int64_t)s.head * p.width + column;
    float maximum = 0;
    BASIN_UNROLL (i, ROWS / 16) {
        bool there = x && column < p.width && row + i * 16 < nodes;
        BASIN_UNROLL (j, 2)
            v.x[i][j] =
                there ? *(const float4 *)(from + i * 16 * step + j * 4) : make_float4(0, 0, 0, 0);
    }
    BASIN_UNROLL (i, ROWS / 8) {
        float4 y = v.x[i / 2][i % 2];
        maximum =
            fmaxf(fmaxf(maximum, fmaxf(fabsf(y.x), fabsf(y.y))), fmaxf(fabsf(y.z), fabsf(y.w)));
    }
    int e = exponent_of(maximum);
    if (threadIdx.x % 32 == 0) s.known->exponent[which][s.warp] = e;
}

BASIN_DEVICE void place(char *table, const strip_share &v, float factor) {
    int row = (int)threadIdx.x / 8, piece = (int)threadIdx.x % 8;
    char *to = table + row * 128 + (piece ^ row % 8) * 16;
    BASIN_UNROLL (i, ROWS / 16) {
        const float4 *x = v.x[i];
        *(uint4 *)(to + i * 2048) = make_uint4(two_halves(x[0].x * factor, x[0].y * factor),
                                               two_halves(x[0].z * factor, x[0].w * factor),
                                               two_halves(x[1].x * factor, x[1].y * factor),
                                               two_halves(x[1].z * factor, x[1].w * factor));
    }
}

BASIN_DEVICE int exponent_known(const strip_block<float> &s, int which) {
    const int *e = s.known->exponent[which];
    return max(max(e[0], e[1]), max(e[2], e[3]));
}

/* Tables of halves; c = a k + b q has the larger unit of both. `w`: this thread's largest. */
BASIN_DEVICE void fetch_all(strip_block<float> &s, const basin_strip_launch &p, float w,
                            bool reverse) {
    strip_share x, y;
    int e = exponent_of(w), c = 0;
    if (threadIdx.x % 32 == 0) s.known->exponent[W][s.warp] = e;
    take(x, s, (const float *)p.q, p.queries, p.step.q, Q, p);
    __syncthreads();
    int q = exponent_known(s, Q);
    place(s.q, x, power_of_two(-q));
    take(x, s, (const float *)p.k, p.keys, p.step.k, K, p);
    __syncthreads();
    int k = exponent_known(s, K);
    place(s.k, x, power_of_two(-k));
    s.unit_q = power_of_two(q), s.unit_k = power_of_two(k);
    e = exponent_known(s, W);
    s.unit_w = power_of_two(e), s.per_w = power_of_two(-e);
    if (reverse) {
        take(x, s, (const float *)p.a, p.queries, p.step.a, A, p);
        take(y, s, (const float *)p.b, p.keys, p.step.b, B, p);
        __syncthreads();
        c = max(exponent_known(s, A) + k, exponent_known(s, B) + q);
        place(s.a, x, power_of_two(k - c));
        place(s.b, y, power_of_two(q - c));
    }
    s.unit_c = power_of_two(c), s.unit_a = power_of_two(c - k), s.unit_b = power_of_two(c - q);
}

/* ---- results ---- */

/* Rows row + g and row + g + 8 of the sums, times a factor each. */
BASIN_DEVICE void write(const strip_block<float> &s, const basin_strip_launch &, void *out,
                        const float (&sum)[SUMS], const float factor[2], int row, int nodes,
                        int64_t step, int width) {
    BASIN_UNROLL (i, 2) {
        int node = row + s.g + i * 8;
        float *to =
            (float *)out + (s.entry * nodes + node) * step + (int64_t)s.head * width + 2 * s.t;
        BASIN_UNROLL (j, WIDTH / 8)
            if (node < nodes && j * 8 < width)
                *(float2 *)(to + j * 8) =
                    make_float2(sum[j * 4 + i * 2] * factor[i], sum[j * 4 + i * 2 + 1] * factor[i]);
    }
}

/* Two numbers in the byte format of the launch. */
BASIN_DEVICE uint32_t bytes_of(const basin_strip_launch &p, float first, float second) {
    return p.five ? basin_two_bytes<true>(first, second) : basin_two_bytes<false>(first, second);
}

/* As below, of bytes: four lanes write 16 in a row. */
BASIN_DEVICE void write_bytes(const strip_block<basin_bf16> &s, const basin_strip_launch &p,
                              void *out, const float (&sum)[SUMS], const float factor[2], int row,
                              int nodes, int64_t step, int width) {
    bool odd = s.t & 1;
    int column = (s.t & 1) * 8 + (s.t & 2) * 2;
    BASIN_UNROLL (i, 2) {
        int node = row + s.g + i * 8;
        float scaled = factor[i] * p.scale;
        uint8_t *to =
            (uint8_t *)out + (s.entry * nodes + node) * step + (int64_t)s.head * width + column;
#pragma unroll
        for (int j = 0; j < WIDTH / 8; j += 2) {
            const float *x = &sum[j * 4 + i * 2];
            uint32_t low = bytes_of(p, x[0] * scaled, x[1] * scaled);
            uint32_t high = bytes_of(p, x[4] * scaled, x[5] * scaled);
            uint32_t other = __shfl_xor_sync(0xffffffffu, odd ? low : high, 1);
            if (node < nodes && j * 8 + column < width)
                *(uint32_t *)(to + j * 8) = odd ? other | high << 16 : low | other << 16;
        }
    }
}

/* Neighbours exchange pairs, so that four lanes write 32 bytes in a row. */
BASIN_DEVICE void write(const strip_block<basin_bf16> &s, const basin_strip_launch &p, void *out,
                        const float (&sum)[SUMS], const float factor[2], int row, int nodes,
                        int64_t step, int width) {
    if (p.bytes) {
        write_bytes(s, p, out, sum, factor, row, nodes, step, width);
        return;
    }
    bool odd = s.t & 1;
    int column = (s.t & 1) * 8 + (s.t & 2) * 2;
    BASIN_UNROLL (i, 2) {
        int node = row + s.g + i * 8;
        basin_bf16 *to =
            (basin_bf16 *)out + (s.entry * nodes + node) * step + (int64_t)s.head * width + column;
#pragma unroll
        for (int j = 0; j < WIDTH / 8; j += 2) {
            const float *x = &sum[j * 4 + i * 2];
            uint32_t low = basin_mma_bf16::two(x[0] * factor[i], x[1] * factor[i]);
            uint32_t high = basin_mma_bf16::two(x[4] * factor[i], x[5] * factor[i]);
            uint32_t other = __shfl_xor_sync(0xffffffffu, odd ? low : high, 1);
            if (node < nodes && j * 8 + column < width)
                *(uint2 *)(to + j * 8) = odd ? make_uint2(other, high) : make_uint2(low, other);
        }
    }
}

#endif
