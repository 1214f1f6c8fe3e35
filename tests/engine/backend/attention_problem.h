/* Problems of energy attention in double, and plain loops that solve them: what the tests of the
 * fast backends share. test_attention.c checks the loops' derivatives by finite differences. */
#ifndef BASIN_TESTS_BACKEND_ATTENTION_PROBLEM_H
#define BASIN_TESTS_BACKEND_ATTENTION_PROBLEM_H

#include <math.h>
#include <stdbool.h>

#include "support/test.h"

enum { Q, K, BETA, SCALE, MIX, W, A, B, INPUTS };
enum { LSE, DQ, DK, DBETA, DSCALE, DMIX, GQ, GK, GW, GBETA, GSCALE, GMIX, OUTPUTS };
static const char *const output_name[] = {"lse", "dq", "dk", "dbeta", "dscale", "dmix",
                                          "gq",  "gk", "gw", "gbeta", "gscale", "gmix"};
/* The input whose shape an output has; lse is like w. */
static const int output_like[] = {W, Q, K, BETA, SCALE, MIX, Q, K, W, BETA, SCALE, MIX};

/* A problem in double: pairs are listed, whatever the pattern. */
typedef struct problem {
    int64_t batch, queries, keys, heads, width, pairs;
    int32_t *entry, *query, *key; /* [pairs]; entry is -1 for an excluded pair */
    int64_t size[INPUTS];
    double *in[INPUTS]; /* NULL: absent */
    bool causal;
} problem;

static uint64_t random_state = 1;
static inline double uniform(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 40) / 16777216.0 * 2 - 1;
}
static inline int64_t below(int64_t n) { return (int64_t)((uniform() + 1) / 2 * (double)n) % n; }

static inline void *zeros(int64_t count, size_t size) {
    void *x = calloc((size_t)count + 1, size);
    assert_non_null(x);
    return x;
}

static inline void problem_fill(problem *p, bool scale, bool mix) {
    int64_t q = p->batch * p->queries * p->heads, k = p->batch * p->keys * p->heads;
    int64_t size[INPUTS] = {q * p->width,        k * p->width,        p->heads,
                            p->pairs * p->heads, p->heads * p->heads, q,
                            q * p->width,        k * p->width};
    for (int i = 0; i < INPUTS; i++) {
        p->size[i] = size[i];
        p->in[i] = zeros(size[i], sizeof(double));
        for (int64_t j = 0; j < size[i]; j++) p->in[i][j] = (float)uniform();
    }
    for (int64_t j = 0; j < p->heads; j++) p->in[BETA][j] = (float)(0.5 + 0.2 * uniform());
    if (!scale) free(p->in[SCALE]), p->in[SCALE] = NULL;
    if (!mix) free(p->in[MIX]), p->in[MIX] = NULL;
}

static inline void problem_free(problem *p) {
    for (int i = 0; i < INPUTS; i++) free(p->in[i]);
    free(p->entry), free(p->query), free(p->key);
}

static inline void problem_pairs(problem *p, int64_t pairs) {
    p->pairs = pairs;
    p->entry = zeros(pairs, sizeof *p->entry);
    p->query = zeros(pairs, sizeof *p->query);
    p->key = zeros(pairs, sizeof *p->key);
}

static inline problem dense_problem(int64_t batch, int64_t queries, int64_t keys, int64_t heads,
                                    int64_t width, bool exclude_self, bool scale, bool mix) {
    problem p = {.batch = batch, .queries = queries, .keys = keys, .heads = heads, .width = width};
    problem_pairs(&p, batch * queries * keys);
    for (int64_t i = 0; i < p.pairs; i++) {
        p.key[i] = (int32_t)(i % keys);
        p.query[i] = (int32_t)(i / keys % queries);
        p.entry[i] = exclude_self && p.key[i] == p.query[i] ? -1 : (int32_t)(i / keys / queries);
    }
    problem_fill(&p, scale, mix);
    return p;
}

/* Leaves out the pairs whose key comes after the query. */
static inline void problem_make_causal(problem *p) {
    p->causal = true;
    for (int64_t i = 0; i < p->pairs; i++)
        if (p->key[i] > p->query[i]) p->entry[i] = -1;
}

/* Some rows empty, one long, keys with repeats and self loops, some keys in no row. */
static inline problem list_problem(int64_t queries, int64_t keys, int64_t degree, int64_t heads,
                                   int64_t width, bool scale, bool mix) {
    problem p = {.batch = 1, .queries = queries, .keys = keys, .heads = heads, .width = width};
    int64_t hub = queries / 2, hub_degree = 8 * degree;
    int64_t *length = zeros(queries, sizeof *length), total = 0;
    for (int64_t q = 0; q < queries; q++) {
        length[q] = q == hub ? hub_degree : q % 5 == 3 ? 0 : below(2 * degree + 1);
        total += length[q];
    }
    problem_pairs(&p, total);
    int64_t reach = keys > 3 ? keys - keys / 4 : keys, at = 0;
    for (int64_t q = 0; q < queries; q++) {
        int32_t last = 0;
        for (int64_t j = 0; j < length[q]; j++, at++) {
            p.query[at] = (int32_t)q;
            p.key[at] = (int32_t)((int64_t)j * reach / length[q] + below(2)) % (int32_t)reach;
            if (p.key[at] < last && q % 2) p.key[at] = last; /* even rows may be out of order */
            last = p.key[at];
        }
    }
    free(length);
    problem_fill(&p, scale, mix);
    return p;
}

/* r, c (or NULL), y of every pair and head. */
static inline void naive_scores(const problem *p, double *r, double *c, double *y) {
    int64_t H = p->heads, Y = p->width;
    for (int64_t i = 0; i < p->pairs; i++) {
        if (p->entry[i] < 0) continue;
        for (int64_t h = 0; h < H; h++) {
            int64_t q = ((p->entry[i] * p->queries + p->query[i]) * H + h) * Y;
            int64_t k = ((p->entry[i] * p->keys + p->key[i]) * H + h) * Y;
            for (int64_t d = 0; d < Y; d++) {
                r[i * H + h] += p->in[Q][q + d] * p->in[K][k + d];
                if (c && p->in[A]) c[i * H + h] += p->in[A][q + d] * p->in[K][k + d];
                if (c && p->in[B]) c[i * H + h] += p->in[Q][q + d] * p->in[B][k + d];
            }
        }
        for (int64_t h = 0; h < H; h++)
            for (int64_t g = 0; g < H; g++)
                y[i * H + h] +=
                    p->in[BETA][g] * r[i * H + g] * (p->in[MIX] ? p->in[MIX][g * H + h] : g == h);
    }
}

/* lse of each query and P of each pair. */
static inline void naive_softmax(const problem *p, const double *y, double *lse, double *P) {
    int64_t H = p->heads, n = p->size[W];
    double *most = zeros(n, sizeof *most), *total = zeros(n, sizeof *total);
    for (int64_t i = 0; i < n; i++) most[i] = -INFINITY;
    for (int pass = 0; pass < 3; pass++)
        for (int64_t i = 0; i < p->pairs * H; i++) {
            if (p->entry[i / H] < 0) continue;
            int64_t q = (p->entry[i / H] * p->queries + p->query[i / H]) * H + i % H;
            double z = y[i] * (p->in[SCALE] ? p->in[SCALE][i] : 1);
            if (pass == 0 && z > most[q]) most[q] = z;
            if (pass == 1) total[q] += exp(z - most[q]);
            if (pass == 2) P[i] = exp(z - most[q]) / total[q];
        }
    for (int64_t i = 0; i < n; i++) lse[i] = total[i] > 0 ? most[i] + log(total[i]) : 0;
    free(most), free(total);
}

/* out_q += beta t x[k], out_k += beta t z[q] over the pairs; either may be NULL. */
static inline void naive_gather(const problem *p, const double *t, double *out_q, const double *x,
                                double *out_k, const double *z) {
    int64_t H = p->heads, Y = p->width;
    for (int64_t i = 0; i < p->pairs * H; i++) {
        if (p->entry[i / H] < 0) continue;
        int64_t q = ((p->entry[i / H] * p->queries + p->query[i / H]) * H + i % H) * Y;
        int64_t k = ((p->entry[i / H] * p->keys + p->key[i / H]) * H + i % H) * Y;
        double weight = p->in[BETA][i % H] * t[i];
        for (int64_t d = 0; d < Y; d++) {
            if (x) out_q[q + d] += weight * x[k + d];
            if (z) out_k[k + d] += weight * z[q + d];
        }
    }
}

/* t[h] = sum_g mix[h, g] u[g] of every pair. */
static inline void naive_mix_back(const problem *p, const double *u, double *t) {
    int64_t H = p->heads;
    for (int64_t i = 0; i < p->pairs * H; i++)
        for (int64_t g = 0; g < H; g++)
            t[i] += (p->in[MIX] ? p->in[MIX][i % H * H + g] : g == i % H) * u[i / H * H + g];
}

/* All outputs; returns the size of the terms that cancel in gbeta. */
static inline double naive(const problem *p, double *out[OUTPUTS]) {
    int64_t H = p->heads, n = p->pairs * H;
    double terms = 0;
    double *x[8];
    for (int i = 0; i < 8; i++) x[i] = zeros(n, sizeof(double));
    double *r = x[0], *c = x[1], *y = x[2], *P = x[3], *u = x[4], *t = x[5], *gz = x[6], *gs = x[7];
    naive_scores(p, r, c, y);
    naive_softmax(p, y, out[LSE], P);
    double *v = zeros(n, sizeof *v);
    for (int64_t i = 0; i < n; i++) {
        if (p->entry[i / H] < 0) continue;
        int64_t q = (p->entry[i / H] * p->queries + p->query[i / H]) * H + i % H;
        double scale = p->in[SCALE] ? p->in[SCALE][i] : 1;
        u[i] = p->in[W][q] * P[i] * scale;
        out[DSCALE][i] = p->in[W][q] * P[i] * y[i];
        for (int64_t g = 0; g < H; g++)
            v[i] += (p->in[MIX] ? p->in[MIX][g * H + i % H] : g == i % H) * p->in[BETA][g] *
                    c[i / H * H + g];
        out[GW][q] += P[i] * scale * v[i];
    }
    for (int64_t i = 0; i < n; i++) {
        if (p->entry[i / H] < 0) continue;
        int64_t q = (p->entry[i / H] * p->queries + p->query[i / H]) * H + i % H;
        double scale = p->in[SCALE] ? p->in[SCALE][i] : 1;
        double g = p->in[W][q] * P[i] * (scale * v[i] - out[GW][q]);
        out[GSCALE][i] = p->in[W][q] * P[i] * v[i] + g * y[i];
        gz[i] = g * scale;
    }
    naive_mix_back(p, u, t);
    naive_mix_back(p, gz, gs);
    for (int64_t i = 0; i < n; i++) {
        int64_t h = i % H;
        out[DBETA][h] += t[i] * r[i];
        out[GBETA][h] += t[i] * c[i] + gs[i] * r[i];
        terms += fabs(t[i] * c[i]) + fabs(gs[i] * r[i]);
        for (int64_t g = 0; g < H; g++) {
            double beta = p->in[BETA][h];
            out[DMIX][h * H + g] += beta * r[i] * u[i / H * H + g];
            out[GMIX][h * H + g] += beta * (c[i] * u[i / H * H + g] + r[i] * gz[i / H * H + g]);
        }
    }
    naive_gather(p, t, out[DQ], p->in[K], out[DK], p->in[Q]);
    naive_gather(p, t, out[GQ], p->in[B], out[GK], p->in[A]);
    naive_gather(p, gs, out[GQ], p->in[K], out[GK], p->in[Q]);
    for (int i = 0; i < 8; i++) free(x[i]);
    free(v);
    return terms;
}

static inline void outputs_new(const problem *p, double *out[OUTPUTS]) {
    for (int i = 0; i < OUTPUTS; i++) out[i] = zeros(p->size[output_like[i]], sizeof(double));
}

static inline void outputs_free(double *out[OUTPUTS]) {
    for (int i = 0; i < OUTPUTS; i++) free(out[i]);
}

#endif
