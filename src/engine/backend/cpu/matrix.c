/* Decompositions of square matrices, a thread for each of them: rows less multiples of rows. */
#include <math.h>
#include <string.h>

#include "engine/backend/cpu/cpu.h"

/* ---- Cholesky ---- */

/* In place, from the lower triangle; row k's upper part holds column k, which later rows read. The
 * first row that has no root, or n. */
static int64_t cholesky(float *l, int64_t n, const basin_simd *simd) {
    for (int64_t k = 0; k < n; k++) {
        float *column = l + k * n;
        if (!(column[k] > 0)) return k;
        column[k] = sqrtf(column[k]);
        for (int64_t i = k + 1; i < n; i++) column[i] = l[i * n + k] /= column[k];
        for (int64_t i = k + 1; i < n; i++)
            simd->axpy(l + i * n + k + 1, -column[i], column + k + 1, i - k);
    }
    return n;
}

static void cholesky_some(const basin_frame *frame, int64_t first, int64_t last) {
    int64_t n = basin_matrices_of(frame->call).n;
    for (int64_t i = first; i < last; i++) {
        float *l = (float *)frame->out[0] + i * n * n;
        memcpy(l, (const float *)frame->in[0] + i * n * n, (size_t)(n * n) * sizeof *l);
        int64_t row = cholesky(l, n, frame->simd);
        if (row < n)
            basin_host_fail(frame, "cholesky: matrix %lld is not positive definite (row %lld)",
                            (long long)i, (long long)row);
        if (row < n) frame->simd->fill(l, NAN, n * n);
        for (int64_t k = 0; k < n && row == n; k++)
            frame->simd->fill(l + k * n + k + 1, 0, n - k - 1);
    }
}

void basin_cpu_cholesky(const basin_frame *frame) {
    basin_matrices m = basin_matrices_of(frame->call);
    basin_cpu_share(frame, cholesky_some, m.count, m.count * m.n * m.n * m.n / 3);
}

/* ---- linear systems, determinants ---- */

size_t basin_cpu_solve_workspace(const basin_call *call, int threads) {
    int64_t n = basin_matrices_of(call).n;
    return (size_t)threads * (size_t)((n * n + 15) / 16 * 16) * sizeof(float);
}

static void swap_rows(float *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float kept = x[i];
        x[i] = y[i], y[i] = kept;
    }
}

/* w [n, n] becomes upper triangular by steps that the rows of x [n, k] follow. The first column
 * without a pivot, or n; *sign is that of the order of the rows. */
static int64_t eliminate(float *w, float *x, int64_t n, int64_t k, float *sign,
                         const basin_simd *simd) {
    *sign = 1;
    for (int64_t c = 0; c < n; c++) {
        int64_t pivot = c;
        for (int64_t i = c + 1; i < n; i++)
            if (fabsf(w[i * n + c]) > fabsf(w[pivot * n + c])) pivot = i;
        if (w[pivot * n + c] == 0) return c;
        if (pivot != c) {
            *sign = -*sign;
            swap_rows(w + c * n, w + pivot * n, n);
            swap_rows(x + c * k, x + pivot * k, k);
        }
        for (int64_t i = c + 1; i < n; i++) {
            float factor = w[i * n + c] / w[c * n + c];
            simd->axpy(w + i * n + c + 1, -factor, w + c * n + c + 1, n - c - 1);
            simd->axpy(x + i * k, -factor, x + c * k, k);
        }
    }
    return n;
}

/* The system of a triangle, element (i, j) of which is t[i row + j column], from its first row down
 * or from the last one up. The first row without a pivot, or n. */
static int64_t substitute(float *x, const float *t, int64_t row, int64_t column, bool up, int64_t n,
                          int64_t k, const basin_simd *simd) {
    for (int64_t at = 0; at < n; at++) {
        int64_t i = up ? n - 1 - at : at, first = up ? i + 1 : 0;
        for (int64_t j = first; j < first + at; j++)
            simd->axpy(x + i * k, -t[i * row + j * column], x + j * k, k);
        if (t[i * (row + column)] == 0) return i;
        for (int64_t c = 0; c < k; c++) x[i * k + c] /= t[i * (row + column)];
    }
    return n;
}

/* w [n, n], a matrix or its transpose. */
static void take_matrix(float *w, const float *a, int64_t n, bool transposed) {
    for (int64_t i = 0; i < n * n; i++) w[i] = transposed ? a[i % n * n + i / n] : a[i];
}

static double log_size(const float *w, int64_t n, float *sign) {
    double sum = 0;
    for (int64_t c = 0; c < n; c++) {
        sum += log(fabs((double)w[c * n + c]));
        if (w[c * n + c] < 0) *sign = -*sign;
    }
    return sum;
}

static void solve_some(const basin_frame *frame, int64_t first, int64_t last) {
    const basin_call *call = frame->call;
    bool lower = call->attr.count, transposed = call->attr.transpose_a, solves = call->ins > 1;
    int64_t n = basin_matrices_of(call).n, k = solves ? basin_shape_last(&call->in[1].shape, 1) : 0;
    size_t place = (size_t)basin_parallel_place() * basin_cpu_solve_workspace(call, 1);
    float *w = (float *)((char *)frame->workspace + place), sign = 1; /* [n, n] */
    float *size = frame->out[1], *signs = frame->out[2];              /* [count] */
    for (int64_t i = first; i < last; i++) {
        const float *a = (const float *)frame->in[0] + i * n * n;
        float *x = solves ? (float *)frame->out[0] + i * n * k : w;
        if (solves) memcpy(x, (const float *)frame->in[1] + i * n * k, (size_t)(n * k) * sizeof *x);
        if (!lower) take_matrix(w, a, n, transposed);
        int64_t column = lower ? n : eliminate(w, x, n, k, &sign, frame->simd);
        double sum = column < n ? -INFINITY : log_size(w, lower ? 0 : n, &sign);
        if (size) size[i] = (float)sum;
        if (signs) signs[i] = column < n ? 0 : isnan(sum) ? NAN : sign;
        if (column == n && solves)
            column = lower ? substitute(x, a, transposed ? 1 : n, transposed ? n : 1, transposed, n,
                                        k, frame->simd)
                           : substitute(x, w, n, 1, true, n, k, frame->simd);
        if (column == n || !solves) continue;
        basin_host_fail(frame, "solve: matrix %lld is singular (column %lld)", (long long)i,
                        (long long)column);
        frame->simd->fill(x, NAN, n * k);
    }
}

void basin_cpu_solve(const basin_frame *frame) {
    basin_matrices m = basin_matrices_of(frame->call);
    int64_t k = frame->call->ins > 1 ? basin_shape_last(&frame->call->in[1].shape, 1) : 0;
    basin_cpu_share(frame, solve_some, m.count, m.count * m.n * m.n * (m.n / 3 + k));
}
