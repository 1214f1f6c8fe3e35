/* Energy attention over a list whose rows are short, without mix: all heads of a few pairs share a
 * vector, lane i being pair i / H and head i % H, and rows of tokens are read where they lie. The
 * notation is that of attention.h. Included by attention/kernels_body.h alone. */
#ifndef BASIN_BACKEND_CPU_ATTENTION_KERNELS_SHORT_H
#define BASIN_BACKEND_CPU_ATTENTION_KERNELS_SHORT_H

#include <math.h>

#include "backend/cpu/attention/kernels_products.h"

/* Lane i of the result is lane (i + by) % L of v. */
VECTOR_INLINE vfloat turn_lanes(vfloat v, int by) {
    vint lane;
    for (int i = 0; i < L; i++) lane[i] = (i + by) % L;
#if defined(__clang__)
    vfloat to;
    for (int i = 0; i < L; i++) to[i] = v[lane[i]];
    return to;
#else
    return __builtin_shuffle(v, lane);
#endif
}

/* Every lane gets the sum, or the largest, over the lanes of its head. */
VECTOR_INLINE vfloat sum_heads(vfloat v, int heads) {
    for (int by = L / 2; by >= heads; by /= 2) v += turn_lanes(v, by);
    return v;
}

VECTOR_INLINE vfloat most_heads(vfloat v, int heads) {
    for (int by = L / 2; by >= heads; by /= 2) v = vector_max(v, turn_lanes(v, by));
    return v;
}

/* x [H], over and over. */
VECTOR_INLINE vfloat load_heads_of(const float *x, int heads) {
    vfloat v;
    for (int i = 0; i < L; i++) v[i] = x[i % heads];
    return v;
}

/* The products of one pair and head: their lanes sum to x . row. */
VECTOR_INLINE vfloat dot_lanes(const float *x, const float *row, int width) {
    vfloat sum = vector_load(x) * vector_load(row);
    for (int i = L; i < width; i += L) sum += vector_load(x + i) * vector_load(row + i);
    return sum;
}

/* r[i, h] = Q[h] . K[key[i], h] and, in reverse, c[i, h] = A[h] . K + Q[h] . B, for n pairs. */
VECTOR_INLINE void short_dots(float *r, float *c, const basin_attention_short *s, int64_t query,
                              const int32_t *key, int64_t n, int heads, int width) {
    enum { MOST = KEYS };
    const int stride = heads * width, at_once = KEYS / heads;
    const float *q = s->q + query * stride, *a = s->a + query * s->a_step;
    for (int64_t first = 0; first < n; first += at_once) {
        int64_t pairs = n - first < at_once ? n - first : at_once;
        vfloat part_r[MOST], part_c[MOST];
        float sum[KEYS];
        for (int64_t e = pairs * heads; e < KEYS; e++) part_r[e] = part_c[e] = (vfloat){0};
        for (int64_t i = 0; i < pairs; i++) {
            const float *k = row_at(s->k, key[first + i], stride);
            const float *b = row_at(s->b, key[first + i], s->b_step);
            for (int h = 0; h < heads; h++) {
                int at = h * width;
                part_r[i * heads + h] = dot_lanes(q + at, k + at, width);
                if (s->reverse)
                    part_c[i * heads + h] =
                        dot_lanes(a + at, k + at, width) + dot_lanes(q + at, b + at, width);
            }
        }
        fold_all(sum, part_r);
        store_block(r + first * heads, sum, pairs * heads);
        if (!s->reverse) continue;
        fold_all(sum, part_c);
        store_block(c + first * heads, sum, pairs * heads);
    }
}

/* What a query's pairs share: by lanes, so that a vector of any pairs takes them as they are. */
typedef struct short_row {
    float *r, *c, *e;   /* [count] */
    const float *scale; /* [count] or NULL */
    float *dscale;      /* [count] or NULL */
    int64_t count;      /* pairs x heads */
    bool added;
    vfloat beta, w;
} short_row;

VECTOR_INLINE vfloat factor_at(const short_row *row, int64_t i) {
    return row->scale && !row->added ? vector_load_part(row->scale + i, row->count - i, 1)
                                     : vector_all(1);
}

/* z of the lanes from i on; minus infinity past the last pair. */
VECTOR_INLINE vfloat score_at(const short_row *row, int64_t i) {
    vfloat z = row->beta * vector_load_part(row->r + i, row->count - i, 0) * factor_at(row, i);
    if (row->scale && row->added) z += vector_load_part(row->scale + i, row->count - i, 0);
    if (i + L <= row->count) return z;
    float lane[L];
    vector_store(lane, z);
    return vector_load_part(lane, row->count - i, -INFINITY);
}

/* e <- exp(z - most); the totals, and in reverse the gains, of all heads. */
VECTOR_INLINE void short_measure(vfloat *most, vfloat *total, vfloat *gain, const short_row *row,
                                 bool reverse, int heads) {
    vfloat top = vector_all(-INFINITY), sum = {0}, weighed = {0};
    for (int64_t i = 0; i < row->count; i += L) {
        vfloat z = score_at(row, i);
        vector_store_part(row->e + i, z, row->count - i);
        top = vector_max(z, top);
    }
    top = most_heads(top, heads);
    for (int64_t i = 0; i < row->count; i += L) {
        vfloat z = vector_load_part(row->e + i, row->count - i, -INFINITY);
        vfloat e = vector_exp(z - top);
        vector_store_part(row->e + i, e, row->count - i);
        sum += e;
        if (reverse)
            weighed +=
                e * factor_at(row, i) * row->beta * vector_load_part(row->c + i, row->count - i, 0);
    }
    *most = top;
    *total = sum_heads(sum, heads);
    *gain = sum_heads(weighed, heads);
}

/* r <- beta t; returns the lanes of dbeta. */
VECTOR_INLINE vfloat short_force(const short_row *row, vfloat weight) {
    vfloat slope = {0};
    for (int64_t i = 0; i < row->count; i += L) {
        int64_t left = row->count - i;
        vfloat r = vector_load_part(row->r + i, left, 0);
        vfloat p = weight * vector_load_part(row->e + i, left, 0), t = p * factor_at(row, i);
        slope += t * r;
        if (row->dscale)
            vector_store_part(row->dscale + i, row->added ? p : p * row->beta * r, left);
        vector_store_part(row->r + i, row->beta * t, left);
    }
    return slope;
}

/* r <- beta t, c <- beta gs; returns the lanes of gbeta. */
VECTOR_INLINE vfloat short_reverse(const short_row *row, vfloat weight, vfloat gain) {
    vfloat slope = {0};
    for (int64_t i = 0; i < row->count; i += L) {
        int64_t left = row->count - i;
        vfloat r = vector_load_part(row->r + i, left, 0), c = vector_load_part(row->c + i, left, 0);
        vfloat p = weight * vector_load_part(row->e + i, left, 0), scale = factor_at(row, i);
        vfloat v = row->beta * c, t = p * scale;
        vfloat gz = p * (scale * v - gain), gs = scale * gz;
        slope += t * c + gs * r;
        if (row->dscale)
            vector_store_part(row->dscale + i, row->added ? gz : p * v + gz * row->beta * r, left);
        vector_store_part(row->r + i, row->beta * t, left);
        vector_store_part(row->c + i, row->beta * gs, left);
    }
    return slope;
}

/* to[h] = sum over n pairs of t[pair, h] x[h], and in reverse + gs[pair, h] y[h], x and y being the
 * rows of token other[i]; pairs are first, first + 1, .. or, where `pair` is given, listed there.
 */
VECTOR_INLINE void short_gather(float *to, const basin_attention_short *s, const float *x,
                                int64_t x_step, const float *y, const int32_t *other,
                                const int32_t *pair, int64_t first, int64_t n, int heads,
                                int width) {
    for (int h = 0; h < heads; h++)
        for (int at = h * width; at < (h + 1) * width; at += L) {
            vfloat sum = {0};
            for (int64_t i = 0; i < n; i++) {
                int64_t p = (pair ? pair[i] : first + i) * heads + h;
                if (s->reverse)
                    sum += s->t[p] * vector_load(x + other[i] * x_step + at) +
                           s->gs[p] * vector_load(y + other[i] * heads * width + at);
                else
                    sum += s->t[p] * vector_load(y + other[i] * heads * width + at);
            }
            vector_store(to + at, sum);
        }
}

VECTOR_INLINE void short_query(const basin_attention_short *s, int64_t query, vfloat *slope,
                               int heads, int width) {
    int64_t first = s->row[query], n = s->row[query + 1] - first;
    const int32_t *key = s->key + first;
    short_row row = {.r = s->t + first * heads,
                     .c = s->gs + first * heads,
                     .e = s->e + first * heads,
                     .scale = s->scale ? s->scale + first * heads : NULL,
                     .dscale = s->dscale ? s->dscale + first * heads : NULL,
                     .count = n * heads,
                     .added = s->added,
                     .beta = load_heads_of(s->beta, heads),
                     .w = load_heads_of(s->w + query * heads, heads)};
    vfloat most = {0}, total = {0}, gain = {0}, inverse = {0};
    if (n > 0) {
        short_dots(row.r, row.c, s, query, key, n, heads, width);
        short_measure(&most, &total, &gain, &row, s->reverse, heads);
        inverse = 1 / total, gain *= inverse;
        *slope += s->reverse ? short_reverse(&row, row.w * inverse, gain)
                             : short_force(&row, row.w * inverse);
    }
    for (int h = 0; s->lse && h < heads; h++)
        s->lse[query * heads + h] = n > 0 ? most[h] + logf(total[h]) : 0;
    if (s->gw) vector_store_part(s->gw + query * heads, gain, heads);
    if (s->out_query)
        short_gather(s->out_query + query * heads * width, s, s->b, s->b_step, s->k, key, NULL,
                     first, n, heads, width);
}

VECTOR_INLINE void short_rows_of(const basin_attention_short *s, int64_t first, int64_t last,
                                 float *dbeta, int heads, int width) {
    vfloat slope = {0};
    for (int64_t query = first; query < last; query++) short_query(s, query, &slope, heads, width);
    vector_store(dbeta, slope);
}

VECTOR_INLINE void short_columns_of(const basin_attention_short *s, int64_t first, int64_t last,
                                    int heads, int width) {
    for (int64_t key = first; key < last; key++) {
        int64_t begin = s->column[key];
        short_gather(s->out_key + key * heads * width, s, s->a, s->a_step, s->q, s->query + begin,
                     s->pair + begin, 0, s->column[key + 1] - begin, heads, width);
    }
}

/* The default model's sizes as constants: its loops then have no branches. */
static void short_rows(const basin_attention_short *s, int64_t first, int64_t last, float *dbeta) {
    if (s->heads == 4 && s->width == 16)
        short_rows_of(s, first, last, dbeta, 4, 16);
    else
        short_rows_of(s, first, last, dbeta, (int)s->heads, (int)s->width);
}

static void short_columns(const basin_attention_short *s, int64_t first, int64_t last) {
    if (s->heads == 4 && s->width == 16)
        short_columns_of(s, first, last, 4, 16);
    else
        short_columns_of(s, first, last, (int)s->heads, (int)s->width);
}

#endif
