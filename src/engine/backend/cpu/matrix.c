/* Decompositions of square matrices, a thread for each of them: rows less multiples of rows. */
#include <math.h>
#include <string.h>

#include "engine/backend/cpu/cpu.h"

typedef struct matrices {
    int64_t count, n;
} matrices;

/* The square matrices of the first operand. */
static matrices matrices_of(const basin_call *call) {
    const basin_shape *s = &call->in[0].shape;
    return (matrices){basin_shape_product(s, 0, s->rank - 2), basin_shape_last(s, 1)};
}

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
    int64_t n = matrices_of(frame->call).n;
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
    matrices m = matrices_of(frame->call);
    basin_cpu_share(frame, cholesky_some, m.count, m.count * m.n * m.n * m.n / 3);
}

/* ---- linear systems, determinants ---- */

size_t basin_cpu_factors_workspace(const basin_call *call, int threads) {
    int64_t n = matrices_of(call).n;
    return (size_t)threads * (size_t)((n * n + 15) / 16 * 16) * sizeof(float);
}

static float *room_of(const basin_frame *frame) {
    size_t bytes = basin_cpu_factors_workspace(frame->call, 1);
    return (float *)((char *)frame->workspace + (size_t)basin_parallel_place() * bytes);
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

static void divide_row(float *x, float by, int64_t k) {
    for (int64_t i = 0; i < k; i++) x[i] /= by;
}

/* The first row of a triangle that has no pivot, or n. */
static int64_t pivots(const float *w, int64_t n) {
    int64_t i = 0;
    while (i < n && w[i * n + i] != 0) i++;
    return i;
}

static void solve_upper(float *x, const float *w, int64_t n, int64_t k, const basin_simd *simd) {
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t j = i + 1; j < n; j++) simd->axpy(x + i * k, -w[i * n + j], x + j * k, k);
        divide_row(x + i * k, w[i * n + i], k);
    }
}

/* The system of a lower triangle, or that of its transpose from the last row up. */
static void solve_lower(float *x, const float *l, int64_t n, int64_t k, bool transposed,
                        const basin_simd *simd) {
    for (int64_t at = 0; at < n; at++) {
        int64_t i = transposed ? n - 1 - at : at;
        for (int64_t j = 0; j < i && !transposed; j++)
            simd->axpy(x + i * k, -l[i * n + j], x + j * k, k);
        divide_row(x + i * k, l[i * n + i], k);
        for (int64_t j = 0; j < i && transposed; j++)
            simd->axpy(x + j * k, -l[i * n + j], x + i * k, k);
    }
}

static void solve_some(const basin_frame *frame, int64_t first, int64_t last) {
    const basin_attr *attr = &frame->call->attr;
    int64_t n = matrices_of(frame->call).n, k = basin_shape_last(&frame->call->in[1].shape, 1);
    float *w = room_of(frame), sign; /* [n, n] */
    for (int64_t i = first; i < last; i++) {
        const float *a = (const float *)frame->in[0] + i * n * n;
        float *x = (float *)frame->out[0] + i * n * k;
        memcpy(x, (const float *)frame->in[1] + i * n * k, (size_t)(n * k) * sizeof *x);
        for (int64_t r = 0; r < n && !attr->count; r++)
            for (int64_t c = 0; c < n; c++)
                w[r * n + c] = attr->transpose_a ? a[c * n + r] : a[r * n + c];
        int64_t column = attr->count ? pivots(a, n) : eliminate(w, x, n, k, &sign, frame->simd);
        if (column < n) {
            basin_host_fail(frame, "solve: matrix %lld is singular (column %lld)", (long long)i,
                            (long long)column);
            frame->simd->fill(x, NAN, n * k);
        } else if (attr->count)
            solve_lower(x, a, n, k, attr->transpose_a, frame->simd);
        else
            solve_upper(x, w, n, k, frame->simd);
    }
}

void basin_cpu_solve(const basin_frame *frame) {
    matrices m = matrices_of(frame->call);
    int64_t k = basin_shape_last(&frame->call->in[1].shape, 1);
    basin_cpu_share(frame, solve_some, m.count, m.count * m.n * m.n * (m.n / 3 + k));
}

static void slogdet_some(const basin_frame *frame, int64_t first, int64_t last) {
    int64_t n = matrices_of(frame->call).n;
    float *out[2] = {frame->out[0], frame->out[1]}, *w = room_of(frame), sign;
    for (int64_t i = first; i < last; i++) {
        double log_size = 0;
        memcpy(w, (const float *)frame->in[0] + i * n * n, (size_t)(n * n) * sizeof *w);
        if (eliminate(w, w, n, 0, &sign, frame->simd) < n) sign = 0, log_size = -INFINITY;
        for (int64_t c = 0; c < n && sign != 0; c++) {
            log_size += log(fabs((double)w[c * n + c]));
            if (w[c * n + c] < 0) sign = -sign;
        }
        if (out[0]) out[0][i] = (float)log_size;
        if (out[1]) out[1][i] = isnan(log_size) ? NAN : sign;
    }
}

void basin_cpu_slogdet(const basin_frame *frame) {
    matrices m = matrices_of(frame->call);
    basin_cpu_share(frame, slogdet_some, m.count, m.count * m.n * m.n * m.n / 3);
}
