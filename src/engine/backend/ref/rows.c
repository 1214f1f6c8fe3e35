/* Reductions, over axes or rows, causal pairs and layer norm. */
#include <math.h>

#include "basin/random.h"
#include "engine/backend/ref/ref.h"

void basin_ref_sum(const basin_frame *frame) {
    const double *x = frame->in[0]; /* [outer, middle, inner] */
    double *y = frame->out[0];      /* [outer, inner] */
    basin_span s = basin_span_of(frame->call);
    basin_ref_clear(frame);
    for (int64_t i = 0; i < s.outer * s.middle; i++)
        for (int64_t j = 0; j < s.inner; j++) y[i / s.middle * s.inner + j] += x[i * s.inner + j];
}

void basin_ref_max(const basin_frame *frame) {
    const double *x = frame->in[0]; /* [outer, middle, inner] */
    double *y = frame->out[0];      /* [outer, inner] */
    basin_span s = basin_span_of(frame->call);
    for (int64_t i = 0; i < s.outer * s.inner; i++) y[i] = -INFINITY;
    for (int64_t i = 0; i < s.outer * s.middle; i++)
        for (int64_t j = 0; j < s.inner; j++) {
            double value = x[i * s.inner + j], *max = &y[i / s.middle * s.inner + j];
            if (value > *max || isnan(value)) *max = value;
        }
}

/* The log-sum-exp of every stride-th number times the factor. */
static double logsumexp(const double *x, int64_t count, int64_t stride, double factor) {
    double max = -INFINITY, sum = 0;
    for (int64_t m = 0; m < count; m++) {
        double value = factor * x[m * stride];
        max = value > max || isnan(value) ? value : max;
    }
    if (isinf(max)) return max;
    for (int64_t m = 0; m < count; m++) sum += exp(factor * x[m * stride] - max);
    return max + log(sum);
}

void basin_ref_logsumexp(const basin_frame *frame) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t rows = basin_shape_rows(shape), n = basin_shape_last(shape, 1);
    const double *x = frame->in[0]; /* [rows, n] */
    double *y = frame->out[0];      /* [rows] */
    for (int64_t i = 0; i < rows; i++) y[i] = logsumexp(x + i * n, n, 1, 1);
}

void basin_ref_softmax(const basin_frame *frame) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t rows = basin_shape_rows(shape), n = basin_shape_last(shape, 1);
    const double *x = frame->in[0]; /* [rows, n] */
    double *y = frame->out[0];      /* [rows, n] */
    for (int64_t i = 0; i < rows; i++) {
        double lse = logsumexp(x + i * n, n, 1, 1);
        if (frame->call->outs > 1) ((double *)frame->out[1])[i] = lse;
        for (int64_t j = 0; j < n; j++) y[i * n + j] = exp(x[i * n + j] - lse);
    }
}

/* Halves [max - 1, max], which holds the threshold, until no number lies between its ends. */
static double row_threshold(const double *x, int64_t n, int power) {
    double max = n > 0 ? x[0] : 0;
    for (int64_t j = 0; j < n; j++) max = x[j] > max || isnan(x[j]) ? x[j] : max;
    double low = max - 1, high = max;
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

void basin_ref_threshold(const basin_frame *frame) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t rows = basin_shape_rows(shape), n = basin_shape_last(shape, 1);
    const double *x = frame->in[0]; /* [rows, n] */
    double *y = frame->out[0];      /* [rows] */
    for (int64_t i = 0; i < rows; i++) y[i] = row_threshold(x + i * n, n, frame->call->attr.count);
}

void basin_ref_squares(const basin_frame *frame) {
    double sum = 0;
    for (int k = 0; k < frame->call->ins; k++) {
        const double *x = frame->in[k];
        int64_t count = basin_shape_count(frame->call->in[k].shape);
        for (int64_t i = 0; i < count; i++) sum += x[i] * x[i];
    }
    *(double *)frame->out[0] = sum;
}

/* Log-sum-exp and softmax over the keys that causal queries see, x [rows, N, M, H], and the
 * reverse: p = exp(f x - lse), y = p kept, dx = f p (d - sum over keys of p d) with d = c kept. */

void basin_ref_causal_logsumexp(const basin_frame *frame) {
    basin_causal c = basin_causal_of(frame->call);
    const double *x = frame->in[0]; /* [rows, N, M, H] */
    double *y = frame->out[0];      /* [rows, N, H] */
    for (int64_t i = 0; i < c.rows; i++)
        for (int64_t h = 0; h < c.heads; h++) {
            const double *from = x + i * c.keys * c.heads + h;
            int64_t count = basin_causal_seen(&c, i);
            y[i * c.heads + h] = count > 0 ? logsumexp(from, count, c.heads, c.factor) : 0;
        }
}

void basin_ref_causal_softmax(const basin_frame *frame) {
    basin_causal c = basin_causal_of(frame->call);
    const double *x = frame->in[0]; /* [rows, N, M, H] */
    double *y = frame->out[0];      /* like x */
    basin_ref_clear(frame);
    for (int64_t i = 0; i < c.rows; i++)
        for (int64_t h = 0; h < c.heads; h++) {
            int64_t first = i * c.keys * c.heads + h, count = basin_causal_seen(&c, i);
            double lse = logsumexp(x + first, count, c.heads, c.factor);
            for (int64_t m = 0; m < count; m++) {
                int64_t at = first + m * c.heads;
                y[at] = exp(c.factor * x[at] - lse);
            }
        }
}

void basin_ref_causal_softmax_reverse(const basin_frame *frame) {
    basin_causal c = basin_causal_of(frame->call);
    const double *x = frame->in[0], *d = frame->in[1]; /* [rows, N, M, H] */
    double *dx = frame->out[0];                        /* like x */
    basin_ref_clear(frame);
    for (int64_t i = 0; i < c.rows; i++)
        for (int64_t h = 0; h < c.heads; h++) {
            int64_t first = i * c.keys * c.heads + h, count = basin_causal_seen(&c, i);
            double lse = logsumexp(x + first, count, c.heads, c.factor), mean = 0;
            for (int64_t at = first; at < first + count * c.heads; at += c.heads)
                mean += exp(c.factor * x[at] - lse) * d[at];
            for (int64_t at = first; at < first + count * c.heads; at += c.heads)
                dx[at] = c.factor * exp(c.factor * x[at] - lse) * (d[at] - mean);
        }
}

/* Layer norm: g = gamma n + delta, n = (x - mean) / s, s = sqrt(var + eps). With n' = c - mean(c) -
 * n mean(c n): dx = gamma n' / s, dgamma = sum c n, ddelta = sum over rows of c. */

typedef struct moments {
    double mean, deviation; /* deviation = sqrt(var + eps) */
} moments;

static moments row_moments(const double *x /* [width] */, int64_t width, double epsilon) {
    double sum = 0, square = 0;
    for (int64_t j = 0; j < width; j++) sum += x[j];
    double mean = sum / (double)width;
    for (int64_t j = 0; j < width; j++) square += (x[j] - mean) * (x[j] - mean);
    return (moments){mean, sqrt(square / (double)width + epsilon)};
}

void basin_ref_layernorm(const basin_frame *frame) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t rows = basin_shape_rows(shape), width = basin_shape_last(shape, 1);
    const double *x = frame->in[0];     /* [rows, width] */
    const double *gamma = frame->in[1]; /* [] or [width] */
    const double *delta = frame->in[2]; /* [width] */
    bool each = frame->call->in[1].shape.rank > 0;
    double *g = frame->out[0]; /* [rows, width] */
    for (int64_t i = 0; i < rows; i++) {
        moments m = row_moments(x + i * width, width, frame->call->attr.value);
        for (int64_t j = 0; j < width; j++)
            g[i * width + j] =
                gamma[each ? j : 0] * (x[i * width + j] - m.mean) / m.deviation + delta[j];
    }
}

void basin_ref_layernorm_reverse(const basin_frame *frame) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t rows = basin_shape_rows(shape), width = basin_shape_last(shape, 1);
    const double *x = frame->in[0];                               /* [rows, width] */
    const double *gamma = frame->in[1];                           /* [] or [width] */
    const double *c = frame->in[2];                               /* [rows, width] */
    double *dx = frame->out[0];                                   /* [rows, width] */
    double *dgamma = frame->out[1];                               /* like gamma */
    double *ddelta = frame->out[2];                               /* [width] */
    const double *r = frame->call->ins > 3 ? frame->in[3] : NULL; /* [rows, width] */
    double *again = frame->call->outs > 3 ? frame->out[3] : NULL; /* [rows, width] */
    bool each = frame->call->in[1].shape.rank > 0; /* then c is multiplied by gamma first */
    basin_ref_clear(frame);
    for (int64_t i = 0; i < rows; i++) {
        const double *xi = x + i * width, *ci = c + i * width;
        moments m = row_moments(xi, width, frame->call->attr.value);
        double sum_c = 0, sum_cn = 0;
        for (int64_t j = 0; j < width; j++) {
            double n = (xi[j] - m.mean) / m.deviation, own = each ? gamma[j] * ci[j] : ci[j];
            sum_c += own;
            sum_cn += own * n;
            if (ddelta) ddelta[j] += ci[j];
            if (dgamma) dgamma[each ? j : 0] += ci[j] * n;
        }
        for (int64_t j = 0; dx && j < width; j++) {
            double n = (xi[j] - m.mean) / m.deviation;
            double own = each ? gamma[j] * ci[j] : ci[j], gain = each ? 1 : *gamma;
            dx[i * width + j] =
                gain / m.deviation * (own - sum_c / (double)width - n * sum_cn / (double)width);
            if (r) dx[i * width + j] += r[i * width + j];
            if (again) again[i * width + j] = dx[i * width + j];
        }
    }
}
