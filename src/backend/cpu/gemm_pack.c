/* Packing of panels: a copy where lanes are neighbours in memory, 4 x 4 transposes where steps are.
 */
#include "backend/cpu/gemm_pack.h"

#include <string.h>

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

static void pack_any(float *panel, const float *x, int64_t lane, int64_t step, int lanes, int width,
                     int64_t k) {
    for (int64_t p = 0; p < k; p++, panel += width) {
        for (int l = 0; l < lanes; l++) panel[l] = x[l * lane + p * step];
        for (int l = lanes; l < width; l++) panel[l] = 0.0F;
    }
}

/* A full panel; `width` is a constant wherever this is inlined. */
INLINE void pack_full(float *panel, const float *x, int64_t lane, int64_t step, int width,
                      int64_t k) {
    if (lane == 1) {
        for (int64_t p = 0; p < k; p++)
            memcpy(panel + p * width, x + p * step, (size_t)width * sizeof *x);
        return;
    }
    int64_t done = k / 4 * 4;
    for (int64_t p = 0; p < done; p += 4)
        for (int l = 0; l < width; l += 4) {
            int first = l + 4 <= width ? l : width - 4; /* the last four lanes may overlap */
            transpose(panel + p * width + first, x + p + first * lane, lane, width);
        }
    pack_any(panel + done * width, x + done, lane, step, width, width, k - done);
}

void basin_gemm_pack_panel(float *panel, const float *x, int64_t lane, int64_t step, int lanes,
                           int width, int64_t k) {
    if (lanes < width || (lane != 1 && step != 1)) {
        pack_any(panel, x, lane, step, lanes, width, k);
        return;
    }
    switch (width) {
    case 4: pack_full(panel, x, lane, step, 4, k); break;
    case 6: pack_full(panel, x, lane, step, 6, k); break;
    case 8: pack_full(panel, x, lane, step, 8, k); break;
    case 12: pack_full(panel, x, lane, step, 12, k); break;
    case 14: pack_full(panel, x, lane, step, 14, k); break;
    case 16: pack_full(panel, x, lane, step, 16, k); break;
    case 32: pack_full(panel, x, lane, step, 32, k); break;
    default: pack_any(panel, x, lane, step, lanes, width, k); break;
    }
}
