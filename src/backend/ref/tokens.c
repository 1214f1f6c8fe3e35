/* Energy attention along a list in the tokens' own space, its force and the reverse of its force:
 *   u = M_h g[q],  r = g[k] . u,  lse[q, h] = log sum_k exp(beta_h r),  P = exp(beta_h r - lse),
 *   E = sum over q, h of w[q, h] lse[q, h],  dg = dE / dg;  with the cotangent t of dg:
 *   u2 = M_h t[q],  c = t[k] . u + g[k] . u2,  t . dg = sum of w beta mean,  mean = sum_k P c. */
#include <math.h>

#include "backend/ref/ref.h"
#include "backend/shape.h"

typedef struct tokens {
    int64_t nodes, heads, width;
    const double *g, *t;    /* [N, D] */
    const double *m;        /* [H, D, D] */
    const double *beta, *w; /* [H], [N, H] */
    basin_ref_csr csr;
    double *u, *u2, *first, *second; /* [D] of a query and head */
} tokens;

size_t basin_ref_tokens_scratch(const basin_call *call) {
    return 4 * (size_t)call->in[BASIN_ATT_Q].shape.dim[1] * sizeof(double);
}

static tokens tokens_of(const basin_ref_frame *frame) {
    const basin_call *call = frame->call;
    tokens a = {.nodes = call->in[BASIN_ATT_Q].shape.dim[0],
                .heads = call->in[BASIN_ATT_K].shape.dim[0],
                .width = call->in[BASIN_ATT_Q].shape.dim[1],
                .g = frame->in[BASIN_ATT_Q],
                .m = frame->in[BASIN_ATT_K],
                .beta = frame->in[BASIN_ATT_BETA],
                .w = frame->in[BASIN_ATT_W],
                .t = BASIN_ATT_A < call->ins ? frame->in[BASIN_ATT_A] : NULL};
    a.csr = (basin_ref_csr){.row = frame->in[BASIN_ATT_ROW],
                            .key = frame->in[BASIN_ATT_KEY],
                            .queries = a.nodes,
                            .keys = a.nodes,
                            .pairs = basin_shape_count(call->in[BASIN_ATT_KEY].shape)};
    a.u = frame->scratch, a.u2 = a.u + a.width;
    a.first = a.u2 + a.width, a.second = a.first + a.width;
    return a;
}

static double dot(const double *x, const double *y, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

static void add(double *to, double factor, const double *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] += factor * x[i];
}

static const double *head(const tokens *a, int64_t h) { return a->m + h * a->width * a->width; }

/* to = M_h x */
static void forward(double *to, const tokens *a, int64_t h, const double *x) {
    for (int64_t i = 0; i < a->width; i++) to[i] = dot(head(a, h) + i * a->width, x, a->width);
}

/* to += M_h' x */
static void back(double *to, const tokens *a, int64_t h, const double *x) {
    for (int64_t i = 0; i < a->width; i++) add(to, x[i], head(a, h) + i * a->width, a->width);
}

static const double *token(const tokens *a, const double *x, int64_t pair) {
    return x + a->csr.key[pair] * a->width;
}

static double score(const tokens *a, int64_t h, int64_t pair) {
    return a->beta[h] * dot(a->u, token(a, a->g, pair), a->width);
}

static double slope(const tokens *a, int64_t pair) {
    return dot(a->u, token(a, a->t, pair), a->width) + dot(a->u2, token(a, a->g, pair), a->width);
}

/* Of query q and head h, whose u is there; 0 without keys. */
static double lse_of(const tokens *a, int64_t q, int64_t h) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = a->csr.row[q]; i < a->csr.row[q + 1]; i++) most = fmax(most, score(a, h, i));
    for (int64_t i = a->csr.row[q]; i < a->csr.row[q + 1]; i++) sum += exp(score(a, h, i) - most);
    return sum > 0 ? most + log(sum) : 0;
}

static void clear(double *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] = 0;
}

/* dg[k] += beta w P u,  dg[q] += M' (beta w sum of P g[k]) */
static void force_query(double *dg, double *lse, const tokens *a, int64_t q, int64_t h) {
    int64_t D = a->width;
    forward(a->u, a, h, a->g + q * D);
    double all = lse_of(a, q, h), factor = a->beta[h] * a->w[q * a->heads + h];
    if (lse) lse[q * a->heads + h] = all;
    if (!dg) return;
    clear(a->first, D);
    for (int64_t i = a->csr.row[q]; i < a->csr.row[q + 1]; i++) {
        double p = exp(score(a, h, i) - all);
        add(a->first, factor * p, token(a, a->g, i), D);
        add(dg + a->csr.key[i] * D, factor * p, a->u, D);
    }
    back(dg + q * D, a, h, a->first);
}

void basin_ref_tokens_force(const basin_ref_frame *frame) {
    tokens a = tokens_of(frame);
    basin_ref_clear(frame);
    if (!basin_ref_csr_check(frame, "attention between tokens", &a.csr)) return;
    for (int64_t q = 0; q < a.nodes; q++)
        for (int64_t h = 0; h < a.heads; h++)
            force_query(frame->out[BASIN_ATT_DQ], frame->out[BASIN_ATT_LSE], &a, q, h);
}

/* With x = beta w P, the slope by c, and y = x beta (c - mean), that by r:
 *   gg[k] += y u + x u2,   gg[q] += M' first,   gM += first g[q]' + second t[q]',
 *   first = sum of y g[k] + x t[k],   second = sum of x g[k] */
static void reverse_pairs(double *gg, const tokens *a, int64_t q, int64_t h, double all,
                          double mean) {
    int64_t D = a->width;
    double factor = a->beta[h] * a->w[q * a->heads + h];
    clear(a->first, D), clear(a->second, D);
    for (int64_t i = a->csr.row[q]; i < a->csr.row[q + 1]; i++) {
        double x = factor * exp(score(a, h, i) - all), y = x * a->beta[h] * (slope(a, i) - mean);
        add(a->first, y, token(a, a->g, i), D);
        add(a->first, x, token(a, a->t, i), D);
        add(a->second, x, token(a, a->g, i), D);
        if (!gg) continue;
        add(gg + a->csr.key[i] * D, y, a->u, D);
        add(gg + a->csr.key[i] * D, x, a->u2, D);
    }
}

static void reverse_query(double *const *out, const tokens *a, int64_t q, int64_t h) {
    int64_t D = a->width, at = q * a->heads + h;
    forward(a->u, a, h, a->g + q * D), forward(a->u2, a, h, a->t + q * D);
    double all = lse_of(a, q, h), mean = 0, score_mean = 0, both = 0;
    for (int64_t i = a->csr.row[q]; i < a->csr.row[q + 1]; i++) {
        double z = score(a, h, i), p = exp(z - all), c = slope(a, i);
        mean += p * c, score_mean += p * z, both += p * z * c;
    }
    if (out[BASIN_ATT_GW]) out[BASIN_ATT_GW][at] = a->beta[h] * mean;
    if (out[BASIN_ATT_GBETA])
        out[BASIN_ATT_GBETA][h] += a->w[at] * (mean + both - score_mean * mean);
    reverse_pairs(out[BASIN_ATT_GQ], a, q, h, all, mean);
    if (out[BASIN_ATT_GQ]) back(out[BASIN_ATT_GQ] + q * D, a, h, a->first);
    for (int64_t i = 0; out[BASIN_ATT_GK] && i < D; i++) {
        add(out[BASIN_ATT_GK] + (h * D + i) * D, a->first[i], a->g + q * D, D);
        add(out[BASIN_ATT_GK] + (h * D + i) * D, a->second[i], a->t + q * D, D);
    }
}

void basin_ref_tokens_reverse(const basin_ref_frame *frame) {
    tokens a = tokens_of(frame);
    double *out[BASIN_ATT_GBETA + 1];
    for (int i = 0; i <= BASIN_ATT_GBETA; i++) out[i] = frame->out[i];
    basin_ref_clear(frame);
    if (!basin_ref_csr_check(frame, "attention between tokens, reverse", &a.csr)) return;
    for (int64_t q = 0; q < a.nodes; q++)
        for (int64_t h = 0; h < a.heads; h++) reverse_query(out, &a, q, h);
}
