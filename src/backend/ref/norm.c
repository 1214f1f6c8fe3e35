/* Layer norm with a scalar gain: g = gamma n + delta, n = (x - mean) / s, s = sqrt(var + eps).
 * With n' = c - mean(c) - n mean(c n), its reverse for a cotangent c of g is
 * dx = gamma n' / s, dgamma = sum c n, ddelta = sum over rows of c. */
#include <math.h>

#include "backend/ref/ref.h"
#include "backend/shape.h"

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

void basin_ref_layernorm(const basin_ref_frame *frame) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t width = shape->dim[shape->rank - 1];
    int64_t rows = basin_shape_product(shape, 0, shape->rank - 1);
    const double *x = frame->in[0];     /* [rows, width] */
    const double *gamma = frame->in[1]; /* [] */
    const double *delta = frame->in[2]; /* [width] */
    double *g = frame->out[0];          /* [rows, width] */
    for (int64_t i = 0; i < rows; i++) {
        moments m = row_moments(x + i * width, width, frame->call->attr.value);
        for (int64_t j = 0; j < width; j++)
            g[i * width + j] = *gamma * (x[i * width + j] - m.mean) / m.deviation + delta[j];
    }
}

void basin_ref_layernorm_reverse(const basin_ref_frame *frame) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t width = shape->dim[shape->rank - 1];
    int64_t rows = basin_shape_product(shape, 0, shape->rank - 1);
    const double *x = frame->in[0];                               /* [rows, width] */
    const double *gamma = frame->in[1];                           /* [] */
    const double *c = frame->in[2];                               /* [rows, width] */
    double *dx = frame->out[0];                                   /* [rows, width] */
    double *dgamma = frame->out[1];                               /* [] */
    double *ddelta = frame->out[2];                               /* [width] */
    const double *r = frame->call->ins > 3 ? frame->in[3] : NULL; /* [rows, width] */
    double *again = frame->call->outs > 3 ? frame->out[3] : NULL; /* [rows, width] */
    basin_ref_clear(frame);
    for (int64_t i = 0; i < rows; i++) {
        const double *xi = x + i * width, *ci = c + i * width;
        moments m = row_moments(xi, width, frame->call->attr.value);
        double sum_c = 0, sum_cn = 0;
        for (int64_t j = 0; j < width; j++) {
            sum_c += ci[j];
            sum_cn += ci[j] * (xi[j] - m.mean) / m.deviation;
            if (ddelta) ddelta[j] += ci[j];
        }
        if (dgamma) *dgamma += sum_cn;
        for (int64_t j = 0; dx && j < width; j++) {
            double n = (xi[j] - m.mean) / m.deviation;
            dx[i * width + j] =
                *gamma / m.deviation * (ci[j] - sum_c / (double)width - n * sum_cn / (double)width);
            if (r) dx[i * width + j] += r[i * width + j];
            if (again) again[i * width + j] = dx[i * width + j];
        }
    }
}
