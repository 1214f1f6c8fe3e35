/* Softmax attention with values and its derivatives; the equations are in backend/values.h. */
#include <math.h>

#include "basin/random.h"
#include "engine/backend/ref/ref.h"
#include "engine/backend/values.h"

/* Numbers of the pairs of one query and head. */
typedef struct pairs {
    double *p, *ts, *g, *tg; /* become p, tp, ds, tds */
    int64_t count;
} pairs;

static int64_t max_pairs(const basin_call *call) {
    bool list = call->in[BASIN_VAL_ROW].block >= 0;
    return list ? call->in[BASIN_VAL_ROW + 1].shape.dim[0] : call->in[BASIN_VAL_K].shape.dim[1];
}

size_t basin_ref_values_scratch(const basin_call *call) {
    return 4 * (size_t)max_pairs(call) * sizeof(double);
}

static double dot(const double *x, const double *y, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; x && y && i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* y += a x */
static void add(double *y, double a, const double *x, int64_t n) {
    for (int64_t i = 0; y && x && i < n; i++) y[i] += a * x[i];
}

/* One head of a token, NULL where the tensor is absent. */
static double *row_of(const void *tensor, const basin_values_steps *of, int64_t b, int64_t h,
                      int64_t token) {
    double *data = (double *)(uintptr_t)tensor;
    return data ? data + basin_values_at(of, b, h, token) : NULL;
}

typedef struct place {
    int64_t b, h, i;
} place;

static int64_t key_of(const basin_values *at, int64_t i, int64_t n) {
    return at->row ? at->key[at->row[i] + n] : n;
}

/* s, scale (tq . k + q . tk) + tbias, g and tg. */
static void measure(pairs *x, const basin_values *at, place w) {
    const double *bias = at->bias, *tbias = at->tbias;
    int64_t shared = w.h / (at->heads / at->shared);
    if (bias) bias += basin_values_bias_at(&at->of_bias, at->row, w.b, w.h, w.i);
    if (tbias) tbias += basin_values_bias_at(&at->of_tbias, at->row, w.b, w.h, w.i);
    const double *q = row_of(at->q, &at->of_q, w.b, w.h, w.i);
    const double *tq = row_of(at->tq, &at->of_q, w.b, w.h, w.i);
    const double *c = row_of(at->c, &at->of_c, w.b, w.h, w.i);
    const double *tc = row_of(at->tc, &at->of_c, w.b, w.h, w.i);
    for (int64_t n = 0; n < x->count; n++) {
        int64_t j = key_of(at, w.i, n);
        const double *k = row_of(at->k, &at->of_k, w.b, shared, j);
        const double *tk = row_of(at->tk, &at->of_k, w.b, shared, j);
        const double *v = row_of(at->v, &at->of_v, w.b, shared, j);
        const double *tv = row_of(at->tv, &at->of_v, w.b, shared, j);
        x->p[n] = at->scale * dot(q, k, at->width) + (bias ? bias[n * at->of_bias.pair] : 0);
        if (!at->row && at->exclude_self && j == w.i) x->p[n] = -INFINITY;
        x->ts[n] = at->scale * (dot(tq, k, at->width) + dot(q, tk, at->width)) +
                   (tbias ? tbias[n * at->of_tbias.pair] : 0);
        x->g[n] = dot(c, v, at->value_width);
        x->tg[n] = dot(tc, v, at->value_width) + dot(c, tv, at->value_width);
    }
}

/* From those to p, tp, ds, tds. */
static void finish(pairs *x) {
    double max = -INFINITY, total = 0, d = 0, mean = 0, sum = 0;
    for (int64_t n = 0; n < x->count; n++) max = fmax(max, x->p[n]);
    for (int64_t n = 0; n < x->count; n++)
        total += x->p[n] = x->p[n] == -INFINITY ? 0 : exp(x->p[n] - max);
    for (int64_t n = 0; n < x->count; n++) {
        x->p[n] = total == 0 ? 0 : x->p[n] / total; /* NaN stays */
        d += x->p[n] * x->g[n];
        mean += x->p[n] * x->ts[n];
    }
    for (int64_t n = 0; n < x->count; n++) {
        double ts = x->ts[n] - mean, g = x->g[n] - d;
        sum += x->tg[n] = x->p[n] * (ts * g + x->tg[n]);
        x->ts[n] = x->p[n] * ts;
        x->g[n] = x->p[n] * g;
    }
    for (int64_t n = 0; n < x->count; n++) x->tg[n] -= x->p[n] * sum;
}

/* Multiplies p and tp, or g and tg, by m. */
static void drop(double *x, double *y, int64_t count, const basin_values *at, place w) {
    uint64_t first = basin_values_draw(at, w.b, w.h, w.i);
    for (int64_t n = 0; n < count && at->seed; n++) {
        double draw = basin_random_uniform_at(basin_seed_of(at->seed), at->stream, first + n);
        double m = draw > at->drop ? 1 / (1 - at->drop) : 0;
        x[n] *= m, y[n] *= m;
    }
}

/* Adds what the query has for all results. */
static void spread(const pairs *x, const basin_values *at, place w) {
    int64_t shared = w.h / (at->heads / at->shared), Y = at->width, V = at->value_width;
    const double *q = row_of(at->q, &at->of_q, w.b, w.h, w.i);
    const double *tq = row_of(at->tq, &at->of_q, w.b, w.h, w.i);
    const double *c = row_of(at->c, &at->of_c, w.b, w.h, w.i);
    const double *tc = row_of(at->tc, &at->of_c, w.b, w.h, w.i);
    double *out_q = row_of(at->out_q, &at->of_q, w.b, w.h, w.i);
    double *out_c = row_of(at->out_c, &at->of_c, w.b, w.h, w.i), *slope = at->out_bias;
    bool second = at->order == 2;
    if (slope) slope += basin_values_slope_at(at, w.b, w.h, w.i);
    for (int64_t n = 0; n < x->count; n++) {
        int64_t j = key_of(at, w.i, n);
        double *out_k = row_of(at->out_k, &at->of_k, w.b, shared, j);
        double *out_v = row_of(at->out_v, &at->of_v, w.b, shared, j);
        const double *k = row_of(at->k, &at->of_k, w.b, shared, j);
        const double *v = row_of(at->v, &at->of_v, w.b, shared, j);
        double tds = at->scale * (second ? x->tg[n] : x->g[n]), tp = second ? x->ts[n] : x->p[n];
        add(out_q, tds, k, Y), add(out_k, tds, q, Y);
        add(out_v, tp, c, V), add(out_c, tp, v, V);
        if (slope) slope[at->row ? n * at->heads : n] = second ? x->tg[n] : x->g[n];
        if (!second) continue;
        add(out_q, at->scale * x->g[n], row_of(at->tk, &at->of_k, w.b, shared, j), Y);
        add(out_k, at->scale * x->g[n], tq, Y);
        add(out_v, x->p[n], tc, V);
        add(out_c, x->p[n], row_of(at->tv, &at->of_v, w.b, shared, j), V);
    }
}

void basin_ref_values(const basin_frame *frame) {
    const basin_values at = basin_values_of(frame->call, frame->in, frame->out);
    basin_ref_csr csr = {at.row, at.key, at.queries, at.keys, at.pairs};
    double *scratch = frame->workspace;
    int64_t max = max_pairs(frame->call);
    basin_ref_clear(frame);
    if (!basin_ref_csr_check(frame, "attention", &csr)) return;
    for (int64_t b = 0; b < at.batch; b++)
        for (int64_t h = 0; h < at.heads; h++)
            for (int64_t i = 0; i < at.queries; i++) {
                pairs x = {scratch, scratch + max, scratch + 2 * max, scratch + 3 * max,
                           basin_values_keys(&at, i)};
                measure(&x, &at, (place){b, h, i});
                drop(x.g, x.tg, x.count, &at, (place){b, h, i});
                finish(&x);
                drop(x.p, x.ts, x.count, &at, (place){b, h, i});
                spread(&x, &at, (place){b, h, i});
            }
}
