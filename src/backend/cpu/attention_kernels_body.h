/* The inner loops of energy attention for the instruction set this is compiled for; included once
 * by each attention_kernels*.c, which names the table. See attention_kernels.h. */
#include "backend/cpu/attention_kernels.h"
#include "backend/cpu/vector_math.h"

/* Vectors of a row that a loop holds in registers. */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { PANEL = 8 };
#else
enum { PANEL = 4 };
#endif
enum { L = VECTOR_LANES, KEYS = 16 };

#define SHUFFLE __builtin_shufflevector

/* {a0+a2, b0+b2, a1+a3, b1+b3} in each group of four lanes. */
VECTOR_INLINE vfloat fold_two(vfloat a, vfloat b) {
#if VECTOR_LANES == 16
    return SHUFFLE(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +
           SHUFFLE(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
#elif VECTOR_LANES == 8
    return SHUFFLE(a, b, 0, 8, 1, 9, 4, 12, 5, 13) + SHUFFLE(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
#else
    return SHUFFLE(a, b, 0, 4, 1, 5) + SHUFFLE(a, b, 2, 6, 3, 7);
#endif
}

/* {sum a, sum b, sum c, sum d} of each group of four lanes. */
VECTOR_INLINE vfloat fold_four(const vfloat *v) {
    vfloat a = fold_two(v[0], v[1]), b = fold_two(v[2], v[3]);
#if VECTOR_LANES == 16
    return SHUFFLE(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
           SHUFFLE(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
#elif VECTOR_LANES == 8
    return SHUFFLE(a, b, 0, 1, 8, 9, 4, 5, 12, 13) + SHUFFLE(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
#else
    return SHUFFLE(a, b, 0, 1, 4, 5) + SHUFFLE(a, b, 2, 3, 6, 7);
#endif
}

/* out[i] = the sum of the lanes of v[i], for KEYS vectors. */
VECTOR_INLINE void fold_all(float *out, const vfloat *v) {
#if VECTOR_LANES == 16
    vfloat a = fold_four(v), b = fold_four(v + 4), c = fold_four(v + 8), d = fold_four(v + 12);
    vfloat ab = SHUFFLE(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
                SHUFFLE(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    vfloat cd = SHUFFLE(c, d, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
                SHUFFLE(c, d, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    vector_store(out,
                 SHUFFLE(ab, cd, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
                     SHUFFLE(ab, cd, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31));
#elif VECTOR_LANES == 8
    for (int i = 0; i < KEYS; i += 8) {
        vfloat a = fold_four(v + i), b = fold_four(v + i + 4);
        vector_store(out + i, SHUFFLE(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
                                  SHUFFLE(a, b, 4, 5, 6, 7, 12, 13, 14, 15));
    }
#else
    for (int i = 0; i < KEYS; i += 4) vector_store(out + i, fold_four(v + i));
#endif
}

VECTOR_INLINE void dot_panel(vfloat *part, const float *x, const float *rows, const int32_t *index,
                             int64_t n, int64_t width, int panel) {
    vfloat hold[PANEL];
    for (int p = 0; p < panel; p++) hold[p] = vector_load(x + p * L);
    for (int64_t i = 0; i < n; i++) {
        const float *row = rows + index[i] * width;
        vfloat sum = part[i];
        for (int p = 0; p < panel; p++) sum += hold[p] * vector_load(row + p * L);
        part[i] = sum;
    }
}

/* Calls CALL(at, panel) for pieces of a row of `width` floats, the panel a constant in each. */
#define FOR_PANELS(width, CALL)                                                                    \
    do {                                                                                           \
        int64_t at = 0;                                                                            \
        for (; at + PANEL * L <= (width); at += PANEL * L) CALL(at, PANEL);                        \
        if (PANEL > 4 && at + 4 * L <= (width)) {                                                  \
            CALL(at, 4);                                                                           \
            at += 4 * L;                                                                           \
        }                                                                                          \
        if (at + 2 * L <= (width)) {                                                               \
            CALL(at, 2);                                                                           \
            at += 2 * L;                                                                           \
        }                                                                                          \
        if (at < (width)) CALL(at, 1);                                                             \
    } while (0)

static void dot(float *out, const float *x, const float *rows, const int32_t *index, int64_t n,
                int64_t width) {
    for (int64_t i = 0; i < n; i += KEYS) {
        int64_t keys = n - i < KEYS ? n - i : KEYS;
        vfloat part[KEYS] = {{0}};
        float sums[KEYS];
#define CALL(at, panel) dot_panel(part, x + (at), rows + (at), index + i, keys, width, panel)
        FOR_PANELS(width, CALL);
#undef CALL
        fold_all(sums, part);
        memcpy(out + i, sums, (size_t)keys * sizeof *out);
    }
}

VECTOR_INLINE void dot_two_panel(vfloat *part_r, vfloat *part_c, const float *x, const float *rows,
                                 const int32_t *index, int64_t n, int64_t width, int panel) {
    vfloat q[PANEL], a[PANEL];
    for (int p = 0; p < panel; p++) {
        q[p] = vector_load(x + p * L);
        a[p] = vector_load(x + width + p * L);
    }
    for (int64_t i = 0; i < n; i++) {
        const float *k = rows + index[i] * 2 * width, *b = k + width;
        vfloat r = part_r[i], c = part_c[i];
        for (int p = 0; p < panel; p++) {
            vfloat key = vector_load(k + p * L);
            r += q[p] * key;
            c += a[p] * key;
            c += q[p] * vector_load(b + p * L);
        }
        part_r[i] = r;
        part_c[i] = c;
    }
}

static void dot_two(float *r, float *c, const float *x, const float *rows, const int32_t *index,
                    int64_t n, int64_t width) {
    for (int64_t i = 0; i < n; i += KEYS) {
        int64_t keys = n - i < KEYS ? n - i : KEYS;
        vfloat part_r[KEYS] = {{0}}, part_c[KEYS] = {{0}};
        float sums[KEYS];
#define CALL(at, panel)                                                                            \
    dot_two_panel(part_r, part_c, x + (at), rows + (at), index + i, keys, width, panel)
        FOR_PANELS(width, CALL);
#undef CALL
        fold_all(sums, part_r);
        memcpy(r + i, sums, (size_t)keys * sizeof *r);
        fold_all(sums, part_c);
        memcpy(c + i, sums, (size_t)keys * sizeof *c);
    }
}

VECTOR_INLINE void gather_panel(float *sum, const float *coefficient, const float *rows,
                                const int32_t *index, int64_t n, int64_t width, int panel) {
    vfloat hold[PANEL];
    for (int p = 0; p < panel; p++) hold[p] = vector_load(sum + p * L);
    for (int64_t i = 0; i < n; i++) {
        const float *row = rows + index[i] * width;
        for (int p = 0; p < panel; p++) hold[p] += coefficient[i] * vector_load(row + p * L);
    }
    for (int p = 0; p < panel; p++) vector_store(sum + p * L, hold[p]);
}

static void gather(float *sum, const float *coefficient, const float *rows, const int32_t *index,
                   int64_t n, int64_t width) {
#define CALL(at, panel) gather_panel(sum + (at), coefficient, rows + (at), index, n, width, panel)
    FOR_PANELS(width, CALL);
#undef CALL
}

VECTOR_INLINE void gather_two_panel(float *sum, const float *gs, const float *t, const float *rows,
                                    const int32_t *index, int64_t n, int64_t width, int panel) {
    vfloat hold[PANEL];
    for (int p = 0; p < panel; p++) hold[p] = vector_load(sum + p * L);
    for (int64_t i = 0; i < n; i++) {
        const float *k = rows + index[i] * 2 * width, *b = k + width;
        for (int p = 0; p < panel; p++) {
            hold[p] += gs[i] * vector_load(k + p * L);
            hold[p] += t[i] * vector_load(b + p * L);
        }
    }
    for (int p = 0; p < panel; p++) vector_store(sum + p * L, hold[p]);
}

static void gather_two(float *sum, const float *gs, const float *t, const float *rows,
                       const int32_t *index, int64_t n, int64_t width) {
#define CALL(at, panel) gather_two_panel(sum + (at), gs, t, rows + (at), index, n, width, panel)
    FOR_PANELS(width, CALL);
#undef CALL
}

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
        for (int64_t i = 0; i < ATTENTION_TILE; i += L) {
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
        for (int64_t i = 0; i < ATTENTION_TILE; i += L) {
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
    for (int64_t i = 0; i < ATTENTION_TILE; i += L)
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
            for (int64_t i = 0; i < ATTENTION_TILE; i += L) {
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
        for (int64_t i = at; i < at + ATTENTION_TILE; i += L) {
            vfloat u = weight * vector_load(t->u + i);
            vector_store(t->u + i, u);
            if (!row->c) continue;
            vfloat v = vector_load(t->v + i) * vector_load(t->scale + i);
            vector_store(t->x + i, u * (v - gain));
        }
    }
    if (row->dscale) store_dscale(row, t);
    if (!row->scale) return;
    for (int64_t i = 0; i < row->heads * ATTENTION_TILE; i += L) {
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
            for (int64_t i = 0; i < ATTENTION_TILE; i += L)
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
        for (int64_t i = 0; i < t->pairs; i += L)
            sum += vector_load(weight + h * ATTENTION_TILE + i) *
                   vector_load_part(raw + h * row->plane + t->first + i, t->pairs - i, 0);
        row->dbeta[h] += vector_sum(sum);
    }
}

/* to[h] = beta[h] from[h] */
static void store_heads(const basin_attention_row *row, const tile *t, float *to,
                        const float *from) {
    for (int64_t h = 0; h < row->heads; h++)
        for (int64_t i = 0; i < t->pairs; i += L)
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
    if (first + L <= row->pairs && (row->self < first || row->self >= first + L)) return ~(vint){0};
    for (int i = 0; i < L; i++) lane[i] += i;
    return (lane < (int32_t)row->pairs) & (lane != (int32_t)row->self);
}

VECTOR_INLINE vfloat masked(vfloat x, vint mask) { return (vfloat)((vint)x & mask); }

/* e <- exp(z - most), and the sums over the row; dbeta gets what it can without gs. */
static void whole_measure(const basin_attention_row *row, float *e) {
    float beta = row->beta[0];
    vfloat top = vector_all(-INFINITY), total = {0}, gain = {0};
    for (int64_t i = 0; i < row->pairs; i += L)
        top = vector_max(
            vector_select(pair_mask(row, i), beta * vector_load(row->r + i), vector_all(-INFINITY)),
            top);
    float most = vector_largest(top);
    const float *other = row->c ? row->c : row->r;
    for (int64_t i = 0; i < row->pairs; i += L) {
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
    for (int64_t i = 0; i < row->pairs; i += L) {
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

/* The pairs a fused loop takes at once: enough to fill a vector of any instruction set, few enough
 * for their rows to stay in the first-level cache between the dot products and the sums. */
VECTOR_INLINE float block_largest(const float *z) {
    vfloat most = vector_load(z);
    for (int i = L; i < KEYS; i += L) most = vector_max(vector_load(z + i), most);
    return vector_largest(most);
}

static void scale_row(float *x, float factor, int64_t count) {
    for (int64_t i = 0; i < count; i += L) vector_store(x + i, factor * vector_load(x + i));
}

/* Raises the state's most to that of z, fading what was summed under the old one. */
VECTOR_INLINE void raise_most(basin_attention_state *state, float *sum, const float *z,
                              int64_t count) {
    float most = block_largest(z);
    if (!(most > state->most)) return;
    float fade = expf(state->most - most);
    state->most = most;
    if (fade == 0 && state->total == 0) return;
    state->total *= fade;
    state->slope *= fade;
    state->gain *= fade;
    state->gain_slope *= fade;
    scale_row(sum, fade, count);
}

/* The dot products of up to KEYS keys; lanes past the last are 0. */
VECTOR_INLINE void dot_block(float *out, const float *x, const float *rows, const int32_t *index,
                             int64_t keys, int64_t width) {
    vfloat part[KEYS] = {{0}};
#define CALL(at, panel) dot_panel(part, x + (at), rows + (at), index, keys, width, panel)
    FOR_PANELS(width, CALL);
#undef CALL
    fold_all(out, part);
}

/* z = beta r, minus infinity past the last pair. */
VECTOR_INLINE void block_scores(float *z, const float *r, float beta, int64_t keys) {
    for (int i = 0; i < KEYS; i += L) vector_store(z + i, beta * vector_load(r + i));
    for (int64_t i = keys; i < KEYS; i++) z[i] = -INFINITY;
}

static void force_row(basin_attention_state *state, float *sum, float *rc, const float *x,
                      const float *rows, const int32_t *index, int64_t n, int64_t width,
                      float beta) {
    float r[KEYS], z[KEYS], e[KEYS];
    for (int64_t first = 0; first < n; first += KEYS) {
        int64_t keys = n - first < KEYS ? n - first : KEYS;
        dot_block(r, x, rows, index + first, keys, width);
        memcpy(rc + first, r, (size_t)keys * sizeof *rc);
        block_scores(z, r, beta, keys);
        raise_most(state, sum, z, width);
        vfloat total = {0}, slope = {0};
        for (int i = 0; i < KEYS; i += L) {
            vfloat p = vector_exp(vector_load(z + i) - state->most);
            vector_store(e + i, p);
            total += p;
            slope += p * vector_load(r + i);
        }
        state->total += vector_sum(total);
        state->slope += vector_sum(slope);
        gather(sum, e, rows, index + first, keys, width);
    }
}

VECTOR_INLINE void dot_two_block(float *r, float *c, const float *x, const float *rows,
                                 const int32_t *index, int64_t keys, int64_t width) {
    vfloat part_r[KEYS] = {{0}}, part_c[KEYS] = {{0}};
#define CALL(at, panel)                                                                            \
    dot_two_panel(part_r, part_c, x + (at), rows + (at), index, keys, width, panel)
    FOR_PANELS(width, CALL);
#undef CALL
    fold_all(r, part_r);
    fold_all(c, part_c);
}

/* sum[0] += e B + d K, sum[1] += e K */
VECTOR_INLINE void gather_three_panel(float *sum, const float *e, const float *d, const float *rows,
                                      const int32_t *index, int64_t n, int64_t width, int panel) {
    vfloat first[PANEL], second[PANEL];
    for (int p = 0; p < panel; p++) {
        first[p] = vector_load(sum + p * L);
        second[p] = vector_load(sum + width + p * L);
    }
    for (int64_t i = 0; i < n; i++) {
        const float *k = rows + index[i] * 2 * width, *b = k + width;
        for (int p = 0; p < panel; p++) {
            vfloat key = vector_load(k + p * L);
            first[p] += e[i] * vector_load(b + p * L);
            first[p] += d[i] * key;
            second[p] += e[i] * key;
        }
    }
    for (int p = 0; p < panel; p++) {
        vector_store(sum + p * L, first[p]);
        vector_store(sum + width + p * L, second[p]);
    }
}

/* The mean of c under the weights of its first block. */
static float early_mean(const float *z, const float *c, float most, int64_t keys) {
    float total = 0, sum = 0;
    for (int64_t i = 0; i < keys; i++) {
        float e = expf(z[i] - most);
        total += e;
        sum += e * c[i];
    }
    return sum / total;
}

static void reverse_row(basin_attention_state *state, float *sum, float *rc, const float *x,
                        const float *rows, const int32_t *index, int64_t n, int64_t width,
                        float beta) {
    float r[KEYS], c[KEYS], z[KEYS], e[KEYS], d[KEYS];
    for (int64_t first = 0; first < n; first += KEYS) {
        int64_t keys = n - first < KEYS ? n - first : KEYS;
        dot_two_block(r, c, x, rows, index + first, keys, width);
        for (int64_t i = 0; i < keys; i++) {
            rc[2 * (first + i)] = r[i];
            rc[2 * (first + i) + 1] = c[i];
        }
        block_scores(z, r, beta, keys);
        raise_most(state, sum, z, 2 * width);
        if (state->total == 0) state->center = early_mean(z, c, state->most, keys);
        vfloat total = {0}, slope = {0}, gain = {0}, gain_slope = {0};
        for (int i = 0; i < KEYS; i += L) {
            vfloat p = vector_exp(vector_load(z + i) - state->most);
            vfloat score = vector_load(r + i), part = p * (vector_load(c + i) - state->center);
            vector_store(e + i, p);
            vector_store(d + i, beta * part);
            total += p;
            slope += p * score;
            gain += part;
            gain_slope += part * score;
        }
        state->total += vector_sum(total);
        state->slope += vector_sum(slope);
        state->gain += vector_sum(gain);
        state->gain_slope += vector_sum(gain_slope);
#define CALL(at, panel)                                                                            \
    gather_three_panel(sum + (at), e, d, rows + (at), index + first, keys, width, panel)
        FOR_PANELS(width, CALL);
#undef CALL
    }
}

static void force_column(float *sum, const float *rc, const int32_t *pair,
                         const basin_attention_summary *summary, const float *rows,
                         const int32_t *index, int64_t n, int64_t width, float beta) {
    float z[KEYS] = {0}, t[KEYS] = {0};
    for (int64_t first = 0; first < n; first += KEYS) {
        int64_t keys = n - first < KEYS ? n - first : KEYS;
        for (int64_t i = 0; i < keys; i++) {
            const basin_attention_summary *query = summary + index[first + i];
            z[i] = beta * rc[pair[first + i]] - query->most;
            t[i] = query->weight;
        }
        for (int i = 0; i < KEYS; i += L)
            vector_store(t + i, vector_load(t + i) * vector_exp(vector_load(z + i)));
        gather(sum, t, rows, index + first, keys, width);
    }
}

static void reverse_column(float *sum, const float *rc, const int32_t *pair,
                           const basin_attention_summary *summary, const float *rows,
                           const int32_t *index, int64_t n, int64_t width, float beta) {
    float z[KEYS] = {0}, c[KEYS] = {0}, t[KEYS] = {0}, gs[KEYS];
    for (int64_t first = 0; first < n; first += KEYS) {
        int64_t keys = n - first < KEYS ? n - first : KEYS;
        for (int64_t i = 0; i < keys; i++) {
            const basin_attention_summary *query = summary + index[first + i];
            const float *from = rc + 2 * (int64_t)pair[first + i];
            z[i] = beta * from[0] - query->most;
            c[i] = beta * (from[1] - query->mean);
            t[i] = query->weight;
        }
        for (int i = 0; i < KEYS; i += L) {
            vfloat weight = vector_load(t + i) * vector_exp(vector_load(z + i));
            vector_store(t + i, weight);
            vector_store(gs + i, weight * vector_load(c + i));
        }
        gather_two(sum, gs, t, rows, index + first, keys, width);
    }
}

#define ATTENTION_KERNELS                                                                          \
    {                                                                                              \
        .dot = dot, .dot_two = dot_two, .gather = gather, .gather_two = gather_two,                \
        .measure = measure, .finish = finish, .whole = whole, .force_row = force_row,              \
        .reverse_row = reverse_row, .force_column = force_column, .reverse_column = reverse_column \
    }
