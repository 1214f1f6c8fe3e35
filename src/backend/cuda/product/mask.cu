/* Masks of products, a bit per element, where no kernel writes or reads them with the product:
 * of each 64 x 64 of it 128 words, in the order given in product/relu_sm90a.cu. */
#include "backend/cuda/elements.h"
#include "backend/cuda/inside.h"

/* Where bit `bit` of word `word` lies in the matrix. */
struct bit_place {
    int64_t row, column;
};
static __device__ __forceinline__ bit_place place_of(int64_t word, int bit, int64_t n) {
    int64_t block = word / 128, across = n / 64;
    int thread = (int)(word % 128);
    return {block / across * 64 + thread / 32 * 16 + thread % 32 / 4 + bit / 2 % 2 * 8,
            block % across * 64 + bit / 4 * 8 + thread % 4 * 2 + bit % 2};
}

/* x [m, n], rows `apart` from one to the next */
template <typename T>
static __global__ void write_mask(uint32_t *mask, const T *x, int64_t words, int64_t m, int64_t n,
                                  int64_t apart) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t word = 0;
    if (i >= words) return;
    for (int bit = 0; bit < 32; bit++) {
        bit_place at = place_of(i, bit, n);
        if (at.row < m && basin_to_float(x[at.row * apart + at.column]) > 0.0f) word |= 1u << bit;
    }
    mask[i] = word;
}

/* x = 0 where no bit is set */
template <typename T>
static __global__ void apply_mask(T *x, const uint32_t *mask, int64_t words, int64_t m, int64_t n,
                                  int64_t apart) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= words) return;
    uint32_t word = mask[i];
    for (int bit = 0; bit < 32; bit++) {
        bit_place at = place_of(i, bit, n);
        if (at.row < m && !(word >> bit & 1))
            x[at.row * apart + at.column] = basin_from_float<T>(0.0f);
    }
}

static int64_t words_of(const basin_cuda_product *p) {
    return basin_cuda_ceil(p->m, 64) * (p->n / 64) * 128;
}

void basin_cuda_mask_write(basin_cuda *cuda, const basin_cuda_product *p, void *mask,
                           const void *d) {
    int64_t words = words_of(p), apart = p->row_d ? p->row_d : p->n;
    basin_cuda_typed(p->narrow_result ? BASIN_NARROW : BASIN_REAL, [&](auto zero) {
        using T = decltype(zero);
        write_mask<T><<<(unsigned)basin_cuda_ceil(words, 256), 256, 0, cuda->stream>>>(
            (uint32_t *)mask, (const T *)d, words, p->m, p->n, apart);
    });
    BASIN_CUDA_LAUNCHED(cuda, "mask");
}

void basin_cuda_mask_apply(basin_cuda *cuda, const basin_cuda_product *p, void *d,
                           const void *mask) {
    int64_t words = words_of(p), apart = p->row_d ? p->row_d : p->n;
    basin_cuda_typed(p->narrow_result ? BASIN_NARROW : BASIN_REAL, [&](auto zero) {
        using T = decltype(zero);
        apply_mask<T><<<(unsigned)basin_cuda_ceil(words, 256), 256, 0, cuda->stream>>>(
            (T *)d, (const uint32_t *)mask, words, p->m, p->n, apart);
    });
    BASIN_CUDA_LAUNCHED(cuda, "mask applied");
}
