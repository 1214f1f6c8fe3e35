/* PSNR and SSIM; see metrics_picture.h for the formulas. The window's sums are separable: five
 * products (a, b, a a, b b, a b) are filtered along rows, then down columns, in double. */
#include "basin/metrics_picture.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

enum { UNIFORM = 7, GAUSSIAN = 11, WIDEST = 11, PRODUCTS = 5 };

double basin_psnr(const float *a, const float *b, int64_t count, double range) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = (double)a[i] - (double)b[i];
        sum += d * d;
    }
    return 10 * log10(range * range * (double)count / sum);
}

static int window_fill(double weight[WIDEST], bool gaussian) {
    int side = gaussian ? GAUSSIAN : UNIFORM;
    double sum = 0;
    for (int i = 0; i < side; i++) {
        double x = (i - side / 2) / 1.5;
        weight[i] = gaussian ? exp(-0.5 * x * x) : 1;
        sum += weight[i];
    }
    for (int i = 0; i < side; i++) weight[i] /= sum;
    return side;
}

/* The five products of a row, filtered along it: out[p, x]. */
static void filter_row(double *out /* [PRODUCTS, across] */, const float *a, const float *b,
                       int64_t across, const double *weight, int side) {
    for (int64_t x = 0; x < across; x++) {
        double sum[PRODUCTS] = {0};
        for (int k = 0; k < side; k++) {
            double u = (double)a[x + k], v = (double)b[x + k], w = weight[k];
            sum[0] += w * u;
            sum[1] += w * v;
            sum[2] += w * u * u;
            sum[3] += w * v * v;
            sum[4] += w * u * v;
        }
        for (int p = 0; p < PRODUCTS; p++) out[p * across + x] = sum[p];
    }
}

static double similarity(const double m[PRODUCTS], double range, double unbias) {
    double c1 = 0.01 * range * 0.01 * range, c2 = 0.03 * range * 0.03 * range;
    double va = unbias * (m[2] - m[0] * m[0]), vb = unbias * (m[3] - m[1] * m[1]);
    double vab = unbias * (m[4] - m[0] * m[1]);
    return (2 * m[0] * m[1] + c1) * (2 * vab + c2) /
           ((m[0] * m[0] + m[1] * m[1] + c1) * (va + vb + c2));
}

basin_status basin_ssim(double *ssim, const float *a, const float *b, int64_t channels,
                        int64_t height, int64_t width, double range, bool gaussian,
                        basin_error *error) {
    double weight[WIDEST], total = 0;
    int side = window_fill(weight, gaussian);
    int64_t across = width - side + 1, down = height - side + 1;
    if (channels < 1 || across < 1 || down < 1)
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "SSIM of %lld x %lld pixels, want at least %d x %d", (long long)height,
                          (long long)width, side, side);
    double unbias = gaussian ? 1 : (double)(side * side) / (side * side - 1);
    size_t line = (size_t)across * PRODUCTS;
    double *rows = basin_array_new(line * (size_t)side, sizeof *rows); /* a ring of `side` rows */
    if (!rows) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for SSIM");
    for (int64_t c = 0; c < channels; c++)
        for (int64_t y = 0; y < height; y++) {
            int64_t at = (c * height + y) * width;
            filter_row(rows + (size_t)(y % side) * line, a + at, b + at, across, weight, side);
            if (y < side - 1) continue;
            double sum = 0;
            for (int64_t x = 0; x < across; x++) {
                double m[PRODUCTS] = {0};
                for (int k = 0; k < side; k++) {
                    const double *row = rows + (size_t)((y - side + 1 + k) % side) * line + x;
                    for (int p = 0; p < PRODUCTS; p++) m[p] += weight[k] * row[p * across];
                }
                sum += similarity(m, range, unbias);
            }
            total += sum;
        }
    free(rows);
    *ssim = total / ((double)channels * (double)across * (double)down);
    return BASIN_OK;
}
