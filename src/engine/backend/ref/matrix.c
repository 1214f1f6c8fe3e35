/* Decompositions of square matrices, one after the other. */
#include <math.h>
#include <string.h>

#include "engine/backend/ref/ref.h"

static void fill(double *x, int64_t count, double value) {
    for (int64_t i = 0; i < count; i++) x[i] = value;
}

/* L with L L' = A; the first row that has no root, or n. */
static int64_t cholesky(double *l, const double *a, int64_t n) {
    fill(l, n * n, 0);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = a[i * n + j];
            for (int64_t k = 0; k < j; k++) sum -= l[i * n + k] * l[j * n + k];
            if (i == j && !(sum > 0)) return i;
            l[i * n + j] = i == j ? sqrt(sum) : sum / l[j * n + j];
        }
    return n;
}

void basin_ref_cholesky(const basin_frame *frame) {
    const double *a = frame->in[0]; /* [count, n, n] */
    double *l = frame->out[0];      /* [count, n, n] */
    basin_matrices m = basin_matrices_of(frame->call);
    for (int64_t i = 0; i < m.count; i++, a += m.n * m.n, l += m.n * m.n) {
        int64_t row = cholesky(l, a, m.n);
        if (row == m.n) continue;
        basin_host_fail(frame, "cholesky: matrix %lld is not positive definite (row %lld)",
                        (long long)i, (long long)row);
        fill(l, m.n * m.n, NAN);
    }
}

static void swap_rows(double *x, int64_t i, int64_t j, int64_t width) {
    for (int64_t k = 0; k < width; k++) {
        double kept = x[i * width + k];
        x[i * width + k] = x[j * width + k];
        x[j * width + k] = kept;
    }
}

/* Gauss and Jordan: w [n, n] becomes diagonal by steps that the rows of x [n, k] follow. The first
 * column without a pivot, or n; *sign is that of the order of the rows. */
static int64_t eliminate(double *w, double *x, int64_t n, int64_t k, double *sign) {
    *sign = 1;
    for (int64_t c = 0; c < n; c++) {
        int64_t pivot = c;
        for (int64_t i = c + 1; i < n; i++)
            if (fabs(w[i * n + c]) > fabs(w[pivot * n + c])) pivot = i;
        if (w[pivot * n + c] == 0) return c;
        if (pivot != c) *sign = -*sign, swap_rows(w, c, pivot, n), swap_rows(x, c, pivot, k);
        for (int64_t i = 0; i < n; i++) {
            double factor = i == c ? 0 : w[i * n + c] / w[c * n + c];
            for (int64_t j = c; j < n; j++) w[i * n + j] -= factor * w[c * n + j];
            for (int64_t j = 0; j < k; j++) x[i * k + j] -= factor * x[c * k + j];
        }
    }
    return n;
}

/* What of A is meant: all or the lower triangle, perhaps transposed. */
static void take_matrix(double *w, const double *a, int64_t n, const basin_attr *attr) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            int64_t row = attr->transpose_a ? j : i, column = attr->transpose_a ? i : j;
            w[i * n + j] = attr->count && column > row ? 0 : a[row * n + column];
        }
}

void basin_ref_solve(const basin_frame *frame) {
    const basin_call *call = frame->call;
    bool solves = call->ins > 1;
    const double *a = frame->in[0], *b = frame->in[1];    /* [count, n, n], [count, n, k] */
    double *x = frame->out[0], *w = frame->workspace;     /* like b, [n, n] */
    double *size = frame->out[1], *signs = frame->out[2]; /* [count] */
    basin_matrices m = basin_matrices_of(call);
    int64_t n = m.n, k = solves ? basin_shape_last(&call->in[1].shape, 1) : 0;
    for (int64_t i = 0; i < m.count; i++, a += n * n) {
        double sign, sum = 0;
        take_matrix(w, a, n, &call->attr);
        if (solves) memcpy(x + i * n * k, b + i * n * k, (size_t)(n * k) * sizeof *x);
        int64_t column = eliminate(w, solves ? x + i * n * k : w, n, k, &sign);
        for (int64_t c = 0; c < n; c++) {
            sum += log(fabs(w[c * n + c]));
            if (w[c * n + c] < 0) sign = -sign;
        }
        if (size) size[i] = column < n ? -INFINITY : sum;
        if (signs) signs[i] = column < n ? 0 : isnan(sum) ? NAN : sign;
        if (!solves) continue;
        for (int64_t j = 0; j < n * k; j++) x[i * n * k + j] /= w[j / k * (n + 1)];
        if (column == n) continue;
        basin_host_fail(frame, "solve: matrix %lld is singular (column %lld)", (long long)i,
                        (long long)column);
        fill(x + i * n * k, n * k, NAN);
    }
}
