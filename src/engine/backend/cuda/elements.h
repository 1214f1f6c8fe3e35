/* Elements in memory, float or bfloat16, read and written as floats. Which of the two is known when
 * a kernel is launched and the same for all threads, so the branch costs nothing beside the memory
 * access. And division by numbers that are known at launch, by multiplication. */
#ifndef BASIN_BACKEND_CUDA_ELEMENTS_H
#define BASIN_BACKEND_CUDA_ELEMENTS_H

#include "engine/backend/cuda/device.h"

struct basin_source {
    const void *data;
    bool narrow;
};
struct basin_sink {
    void *data;
    bool narrow;
    bool bytes, five; /* five: e5m2, else e4m3; of the numbers times the scale */
    float scale;
};

static inline basin_sink basin_cuda_sink_of(void *data, const basin_operand *operand) {
    return {data, operand->kind == BASIN_NARROW, basin_kind_is_byte(operand->kind),
            operand->kind == BASIN_E5M2, (float)operand->scale};
}

static inline basin_source basin_cuda_source(const basin_cuda_frame *frame, int i) {
    return {frame->in[i], frame->call->in[i].kind == BASIN_NARROW};
}
static inline basin_sink basin_cuda_sink(const basin_cuda_frame *frame, int i) {
    return basin_cuda_sink_of(frame->out[i], &frame->call->out[i]);
}

/* V elements from element i on; i must be a multiple of V. */
template <int V> BASIN_DEVICE void basin_read(float (&x)[V], basin_source from, int64_t i) {
    if (from.narrow) {
        const basin_pack<basin_bf16, V> pack =
            *(const basin_pack<basin_bf16, V> *)((const basin_bf16 *)from.data + i);
        BASIN_UNROLL (j, V) x[j] = __bfloat162float(pack.v[j]);
    } else {
        const basin_pack<float, V> pack =
            *(const basin_pack<float, V> *)((const float *)from.data + i);
        BASIN_UNROLL (j, V) x[j] = pack.v[j];
    }
}

template <int V> BASIN_DEVICE void basin_write(basin_sink to, int64_t i, const float (&x)[V]) {
    if (to.narrow) {
        basin_pack<basin_bf16, V> pack;
        BASIN_UNROLL (j, V) pack.v[j] = __float2bfloat16_rn(x[j]);
        *(basin_pack<basin_bf16, V> *)((basin_bf16 *)to.data + i) = pack;
    } else {
        basin_pack<float, V> pack;
        BASIN_UNROLL (j, V) pack.v[j] = x[j];
        *(basin_pack<float, V> *)((float *)to.data + i) = pack;
    }
}

/* The same where numbers may be stored as bytes. */
template <int V> BASIN_DEVICE void basin_write_any(basin_sink to, int64_t i, const float (&x)[V]) {
    if (!to.bytes) {
        basin_write<V>(to, i, x);
        return;
    }
    basin_pack<uint8_t, V> pack;
#pragma unroll
    for (int j = 0; j < V; j += 2) {
        float first = x[j] * to.scale, second = j + 1 < V ? x[j + 1 < V ? j + 1 : j] * to.scale : 0;
        uint32_t two =
            to.five ? basin_two_bytes<true>(first, second) : basin_two_bytes<false>(first, second);
        pack.v[j] = (uint8_t)two;
        if (j + 1 < V) pack.v[j + 1 < V ? j + 1 : j] = (uint8_t)(two >> 8);
    }
    *(basin_pack<uint8_t, V> *)((uint8_t *)to.data + i) = pack;
}

BASIN_DEVICE float basin_read_one(basin_source from, int64_t i) {
    return from.narrow ? __bfloat162float(((const basin_bf16 *)from.data)[i])
                       : ((const float *)from.data)[i];
}
BASIN_DEVICE void basin_write_one(basin_sink to, int64_t i, float x) {
    if (to.narrow)
        ((basin_bf16 *)to.data)[i] = __float2bfloat16_rn(x);
    else
        ((float *)to.data)[i] = x;
}

/* Whether this block is the last of `count` that come here, in all threads of it; what the others
 * have written before is there then. `arrived` is 0 before and after. */
BASIN_DEVICE bool basin_is_last_block(unsigned *arrived, unsigned count) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(arrived, 1) == count - 1;
        if (last) *arrived = 0;
    }
    __syncthreads();
    if (last) __threadfence();
    return last;
}

/* n / d for n < 2^31 is umulhi(n, multiplier) >> shift: with s = ceil(log2 d) the multiplier is
 * ceil(2^(31 + s) / d), so its error times n stays below 2^(31 + s). d = 1 is left alone. */
struct basin_divisor {
    uint32_t d, multiplier, shift;
};

static inline basin_divisor basin_divisor_of(int64_t d) {
    basin_divisor out = {(uint32_t)d, 0, 0};
    if (d <= 1 || d >= (int64_t)1 << 31) return out;
    uint32_t s = 0;
    while (((int64_t)1 << s) < d) s++;
    out.multiplier = (uint32_t)((((uint64_t)1 << (31 + s)) + (uint64_t)d - 1) / (uint64_t)d);
    out.shift = s - 1;
    return out;
}

BASIN_DEVICE uint32_t basin_divide(uint32_t n, const basin_divisor &by) {
    return by.d == 1 ? n : __umulhi(n, by.multiplier) >> by.shift;
}

/* A grid of blocks of `threads` that walks `items` with strides of the whole grid. */
static inline unsigned basin_cuda_grid(const basin_cuda *cuda, int64_t items, int threads) {
    int64_t blocks = basin_cuda_ceil(items, threads), maximum = (int64_t)cuda->multiprocessors * 16;
    return (unsigned)(blocks < maximum ? blocks : maximum);
}

#endif
