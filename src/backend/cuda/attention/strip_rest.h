/* The rest of a picture's tokens in bfloat16, up to 8 behind the last whole strip of 64: a strip of
 * them would take as long as one of 64. The four warps share the others among them, 64 or 48 each,
 * multiply by small products (mma.sync) and tell each other the sums of a row; warp 0 writes the
 * results. See attention/strip_sm90a.cu; results of these products lie as those of strips do, of
 * which a thread has row g here. Halves gain nothing by it and keep their strips. */
#ifndef BASIN_BACKEND_CUDA_ATTENTION_STRIP_REST_H
#define BASIN_BACKEND_CUDA_ATTENTION_STRIP_REST_H

#include "backend/cuda/attention/strip_rows.h"

typedef strip_block<basin_bf16> rest_block;

enum { SHARE = 16 }; /* of a thread in its warp's others: [4 i + 2 j + e] is 16 i + 8 j + 2 t + e */

static __device__ __forceinline__ int lane_of(const rest_block &s) { return s.g * 4 + s.t; }

/* The warp's others, 16s of them from here on: three, and warp 0 has a fourth. */
static __device__ __forceinline__ int others_of(const rest_block &s) {
    return s.warp ? 16 + 48 * s.warp : 0;
}
static __device__ __forceinline__ bool has_others(const rest_block &s, int sixteen) {
    return sixteen < 3 || s.warp == 0;
}

/* A thread's other number i. */
static __device__ __forceinline__ int other_at(const rest_block &s, int i) {
    return others_of(s) + i / 4 * 16 + i / 2 % 2 * 8 + 2 * s.t + i % 2;
}

/* The address of a piece of 16 bytes; of piece (p ^ q) of the same row, and of the one 16 rows on.
 */
static __device__ __forceinline__ uint32_t piece_at(const char *table, int row, int piece) {
    return basin_shared_address(table) + (uint32_t)(row * 128 + ((piece ^ row % 8) << 4));
}
static __device__ __forceinline__ uint32_t across(uint32_t at, int q) {
    return at ^ (uint32_t)q << 4;
}
enum { DOWN = 16 * 128 };

/* The rows of a table as left operands, of 16 columns each; rows 8 to 15 of them are zeros. */
struct rest_rows {
    basin_mma_bf16::left_t v[WIDTH / 16];
};
static __device__ __forceinline__ rest_rows own_rows(const char *table, const rest_block &s) {
    int lane = lane_of(s);
    uint32_t at = piece_at(table, STRIPS_END + lane % 16, lane / 16);
    rest_rows x;
#pragma unroll
    for (int i = 0; i < WIDTH / 16; i++) {
        uint32_t *v = x.v[i].v;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                     : "r"(across(at, i * 2))
                     : "memory");
    }
    return x;
}

/* Scores of the warp's others as products leave them: of each, rows g and g + 8, which is none. */
struct rest_scores {
    float v[SHARE / 2][4];
};

/* r += x y^T, of the warp's rows of y. */
static __device__ __forceinline__ void add_scores(rest_scores &r, const rest_rows &x, const char *y,
                                                  const rest_block &s) {
    int lane = lane_of(s);
    uint32_t at = piece_at(y, others_of(s) + lane / 16 * 8 + lane % 8, lane / 8 % 2);
#pragma unroll
    for (int k = 0; k < WIDTH / 16; k++)
#pragma unroll
        for (int i = 0; i < SHARE / 4; i++) {
            basin_mma_bf16::right_t b[2];
            if (!has_others(s, i)) continue;
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(b[0].v[0]), "=r"(b[0].v[1]), "=r"(b[1].v[0]), "=r"(b[1].v[1])
                         : "r"(across(at, k * 2) + (uint32_t)(i * DOWN))
                         : "memory");
            basin_mma_bf16::add(r.v[2 * i], x.v[k], b[0]);
            basin_mma_bf16::add(r.v[2 * i + 1], x.v[k], b[1]);
        }
}
static __device__ __forceinline__ void take_scores(float (&r)[SHARE], const rest_scores &x) {
#pragma unroll
    for (int i = 0; i < SHARE; i++) r[i] = x.v[i / 2][i % 2];
}

/* sum += p y, of the warp's rows of y. */
static __device__ __forceinline__ void add_sums(float (&sum)[WIDTH / 8][4], const float (&p)[SHARE],
                                                const char *y, const rest_block &s) {
    int lane = lane_of(s);
    uint32_t at = piece_at(y, others_of(s) + lane % 16, lane / 16);
#pragma unroll
    for (int i = 0; i < SHARE / 4; i++) {
        if (!has_others(s, i)) continue;
        basin_mma_bf16::left_t a = {{basin_mma_bf16::two(p[4 * i], p[4 * i + 1]), 0,
                                     basin_mma_bf16::two(p[4 * i + 2], p[4 * i + 3]), 0}};
#pragma unroll
        for (int n = 0; n < WIDTH / 8; n += 2) {
            basin_mma_bf16::right_t b[2];
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(b[0].v[0]), "=r"(b[0].v[1]), "=r"(b[1].v[0]), "=r"(b[1].v[1])
                         : "r"(across(at, n) + (uint32_t)(i * DOWN))
                         : "memory");
            basin_mma_bf16::add(sum[n], a, b[0]);
            basin_mma_bf16::add(sum[n + 1], a, b[1]);
        }
    }
}

/* Others that are not there, not this warp's or the node itself. */
static __device__ __forceinline__ void leave_out_rest(float (&r)[SHARE], const rest_block &s,
                                                      int nodes, bool self) {
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        int other = other_at(s, i);
        bool out = !has_others(s, i / 4) || other >= nodes || (self && other == STRIPS_END + s.g);
        if (out) r[i] = s.left_out;
    }
}

static __device__ __forceinline__ void write_pair(const basin_strip_launch &p, void *out,
                                                  int64_t at, float first, float second) {
    if (p.bytes)
        *(uint16_t *)((uint8_t *)out + at) = (uint16_t)bytes_of(p, first, second);
    else
        *(uint32_t *)((basin_bf16 *)out + at) = basin_mma_bf16::two(first, second);
}

/* The sums of all warps, times a factor, to the nodes' places. */
static __device__ __forceinline__ void write_rest(const rest_block &s, const basin_strip_launch &p,
                                                  const float (&sum)[WIDTH / 8][4], void *out,
                                                  float factor, int nodes, int64_t step,
                                                  int width) {
    int lane = lane_of(s), node = STRIPS_END + s.g;
    int64_t first = (s.entry * nodes + node) * step + (int64_t)s.head * width + 2 * s.t;
    if (p.bytes) factor *= p.scale;
    if (s.warp > 0)
#pragma unroll
        for (int i = 0; i < WIDTH / 16; i++)
            s.known->sum[s.warp - 1][i][lane] =
                make_float4(sum[2 * i][0], sum[2 * i][1], sum[2 * i + 1][0], sum[2 * i + 1][1]);
    __syncthreads();
    if (s.warp > 0 || node >= nodes) return;
#pragma unroll
    for (int i = 0; i < WIDTH / 16; i++) {
        float4 x = make_float4(sum[2 * i][0], sum[2 * i][1], sum[2 * i + 1][0], sum[2 * i + 1][1]);
#pragma unroll
        for (int k = 0; k < 3; k++) {
            float4 y = s.known->sum[k][i][lane];
            x.x += y.x, x.y += y.y, x.z += y.z, x.w += y.w;
        }
        if (16 * i < width) write_pair(p, out, first + 16 * i, x.x * factor, x.y * factor);
        if (16 * i + 8 < width) write_pair(p, out, first + 16 * i + 8, x.z * factor, x.w * factor);
    }
}

#endif
