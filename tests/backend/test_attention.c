/* Energy attention on the CPU against plain loops in double: value, force and its reverse, over all
 * pairs and CSR lists. The loops' own second-order formulas are checked by finite differences. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/attention.h"

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
} problem;

static uint64_t random_state = 1;
static double uniform(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 40) / 16777216.0 * 2 - 1;
}
static int64_t below(int64_t n) { return (int64_t)((uniform() + 1) / 2 * (double)n) % n; }

static void *zeros(int64_t count, size_t size) {
    void *x = calloc((size_t)count + 1, size);
    assert_non_null(x);
    return x;
}

static void problem_fill(problem *p, bool scale, bool mix) {
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

static void problem_free(problem *p) {
    for (int i = 0; i < INPUTS; i++) free(p->in[i]);
    free(p->entry), free(p->query), free(p->key);
}

static void problem_pairs(problem *p, int64_t pairs) {
    p->pairs = pairs;
    p->entry = zeros(pairs, sizeof *p->entry);
    p->query = zeros(pairs, sizeof *p->query);
    p->key = zeros(pairs, sizeof *p->key);
}

static problem dense_problem(int64_t batch, int64_t queries, int64_t keys, int64_t heads,
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

/* Some rows empty, one long, keys with repeats and self loops, some keys in no row. */
static problem list_problem(int64_t queries, int64_t keys, int64_t degree, int64_t heads,
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
static void naive_scores(const problem *p, double *r, double *c, double *y) {
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
static void naive_softmax(const problem *p, const double *y, double *lse, double *P) {
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
static void naive_gather(const problem *p, const double *t, double *out_q, const double *x,
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
static void naive_mix_back(const problem *p, const double *u, double *t) {
    int64_t H = p->heads;
    for (int64_t i = 0; i < p->pairs * H; i++)
        for (int64_t g = 0; g < H; g++)
            t[i] += (p->in[MIX] ? p->in[MIX][i % H * H + g] : g == i % H) * u[i / H * H + g];
}

/* All outputs; returns the size of the terms that cancel in gbeta. */
static double naive(const problem *p, double *out[OUTPUTS]) {
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

static void outputs_new(const problem *p, double *out[OUTPUTS]) {
    for (int i = 0; i < OUTPUTS; i++) out[i] = zeros(p->size[output_like[i]], sizeof(double));
}

static void outputs_free(double *out[OUTPUTS]) {
    for (int i = 0; i < OUTPUTS; i++) free(out[i]);
}

static double naive_F(const problem *p) {
    double *out[OUTPUTS], sum = 0;
    outputs_new(p, out);
    naive(p, out);
    for (int64_t i = 0; i < p->size[Q]; i++) sum += p->in[A][i] * out[DQ][i];
    for (int64_t i = 0; i < p->size[K]; i++) sum += p->in[B][i] * out[DK][i];
    outputs_free(out);
    return sum;
}

/* Every formula above that has a derivative in its name, by central differences. */
static void check_differences(problem *p) {
    double *out[OUTPUTS], *moved[OUTPUTS];
    outputs_new(p, out);
    naive(p, out);
    static const int checked[] = {DQ, DK, DBETA, DSCALE, DMIX, GQ, GK, GW, GBETA, GSCALE, GMIX};
    for (size_t j = 0; j < sizeof checked / sizeof *checked; j++) {
        int o = checked[j], like = output_like[o];
        if (!p->in[like]) continue;
        for (int64_t i = 0; i < p->size[like]; i += 1 + p->size[like] / 7) {
            double *x = &p->in[like][i], kept = *x, step = 1e-5, difference = 0;
            for (int side = -1; side <= 1; side += 2) {
                *x = kept + side * step;
                if (o >= GQ) {
                    difference += side * naive_F(p);
                } else {
                    outputs_new(p, moved);
                    naive(p, moved);
                    for (int64_t k = 0; k < p->size[W]; k++)
                        difference += side * p->in[W][k] * moved[LSE][k];
                    outputs_free(moved);
                }
            }
            *x = kept;
            double slope = difference / (2 * step);
            if (fabs(slope - out[o][i]) > 1e-7 * (1 + fabs(slope)))
                fail_msg("%s[%d]: %g, by differences %g", output_name[o], (int)i, out[o][i], slope);
        }
    }
    outputs_free(out);
}

/* The problem as the kernels take it. */
typedef struct instance {
    basin_attention at;
    float *in[INPUTS], *out[OUTPUTS];
    int32_t *index[5];
} instance;

static void instance_list(instance *s, const problem *p, int64_t padding) {
    basin_attention_pattern *pattern = &s->at.pattern;
    int64_t count[] = {p->queries + 1, p->pairs + padding, p->keys + 1, p->pairs + padding,
                       p->pairs + padding};
    for (int i = 0; i < 5; i++) {
        s->index[i] = zeros(count[i], sizeof(int32_t));
        if (i % 2 || i == 4) memset(s->index[i], 0x7f, (size_t)count[i] * sizeof(int32_t));
    }
    int64_t listed = 0;
    for (int64_t i = 0; i < p->pairs; i++) {
        s->index[0][p->query[i] + 1]++;
        s->index[1][i] = p->key[i];
    }
    for (int64_t q = 0; q < p->queries; q++) s->index[0][q + 1] += s->index[0][q];
    for (int64_t k = 0; k < p->keys; k++) {
        for (int64_t i = 0; i < p->pairs; i++) {
            if (p->key[i] != k) continue;
            s->index[3][listed] = p->query[i];
            s->index[4][listed++] = (int32_t)i;
        }
        s->index[2][k + 1] = (int32_t)listed;
    }
    pattern->pairs = p->pairs + padding;
    pattern->row = s->index[0];
    pattern->key = s->index[1];
    pattern->column = s->index[2];
    pattern->query = s->index[3];
    pattern->pair = s->index[4];
}

static instance instance_new(const problem *p, bool list, bool exclude_self, int64_t padding) {
    instance s = {.at.pattern = {.batch = p->batch,
                                 .queries = p->queries,
                                 .keys = p->keys,
                                 .heads = p->heads,
                                 .width = p->width,
                                 .exclude_self = exclude_self}};
    if (list) instance_list(&s, p, padding);
    for (int i = 0; i < INPUTS; i++) {
        int64_t size = p->size[i] + (i == SCALE ? padding * p->heads : 0);
        if (!p->in[i]) continue;
        s.in[i] = zeros(size, sizeof(float));
        for (int64_t j = 0; j < p->size[i]; j++) s.in[i][j] = (float)p->in[i][j];
        for (int64_t j = p->size[i]; j < size; j++) s.in[i][j] = NAN;
    }
    for (int i = 0; i < OUTPUTS; i++) {
        int64_t size = p->size[output_like[i]];
        s.out[i] = zeros(size, sizeof(float));
        for (int64_t j = 0; j < size; j++) s.out[i][j] = NAN;
    }
    basin_attention *at = &s.at;
    at->q = s.in[Q], at->k = s.in[K], at->beta = s.in[BETA], at->scale = s.in[SCALE];
    at->mix = s.in[MIX], at->w = s.in[W], at->a = s.in[A], at->b = s.in[B];
    return s;
}

static void instance_free(instance *s) {
    for (int i = 0; i < INPUTS; i++) free(s->in[i]);
    for (int i = 0; i < OUTPUTS; i++) free(s->out[i]);
    for (int i = 0; i < 5; i++) free(s->index[i]);
}

static void want(instance *s, unsigned outputs) {
    float **field[OUTPUTS] = {&s->at.lse,    &s->at.dq,    &s->at.dk,     &s->at.dbeta,
                              &s->at.dscale, &s->at.dmix,  &s->at.gq,     &s->at.gk,
                              &s->at.gw,     &s->at.gbeta, &s->at.gscale, &s->at.gmix};
    for (int i = 0; i < OUTPUTS; i++) *field[i] = outputs >> i & 1 ? s->out[i] : NULL;
}

enum { VALUE = 1, FORCE = 2, REVERSE = 4 };

/* Runs with a workspace that is full of NaN, and a guard behind it. */
static void run(instance *s, int what, int threads) {
    size_t (*size[])(const basin_attention *, int) = {basin_attention_value_workspace,
                                                      basin_attention_force_workspace,
                                                      basin_attention_force_reverse_workspace};
    void (*call[])(const basin_attention *, int, void *) = {
        basin_attention_value, basin_attention_force, basin_attention_force_reverse};
    for (int i = 0; i < 3; i++) {
        if (!(what >> i & 1)) continue;
        size_t bytes = size[i](&s->at, threads);
        unsigned char *workspace = aligned_alloc(64, bytes + 64);
        assert_non_null(workspace);
        memset(workspace, 0xff, bytes + 64);
        call[i](&s->at, threads, workspace);
        for (size_t j = 0; j < 64; j++) assert_int_equal(workspace[bytes + j], 0xff);
        free(workspace);
    }
}

static void compare(const problem *p, const instance *s, double *const out[OUTPUTS], unsigned which,
                    double tolerance, double terms) {
    for (int o = 0; o < OUTPUTS; o++) {
        if (!(which >> o & 1)) continue;
        double difference = 0, norm = 0;
        for (int64_t i = 0; i < p->size[output_like[o]]; i++) {
            double delta = s->out[o][i] - out[o][i];
            difference += delta * delta;
            norm += out[o][i] * out[o][i];
        }
        if (!(sqrt(difference) <= tolerance * sqrt(norm) + (o == GBETA ? 1e-6 * terms : 1e-12)))
            fail_msg("%s: relative error %g (batch %d, %d queries, %d keys, %d heads, width %d)",
                     output_name[o], sqrt(difference / norm), (int)p->batch, (int)p->queries,
                     (int)p->keys, (int)p->heads, (int)p->width);
    }
}

static const unsigned all_outputs = (1u << OUTPUTS) - 1;

/* Kernels against loops, and 1, 2, 3 threads against each other. */
static void check(const problem *p, bool list, bool exclude_self, double tolerance) {
    double *out[OUTPUTS];
    outputs_new(p, out);
    double terms = naive(p, out);
    instance first = instance_new(p, list, exclude_self, 5);
    want(&first, all_outputs & ~(p->in[MIX] || p->in[SCALE]
                                     ? 0
                                     : 1u << DSCALE | 1u << DMIX | 1u << GSCALE | 1u << GMIX));
    run(&first, FORCE | REVERSE, 1);
    unsigned which = all_outputs;
    if (!first.at.dmix) which &= ~(1u << DSCALE | 1u << DMIX | 1u << GSCALE | 1u << GMIX);
    compare(p, &first, out, which, tolerance, terms);
    for (int threads = 2; threads <= 3; threads++) {
        instance again = instance_new(p, list, exclude_self, 0);
        want(&again, which);
        run(&again, FORCE | REVERSE, threads);
        for (int o = 0; o < OUTPUTS; o++)
            assert_memory_equal(again.out[o], first.out[o],
                                (size_t)p->size[output_like[o]] * sizeof(float));
        instance_free(&again);
    }
    memset(first.out[LSE], 0xff, (size_t)p->size[W] * sizeof(float));
    run(&first, VALUE, 2);
    compare(p, &first, out, 1u << LSE, tolerance, 0);
    instance_free(&first);
    outputs_free(out);
}

static void test_differences(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        problem p = list_problem(7, 6, 3, 2, 3, i & 1, i & 2);
        check_differences(&p);
        problem_free(&p);
        p = dense_problem(2, 4, 4, 2, 3, i & 1, i & 1, i & 2);
        check_differences(&p);
        problem_free(&p);
    }
}

static void test_dense(void **state) {
    (void)state;
    static const int64_t shape[][5] = {{1, 1, 1, 1, 1},    {2, 5, 5, 3, 7},    {3, 9, 9, 2, 16},
                                       {1, 40, 40, 4, 33}, {1, 70, 70, 1, 64}, {4, 33, 33, 12, 64}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (int option = 0; option < 8; option++) {
            const int64_t *s = shape[i];
            problem p =
                dense_problem(s[0], s[1], s[2], s[3], s[4], option & 1, option & 2, option & 4);
            check(&p, false, option & 1, 1e-5);
            problem_free(&p);
        }
    problem p = dense_problem(2, 19, 50, 3, 20, false, false, false);
    check(&p, false, false, 1e-5);
    problem_free(&p);
    p = dense_problem(2, 50, 19, 3, 20, false, true, true);
    check(&p, false, false, 1e-5);
    problem_free(&p);
}

/* More keys than a tile of scores holds rows for. */
static void test_dense_long(void **state) {
    (void)state;
    problem p = dense_problem(1, 150, 1100, 1, 8, false, false, false);
    check(&p, false, false, 1e-5);
    problem_free(&p);
}

static void test_list(void **state) {
    (void)state;
    static const int64_t shape[][5] = {
        {1, 1, 1, 1, 1},     {6, 4, 3, 2, 7},     {20, 20, 9, 12, 64}, {50, 31, 20, 1, 128},
        {40, 60, 12, 3, 40}, {9, 80, 30, 16, 16}, {30, 30, 5, 2, 256}, {300, 200, 40, 2, 24}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (int option = 0; option < 4; option++) {
            const int64_t *s = shape[i];
            problem p = list_problem(s[0], s[1], s[2], s[3], s[4], option & 1, option & 2);
            check(&p, true, false, 1e-5);
            problem_free(&p);
        }
}

/* Rows wide enough for several cache blocks of keys and of queries. */
static void test_list_blocks(void **state) {
    (void)state;
    for (int option = 0; option < 2; option++) {
        problem p = list_problem(150, 140, 70, 1, 2048, option, false);
        check(&p, true, false, 1e-5);
        problem_free(&p);
    }
}

static void test_list_without_pairs(void **state) {
    (void)state;
    problem p = list_problem(5, 4, 0, 2, 8, false, false);
    assert_int_equal(p.pairs, 0);
    check(&p, true, false, 1e-5);
    problem_free(&p);
}

/* exclude_self with a single token: a query with no key. */
static void test_alone(void **state) {
    (void)state;
    problem p = dense_problem(3, 1, 1, 2, 5, true, false, false);
    check(&p, false, true, 1e-5);
    problem_free(&p);
}

static void test_dense_without_pairs(void **state) {
    (void)state;
    problem p = dense_problem(2, 3, 0, 2, 5, false, false, false);
    check(&p, false, false, 1e-5);
    problem_free(&p);
    p = dense_problem(2, 0, 3, 2, 5, false, false, false);
    check(&p, false, false, 1e-5);
    problem_free(&p);
}

static void test_all_pairs_as_list(void **state) {
    (void)state;
    problem p = dense_problem(1, 23, 17, 3, 12, false, true, false);
    check(&p, true, false, 1e-5);
    check(&p, false, false, 1e-5);
    problem_free(&p);
}

static void test_large_scores(void **state) {
    (void)state;
    for (int list = 0; list < 2; list++) {
        problem p = list ? list_problem(30, 30, 10, 2, 8, false, false)
                         : dense_problem(1, 30, 30, 2, 8, true, false, false);
        for (int64_t i = 0; i < p.size[Q]; i++) p.in[Q][i] = (float)(1e4 * p.in[Q][i]);
        instance s = instance_new(&p, list, !list, 0);
        want(&s, all_outputs & ~(1u << DSCALE | 1u << DMIX | 1u << GSCALE | 1u << GMIX));
        run(&s, FORCE | REVERSE, 2);
        double *out[OUTPUTS];
        outputs_new(&p, out);
        naive(&p, out);
        compare(&p, &s, out, 1u << LSE | 1u << DQ | 1u << DK, 1e-3, 0);
        for (int o = GQ; o <= GBETA; o++)
            for (int64_t i = 0; i < p.size[output_like[o]]; i++) assert_true(isfinite(s.out[o][i]));
        outputs_free(out);
        instance_free(&s);
        problem_free(&p);
    }
}

/* A NULL output changes no other, and a NULL cotangent counts as zero. */
static void test_absent(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        bool list = kind & 1, full = kind & 2;
        problem p = list ? list_problem(20, 15, 6, 3, 18, full, full)
                         : dense_problem(2, 12, 12, 3, 18, true, full, full);
        double *out[OUTPUTS];
        for (int o = 0; o < OUTPUTS + 3; o++) {
            double *kept[] = {p.in[A], p.in[B]};
            if (o > OUTPUTS) p.in[A] = NULL;
            if (o == OUTPUTS || o == OUTPUTS + 2) p.in[B] = NULL;
            outputs_new(&p, out);
            double terms = naive(&p, out);
            instance s = instance_new(&p, list, !list, 3);
            unsigned which = o < OUTPUTS ? 1u << o : all_outputs;
            want(&s, which);
            run(&s, o < OUTPUTS ? (o < GQ ? FORCE : REVERSE) : REVERSE, 2);
            if (o >= OUTPUTS) which &= ~((1u << GQ) - 1);
            compare(&p, &s, out, which, 1e-5, terms);
            instance_free(&s);
            outputs_free(out);
            p.in[A] = kept[0];
            p.in[B] = kept[1];
        }
        problem_free(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences),  cmocka_unit_test(test_dense),
        cmocka_unit_test(test_dense_long),   cmocka_unit_test(test_list),
        cmocka_unit_test(test_list_blocks),  cmocka_unit_test(test_list_without_pairs),
        cmocka_unit_test(test_alone),        cmocka_unit_test(test_all_pairs_as_list),
        cmocka_unit_test(test_large_scores), cmocka_unit_test(test_dense_without_pairs),
        cmocka_unit_test(test_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
