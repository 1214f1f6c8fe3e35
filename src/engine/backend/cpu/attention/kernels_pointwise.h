/* Between the products: softmax, weights and derivatives over the pairs of a query, for any scale
 * and mix (measure, finish, complete) and for one head without (whole). */
#ifndef BASIN_BACKEND_CPU_ATTENTION_KERNELS_POINTWISE_H
#define BASIN_BACKEND_CPU_ATTENTION_KERNELS_POINTWISE_H

#include <math.h>

#include "engine/backend/cpu/attention/attention.h"
#include "engine/backend/cpu/simd/vector_math.h"

/* One tile of pairs of a row, all heads: what `measure` and `finish` share. The planes are
 * [H, ATTENTION_TILE] in the row's scratch, filled up to `span`: the pairs, rounded up to vectors.
 */
typedef struct tile {
    int64_t first, pairs, span;
    float *y, *scale, *v, *u, *x;
} tile;

static tile tile_at(const basin_attention_row *row, int64_t first) {
    int64_t plane = row->heads * ATTENTION_TILE, left = row->pairs - first;
    int64_t pairs = left < ATTENTION_TILE ? left : ATTENTION_TILE;
    return (tile){.first = first,
                  .pairs = pairs,
                  .span = (pairs + VECTOR_LANES - 1) / VECTOR_LANES * VECTOR_LANES,
                  .y = row->scratch,
                  .scale = row->scratch + plane,
                  .v = row->scratch + 2 * plane,
                  .u = row->scratch + 3 * plane,
                  .x = row->scratch + 4 * plane};
}

/* to[h + j] = sum_g mix[(h + j) h_step + g g_step] from[g], j < count <= 4: one read for four. */
VECTOR_INLINE void mix_some(float *to, const float *from, const float *mix, int64_t h_step,
                            int64_t g_step, int64_t heads, int64_t span, int count) {
    for (int64_t i = 0; i < span; i += VECTOR_LANES) {
        vfloat sum[4] = {{0}};
        for (int64_t g = 0; g < heads; g++) {
            vfloat x = vector_load(from + g * ATTENTION_TILE + i);
            for (int j = 0; j < count; j++) sum[j] += mix[j * h_step + g * g_step] * x;
        }
        for (int j = 0; j < count; j++) vector_store(to + j * ATTENTION_TILE + i, sum[j]);
    }
}

/* to[h'] = sum_h from[h] mix[h, h'], or `transposed` sum_h mix[h', h] from[h]; no mix: a copy. */
static void mix_heads(float *to, const float *from, const basin_attention_row *row, const tile *t,
                      bool transposed) {
    int64_t heads = row->heads, h = 0;
    int64_t h_step = transposed ? heads : 1, g_step = transposed ? 1 : heads;
    if (!row->mix) {
        memcpy(to, from, (size_t)(heads * ATTENTION_TILE) * sizeof *to);
        return;
    }
    for (; h + 4 <= heads; h += 4)
        mix_some(to + h * ATTENTION_TILE, from, row->mix + h * h_step, h_step, g_step, heads,
                 t->span, 4);
    for (; h < heads; h++)
        mix_some(to + h * ATTENTION_TILE, from, row->mix + h * h_step, h_step, g_step, heads,
                 t->span, 1);
}

/* x[h] = beta[h] in[h], with zeros past the last pair. */
static void load_heads(float *x, const float *in, const basin_attention_row *row, const tile *t) {
    for (int64_t h = 0; h < row->heads; h++)
        for (int64_t i = 0; i < t->span; i += VECTOR_LANES) {
            const float *from = in + h * row->plane + t->first + i;
            vector_store(x + h * ATTENTION_TILE + i,
                         row->beta[h] * vector_load_part(from, t->pairs - i, 0));
        }
}

/* Whether there are multipliers: a bias has none. */
static bool multiplies(const basin_attention_row *row) { return row->scale && !row->added; }

static void load_scale(const basin_attention_row *row, const tile *t) {
    for (int64_t h = 0; h < row->heads; h++) {
        float *to = t->scale + h * ATTENTION_TILE;
        for (int64_t i = multiplies(row) ? t->pairs : 0; i < t->span; i++) to[i] = 1;
        if (!multiplies(row)) continue;
        const float *from = row->scale + t->first * row->scale_stride + h;
        for (int64_t i = 0; i < t->pairs; i++) to[i] = from[i * row->scale_stride];
    }
}

/* y <- y + bias */
static void add_bias(const basin_attention_row *row, const tile *t) {
    for (int64_t h = 0; h < row->heads; h++) {
        const float *from = row->scale + t->first * row->scale_stride + h;
        float *y = t->y + h * ATTENTION_TILE;
        for (int64_t i = 0; i < t->pairs; i++) y[i] += from[i * row->scale_stride];
    }
}

/* y, scale and, with c, v of a tile. */
static void load_tile(const basin_attention_row *row, const tile *t) {
    load_scale(row, t);
    if (row->c) {
        load_heads(t->x, row->c, row, t);
        mix_heads(t->v, t->x, row, t, false);
    }
    load_heads(t->x, row->r, row, t);
    mix_heads(t->y, t->x, row, t, false);
    if (row->scale && row->added) add_bias(row, t);
}

/* u <- z of one head, minus infinity where there is no pair; returns the largest. */
static float tile_scores(const basin_attention_row *row, const tile *t, int64_t h) {
    const float *y = t->y + h * ATTENTION_TILE, *scale = t->scale + h * ATTENTION_TILE;
    float *z = t->u + h * ATTENTION_TILE;
    for (int64_t i = 0; i < t->span; i += VECTOR_LANES)
        vector_store(z + i, vector_load(y + i) * vector_load(scale + i));
    for (int64_t i = t->pairs; i < t->span; i++) z[i] = -INFINITY;
    int64_t self = row->self - t->first;
    if (self >= 0 && self < t->pairs) z[self] = -INFINITY;
    vfloat max = vector_load(z);
    for (int64_t i = VECTOR_LANES; i < t->span; i += VECTOR_LANES)
        max = vector_max(vector_load(z + i), max);
    return vector_largest(max);
}

/* What to subtract from z. A row without pairs has no largest one, and none is needed. */
static float shift_of(float max) { return max == -INFINITY ? 0 : max; }

static void measure_tile(const basin_attention_row *row, const tile *t) {
    for (int64_t h = 0; h < row->heads; h++) {
        const float *scale = t->scale + h * ATTENTION_TILE, *v = t->v + h * ATTENTION_TILE;
        float max = tile_scores(row, t, h);
        if (max > row->max[h]) {
            float fade = row->total[h] != 0 ? expf(row->max[h] - max) : 0;
            row->total[h] *= fade;
            if (row->c) row->gain[h] *= fade;
            row->max[h] = max;
        }
        vfloat total = {0}, gain = {0};
        for (int64_t i = 0; i < t->span; i += VECTOR_LANES) {
            vfloat z = vector_load(t->u + h * ATTENTION_TILE + i);
            vfloat e = vector_exp(z - shift_of(row->max[h]));
            total += e;
            if (row->c) gain += e * vector_load(scale + i) * vector_load(v + i);
        }
        row->total[h] += vector_sum(total);
        if (row->c) row->gain[h] += vector_sum(gain);
    }
}

/* The derivative with respect to scale, w P y, or in reverse w P v + gz y, which is why u holds
 * w P here and x holds gz; those two with respect to a bias. */
static void store_dscale(const basin_attention_row *row, const tile *t) {
    for (int64_t h = 0; h < row->heads; h++) {
        float *to = row->dscale + t->first * row->scale_stride + h;
        const float *y = t->y + h * ATTENTION_TILE, *u = t->u + h * ATTENTION_TILE;
        const float *v = t->v + h * ATTENTION_TILE, *gz = t->x + h * ATTENTION_TILE;
        for (int64_t i = 0; i < t->pairs; i++)
            to[i * row->scale_stride] = row->added ? (row->c ? gz[i] : u[i])
                                        : row->c   ? u[i] * v[i] + gz[i] * y[i]
                                                   : u[i] * y[i];
    }
}

/* u <- w P and, with c, x <- gz; then the derivative of scale; then both times scale. */
static void tile_weights(const basin_attention_row *row, const tile *t) {
    for (int64_t h = 0; h < row->heads; h++) {
        float inverse = row->total[h] != 0 ? 1 / row->total[h] : 0;
        float weight = row->w[h] * inverse, gain = row->c ? row->gain[h] * inverse : 0;
        tile_scores(row, t, h);
        for (int64_t i = h * ATTENTION_TILE; i < h * ATTENTION_TILE + t->span; i += VECTOR_LANES) {
            vfloat u = weight * vector_exp(vector_load(t->u + i) - shift_of(row->max[h]));
            vector_store(t->u + i, u);
            if (!row->c) continue;
            vfloat v = vector_load(t->v + i) * vector_load(t->scale + i);
            vector_store(t->x + i, u * (v - gain));
        }
    }
    if (row->dscale) store_dscale(row, t);
    if (!multiplies(row)) return;
    for (int64_t h = 0; h < row->heads; h++)
        for (int64_t i = h * ATTENTION_TILE; i < h * ATTENTION_TILE + t->span; i += VECTOR_LANES) {
            vfloat scale = vector_load(t->scale + i);
            vector_store(t->u + i, vector_load(t->u + i) * scale);
            if (row->c) vector_store(t->x + i, vector_load(t->x + i) * scale);
        }
}

VECTOR_INLINE void add_to(float *sum, vfloat x) { vector_store(sum, vector_load(sum) + x); }

/* dmix[h, h'] += sum in[h] beta[h] out[h'] over the pairs of the tile, lane by lane. */
static void add_mix(const basin_attention_row *row, const tile *t, const float *in,
                    const float *out) {
    load_heads(t->scale, in, row, t);
    for (int64_t h = 0; h < row->heads; h++)
        for (int64_t g = 0; g < row->heads; g++) {
            vfloat sum = {0};
            for (int64_t i = 0; i < t->span; i += VECTOR_LANES)
                sum += vector_load(t->scale + h * ATTENTION_TILE + i) *
                       vector_load(out + g * ATTENTION_TILE + i);
            add_to(row->dmix + (h * row->heads + g) * ATTENTION_ALIGN, sum);
        }
}

/* dbeta[h] += sum weight[h] raw[h], lane by lane. */
static void add_beta(const basin_attention_row *row, const tile *t, const float *weight,
                     const float *raw) {
    for (int64_t h = 0; h < row->heads; h++) {
        vfloat sum = {0};
        for (int64_t i = 0; i < t->pairs; i += VECTOR_LANES)
            sum += vector_load(weight + h * ATTENTION_TILE + i) *
                   vector_load_part(raw + h * row->plane + t->first + i, t->pairs - i, 0);
        add_to(row->dbeta + h * ATTENTION_ALIGN, sum);
    }
}

/* to[h] = beta[h] from[h] */
static void store_heads(const basin_attention_row *row, const tile *t, float *to,
                        const float *from) {
    for (int64_t h = 0; h < row->heads; h++)
        for (int64_t i = 0; i < t->pairs; i += VECTOR_LANES)
            vector_store_part(to + h * row->plane + t->first + i,
                              row->beta[h] * vector_load(from + h * ATTENTION_TILE + i),
                              t->pairs - i);
}

static void finish_tile(const basin_attention_row *row, const tile *t) {
    tile_weights(row, t);
    if (row->dmix) {
        add_mix(row, t, row->c ? row->c : row->r, t->u);
        if (row->c) add_mix(row, t, row->r, t->x);
    }
    mix_heads(t->y, t->u, row, t, true);
    if (row->dbeta) add_beta(row, t, t->y, row->c ? row->c : row->r);
    if (row->c) {
        mix_heads(t->v, t->x, row, t, true);
        if (row->dbeta) add_beta(row, t, t->v, row->r);
        store_heads(row, t, row->c, t->v);
    }
    store_heads(row, t, row->r, t->y);
}

static void measure(const basin_attention_row *row) {
    for (int64_t first = 0; first < row->pairs; first += ATTENTION_TILE) {
        tile t = tile_at(row, first);
        load_tile(row, &t);
        measure_tile(row, &t);
    }
}

static void finish(const basin_attention_row *row) {
    for (int64_t first = 0; first < row->pairs; first += ATTENTION_TILE) {
        tile t = tile_at(row, first);
        load_tile(row, &t);
        finish_tile(row, &t);
    }
}

static void complete(const basin_attention_row *row) {
    if (row->pairs > ATTENTION_TILE) {
        measure(row);
        finish(row);
        return;
    }
    tile t = tile_at(row, 0);
    load_tile(row, &t);
    measure_tile(row, &t);
    finish_tile(row, &t);
}

/* All ones in the lanes from `first` on that are pairs of the row. */
VECTOR_INLINE vint pair_mask(const basin_attention_row *row, int64_t first) {
    vint lane = (vint){0} + (int32_t)first;
    if (first + VECTOR_LANES <= row->pairs &&
        (row->self < first || row->self >= first + VECTOR_LANES))
        return ~(vint){0};
    for (int i = 0; i < VECTOR_LANES; i++) lane[i] += i;
    return (lane < (int32_t)row->pairs) & (lane != (int32_t)row->self);
}

VECTOR_INLINE vfloat masked(vfloat x, vint mask) { return (vfloat)((vint)x & mask); }

/* e <- exp(beta r - max), at most 1 where it is used: four vectors at a time, which do not wait
 * for each other. */
VECTOR_INLINE void row_exp(float *e, const float *r, float beta, float max, int64_t n) {
    int64_t i = 0;
    for (; i + 4 * VECTOR_LANES <= n; i += 4 * VECTOR_LANES) {
        vfloat p[4];
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++) p[v] = beta * vector_load(r + i + v * VECTOR_LANES) - max;
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++) p[v] = vector_exp_below(p[v]);
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++) vector_store(e + i + v * VECTOR_LANES, p[v]);
    }
    for (; i < n; i += VECTOR_LANES)
        vector_store_part(e + i, vector_exp_below(beta * vector_load_part(r + i, n - i, 0) - max),
                          n - i);
}

/* scratch <- e = exp(z - max), and the sums over the row; dbeta gets what it can without gs. `row`
 * is a copy that stores do not change. */
VECTOR_INLINE void whole_measure(const basin_attention_row row) {
    float beta = row.beta[0], *e = row.scratch;
    const vfloat none = vector_all(-INFINITY);
    vfloat top = none, before = none, total = {0}, gain = {0};
    for (int64_t i = 0; i < row.pairs; i += VECTOR_LANES) { /* of every other vector each */
        vfloat z = vector_select(pair_mask(&row, i), beta * vector_load(row.r + i), none);
        vfloat other = vector_max(z, before);
        before = top, top = other;
    }
    float max = vector_largest(vector_max(top, before));
    const float *other = row.c ? row.c : row.r;
    row_exp(e, row.r, beta, max, row.pairs);
    for (int64_t i = 0; i < row.pairs; i += VECTOR_LANES) {
        vint mask = pair_mask(&row, i);
        vfloat p = masked(vector_load(e + i), mask);
        vfloat x = masked(vector_load(other + i), mask);
        vector_store(e + i, p);
        total += p;
        gain += p * x;
    }
    row.max[0] = max;
    row.total[0] = vector_sum(total);
    row.gain[0] = beta * vector_sum(gain);
    if (row.dbeta && !row.c && row.total[0] != 0) add_to(row.dbeta, row.w[0] / row.total[0] * gain);
}

VECTOR_INLINE void leave(float *to, uint16_t *rounded, int64_t at, vfloat x) {
    if (rounded)
        vector_narrow(rounded + at, x);
    else
        vector_store(to + at, x);
}

static void whole(const basin_attention_row *at) {
    const basin_attention_row row = *at;
    float beta = row.beta[0], *e = row.scratch;
    whole_measure(row);
    if (!row.w) return;
    float inverse = row.total[0] != 0 ? 1 / row.total[0] : 0;
    float weight = row.w[0] * inverse, gain = row.gain[0] * inverse;
    vfloat slope = {0};
    for (int64_t i = 0; i < row.pairs; i += VECTOR_LANES) {
        vfloat t = weight * vector_load(e + i);
        if (row.c) {
            vint mask = pair_mask(&row, i);
            vfloat c = masked(vector_load(row.c + i), mask);
            vfloat gs = t * (beta * c - gain);
            vfloat r = masked(vector_load(row.r + i), mask);
            leave(row.c, row.gs, i, beta * gs);
            slope += t * c + gs * r;
        }
        leave(row.r, row.t, i, beta * t);
    }
    if (row.c && row.dbeta) add_to(row.dbeta, slope);
}

#endif
