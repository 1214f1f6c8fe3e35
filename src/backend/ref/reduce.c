/* Reductions: sums and maxima over neighbouring axes; log-sum-exp and softmax over the row.
 * lse(x) = m + log sum exp(x - m) with m = max(x), so nothing overflows. The maximum and the
 * log-sum-exp of nothing are -infinity. */
#include <math.h>

#include "backend/ref/ref.h"
#include "backend/shape.h"

typedef struct span {
    int64_t outer, middle, inner; /* x is [outer, middle, inner]; the middle vanishes */
} span;

static span reduced_span(const basin_call *call) {
    const basin_shape *shape = &call->in[0].shape;
    int first = call->attr.axis, last = call->attr.axis + call->attr.count;
    return (span){basin_shape_product(shape, 0, first), basin_shape_product(shape, first, last),
                  basin_shape_product(shape, last, shape->rank)};
}

void basin_ref_sum(const basin_ref_frame *frame) {
    const double *x = frame->in[0]; /* [outer, middle, inner] */
    double *y = frame->out[0];      /* [outer, inner] */
    span s = reduced_span(frame->call);
    for (int64_t i = 0; i < s.outer; i++)
        for (int64_t j = 0; j < s.inner; j++) {
            double sum = 0;
            for (int64_t k = 0; k < s.middle; k++) sum += x[(i * s.middle + k) * s.inner + j];
            y[i * s.inner + j] = sum;
        }
}

void basin_ref_max(const basin_ref_frame *frame) {
    const double *x = frame->in[0]; /* [outer, middle, inner] */
    double *y = frame->out[0];      /* [outer, inner] */
    span s = reduced_span(frame->call);
    for (int64_t i = 0; i < s.outer; i++)
        for (int64_t j = 0; j < s.inner; j++) {
            double most = -INFINITY;
            for (int64_t k = 0; k < s.middle; k++) {
                double value = x[(i * s.middle + k) * s.inner + j];
                if (value > most || isnan(value)) most = value;
                if (isnan(value)) break;
            }
            y[i * s.inner + j] = most;
        }
}

static double row_logsumexp(const double *x /* [n] */, int64_t n) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) most = x[i] > most || isnan(x[i]) ? x[i] : most;
    if (isinf(most)) return most;
    for (int64_t i = 0; i < n; i++) sum += exp(x[i] - most);
    return most + log(sum);
}

static int64_t row_width(const basin_shape *shape) {
    return shape->rank > 0 ? shape->dim[shape->rank - 1] : 1;
}

static int64_t row_count(const basin_shape *shape) {
    return basin_shape_product(shape, 0, shape->rank - 1);
}

void basin_ref_logsumexp(const basin_ref_frame *frame) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t rows = row_count(shape), n = row_width(shape);
    const double *x = frame->in[0]; /* [rows, n] */
    double *y = frame->out[0];      /* [rows] */
    for (int64_t i = 0; i < rows; i++) y[i] = row_logsumexp(x + i * n, n);
}

void basin_ref_softmax(const basin_ref_frame *frame) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t rows = row_count(shape), n = row_width(shape);
    const double *x = frame->in[0]; /* [rows, n] */
    double *y = frame->out[0];      /* [rows, n] */
    for (int64_t i = 0; i < rows; i++) {
        double lse = row_logsumexp(x + i * n, n);
        for (int64_t j = 0; j < n; j++) y[i * n + j] = exp(x[i * n + j] - lse);
    }
}

/* Halves [max - 1, max], which holds the threshold, until no number lies between its ends. */
static double row_threshold(const double *x, int64_t n, int power) {
    double most = n > 0 ? x[0] : 0;
    for (int64_t j = 0; j < n; j++) most = x[j] > most || isnan(x[j]) ? x[j] : most;
    double low = most - 1, high = most;
    while (n > 0) {
        double t = (low + high) / 2, sum = 0;
        if (!(t > low && t < high)) break;
        for (int64_t j = 0; j < n; j++)
            if (x[j] > t) sum += power == 1 ? x[j] - t : (x[j] - t) * (x[j] - t);
        if (sum > 1)
            low = t;
        else
            high = t;
    }
    return n > 0 ? low : 0;
}

void basin_ref_threshold(const basin_ref_frame *frame) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t rows = row_count(shape), n = row_width(shape);
    const double *x = frame->in[0]; /* [rows, n] */
    double *y = frame->out[0];      /* [rows] */
    for (int64_t i = 0; i < rows; i++) y[i] = row_threshold(x + i * n, n, frame->call->attr.count);
}

void basin_ref_squares(const basin_ref_frame *frame) {
    double sum = 0;
    for (int k = 0; k < frame->call->ins; k++) {
        const double *x = frame->in[k];
        int64_t count = basin_shape_count(frame->call->in[k].shape);
        for (int64_t i = 0; i < count; i++) sum += x[i] * x[i];
    }
    *(double *)frame->out[0] = sum;
}
