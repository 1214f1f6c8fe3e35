/* Products of numbers of very different sizes, down to those that have no full precision left
 * (under 2^-126): what is tiny may be lost, but must not touch what is not. */
#include <math.h>
#include <stdio.h>

#include "support/lab.h"

enum { M = 37, K = 120, N = 45 };

static void fill(double *x, int64_t rows, int64_t columns, uint64_t stream) {
    static const double scale[] = {1,     1e-20, 1e-30, 1e-33, 1e-35,
                                   1e-37, 1e-38, 1e-39, 1e-41, 1e-44};
    basin_random r = basin_random_start(5, stream, 0);
    for (int64_t i = 0; i < rows * columns; i++) {
        double number = basin_random_normal_at(6, stream, (uint64_t)i);
        x[i] = (float)(number * scale[basin_random_below(&r, 10)]);
    }
}

static void check_one(bool transpose_a, bool transpose_b) {
    double a[M * K], b[K * N];
    BASIN_AT_EXIT(lab_close) lab l = lab_new("cpu", 1);
    fill(a, M, K, 1);
    fill(b, K, N, 2);
    basin_expr x = lab_input(&l, "a", transpose_a ? BASIN_SHAPE(K, M) : BASIN_SHAPE(M, K), a);
    basin_expr y = lab_input(&l, "b", transpose_b ? BASIN_SHAPE(N, K) : BASIN_SHAPE(K, N), b);
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor c = lab_value(&l, basin_matmul_t(x, transpose_a, y, transpose_b));
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0, size = 0;
            for (int k = 0; k < K; k++) {
                double part = (transpose_a ? a[k * M + i] : a[i * K + k]) *
                              (transpose_b ? b[j * K + k] : b[k * N + j]);
                sum += part;
                size += fabs(part);
            }
            double off = fabs(basin_tensor_at(&c, i * N + j) - sum);
            if (!(off <= 1e-5 * size + 1e-33))
                fail_msg("element %d, %d is off by %g of %g", i, j, off, size);
        }
}

TEST(far_apart) {
    for (int i = 0; i < 4; i++) check_one(i & 1, i & 2);
}
