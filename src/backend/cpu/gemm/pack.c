/* Packing of panels: a copy where lanes are neighbours in memory, a transpose where steps are. */
#include <string.h>

#include "backend/cpu/gemm/kernel.h"

#define INLINE static inline __attribute__((always_inline))

typedef float vector __attribute__((vector_size(16)));

INLINE vector load(const float *from) {
    vector value;
    memcpy(&value, from, sizeof value);
    return value;
}

INLINE void store(float *to, vector value) { memcpy(to, &value, sizeof value); }

/* to[i * width + j] = from[j * lane + i] for i, j < 4. */
INLINE void transpose(float *to, const float *from, int64_t lane, int width) {
    vector r0 = load(from), r1 = load(from + lane);
    vector r2 = load(from + 2 * lane), r3 = load(from + 3 * lane);
    vector low01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5);
    vector low23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
    vector high01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
    vector high23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
    store(to, __builtin_shufflevector(low01, low23, 0, 1, 4, 5));
    store(to + width, __builtin_shufflevector(low01, low23, 2, 3, 6, 7));
    store(to + 2 * width, __builtin_shufflevector(high01, high23, 0, 1, 4, 5));
    store(to + 3 * width, __builtin_shufflevector(high01, high23, 2, 3, 6, 7));
}

void basin_gemm_panel_turn(float *panel, const float *x, int64_t lane, int width, int64_t k) {
    int64_t p = 0;
    for (; p + 4 <= k; p += 4)
        for (int l = 0; l < width; l += 4)
            transpose(panel + p * width + l, x + p + l * lane, lane, width);
    for (; p < k; p++)
        for (int l = 0; l < width; l++) panel[p * width + l] = x[l * lane + p];
}

/* Eight steps of all panels, then the next eight: reading stays in few pages and writing in order.
 * `width` is a constant wherever this is inlined. */
INLINE void copy_fixed(float *panels, const float *x, int64_t step, int64_t count, int width,
                       int64_t k) {
    for (int64_t first = 0; first < k; first += 8)
        for (int64_t i = 0; i < count; i++)
            for (int64_t p = first; p < first + 8 && p < k; p++)
                memcpy(panels + (i * k + p) * width, x + p * step + i * width,
                       (size_t)width * sizeof *x);
}

static void copy(float *panels, const float *x, int64_t step, int64_t count, int width, int64_t k) {
    switch (width) {
    case 4: copy_fixed(panels, x, step, count, 4, k); break;
    case 6: copy_fixed(panels, x, step, count, 6, k); break;
    case 8: copy_fixed(panels, x, step, count, 8, k); break;
    case 12: copy_fixed(panels, x, step, count, 12, k); break;
    case 16: copy_fixed(panels, x, step, count, 16, k); break;
    case 14: copy_fixed(panels, x, step, count, 14, k); break;
    case 32: copy_fixed(panels, x, step, count, 32, k); break;
    default: copy_fixed(panels, x, step, count, width, k); break;
    }
}

static void pack_any(float *panel, const float *x, int64_t lane, int64_t step, int64_t lanes,
                     int width, int64_t k) {
    for (int64_t p = 0; p < k; p++, panel += width) {
        for (int64_t l = 0; l < lanes; l++) panel[l] = x[l * lane + p * step];
        for (int64_t l = lanes; l < width; l++) panel[l] = 0.0F;
    }
}

void basin_gemm_panels_pack(const basin_gemm_kernel *kernel, bool right, float *panels,
                            const void *numbers, int64_t lane, int64_t step, int64_t lanes,
                            int64_t k) {
    const float *x = numbers;
    int width = right ? kernel->nr : kernel->mr;
    int64_t full = lane == 1 || step == 1 ? lanes / width : 0;
    if (lane == 1)
        copy(panels, x, step, full, width, k);
    else
        for (int64_t i = 0; i < full; i++)
            kernel->turn(panels + i * width * k, x + i * width * lane, lane, width, k);
    for (int64_t i = full; i * width < lanes; i++) {
        int64_t left = lanes - i * width;
        pack_any(panels + i * width * k, x + i * width * lane, lane, step,
                 left < width ? left : width, width, k);
    }
}
