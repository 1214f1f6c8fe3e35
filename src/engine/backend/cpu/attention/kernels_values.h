/* Softmax attention with values between the products: a row of pairs of one query and head, by the
 * equations of backend/values.h. Included only by attention/kernels_body.h. */
#ifndef BASIN_BACKEND_CPU_ATTENTION_KERNELS_VALUES_H
#define BASIN_BACKEND_CPU_ATTENTION_KERNELS_VALUES_H

#include <math.h>

#include "engine/backend/cpu/attention/attention.h"
#include "engine/backend/cpu/simd/vector_math.h"

/* A row while it is computed. `moved` and `pulled` say whether there are tangents (x) and
 * cotangents (g), y where there are both; they are constants wherever this is inlined. */
typedef struct values_row {
    basin_values_row at;
    vfloat top, total, mean, pull, sum;
    float max, share, middle, d, mid;
} values_row;

/* PASS(r, moved, pulled, i, n) for n lanes from i on; n is a constant but for the last. */
#define VALUES_PASS(PASS)                                                                          \
    do {                                                                                           \
        int64_t i = 0;                                                                             \
        for (; i + VECTOR_LANES <= r->at.count; i += VECTOR_LANES)                                 \
            PASS(r, moved, pulled, i, VECTOR_LANES);                                               \
        if (i < r->at.count) PASS(r, moved, pulled, i, r->at.count - i);                           \
    } while (0)

VECTOR_INLINE vfloat with_bias(vfloat x, const float *bias, int64_t i, int64_t n) {
    return bias ? x + vector_load_part(bias + i, n, 0) : x + vector_all(0);
}

VECTOR_INLINE void values_scores(values_row *r, bool moved, bool pulled, int64_t i, int64_t n) {
    (void)moved, (void)pulled;
    vfloat s = r->at.scale * vector_load_part(r->at.s + i, n, 0);
    vector_store_part(r->at.s + i, with_bias(s, r->at.bias, i, n), n);
}

VECTOR_INLINE void values_top(values_row *r, bool moved, bool pulled, int64_t i, int64_t n) {
    (void)moved, (void)pulled;
    r->top = vector_max(vector_load_part(r->at.s + i, n, -INFINITY), r->top);
}

/* x <- ts; the sums of s, which is exp(s - max) by now, s x and s g. */
VECTOR_INLINE void values_measure(values_row *r, bool moved, bool pulled, int64_t i, int64_t n) {
    vfloat e = vector_load_part(r->at.s + i, n, 0);
    r->total += e;
    if (moved) {
        vfloat ts = r->at.scale * vector_load_part(r->at.x + i, n, 0);
        ts = with_bias(ts, r->at.tbias, i, n);
        vector_store_part(r->at.x + i, ts, n);
        r->mean += e * ts;
    }
    if (pulled) r->pull += e * vector_load_part(r->at.g + i, n, 0);
}

/* p, tp, ds and what tds begins with; ds and tds without the scale where slopes are asked for. */
VECTOR_INLINE void values_finish(values_row *r, bool moved, bool pulled, int64_t i, int64_t n) {
    vfloat p = r->share * vector_load_part(r->at.s + i, n, 0), ts, g;
    vector_store_part(r->at.s + i, p, n);
    if (moved) {
        ts = vector_load_part(r->at.x + i, n, 0) - r->middle;
        vector_store_part(r->at.x + i, p * ts, n);
    }
    if (!pulled) return;
    g = vector_load_part(r->at.g + i, n, 0) - r->d;
    vfloat ds = p * g;
    if (r->at.slope && !moved) vector_store_part(r->at.slope + i, ds, n);
    vector_store_part(r->at.g + i, r->at.scale * ds, n);
    if (!moved) return;
    vfloat u = p * (ts * g + vector_load_part(r->at.y + i, n, 0));
    vector_store_part(r->at.y + i, u, n);
    r->sum += u;
}

VECTOR_INLINE void values_centre(values_row *r, bool moved, bool pulled, int64_t i, int64_t n) {
    (void)moved, (void)pulled;
    vfloat y = vector_load_part(r->at.y + i, n, 0);
    y = y - r->mid * vector_load_part(r->at.s + i, n, 0);
    if (r->at.slope) vector_store_part(r->at.slope + i, y, n);
    vector_store_part(r->at.y + i, r->at.scale * y, n);
}

VECTOR_INLINE void values_of(const basin_values_row *row, bool moved, bool pulled) {
    values_row own = {.at = *row, .top = vector_all(-INFINITY)}, *r = &own;
    VALUES_PASS(values_scores);
    if (row->self >= 0 && row->self < row->count) row->s[row->self] = -INFINITY;
    VALUES_PASS(values_top);
    r->max = vector_largest(r->top);
    if (r->max == -INFINITY) r->max = 0;
    row_exp(r->at.s, r->at.s, 1, r->max, r->at.count);
    VALUES_PASS(values_measure);
    float total = vector_sum(r->total);
    r->share = total > 0 ? 1 / total : 0;
    r->middle = vector_sum(r->mean) * r->share, r->d = vector_sum(r->pull) * r->share;
    VALUES_PASS(values_finish);
    r->mid = vector_sum(r->sum);
    if (moved && pulled) VALUES_PASS(values_centre);
}

static void values(const basin_values_row *row) {
    if (row->x)
        row->g ? values_of(row, true, true) : values_of(row, true, false);
    else
        row->g ? values_of(row, false, true) : values_of(row, false, false);
}

#undef VALUES_PASS
#endif
