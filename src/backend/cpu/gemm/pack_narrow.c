/* Packing of bfloat16 panels for kernels that multiply a few neighbouring steps of k at once:
 * panel[(u * width + l) * unit + i] is step u * unit + i of lane l, zero where there is none. */
#include <string.h>

#include "backend/cpu/gemm/kernel.h"

/* A full panel of lanes that lie side by side. */
static void pack_beside(uint16_t *panel, const uint16_t *x, int64_t step, int width, int unit,
                        int64_t k) {
    for (int64_t p = 0; p < k; p += unit, panel += width * unit)
        for (int i = 0; i < unit; i++) {
            const uint16_t *from = x + (p + i) * step;
            bool there = p + i < k;
            for (int l = 0; l < width; l++) panel[l * unit + i] = there ? from[l] : 0;
        }
}

static void pack_any(uint16_t *panel, const uint16_t *x, int64_t lane, int64_t step, int64_t lanes,
                     int width, int unit, int64_t k) {
    for (int64_t p = 0; p < k; p += unit)
        for (int64_t l = 0; l < width; l++, panel += unit)
            for (int i = 0; i < unit; i++)
                panel[i] = l < lanes && p + i < k ? x[l * lane + (p + i) * step] : 0;
}

void basin_gemm_narrow_pack(const basin_gemm_kernel *kernel, bool right, float *panels,
                            const void *numbers, int64_t lane, int64_t step, int64_t lanes,
                            int64_t k) {
    const uint16_t *x = numbers;
    int width = right ? kernel->nr : kernel->mr, unit = kernel->unit;
    uint16_t *panel = (uint16_t *)panels;
    int64_t size = (k + unit - 1) / unit * unit * width;
    for (int64_t first = 0; first < lanes; first += width, panel += size) {
        if (lane == 1 && lanes - first >= width)
            pack_beside(panel, x + first, step, width, unit, k);
        else
            pack_any(panel, x + first * lane, lane, step, lanes - first, width, unit, k);
    }
}
