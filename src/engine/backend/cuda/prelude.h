/* What precedes pointwise programs compiled at run time: arguments, loads, stores, functions. */
#ifndef BASIN_BACKEND_CUDA_PRELUDE_H
#define BASIN_BACKEND_CUDA_PRELUDE_H

#include <stdint.h>

/* As `basin_args` below declares them. */
struct basin_cuda_arguments {
    const void *in[16];
    void *out[6];
    long long vectors;
    uint32_t dim[8], multiplier[8], shift[8]; /* basin_divisor, an axis each */
    long long stride[16][8];
};

/* As `basin_many`: one program over several sets of operands, 32 KiB of arguments at most. */
enum { BASIN_CUDA_MANY = 24 };
struct basin_cuda_many {
    uint32_t first[BASIN_CUDA_MANY + 2]; /* the first block of each; even, for what follows */
    basin_cuda_arguments p[BASIN_CUDA_MANY];
};

static const char BASIN_CUDA_PRELUDE[] = R"code(
struct basin_args {
    const void *in[16];
    void *out[6];
    long long vectors;
    unsigned dim[8], multiplier[8], shift[8];
    long long stride[16][8];
};
struct basin_many {
    unsigned first[26];
    basin_args p[24];
};
template <typename T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) pack {
    T v[N];
};
template <int V> __device__ pack<float, V> load_float(const void *p, long long i) {
    return *(const pack<float, V> *)((const float *)p + i);
}
template <int V> __device__ pack<float, V> load_narrow(const void *p, long long i) {
    pack<unsigned short, V> raw = *(const pack<unsigned short, V> *)((const unsigned short *)p + i);
    pack<float, V> out;
#pragma unroll
    for (int j = 0; j < V; j++) out.v[j] = __uint_as_float((unsigned)raw.v[j] << 16);
    return out;
}
/* Whether draws i .. of stream of[1], from of[0] on, are above of[2] (engine/core/philox.h); i + of[0] is a
 * multiple of 4 unless V is 1. */
template <int V>
__device__ pack<float, V> draw(const void *seed, const long long *of, long long i) {
    pack<float, V> out;
    unsigned long long from = (unsigned long long)(i + of[0]);
#pragma unroll
    for (int n = 0; n < (V + 3) / 4; n++) {
        unsigned long long call = from / 4 + n;
        unsigned c0 = (unsigned)call, c1 = (unsigned)(call >> 32), c2 = (unsigned)of[1], c3 = 0;
        unsigned k0 = ((const unsigned *)seed)[0], k1 = ((const unsigned *)seed)[1];
#pragma unroll
        for (int round = 0; round < 10; round++) {
            unsigned long long a = 0xD2511F53ull * c0, b = 0xCD9E8D57ull * c2;
            c0 = (unsigned)(b >> 32) ^ c1 ^ k0, c1 = (unsigned)b;
            c2 = (unsigned)(a >> 32) ^ c3 ^ k1, c3 = (unsigned)a;
            k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
        }
        unsigned word[4] = {c0, c1, c2, c3}, limit = (unsigned)of[2];
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (V > 1 || j == (int)(from % 4)) out.v[V > 1 ? 4 * n + j : 0] = word[j] > limit;
    }
    return out;
}
template <int V> __device__ void store_float(void *p, long long i, const pack<float, V> &x) {
    *(pack<float, V> *)((float *)p + i) = x;
}
template <int V> __device__ void store_narrow(void *p, long long i, const pack<float, V> &x) {
    pack<unsigned short, V> raw;
#pragma unroll
    for (int j = 0; j < V; j++)
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(raw.v[j]) : "f"(x.v[j]));
    *(pack<unsigned short, V> *)((unsigned short *)p + i) = raw;
}
__device__ __forceinline__ unsigned divide(unsigned n, unsigned d, unsigned m, unsigned s) {
    return d == 1 ? n : __umulhi(n, m) >> s;
}
__device__ __forceinline__ float sigmoid(float x) {
    float e = expf(-fabsf(x));
    return x >= 0 ? 1.0f / (1.0f + e) : e / (1.0f + e);
}
__device__ __forceinline__ float softplus(float x) {
    return (x > 0 ? x : 0.0f) + log1pf(expf(-fabsf(x)));
}
__device__ __forceinline__ float lncosh(float x) {
    float a = fabsf(x);
    if (!(a < 1.0f)) return a - 0.693147180559945309f + log1pf(expf(-2.0f * a));
    double s = sinh((double)a);
    return (float)(0.5 * log1p(s * s));
}
__device__ __forceinline__ float root(float x) {
    return x == -__int_as_float(0x7f800000) ? -x : sqrtf(x + 0.0f);
}
__device__ __forceinline__ float power(float x, double to) { return (float)pow((double)x, to); }
template <int N> __device__ __forceinline__ double whole_power(float x) {
    double y = 1.0, base = (double)x;
#pragma unroll
    for (int n = N; n > 0; n >>= 1, base *= base)
        if (n & 1) y *= base;
    return y;
}
__device__ __forceinline__ float larger(float a, float b) { return a > b || a != a ? a : b; }
__device__ __forceinline__ float smaller(float a, float b) { return a < b || a != a ? a : b; }
)code";

#endif
