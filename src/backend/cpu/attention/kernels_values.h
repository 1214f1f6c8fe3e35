/* Softmax attention with values between the products: a row of pairs of one query and head, by the
 * equations of backend/values.h. Included by attention/kernels_body.h alone. */
#ifndef BASIN_BACKEND_CPU_ATTENTION_KERNELS_VALUES_H
#define BASIN_BACKEND_CPU_ATTENTION_KERNELS_VALUES_H

#include <math.h>

#include "backend/cpu/attention/attention.h"
#include "backend/cpu/simd/vector_math.h"

#define FOR_ROW(i, row) for (int64_t i = 0; i < (row)->count; i += VECTOR_LANES)

VECTOR_INLINE vfloat row_load(const float *x, const basin_values_row *row, int64_t i, float rest) {
    return x ? vector_load_part(x + i, row->count - i, rest) : vector_all(0);
}

VECTOR_INLINE void row_store(float *x, const basin_values_row *row, int64_t i, vfloat v) {
    if (x) vector_store_part(x + i, v, row->count - i);
}

/* s <- exp(s - most), x <- ts; the sums of s, s x and s g. */
static void values_measure(const basin_values_row *row, float sums[3]) {
    vfloat top = vector_all(-INFINITY), total = {0}, mean = {0}, d = {0};
    FOR_ROW(i, row)
    row_store(row->s, row, i,
              row->scale * row_load(row->s, row, i, 0) + row_load(row->bias, row, i, 0));
    if (row->self >= 0 && row->self < row->count) row->s[row->self] = -INFINITY;
    FOR_ROW(i, row) top = vector_max(row_load(row->s, row, i, -INFINITY), top);
    float most = vector_largest(top);
    if (most == -INFINITY) most = 0;
    FOR_ROW(i, row) {
        vfloat e = vector_exp(row_load(row->s, row, i, -INFINITY) - most);
        vfloat ts = row->scale * row_load(row->x, row, i, 0) + row_load(row->tbias, row, i, 0);
        row_store(row->s, row, i, e);
        row_store(row->x, row, i, ts);
        total += e;
        mean += e * ts;
        d += e * row_load(row->g, row, i, 0);
    }
    sums[0] = vector_sum(total), sums[1] = vector_sum(mean), sums[2] = vector_sum(d);
}

static void scale_some(const basin_values_row *row, float *x) {
    FOR_ROW(i, row) row_store(x, row, i, row->scale * row_load(x, row, i, 0));
}

static void values(const basin_values_row *row) {
    float sums[3];
    values_measure(row, sums);
    float share = sums[0] > 0 ? 1 / sums[0] : 0, mean = sums[1] * share, d = sums[2] * share;
    vfloat sum = {0};
    FOR_ROW(i, row) {
        vfloat p = share * row_load(row->s, row, i, 0), ts = row_load(row->x, row, i, 0) - mean;
        vfloat g = row_load(row->g, row, i, 0) - d;
        vfloat u = p * (ts * g + row_load(row->y, row, i, 0));
        row_store(row->s, row, i, p);
        row_store(row->x, row, i, p * ts);
        row_store(row->g, row, i, p * g);
        row_store(row->y, row, i, u);
        sum += u;
    }
    float mid = vector_sum(sum), *slope = row->y ? row->y : row->g;
    if (row->y) FOR_ROW(i, row)
    row_store(row->y, row, i, row_load(row->y, row, i, 0) - mid * row_load(row->s, row, i, 0));
    if (row->slope && slope) memcpy(row->slope, slope, (size_t)row->count * sizeof *slope);
    if (row->scale == 1) return;
    scale_some(row, row->g);
    scale_some(row, row->y);
}

#undef FOR_ROW
#endif
