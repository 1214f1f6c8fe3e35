/* Energy attention on the CPU against plain loops in double: value, force and its reverse, over all
 * pairs and CSR lists. The loops' own second-order formulas are checked by finite differences. */
#include "engine/backend/attention_problem.h"

#include "engine/backend/cpu/attention/attention.h"

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
    unsigned wanted; /* results, a bit each */
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
                                 .exclude_self = exclude_self,
                                 .causal = p->causal}};
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

static void want(instance *s, unsigned outputs) { s->wanted = outputs; }

/* The results of the force, or of its reverse, that are wanted; of a value the first alone. */
static void set_mode(instance *s, basin_attention_mode mode) {
    bool reverse = mode == BASIN_ATTENTION_REVERSE, value = mode == BASIN_ATTENTION_VALUE;
    float **field[] = {&s->at.lse,       &s->at.out_query, &s->at.out_key,   &s->at.out_beta,
                       &s->at.out_scale, &s->at.out_mix,   &s->at.out_query, &s->at.out_key,
                       &s->at.gw,        &s->at.out_beta,  &s->at.out_scale, &s->at.out_mix};
    s->at.mode = mode, s->at.lse = s->at.gw = NULL;
    for (int i = reverse ? GQ : LSE; i < (reverse ? (int)OUTPUTS : (int)GQ); i++)
        *field[i] = s->wanted >> i & 1 && !(value && i != LSE) ? s->out[i] : NULL;
}

enum { VALUE = 1, FORCE = 2, REVERSE = 4 };

/* Runs with a workspace that is full of NaN, and a guard behind it. */
static void run(instance *s, int what, int threads) {
    for (int i = 0; i < 3; i++) {
        if (!(what >> i & 1)) continue;
        set_mode(s, (basin_attention_mode)i);
        size_t bytes = basin_attention_workspace(&s->at, threads);
        unsigned char *workspace = aligned_alloc(64, bytes + 64);
        assert_non_null(workspace);
        memset(workspace, 0xff, bytes + 64);
        basin_attention_run(&s->at, threads, workspace);
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

enum { OF_SCALE = 1u << DSCALE | 1u << GSCALE, OF_MIX = 1u << DMIX | 1u << GMIX };

/* Kernels against loops, and 1, 2, 3 threads against each other, for the results in `which`. */
static void check_some(const problem *p, bool list, bool exclude_self, double tolerance,
                       unsigned which) {
    double *out[OUTPUTS];
    outputs_new(p, out);
    double terms = naive(p, out);
    instance first = instance_new(p, list, exclude_self, 5);
    want(&first, which);
    run(&first, FORCE | REVERSE, 1);
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

static void check(const problem *p, bool list, bool exclude_self, double tolerance) {
    bool either = p->in[MIX] || p->in[SCALE];
    check_some(p, list, exclude_self, tolerance,
               either ? all_outputs : all_outputs & ~(OF_SCALE | OF_MIX));
}

TEST(test_differences) {
    for (int i = 0; i < 4; i++) {
        problem p = list_problem(7, 6, 3, 2, 3, i & 1, i & 2);
        check_differences(&p);
        problem_free(&p);
        p = dense_problem(2, 4, 4, 2, 3, i & 1, i & 1, i & 2);
        check_differences(&p);
        problem_free(&p);
    }
}

TEST(test_dense) {
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
TEST(test_dense_long) {
    BASIN_AT_EXIT(problem_free) problem p = dense_problem(1, 150, 1100, 1, 8, false, false, false);
    check(&p, false, false, 1e-5);
}

TEST(test_list) {
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

/* Rows of few pairs, whose heads share a vector: empty ones, long ones among short ones, heads and
 * widths that fit any or none. */
TEST(test_list_short) {
    static const int64_t shape[][5] = {{1, 1, 1, 4, 16},    {40, 40, 5, 4, 16},  {90, 90, 3, 4, 16},
                                       {64, 70, 9, 1, 16},  {30, 30, 4, 8, 32},  {33, 20, 6, 2, 48},
                                       {12, 12, 3, 16, 16}, {200, 200, 2, 4, 32}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (int scaled = 0; scaled < 2; scaled++) {
            const int64_t *s = shape[i];
            problem p = list_problem(s[0], s[1], s[2], s[3], s[4], scaled, false);
            check_some(&p, true, false, 1e-5, all_outputs & ~(scaled ? OF_MIX : OF_SCALE | OF_MIX));
            problem_free(&p);
        }
}

static double difference_of(const float *x, const float *y, int64_t count) {
    double difference = 0, norm = 1e-12;
    for (int64_t i = 0; i < count; i++) {
        difference += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        norm += (double)y[i] * (double)y[i];
    }
    return sqrt(difference / norm);
}

/* A bias, and cotangents that are zero, as the form for any mix has them: whoever wants dmix gets
 * that one. */
TEST(test_list_short_like_mixed) {
    for (int option = 0; option < 4; option++) {
        problem p = list_problem(60, 60, 4, 4, 16, true, false);
        instance brief = instance_new(&p, true, false, 3), mixed = instance_new(&p, true, false, 3);
        brief.at.added = mixed.at.added = true;
        if (option & 1) brief.at.a = mixed.at.a = NULL;
        if (option & 2) brief.at.b = mixed.at.b = NULL;
        want(&brief, all_outputs & ~OF_MIX);
        want(&mixed, all_outputs);
        run(&brief, FORCE | REVERSE, 2);
        run(&mixed, FORCE | REVERSE, 2);
        for (int o = 0; o < OUTPUTS; o++)
            if (!(OF_MIX >> o & 1))
                assert_true(difference_of(brief.out[o], mixed.out[o], p.size[output_like[o]]) <=
                            1e-5);
        instance_free(&brief);
        instance_free(&mixed);
        problem_free(&p);
    }
}

/* Rows wide enough for several cache blocks of keys and of queries. */
TEST(test_list_blocks) {
    for (int option = 0; option < 2; option++) {
        problem p = list_problem(150, 140, 70, 1, 2048, option, false);
        check(&p, true, false, 1e-5);
        problem_free(&p);
    }
}

TEST(test_list_without_pairs) {
    BASIN_AT_EXIT(problem_free) problem p = list_problem(5, 4, 0, 2, 8, false, false);
    assert_int_equal(p.pairs, 0);
    check(&p, true, false, 1e-5);
}

/* exclude_self with a single token: a query with no key. */
TEST(test_alone) {
    BASIN_AT_EXIT(problem_free) problem p = dense_problem(3, 1, 1, 2, 5, true, false, false);
    check(&p, false, true, 1e-5);
}

TEST(test_all_pairs_as_list) {
    BASIN_AT_EXIT(problem_free) problem p = dense_problem(1, 23, 17, 3, 12, false, true, false);
    check(&p, true, false, 1e-5);
    check(&p, false, false, 1e-5);
}

TEST(test_large_scores) {
    for (int list = 0; list < 2; list++) {
        problem p = list ? list_problem(30, 30, 10, 2, 8, false, false)
                         : dense_problem(1, 30, 30, 2, 8, true, false, false);
        for (int64_t i = 0; i < p.size[Q]; i++) p.in[Q][i] = (float)(1e4 * p.in[Q][i]);
        instance s = instance_new(&p, list, !list, 0);
        want(&s, all_outputs & ~(OF_SCALE | OF_MIX));
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

TEST(test_dense_without_pairs) {
    problem p = dense_problem(2, 3, 0, 2, 5, false, false, false);
    check(&p, false, false, 1e-5);
    problem_free(&p);
    p = dense_problem(2, 0, 3, 2, 5, false, false, false);
    check(&p, false, false, 1e-5);
    problem_free(&p);
}

/* A NULL output changes no other, and a NULL cotangent counts as zero. */
TEST(test_absent) {
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

/* Queries that see a part of the keys, in one tile of scores and in several. */
TEST(test_causal) {
    static const int64_t shape[][4] = {{1, 1, 1, 1},   {2, 5, 3, 7},    {3, 9, 2, 16},
                                       {1, 40, 4, 33}, {1, 131, 1, 64}, {1, 300, 12, 8}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (int option = 0; option < 8; option++) {
            const int64_t *s = shape[i];
            if (s[1] > 200 && option > 1) continue;
            problem p =
                dense_problem(s[0], s[1], s[1], s[2], s[3], option & 1, option & 2, option & 4);
            problem_make_causal(&p);
            check(&p, false, option & 1, 1e-5);
            problem_free(&p);
        }
}
