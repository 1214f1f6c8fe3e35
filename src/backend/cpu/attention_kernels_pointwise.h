/* Energy attention between the products: softmax, weights and their derivatives over the pairs of a
 * query, for any scale and mix (measure, finish) and for a single head without them (whole).
 * Included by attention_kernels_body.h alone. */
#ifndef BASIN_BACKEND_CPU_ATTENTION_KERNELS_POINTWISE_H
#define BASIN_BACKEND_CPU_ATTENTION_KERNELS_POINTWISE_H

#include <math.h>

#include "backend/cpu/attention_kernels.h"
#include "backend/cpu/vector_math.h"

/* One tile of pairs of a row, all heads: what `measure` and `finish` share. The planes are
 * [H, ATTENTION_TILE] in the row's scratch. */
typedef struct tile {
    int64_t first, pairs; /* of the row */
    float *y, *scale, *v, *u, *x;
} tile;

static tile tile_at(const basin_attention_row *row, int64_t first) {
    int64_t plane = row->heads * ATTENTION_TILE, left = row->pairs - first;
    return (tile){.first = first,
                  .pairs = left < ATTENTION_TILE ? left : ATTENTION_TILE,
                  .y = row->scratch,
                  .scale = row->scratch + plane,
                  .v = row->scratch + 2 * plane,
                  .u = row->scratch + 3 * plane,
                  .x = row->scratch + 4 * plane};
}

/* to[h'] = sum_h from[h] mix[h, h'], or with `transposed` sum_h mix[h', h] from[h]; without a mix
 * a copy. */
static void mix_heads(float *to, const float *from, const float *mix, int64_t heads,
                      int transposed) {
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < ATTENTION_TILE; i += VECTOR_LANES) {
            vfloat sum = {0};
            if (!mix) sum = vector_load(from + h * ATTENTION_TILE + i);
            for (int64_t g = 0; mix && g < heads; g++)
                sum += mix[transposed ? h * heads + g : g * heads + h] *
                       vector_load(from + g * ATTENTION_TILE + i);
            vector_store(to + h * ATTENTION_TILE + i, sum);
        }
}

/* x[h] = beta[h] in[h], with zeros past the last pair. */
static void load_heads(float *x, const float *in, const basin_attention_row *row, const tile *t) {
    for (int64_t h = 0; h < row->heads; h++)
        for (int64_t i = 0; i < ATTENTION_TILE; i += VECTOR_LANES) {
            const float *from = in + h * row->plane + t->first + i;
            vector_store(x + h * ATTENTION_TILE + i,
                         row->beta[h] * vector_load_part(from, t->pairs - i, 0));
        }
}

static void load_scale(const basin_attention_row *row, const tile *t) {
    for (int64_t h = 0; h < row->heads; h++) {
        float *to = t->scale + h * ATTENTION_TILE;
        for (int64_t i = 0; i < ATTENTION_TILE; i++) to[i] = 1;
        if (!row->scale) continue;
        const float *from = row->scale + t->first * row->scale_stride + h;
        for (int64_t i = 0; i < t->pairs; i++) to[i] = from[i * row->scale_stride];
    }
}

/* y, scale and, with c, v of a tile. x is left with s. */
static void load_tile(const basin_attention_row *row, const tile *t) {
    load_scale(row, t);
    if (row->c) {
        load_heads(t->x, row->c, row, t);
        mix_heads(t->v, t->x, row->mix, row->heads, 0);
    }
    load_heads(t->x, row->r, row, t);
    mix_heads(t->y, t->x, row->mix, row->heads, 0);
}

/* exp(y scale - shift), and 0 for what is no pair. */
static void tile_exp(float *e, const float *y, const float *scale, float shift, int64_t pairs,
                     int64_t self) {
    for (int64_t i = 0; i < ATTENTION_TILE; i += VECTOR_LANES)
        vector_store(e + i, vector_exp(vector_load(y + i) * vector_load(scale + i) - shift));
    for (int64_t i = pairs; i < ATTENTION_TILE; i++) e[i] = 0;
    if (self >= 0 && self < pairs) e[self] = 0;
}

static float tile_most(const float *y, const float *scale, int64_t pairs, int64_t self) {
    float most = -INFINITY;
    for (int64_t i = 0; i < pairs; i++)
        if (!(y[i] * scale[i] <= most) && i != self) most = y[i] * scale[i];
    return most;
}

static void measure(const basin_attention_row *row) {
    for (int64_t first = 0; first < row->pairs; first += ATTENTION_TILE) {
        tile t = tile_at(row, first);
        load_tile(row, &t);
        for (int64_t h = 0; h < row->heads; h++) {
            const float *y = t.y + h * ATTENTION_TILE, *scale = t.scale + h * ATTENTION_TILE;
            float *e = t.u + h * ATTENTION_TILE;
            float most = tile_most(y, scale, t.pairs, row->self - first);
            if (most == -INFINITY) continue;
            if (most > row->most[h]) {
                float fade = expf(row->most[h] - most);
                row->total[h] *= fade;
                if (row->c) row->gain[h] *= fade;
                row->most[h] = most;
            }
            tile_exp(e, y, scale, row->most[h], t.pairs, row->self - first);
            vfloat total = {0}, gain = {0};
            for (int64_t i = 0; i < ATTENTION_TILE; i += VECTOR_LANES) {
                vfloat p = vector_load(e + i);
                total += p;
                if (!row->c) continue;
                gain += p * vector_load(scale + i) * vector_load(t.v + h * ATTENTION_TILE + i);
            }
            row->total[h] += vector_sum(total);
            if (row->c) row->gain[h] += vector_sum(gain);
        }
    }
}

/* The derivative with respect to scale, w P y, or in reverse w P v + gz y, which is why u holds
 * w P here and x holds gz. */
static void store_dscale(const basin_attention_row *row, const tile *t) {
    for (int64_t h = 0; h < row->heads; h++) {
        float *to = row->dscale + t->first * row->scale_stride + h;
        const float *y = t->y + h * ATTENTION_TILE, *u = t->u + h * ATTENTION_TILE;
        const float *v = t->v + h * ATTENTION_TILE, *gz = t->x + h * ATTENTION_TILE;
        for (int64_t i = 0; i < t->pairs; i++)
            to[i * row->scale_stride] = row->c ? u[i] * v[i] + gz[i] * y[i] : u[i] * y[i];
    }
}

/* u <- w P and, with c, x <- gz; then the derivative of scale; then both times scale. */
static void tile_weights(const basin_attention_row *row, const tile *t) {
    for (int64_t h = 0; h < row->heads; h++) {
        int64_t at = h * ATTENTION_TILE;
        float inverse = row->total[h] != 0 ? 1 / row->total[h] : 0;
        float weight = row->w[h] * inverse, gain = row->c ? row->gain[h] * inverse : 0;
        tile_exp(t->u + at, t->y + at, t->scale + at, row->most[h], t->pairs, row->self - t->first);
        for (int64_t i = at; i < at + ATTENTION_TILE; i += VECTOR_LANES) {
            vfloat u = weight * vector_load(t->u + i);
            vector_store(t->u + i, u);
            if (!row->c) continue;
            vfloat v = vector_load(t->v + i) * vector_load(t->scale + i);
            vector_store(t->x + i, u * (v - gain));
        }
    }
    if (row->dscale) store_dscale(row, t);
    if (!row->scale) return;
    for (int64_t i = 0; i < row->heads * ATTENTION_TILE; i += VECTOR_LANES) {
        vfloat scale = vector_load(t->scale + i);
        vector_store(t->u + i, vector_load(t->u + i) * scale);
        if (row->c) vector_store(t->x + i, vector_load(t->x + i) * scale);
    }
}

/* dmix[h, h'] += sum in[h] beta[h] out[h'] over the pairs of the tile. */
static void add_mix(const basin_attention_row *row, const tile *t, const float *in,
                    const float *out) {
    load_heads(t->scale, in, row, t);
    for (int64_t h = 0; h < row->heads; h++)
        for (int64_t g = 0; g < row->heads; g++) {
            vfloat sum = {0};
            for (int64_t i = 0; i < ATTENTION_TILE; i += VECTOR_LANES)
                sum += vector_load(t->scale + h * ATTENTION_TILE + i) *
                       vector_load(out + g * ATTENTION_TILE + i);
            row->dmix[h * row->heads + g] += vector_sum(sum);
        }
}

/* dbeta[h] += sum weight[h] raw[h] */
static void add_beta(const basin_attention_row *row, const tile *t, const float *weight,
                     const float *raw) {
    for (int64_t h = 0; h < row->heads; h++) {
        vfloat sum = {0};
        for (int64_t i = 0; i < t->pairs; i += VECTOR_LANES)
            sum += vector_load(weight + h * ATTENTION_TILE + i) *
                   vector_load_part(raw + h * row->plane + t->first + i, t->pairs - i, 0);
        row->dbeta[h] += vector_sum(sum);
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

static void finish(const basin_attention_row *row) {
    for (int64_t first = 0; first < row->pairs; first += ATTENTION_TILE) {
        tile t = tile_at(row, first);
        load_tile(row, &t);
        tile_weights(row, &t);
        if (row->dmix) {
            add_mix(row, &t, row->c ? row->c : row->r, t.u);
            if (row->c) add_mix(row, &t, row->r, t.x);
        }
        mix_heads(t.y, t.u, row->mix, row->heads, 1);
        if (row->dbeta) add_beta(row, &t, t.y, row->c ? row->c : row->r);
        if (row->c) {
            mix_heads(t.v, t.x, row->mix, row->heads, 1);
            if (row->dbeta) add_beta(row, &t, t.v, row->r);
            store_heads(row, &t, row->c, t.v);
        }
        store_heads(row, &t, row->r, t.y);
    }
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

/* e <- exp(z - most), and the sums over the row; dbeta gets what it can without gs. */
static void whole_measure(const basin_attention_row *row, float *e) {
    float beta = row->beta[0];
    vfloat top = vector_all(-INFINITY), total = {0}, gain = {0};
    for (int64_t i = 0; i < row->pairs; i += VECTOR_LANES)
        top = vector_max(
            vector_select(pair_mask(row, i), beta * vector_load(row->r + i), vector_all(-INFINITY)),
            top);
    float most = vector_largest(top);
    const float *other = row->c ? row->c : row->r;
    for (int64_t i = 0; i < row->pairs; i += VECTOR_LANES) {
        vint mask = pair_mask(row, i);
        vfloat x = masked(vector_load(other + i), mask);
        vfloat p = masked(vector_exp(beta * vector_load(row->r + i) - most), mask);
        vector_store(e + i, p);
        total += p;
        gain += p * x;
    }
    row->most[0] = most;
    row->total[0] = vector_sum(total);
    row->gain[0] = beta * vector_sum(gain);
    if (row->dbeta && !row->c && row->total[0] != 0)
        row->dbeta[0] += row->w[0] / row->total[0] * vector_sum(gain);
}

static void whole(const basin_attention_row *row) {
    float beta = row->beta[0], *e = row->c ? row->scratch : row->r;
    whole_measure(row, e);
    if (!row->w) return;
    float inverse = row->total[0] != 0 ? 1 / row->total[0] : 0;
    float weight = row->w[0] * inverse, gain = row->gain[0] * inverse;
    vfloat slope = {0};
    for (int64_t i = 0; i < row->pairs; i += VECTOR_LANES) {
        vfloat t = weight * vector_load(e + i);
        if (row->c) {
            vint mask = pair_mask(row, i);
            vfloat c = masked(vector_load(row->c + i), mask);
            vfloat gs = t * (beta * c - gain);
            slope += t * c + gs * masked(vector_load(row->r + i), mask);
            vector_store(row->c + i, beta * gs);
        }
        vector_store(row->r + i, beta * t);
    }
    if (row->c && row->dbeta) row->dbeta[0] += vector_sum(slope);
}

#endif
