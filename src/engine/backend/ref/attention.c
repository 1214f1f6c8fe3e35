/* Energy attention, its force and the reverse of its force, for one pair (q, k) of a batch entry:
 *   s[h] = beta_h Q[q,h].K[k,h],  r[g] = sum_h s[h] mix[h,g],
 *   z[g] = r[g] scale[pair,g],  or r[g] + bias[pair,g] where `scale` is added,
 *   lse[q,g] = log sum_k exp z[g]  (0 for a query without keys),  P[g] = exp(z[g] - lse[g]).
 * h counts heads before the mixing, g after it. An absent mix is the identity, an absent scale 1,
 * and it is 1 beside a bias, whose gradients are dbias = w P and gbias = gz.
 * The equations of the force and its reverse are above the functions that compute them. */
#include <math.h>

#include "engine/backend/ref/ref.h"

typedef struct attention {
    int64_t batch, queries, keys, heads, width;
    const double *q;     /* [batch, queries, heads, width] */
    const double *k;     /* [batch, keys, heads, width] */
    const double *beta;  /* [heads] */
    const double *scale; /* [pairs, heads] or NULL */
    const double *mix;   /* [heads, heads] or NULL */
    const double *w;     /* [batch, queries, heads], cotangent of lse */
    const double *a;     /* like q, cotangent of dq, or NULL */
    const double *b;     /* like k, cotangent of dk, or NULL */
    basin_ref_csr csr;   /* row NULL: all pairs */
    bool exclude_self, causal;
    bool added; /* scale is a bias */
} attention;

/* The quantities of one pair, [heads] each; lse and mean belong to its query. */
typedef struct pair_values {
    double *dot, *s, *r, *p, *u, *t, *c, *gu, *gp, *gz, *gs, *lse, *mean;
} pair_values;
enum { PAIR_VALUES = 13 };

size_t basin_ref_attention_scratch(const basin_call *call) {
    return PAIR_VALUES * (size_t)basin_shape_last(&call->in[BASIN_ATT_Q].shape, 2) * sizeof(double);
}

static attention attention_of(const basin_frame *frame) {
    const basin_shape *q = &frame->call->in[BASIN_ATT_Q].shape;
    const basin_shape *k = &frame->call->in[BASIN_ATT_K].shape;
    attention att = {
        .batch = basin_shape_last(q, 4),
        .queries = basin_shape_last(q, 3),
        .keys = basin_shape_last(k, 3),
        .heads = basin_shape_last(q, 2),
        .width = basin_shape_last(q, 1),
        .q = frame->in[BASIN_ATT_Q],
        .k = frame->in[BASIN_ATT_K],
        .beta = frame->in[BASIN_ATT_BETA],
        .scale = frame->in[BASIN_ATT_SCALE],
        .mix = frame->in[BASIN_ATT_MIX],
        .w = frame->in[BASIN_ATT_W],
        .a = frame->in[BASIN_ATT_A],
        .b = frame->in[BASIN_ATT_B],
        .exclude_self = frame->call->attr.exclude_self,
        .causal = frame->call->attr.causal,
        .added = frame->call->attr.added,
    };
    att.csr = (basin_ref_csr){.row = frame->in[BASIN_ATT_ROW],
                              .key = frame->in[BASIN_ATT_KEY],
                              .queries = att.queries,
                              .keys = att.keys};
    if (att.csr.row) att.csr.pairs = basin_shape_count(frame->call->in[BASIN_ATT_KEY].shape);
    return att;
}

static pair_values pair_values_in(double *scratch /* [PAIR_VALUES, heads] */, int64_t heads) {
    double *at[PAIR_VALUES];
    for (int i = 0; i < PAIR_VALUES; i++) at[i] = scratch + i * heads;
    return (pair_values){at[0], at[1], at[2], at[3],  at[4],  at[5], at[6],
                         at[7], at[8], at[9], at[10], at[11], at[12]};
}

static double mix_at(const attention *att, int64_t h, int64_t g) {
    return att->mix ? att->mix[h * att->heads + g] : h == g;
}

static double scale_at(const attention *att, int64_t pair, int64_t g) {
    return att->scale && !att->added ? att->scale[pair * att->heads + g] : 1;
}

static double score_at(const attention *att, double r, int64_t pair, int64_t g) {
    if (!att->scale) return r;
    double scale = att->scale[pair * att->heads + g];
    return att->added ? r + scale : r * scale;
}

static double dot_product(const double *x, const double *y, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* The pairs of a query are numbered first .. last - 1. */
static int64_t first_pair(const attention *att, int64_t batch, int64_t q) {
    return att->csr.row ? att->csr.row[q] : (batch * att->queries + q) * att->keys;
}

static int64_t last_pair(const attention *att, int64_t batch, int64_t q) {
    return att->csr.row ? att->csr.row[q + 1] : (batch * att->queries + q + 1) * att->keys;
}

/* The key of a pair, or -1 where the pair is left out. */
static int64_t key_of(const attention *att, int64_t batch, int64_t q, int64_t pair) {
    if (att->csr.row) return att->csr.key[pair];
    int64_t k = pair - first_pair(att, batch, q);
    return (att->exclude_self && k == q) || (att->causal && k > q) ? -1 : k;
}

/* Where head h of query q, or of key k, starts in a tensor like Q or K. */
static int64_t query_at(const attention *att, int64_t batch, int64_t q, int64_t h) {
    return ((batch * att->queries + q) * att->heads + h) * att->width;
}

static int64_t key_at(const attention *att, int64_t batch, int64_t k, int64_t h) {
    return ((batch * att->keys + k) * att->heads + h) * att->width;
}

/* Fills dot = Q.K, s and r of a pair; z = r scale. */
static void pair_scores(pair_values *v, const attention *att, int64_t batch, int64_t q, int64_t k) {
    for (int64_t h = 0; h < att->heads; h++) {
        v->dot[h] = dot_product(att->q + query_at(att, batch, q, h),
                                att->k + key_at(att, batch, k, h), att->width);
        v->s[h] = att->beta[h] * v->dot[h];
    }
    for (int64_t g = 0; g < att->heads; g++) {
        v->r[g] = 0;
        for (int64_t h = 0; h < att->heads; h++) v->r[g] += v->s[h] * mix_at(att, h, g);
    }
}

/* Fills lse [heads] of a query: the largest score first, so that no exponential overflows. */
static void query_lse(pair_values *v, const attention *att, int64_t batch, int64_t q) {
    int64_t first = first_pair(att, batch, q), last = last_pair(att, batch, q);
    double *max = v->mean, *sum = v->p;
    bool any = false;
    for (int64_t g = 0; g < att->heads; g++) max[g] = -INFINITY, sum[g] = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t pair = first; pair < last; pair++) {
            int64_t k = key_of(att, batch, q, pair);
            if (k < 0) continue;
            any = true;
            pair_scores(v, att, batch, q, k);
            for (int64_t g = 0; g < att->heads; g++) {
                double z = score_at(att, v->r[g], pair, g);
                if (pass == 0)
                    max[g] = z > max[g] ? z : max[g];
                else
                    sum[g] += exp(z - max[g]);
            }
        }
    for (int64_t g = 0; g < att->heads; g++) v->lse[g] = any ? max[g] + log(sum[g]) : 0;
}

/* P, and with the cotangent w of lse: u[g] = w[g] P[g] scale[g], t[h] = sum_g mix[h,g] u[g]. */
static void pair_force(pair_values *v, const attention *att, int64_t batch, int64_t q, int64_t k,
                       int64_t pair) {
    const double *w = att->w + (batch * att->queries + q) * att->heads;
    pair_scores(v, att, batch, q, k);
    for (int64_t g = 0; g < att->heads; g++) {
        v->p[g] = exp(score_at(att, v->r[g], pair, g) - v->lse[g]);
        v->u[g] = w[g] * v->p[g] * scale_at(att, pair, g);
    }
    for (int64_t h = 0; h < att->heads; h++) {
        v->t[h] = 0;
        for (int64_t g = 0; g < att->heads; g++) v->t[h] += mix_at(att, h, g) * v->u[g];
    }
}

static void write_lse(double *lse, const pair_values *v, const attention *att, int64_t row) {
    for (int64_t g = 0; lse && g < att->heads; g++) lse[row * att->heads + g] = v->lse[g];
}

void basin_ref_attention(const basin_frame *frame) {
    attention att = attention_of(frame);
    pair_values v = pair_values_in(frame->workspace, att.heads);
    basin_ref_clear(frame);
    if (!basin_ref_csr_check(frame, "attention", &att.csr)) return;
    for (int64_t batch = 0; batch < att.batch; batch++)
        for (int64_t q = 0; q < att.queries; q++) {
            query_lse(&v, &att, batch, q);
            write_lse(frame->out[BASIN_ATT_LSE], &v, &att, batch * att.queries + q);
        }
}

/* The force, the gradient of sum w lse:
 *   dQ[q,h] = beta_h sum_k t[h] K[k,h],  dK[k,h] = beta_h sum_q t[h] Q[q,h],
 *   dbeta_h = sum t[h] Q.K,  dscale[pair,g] = w[g] P[g] r[g],  dmix[h,g] = sum s[h] u[g]. */
static void add_force(void *const *out, const pair_values *v, const attention *att, int64_t batch,
                      int64_t q, int64_t k, int64_t pair) {
    const double *w = att->w + (batch * att->queries + q) * att->heads;
    double *dq = out[BASIN_ATT_DQ], *dk = out[BASIN_ATT_DK], *dbeta = out[BASIN_ATT_DBETA];
    double *dscale = out[BASIN_ATT_DSCALE], *dmix = out[BASIN_ATT_DMIX];
    for (int64_t h = 0; h < att->heads; h++) {
        int64_t qh = query_at(att, batch, q, h), kh = key_at(att, batch, k, h);
        for (int64_t y = 0; y < att->width; y++) {
            if (dq) dq[qh + y] += att->beta[h] * v->t[h] * att->k[kh + y];
            if (dk) dk[kh + y] += att->beta[h] * v->t[h] * att->q[qh + y];
        }
        if (dbeta) dbeta[h] += v->t[h] * v->dot[h];
        if (dscale) dscale[pair * att->heads + h] = w[h] * v->p[h] * (att->added ? 1 : v->r[h]);
        for (int64_t g = 0; dmix && g < att->heads; g++)
            dmix[h * att->heads + g] += v->s[h] * v->u[g];
    }
}

static void add_forces(void *const *out, const attention *att, double *scratch) {
    pair_values v = pair_values_in(scratch, att->heads);
    for (int64_t batch = 0; batch < att->batch; batch++)
        for (int64_t q = 0; q < att->queries; q++) {
            query_lse(&v, att, batch, q);
            write_lse(out[BASIN_ATT_LSE], &v, att, batch * att->queries + q);
            for (int64_t p = first_pair(att, batch, q); p < last_pair(att, batch, q); p++) {
                int64_t k = key_of(att, batch, q, p);
                if (k < 0) continue;
                pair_force(&v, att, batch, q, k, p);
                add_force(out, &v, att, batch, q, k, p);
            }
        }
}

void basin_ref_attention_force(const basin_frame *frame) {
    attention att = attention_of(frame);
    basin_ref_clear(frame);
    if (basin_ref_csr_check(frame, "attention force", &att.csr))
        add_forces(frame->out, &att, frame->workspace);
}

/* The reverse of the force, the gradient of sum a dQ + sum b dK = sum over pairs of beta t c:
 *   c[h] = a[q,h].K[k,h] + Q[q,h].b[k,h],  gu[g] = sum_h mix[h,g] beta_h c[h],
 *   gP[g] = w[g] scale[g] gu[g],  gz[g] = P[g] (gP[g] - sum over the query's keys of P gP),
 *   gs[h] = sum_g gz[g] scale[g] mix[h,g]. */
static void pair_reverse(pair_values *v, const attention *att, int64_t batch, int64_t q, int64_t k,
                         int64_t pair) {
    const double *w = att->w + (batch * att->queries + q) * att->heads;
    pair_force(v, att, batch, q, k, pair);
    for (int64_t h = 0; h < att->heads; h++) {
        int64_t qh = query_at(att, batch, q, h), kh = key_at(att, batch, k, h);
        v->c[h] = 0;
        if (att->a) v->c[h] += dot_product(att->a + qh, att->k + kh, att->width);
        if (att->b) v->c[h] += dot_product(att->q + qh, att->b + kh, att->width);
    }
    for (int64_t g = 0; g < att->heads; g++) {
        v->gu[g] = 0;
        for (int64_t h = 0; h < att->heads; h++)
            v->gu[g] += mix_at(att, h, g) * att->beta[h] * v->c[h];
        v->gp[g] = w[g] * scale_at(att, pair, g) * v->gu[g];
        v->gz[g] = v->p[g] * (v->gp[g] - v->mean[g]);
    }
    for (int64_t h = 0; h < att->heads; h++) {
        v->gs[h] = 0;
        for (int64_t g = 0; g < att->heads; g++)
            v->gs[h] += v->gz[g] * scale_at(att, pair, g) * mix_at(att, h, g);
    }
}

/*   gQ[q,h] = beta_h sum_k (t[h] b[k,h] + gs[h] K[k,h]),
 *   gK[k,h] = beta_h sum_q (t[h] a[q,h] + gs[h] Q[q,h]) */
static void add_reverse_tokens(double *gq, double *gk, const pair_values *v, const attention *att,
                               int64_t batch, int64_t q, int64_t k) {
    for (int64_t h = 0; h < att->heads; h++) {
        int64_t qh = query_at(att, batch, q, h), kh = key_at(att, batch, k, h);
        for (int64_t y = 0; y < att->width; y++) {
            double a = att->a ? att->a[qh + y] : 0, b = att->b ? att->b[kh + y] : 0;
            if (gq) gq[qh + y] += att->beta[h] * (v->t[h] * b + v->gs[h] * att->k[kh + y]);
            if (gk) gk[kh + y] += att->beta[h] * (v->t[h] * a + v->gs[h] * att->q[qh + y]);
        }
    }
}

/*   gw[q,g] = sum_k P[g] scale[g] gu[g],  gbeta_h = sum (t[h] c[h] + gs[h] Q.K),
 *   gscale[pair,g] = w[g] P[g] gu[g] + gz[g] r[g],
 *   gmix[h,g] = sum (u[g] beta_h c[h] + gz[g] scale[g] s[h]) */
static void add_reverse_rest(void *const *out, const pair_values *v, const attention *att,
                             int64_t batch, int64_t q, int64_t pair) {
    int64_t row = (batch * att->queries + q) * att->heads;
    double *gw = out[BASIN_ATT_GW], *gbeta = out[BASIN_ATT_GBETA];
    double *gscale = out[BASIN_ATT_GSCALE], *gmix = out[BASIN_ATT_GMIX];
    for (int64_t h = 0; h < att->heads; h++) {
        if (gbeta) gbeta[h] += v->t[h] * v->c[h] + v->gs[h] * v->dot[h];
        for (int64_t g = 0; gmix && g < att->heads; g++)
            gmix[h * att->heads + g] +=
                v->u[g] * att->beta[h] * v->c[h] + v->gz[g] * scale_at(att, pair, g) * v->s[h];
    }
    for (int64_t g = 0; g < att->heads; g++) {
        if (gw) gw[row + g] += v->p[g] * scale_at(att, pair, g) * v->gu[g];
        if (gscale)
            gscale[pair * att->heads + g] =
                att->added ? v->gz[g] : att->w[row + g] * v->p[g] * v->gu[g] + v->gz[g] * v->r[g];
    }
}

static void add_reverses(void *const *out, const attention *att, double *scratch) {
    pair_values v = pair_values_in(scratch, att->heads);
    for (int64_t batch = 0; batch < att->batch; batch++)
        for (int64_t q = 0; q < att->queries; q++) {
            query_lse(&v, att, batch, q);
            for (int64_t g = 0; g < att->heads; g++) v.mean[g] = 0;
            for (int pass = 0; pass < 2; pass++) /* the first one finds the means */
                for (int64_t p = first_pair(att, batch, q); p < last_pair(att, batch, q); p++) {
                    int64_t k = key_of(att, batch, q, p);
                    if (k < 0) continue;
                    pair_reverse(&v, att, batch, q, k, p);
                    for (int64_t g = 0; g < att->heads && pass == 0; g++)
                        v.mean[g] += v.p[g] * v.gp[g];
                    if (pass == 0) continue;
                    add_reverse_tokens(out[BASIN_ATT_GQ], out[BASIN_ATT_GK], &v, att, batch, q, k);
                    add_reverse_rest(out, &v, att, batch, q, p);
                }
        }
}

void basin_ref_attention_reverse(const basin_frame *frame) {
    attention att = attention_of(frame);
    basin_ref_clear(frame);
    if (basin_ref_csr_check(frame, "attention reverse", &att.csr))
        add_reverses(frame->out, &att, frame->workspace);
}

/* Products over a list of pairs (q, k), head by head:
 *   dot  w[p,h] = x[q,h] . z[k,h],  sum  out[q,h] = sum over the pairs of q of w[p,h] z[k,h],
 *   and its transpose  out[k,h] = sum over the pairs of k of w[p,h] x[q,h]. */

bool basin_ref_csr_check(const basin_frame *frame, const char *name, const basin_ref_csr *csr) {
    int64_t min = 0;
    if (!csr->row) return true;
    for (int64_t q = 0; q <= csr->queries; q++) {
        if (csr->row[q] < min || csr->row[q] > csr->pairs) {
            basin_host_bad_index(frame, name, q, csr->row[q], min, csr->pairs + 1);
            return false;
        }
        min = csr->row[q];
    }
    for (int64_t p = csr->row[0]; p < csr->row[csr->queries]; p++)
        if (csr->key[p] < 0 || csr->key[p] >= csr->keys) {
            basin_host_bad_index(frame, name, p, csr->key[p], 0, csr->keys);
            return false;
        }
    return true;
}

enum { ROW = 2, KEY = 3 }; /* operands of both operations */

static basin_ref_csr csr_of(const basin_frame *frame, int64_t keys) {
    return (basin_ref_csr){.row = frame->in[ROW],
                           .key = frame->in[KEY],
                           .queries = basin_shape_count(frame->call->in[ROW].shape) - 1,
                           .keys = keys,
                           .pairs = basin_shape_count(frame->call->in[KEY].shape)};
}

void basin_ref_pair_dot(const basin_frame *frame) {
    const basin_shape *shape = &frame->call->in[1].shape;
    int64_t heads = shape->dim[shape->rank - 2], width = shape->dim[shape->rank - 1];
    const double *x = frame->in[0]; /* [queries, heads, width] */
    const double *z = frame->in[1]; /* [keys, heads, width] */
    double *w = frame->out[0];      /* [pairs, heads]; 0 in the padding */
    basin_ref_csr csr = csr_of(frame, shape->dim[shape->rank - 3]);
    basin_ref_clear(frame);
    if (!basin_ref_csr_check(frame, "pair dot", &csr)) return;
    for (int64_t q = 0; q < csr.queries; q++)
        for (int64_t p = csr.row[q]; p < csr.row[q + 1]; p++)
            for (int64_t h = 0; h < heads; h++)
                for (int64_t y = 0; y < width; y++)
                    w[p * heads + h] +=
                        x[(q * heads + h) * width + y] * z[(csr.key[p] * heads + h) * width + y];
}

void basin_ref_pair_sum(const basin_frame *frame) {
    const basin_shape *shape = &frame->call->in[1].shape, *result = &frame->call->out[0].shape;
    bool transposed = frame->call->attr.transpose_a;
    int64_t heads = shape->dim[shape->rank - 2], width = shape->dim[shape->rank - 1];
    const double *w = frame->in[0]; /* [pairs, heads] */
    const double *z = frame->in[1]; /* [keys, heads, width]; transposed: [queries, ..] */
    double *out = frame->out[0];    /* [queries, heads, width]; transposed: [keys, ..] */
    basin_ref_csr csr =
        csr_of(frame, transposed ? result->dim[result->rank - 3] : shape->dim[shape->rank - 3]);
    basin_ref_clear(frame);
    if (!basin_ref_csr_check(frame, "pair sum", &csr)) return;
    for (int64_t q = 0; q < csr.queries; q++)
        for (int64_t p = csr.row[q]; p < csr.row[q + 1]; p++) {
            int64_t from = transposed ? q : csr.key[p], to = transposed ? csr.key[p] : q;
            for (int64_t h = 0; h < heads; h++)
                for (int64_t y = 0; y < width; y++)
                    out[(to * heads + h) * width + y] +=
                        w[p * heads + h] * z[(from * heads + h) * width + y];
        }
}
