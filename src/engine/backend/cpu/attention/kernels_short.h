/* Energy attention over a list whose rows are short, without mix: all heads of a few pairs share a
 * vector, lane i being pair i / H and head i % H, and rows of tokens are read where they lie. The
 * notation is that of attention.h. Included only by attention/kernels_body.h. */
#ifndef BASIN_BACKEND_CPU_ATTENTION_KERNELS_SHORT_H
#define BASIN_BACKEND_CPU_ATTENTION_KERNELS_SHORT_H

#include <math.h>

#include "engine/backend/cpu/attention/kernels_products.h"

/* Lane i of the result is lane[i] of v. */
VECTOR_INLINE vfloat pick_lanes(vfloat v, vint lane) {
#if defined(__clang__)
    vfloat to;
    for (int i = 0; i < L; i++) to[i] = v[lane[i]];
    return to;
#else
    return __builtin_shuffle(v, lane);
#endif
}

/* Lane i of the result is lane (i + by) % L of v. */
VECTOR_INLINE vfloat turn_lanes(vfloat v, int by) {
    vint lane;
    for (int i = 0; i < L; i++) lane[i] = (i + by) % L;
    return pick_lanes(v, lane);
}

/* Every lane gets the sum, or the largest, over the lanes of its head. */
VECTOR_INLINE vfloat sum_heads(vfloat v, int heads) {
    for (int by = L / 2; by >= heads; by /= 2) v += turn_lanes(v, by);
    return v;
}

VECTOR_INLINE vfloat max_heads(vfloat v, int heads) {
    for (int by = L / 2; by >= heads; by /= 2) v = vector_max(v, turn_lanes(v, by));
    return v;
}

/* x [H], over and over. */
VECTOR_INLINE vfloat load_heads_of(const float *x, int heads) {
    vint lane;
    for (int i = 0; i < L; i++) lane[i] = i % heads;
    return pick_lanes(vector_load_part(x, heads, 0), lane);
}

/* The products of one pair and head: their lanes sum to x . row. */
VECTOR_INLINE vfloat dot_lanes(const float *x, const float *row, int width) {
    vfloat sum = vector_load(x) * vector_load(row);
    for (int i = L; i < width; i += L) sum += vector_load(x + i) * vector_load(row + i);
    return sum;
}

/* r[i, h] = Q[h] . K[key[i], h] and, in reverse, c[i, h] = A[h] . K + Q[h] . B, for n pairs, a
 * vector of them at a time: past the last that one again, not stored. */
VECTOR_INLINE void short_dots(float *r, float *c, const basin_attention_short *s, int64_t query,
                              const int32_t *key, int64_t n, bool reverse, int heads, int width) {
    const int stride = heads * width, at_once = KEYS / heads;
    const float *q = s->q + query * stride, *a = s->a + query * s->a_step;
    for (int64_t first = 0; first < n; first += at_once) {
        vfloat part_r[KEYS], part_c[KEYS];
        float sum[KEYS];
#pragma GCC unroll 16
        for (int i = 0; i < at_once; i++) {
            int32_t other = key[first + i < n ? first + i : n - 1];
            const float *k = row_at(s->k, other, stride), *b = row_at(s->b, other, s->b_step);
#pragma GCC unroll 16
            for (int h = 0; h < heads; h++) {
                int at = h * width;
                part_r[i * heads + h] = dot_lanes(q + at, k + at, width);
                if (reverse)
                    part_c[i * heads + h] =
                        dot_lanes(a + at, k + at, width) + dot_lanes(q + at, b + at, width);
            }
        }
        fold_all(sum, part_r);
        store_block(r + first * heads, sum, (n - first) * heads);
        if (!reverse) continue;
        fold_all(sum, part_c);
        store_block(c + first * heads, sum, (n - first) * heads);
    }
}

/* What a query's pairs share: by lanes, so that a vector of any pairs takes them as they are. */
typedef struct short_row {
    float *r, *c, *e;   /* [count] */
    const float *scale; /* [count] or NULL */
    float *dscale;      /* [count] or NULL */
    int64_t count;      /* pairs x heads */
    bool added;
    vfloat beta;
} short_row;

VECTOR_INLINE vfloat factor_at(const short_row *row, int64_t i) {
    return row->scale && !row->added ? vector_load_part(row->scale + i, row->count - i, 1)
                                     : vector_all(1);
}

/* z of the lanes from i on; minus infinity past the last pair. */
VECTOR_INLINE vfloat score_at(const short_row *row, int64_t i) {
    vfloat z = row->beta * vector_load_part(row->r + i, row->count - i, 0) * factor_at(row, i);
    if (row->scale && row->added) z += vector_load_part(row->scale + i, row->count - i, 0);
    vint lane;
    for (int l = 0; l < L; l++) lane[l] = l;
    return vector_select(lane < (int32_t)(row->count - i), z, vector_all(-INFINITY));
}

/* e <- exp(z - max); the totals, and in reverse the gains, of all heads. */
VECTOR_INLINE void short_measure(vfloat *max, vfloat *total, vfloat *gain, const short_row *row,
                                 bool reverse, int heads) {
    vfloat top = vector_all(-INFINITY), sum = {0}, weighed = {0};
    for (int64_t i = 0; i < row->count; i += L) {
        vfloat z = score_at(row, i);
        vector_store_part(row->e + i, z, row->count - i);
        top = vector_max(z, top);
    }
    top = max_heads(top, heads);
    for (int64_t i = 0; i < row->count; i += L) {
        vfloat z = vector_load_part(row->e + i, row->count - i, -INFINITY);
        vfloat e = vector_exp(z - top);
        vector_store_part(row->e + i, e, row->count - i);
        sum += e;
        if (reverse)
            weighed +=
                e * factor_at(row, i) * row->beta * vector_load_part(row->c + i, row->count - i, 0);
    }
    *max = top;
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

/* A list of pairs along a row or a column, and what is summed there: t x, and in reverse + gs y, x
 * and y being the rows of token other[i]. Pairs are first, first + 1, .. or listed in `pair`. */
typedef struct short_list {
    const float *x, *y;
    int64_t x_step;
    const int32_t *other, *pair;
    int64_t first, count;
} short_list;

/* Some heads of the sum, in `vectors` vectors from float `at` on. */
VECTOR_INLINE void short_gather_some(float *to, const basin_attention_short *s,
                                     const short_list *list, bool reverse, int heads, int width,
                                     int at, int vectors) {
    vfloat sum[4] = {{0}};
    for (int64_t i = 0; i < list->count; i++) {
        int64_t p = (list->pair ? list->pair[i] : list->first + i) * heads;
        const float *x = row_at(list->x, list->other[i], list->x_step) + at;
        const float *y = row_at(list->y, list->other[i], heads * width) + at;
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            int64_t h = p + (at + v * L) / width;
            if (reverse) {
                sum[v] += s->t[h] * vector_load(x + v * L);
                sum[v] += s->gs[h] * vector_load(y + v * L);
            } else
                sum[v] += s->t[h] * vector_load(y + v * L);
        }
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) vector_store(to + at + v * L, sum[v]);
}

VECTOR_INLINE void short_gather(float *to, const basin_attention_short *s, const short_list *list,
                                bool reverse, int heads, int width) {
    int at = 0;
    for (; at + 4 * L <= heads * width; at += 4 * L)
        short_gather_some(to, s, list, reverse, heads, width, at, 4);
    for (; at < heads * width; at += L)
        short_gather_some(to, s, list, reverse, heads, width, at, 1);
}

VECTOR_INLINE void short_query(const basin_attention_short *s, int64_t query, vfloat beta,
                               vfloat *slope, bool reverse, int heads, int width) {
    int64_t first = s->row[query], n = s->row[query + 1] - first;
    const int32_t *key = s->key + first;
    short_row row = {.r = s->t + first * heads,
                     .c = s->gs + first * heads,
                     .e = s->e + first * heads,
                     .scale = s->scale ? s->scale + first * heads : NULL,
                     .dscale = s->dscale ? s->dscale + first * heads : NULL,
                     .count = n * heads,
                     .added = s->added,
                     .beta = beta};
    vfloat max = {0}, total = {0}, gain = {0};
    if (n > 0) {
        short_dots(row.r, row.c, s, query, key, n, reverse, heads, width);
        short_measure(&max, &total, &gain, &row, reverse, heads);
        vfloat inverse = 1 / total, weight = inverse * load_heads_of(s->w + query * heads, heads);
        gain *= inverse;
        *slope += reverse ? short_reverse(&row, weight, gain) : short_force(&row, weight);
    }
    for (int h = 0; s->lse && h < heads; h++)
        s->lse[query * heads + h] = n > 0 ? max[h] + logf(total[h]) : 0;
    if (s->gw) vector_store_part(s->gw + query * heads, gain, heads);
    short_list list = {s->b, s->k, s->b_step, key, NULL, first, n};
    if (s->out_query)
        short_gather(s->out_query + query * heads * width, s, &list, reverse, heads, width);
}

VECTOR_INLINE void short_rows_of(const basin_attention_short *s, int64_t first, int64_t last,
                                 float *dbeta, bool reverse, int heads, int width) {
    vfloat slope = {0}, beta = load_heads_of(s->beta, heads);
    for (int64_t query = first; query < last; query++)
        short_query(s, query, beta, &slope, reverse, heads, width);
    vector_store(dbeta, slope);
}

VECTOR_INLINE void short_columns_of(const basin_attention_short *s, int64_t first, int64_t last,
                                    bool reverse, int heads, int width) {
    for (int64_t key = first; key < last; key++) {
        int64_t begin = s->column[key], count = s->column[key + 1] - begin;
        short_list list = {s->a, s->q, s->a_step, s->query + begin, s->pair + begin, 0, count};
        short_gather(s->out_key + key * heads * width, s, &list, reverse, heads, width);
    }
}

/* Numbers of heads, and the default model's width, are constants where loops are inlined; where
 * size counts (isa.cmake), the former only. */
#if defined(__OPTIMIZE_SIZE__)
#define SHORT_HEADS(H)                                                                             \
    case H:                                                                                        \
        CALL(s->reverse, H, (int)s->width);                                                        \
        break;
#else
#define SHORT_HEADS(H)                                                                             \
    case H:                                                                                        \
        if (s->reverse && s->width == 16)                                                          \
            CALL(true, H, 16);                                                                     \
        else if (s->width == 16)                                                                   \
            CALL(false, H, 16);                                                                    \
        else                                                                                       \
            CALL(s->reverse, H, (int)s->width);                                                    \
        break;
#endif
#if VECTOR_LANES == 16
#define SHORT_ALL SHORT_HEADS(1) SHORT_HEADS(2) SHORT_HEADS(4) SHORT_HEADS(8) SHORT_HEADS(16)
#elif VECTOR_LANES == 8
#define SHORT_ALL SHORT_HEADS(1) SHORT_HEADS(2) SHORT_HEADS(4) SHORT_HEADS(8)
#else
#define SHORT_ALL SHORT_HEADS(1) SHORT_HEADS(2) SHORT_HEADS(4)
#endif

static void short_rows(const basin_attention_short *s, int64_t first, int64_t last, float *dbeta) {
#define CALL(reverse, heads, width) short_rows_of(s, first, last, dbeta, reverse, heads, width)
    switch (s->heads) {
        SHORT_ALL
    default: break; /* does not divide the lanes: never asked for */
    }
#undef CALL
}

static void short_columns(const basin_attention_short *s, int64_t first, int64_t last) {
#define CALL(reverse, heads, width) short_columns_of(s, first, last, reverse, heads, width)
    switch (s->heads) {
        SHORT_ALL
    default: break;
    }
#undef CALL
}
#undef SHORT_ALL
#undef SHORT_HEADS

#endif
