/* AdamW: against a plain loop in double, moments in the store, one call a parameter, the same bits
 * in every run and for any number of threads; a block that learns; the schedule. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/info.h"
#include "base/training.h"
#include "basin/energy.h"
#include "basin/train.h"
#include "engine/train/optimizer.h"
#include "support/lab.h"
#include "support/test.h"

/* ---- against a loop ---- */

enum { PARAMS = 3, MOST = 12, STEPS = 8 };
static const char *const name[PARAMS] = {"a", "b", "c"};
static const int64_t sizes[PARAMS] = {12, 5, 1};
static const double pull[PARAMS] = {3, 0.5, 20}; /* loss = sum of pull / 2 (p - target)^2 */

static double wish(int i, int64_t k) { return 0.3 * (double)(i + 1) - 0.1 * (double)k; }
static double first_value(int i, int64_t k) { return sin((double)(7 * i + k)) + 1; }
static double rate_of(int t) { return 0.02 + 0.005 * t; }

typedef struct loop {
    double p[PARAMS][MOST], m[PARAMS][MOST], v[PARAMS][MOST], norm;
} loop;

static void loop_step(loop *l, int t, const basin_optimizer_config *c) {
    double g[PARAMS][MOST], squares = 0;
    for (int i = 0; i < PARAMS; i++)
        for (int64_t k = 0; k < sizes[i]; k++) {
            g[i][k] = pull[i] * (l->p[i][k] - wish(i, k));
            squares += g[i][k] * g[i][k];
        }
    l->norm = sqrt(squares);
    double clip = c->clip > 0 && l->norm > c->clip ? c->clip / l->norm : 1;
    for (int i = 0; i < PARAMS; i++)
        for (int64_t k = 0; k < sizes[i]; k++) {
            double d = clip * g[i][k], *m = &l->m[i][k], *v = &l->v[i][k];
            *m = c->beta1 * *m + (1 - c->beta1) * d;
            *v = c->beta2 * *v + (1 - c->beta2) * d * d;
            double mean = *m / (1 - pow(c->beta1, t)), square = *v / (1 - pow(c->beta2, t));
            l->p[i][k] -=
                rate_of(t) * (mean / (sqrt(square) + c->epsilon) + c->weight_decay * l->p[i][k]);
        }
}

typedef struct bench {
    lab lab;
    basin_optimizer adamw;
    basin_plan *plan;
} bench;

static void bench_open(bench *b, const char *backend, const basin_optimizer_config *config) {
    lab *l = &b->lab;
    basin_expr loss = NULL;
    lab_open(l, backend, 1);
    for (int i = 0; i < PARAMS; i++) {
        double number[MOST], target[MOST];
        basin_shape shape = i == 0   ? BASIN_SHAPE(3, 4)
                            : i == 1 ? BASIN_SHAPE(sizes[i])
                                     : BASIN_SCALAR;
        for (int64_t k = 0; k < sizes[i]; k++)
            number[k] = first_value(i, k), target[k] = wish(i, k);
        basin_expr p = lab_state(l, name[i], shape);
        lab_set(l, p, number);
        char text[20];
        snprintf(text, sizeof text, "wish %d", i);
        basin_expr apart = basin_sub(p, lab_input(l, text, shape, target));
        basin_expr part = basin_scale(basin_sum_all(basin_square(apart)), pull[i] / 2);
        loss = loss ? basin_add(loss, part) : part;
    }
    assert_ok(basin_optimizer_new(&b->adamw, &l->params, loss, config, &failure));
    basin_plan_spec spec = {.output = &b->adamw.norm,
                            .outputs = 1,
                            .update = b->adamw.update,
                            .updates = b->adamw.updates};
    assert_ok(basin_plan_new(&b->plan, l->store, &spec, &failure));
    lab_write(l, b->plan);
}

static void bench_close(bench *b) {
    basin_plan_free(b->plan);
    basin_optimizer_free(&b->adamw);
    lab_close(&b->lab);
}

static void compare(bench *b, const double *wanted, int i, const char *suffix, double tolerance,
                    int t) {
    char full[20];
    basin_tensor found;
    snprintf(full, sizeof full, "%s%s", name[i], suffix);
    assert_ok(basin_store_get(&found, b->lab.store, full, &failure));
    for (int64_t k = 0; k < sizes[i]; k++) {
        double off = fabs(basin_tensor_at(&found, k) - wanted[k]);
        if (!(off <= tolerance * (fabs(wanted[k]) + 0.01)))
            fail_msg("step %d: element %d of '%s' is off by %g", t, (int)k, full, off);
    }
    basin_tensor_free(&found);
}

static void check_steps(const char *backend, double tolerance, basin_optimizer_config config) {
    BASIN_AT_EXIT(bench_close) bench b;
    loop l = {0};
    bool clipped = false, free_of = false;
    bench_open(&b, backend, &config);
    for (int i = 0; i < PARAMS; i++)
        for (int64_t k = 0; k < sizes[i]; k++) l.p[i][k] = first_value(i, k);
    for (int t = 1; t <= STEPS; t++) {
        assert_ok(basin_optimizer_write(&b.adamw, b.plan, t, rate_of(t), &failure));
        lab_run(b.plan);
        loop_step(&l, t, &config);
        clipped = clipped || l.norm > config.clip;
        free_of = free_of || l.norm < config.clip;
        assert_true(fabs(basin_plan_scalar(b.plan, b.adamw.norm) - l.norm) <= tolerance * l.norm);
        for (int i = 0; i < PARAMS; i++) {
            compare(&b, l.p[i], i, "", tolerance, t);
            compare(&b, l.m[i], i, ".m", tolerance, t);
            compare(&b, l.v[i], i, ".v", tolerance, t);
        }
    }
    if (config.clip > 0) assert_true(clipped && free_of); /* both sides of the bound were seen */
}

TEST(steps) {
    const basin_optimizer_config configs[] = {
        {.beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.05, .clip = 22},
        {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3},
        {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.5, .clip = 25}};
    for (int i = 0; i < 3; i++) {
        check_steps("ref", 1e-12, configs[i]);
        check_steps("cpu", 1e-5, configs[i]);
    }
}

/* Gradients that are all zero: nothing but decay moves a parameter, and nothing is NaN. */
TEST(no_gradient) {
    BASIN_AT_EXIT(lab_close) lab l;
    basin_optimizer adamw;
    basin_plan *plan;
    const double one = 1;
    lab_open(&l, "ref", 1);
    basin_expr p = lab_state(&l, "p", BASIN_SCALAR);
    lab_set(&l, p, &one);
    basin_expr loss = basin_scale(p, 0);
    basin_optimizer_config config = BASIN_OPTIMIZER_DEFAULT;
    assert_ok(basin_optimizer_new(&adamw, &l.params, loss, &config, &failure));
    basin_plan_spec spec = {.update = adamw.update, .updates = adamw.updates};
    assert_ok(basin_plan_new(&plan, l.store, &spec, &failure));
    assert_ok(basin_optimizer_write(&adamw, plan, 1, 0.1, &failure));
    lab_run(plan);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor value = lab_value(&l, p);
    assert_true(fabs(basin_tensor_at(&value, 0) - (1 - 0.1 * 0.05)) < 1e-15);
    basin_plan_free(plan);
    basin_optimizer_free(&adamw);
}

/* ---- a block that learns ---- */

enum { GRADIENTS = 6, ROUNDS = 100 };

/* Batch, tokens, dimension; and whether tokens look along a list of pairs. */
typedef struct extent {
    int64_t b, n, d;
    bool list;
} extent;
static const extent small = {4, 6, 12, false};

typedef struct learner {
    lab lab;
    basin_block block;
    basin_optimizer adamw;
    basin_expr loss;
    basin_plan *plan;
} learner;

/* Clean tokens are multiples of a few patterns, the block is given them with noise. */
static void make_data(double *clean, double *noisy, int64_t tokens, int64_t d) {
    for (int64_t i = 0; i < tokens * d; i++) {
        clean[i] = basin_random_normal_at(21, 1, (uint64_t)(i / d % 3 * d + i % d));
        noisy[i] = clean[i] + 0.7 * basin_random_normal_at(21, 2, (uint64_t)i);
    }
}

/* Each token looks at seven others of its neighbourhood. */
static basin_pattern make_list(lab *l, int64_t tokens) {
    int32_t *edge = malloc((size_t)tokens * 14 * sizeof *edge);
    assert_non_null(edge);
    for (int64_t i = 0; i < tokens * 7; i++) {
        edge[2 * i] = (int32_t)(i / 7);
        edge[2 * i + 1] = (int32_t)((i / 7 + (i % 7 + 1) * (i % 7 + 1)) % tokens);
    }
    basin_pattern pattern = lab_pairs(l, "pairs", tokens, edge, tokens * 7, 0, 0);
    free(edge);
    return pattern;
}

static void learner_data(learner *s, basin_expr *x, basin_expr *want, extent e) {
    int64_t count = e.b * e.n * e.d;
    basin_shape shape = e.list ? BASIN_SHAPE(e.b * e.n, e.d) : BASIN_SHAPE(e.b, e.n, e.d);
    double *clean = malloc((size_t)count * sizeof *clean);
    double *noisy = malloc((size_t)count * sizeof *noisy);
    assert_true(clean && noisy);
    make_data(clean, noisy, e.b * e.n, e.d);
    *x = lab_input(&s->lab, "noisy", shape, noisy);
    *want = lab_input(&s->lab, "clean", shape, clean);
    free(clean);
    free(noisy);
}

static void learner_plan(learner *s, bool updates) {
    lab *l = &s->lab;
    basin_optimizer_config config = BASIN_OPTIMIZER_DEFAULT;
    assert_ok(basin_optimizer_new(&s->adamw, &l->params, s->loss, &config, &failure));
    basin_expr output[2 + GRADIENTS] = {s->loss, s->adamw.norm}, param[GRADIENTS];
    assert_int_equal(l->params.count, GRADIENTS);
    for (int i = 0; i < GRADIENTS; i++) param[i] = l->params.param[i].state;
    basin_vjp(output + 2, s->loss, NULL, param, GRADIENTS);
    basin_plan_spec spec = {.output = output,
                            .outputs = 2 + GRADIENTS,
                            .update = s->adamw.update,
                            .updates = updates ? s->adamw.updates : 0};
    assert_ok(basin_plan_new(&s->plan, l->store, &spec, &failure));
    lab_write(l, s->plan);
}

static void learner_open(learner *s, const char *backend, int threads, bool updates, extent e) {
    lab *l = &s->lab;
    basin_expr x, want;
    basin_block_config config = {.dim = e.d,
                                 .heads = 2,
                                 .head_dim = e.d / 2,
                                 .memories = 2 * e.d,
                                 .learn_beta = true,
                                 .init_query = {BASIN_INIT_NORMAL, 0.1},
                                 .init_memory = {BASIN_INIT_NORMAL, 0.1}};
    lab_open(l, backend, threads);
    basin_block_declare(&s->block, &l->params, "", &config);
    assert_ok(basin_params_init(&l->params, l->store, 5, &failure));
    learner_data(s, &x, &want, e);
    basin_pattern pattern = e.list ? make_list(l, e.b * e.n) : BASIN_OTHER_PAIRS;
    basin_block_bound bound = {.block = &s->block, .pattern = &pattern};
    basin_energy energy = basin_block_energy(&bound);
    basin_descent_spec spec = {.steps = 3, .alpha = 0.3, .recompute = true};
    basin_expr end = basin_block_norm(&s->block, basin_descend(&energy, x, &spec, NULL));
    s->loss = basin_mean_all(basin_square(basin_sub(end, want)));
    learner_plan(s, updates);
}

static void learner_close(learner *s) {
    basin_plan_free(s->plan);
    basin_optimizer_free(&s->adamw);
    lab_close(&s->lab);
}

/* Trains; the losses of every round go to `loss`, the parameters at the end into the store. */
static void learn(learner *s, double *loss, int rounds) {
    for (int t = 1; t <= rounds; t++) {
        double rate = basin_schedule_rate(&(basin_schedule){10, ROUNDS, 1e-4, 2e-2, 1e-4}, t);
        assert_ok(basin_optimizer_write(&s->adamw, s->plan, t, rate, &failure));
        lab_run(s->plan);
        loss[t - 1] = basin_plan_scalar(s->plan, s->loss);
    }
}

TEST(learns) {
    const char *backends[] = {"ref", "cpu"};
    double loss[2][ROUNDS];
    for (int i = 0; i < 2; i++) {
        learner s;
        learner_open(&s, backends[i], 2, true, small);
        learn(&s, loss[i], ROUNDS);
        learner_close(&s);
        if (!(loss[i][ROUNDS - 1] < loss[i][0] / 4))
            fail_msg("%s: the loss went from %g to %g only", backends[i], loss[i][0],
                     loss[i][ROUNDS - 1]);
    }
    assert_true(fabs(loss[1][0] / loss[0][0] - 1) < 1e-5);
    assert_true(fabs(loss[1][ROUNDS - 1] / loss[0][ROUNDS - 1] - 1) < 1e-2);
}

static void assert_same_store(learner *a, learner *b) {
    const char *own;
    assert_int_equal(lab_states(&a->lab), lab_states(&b->lab));
    for (int i = 0; (own = basin_store_name(a->lab.store, i)); i++) {
        basin_tensor x, y;
        assert_int_equal(basin_store_get(&x, a->lab.store, own, NULL), BASIN_OK);
        assert_int_equal(basin_store_get(&y, b->lab.store, own, NULL), BASIN_OK);
        if (memcmp(x.data, y.data, basin_tensor_bytes(&x)) != 0) fail_msg("'%s' differs", own);
        basin_tensor_free(&x);
        basin_tensor_free(&y);
    }
}

static void check_bits(const char *backend, int threads, extent e, int rounds) {
    double loss[2][ROUNDS];
    learner a, b;
    learner_open(&a, backend, 1, true, e);
    learner_open(&b, backend, threads, true, e);
    learn(&a, loss[0], rounds);
    learn(&b, loss[1], rounds);
    assert_memory_equal(loss[0], loss[1], (size_t)rounds * sizeof loss[0][0]);
    assert_same_store(&a, &b);
    learner_close(&a);
    learner_close(&b);
}

/* The same bits when repeated, and with more threads: where the work is too little to be shared
 * between them, and where it is enough. */
TEST(same_bits) {
    const extent list = {4, 6, 12, true}, large = {4, 40, 64, false},
                 large_list = {4, 200, 64, true};
    check_bits("ref", 1, small, 20);
    for (int threads = 1; threads <= 3; threads++) {
        check_bits("cpu", threads, small, 10);
        check_bits("cpu", threads, list, 10);
        check_bits("cpu", threads, large, 2);
        check_bits("cpu", threads, large_list, 2);
    }
}

/* Beside the gradients and their norm: one call for the clipping, and one a parameter. */
TEST(calls) {
    learner with, without;
    learner_open(&with, "cpu", 1, true, small);
    learner_open(&without, "cpu", 1, false, small);
    int more = basin_plan_stats_of(with.plan).calls - basin_plan_stats_of(without.plan).calls;
    if (more > 1 + GRADIENTS) fail_msg("%d calls for %d parameters", more, GRADIENTS);
    learner_close(&with);
    learner_close(&without);
}

/* ---- the rest ---- */

TEST(schedule) {
    const double first = 1e-3, peak = 1, last = 1e-2;
    assert_true(basin_schedule_rate(&(basin_schedule){10, 110, first, peak, last}, 0) == first);
    assert_true(fabs(basin_schedule_rate(&(basin_schedule){10, 110, first, peak, last}, 5) -
                     0.5005) < 1e-15);
    assert_true(basin_schedule_rate(&(basin_schedule){10, 110, first, peak, last}, 10) == peak);
    assert_true(fabs(basin_schedule_rate(&(basin_schedule){10, 110, first, peak, last}, 60) -
                     0.505) < 1e-12);
    double third = last + (peak - last) * 0.5 * (1 + cos(acos(-1.0) / 4));
    assert_true(fabs(basin_schedule_rate(&(basin_schedule){10, 110, first, peak, last}, 35) -
                     third) < 1e-12);
    assert_true(fabs(basin_schedule_rate(&(basin_schedule){10, 110, first, peak, last}, 110) -
                     last) < 1e-15);
    assert_true(fabs(basin_schedule_rate(&(basin_schedule){10, 110, first, peak, last}, 1000) -
                     last) < 1e-15);
    assert_true(basin_schedule_rate(&(basin_schedule){0, 100, first, peak, last}, 0) ==
                peak); /* no warm-up */
    assert_true(fabs(basin_schedule_rate(&(basin_schedule){7, 7, first, peak, last}, 7) - last) <
                1e-15);
    for (int64_t t = 1; t < 110; t++) {
        double a = basin_schedule_rate(&(basin_schedule){10, 110, first, peak, last}, t - 1);
        double b = basin_schedule_rate(&(basin_schedule){10, 110, first, peak, last}, t);
        assert_true(t <= 10 ? b > a : b < a);
    }
}

TEST(errors) {
    BASIN_AT_EXIT(lab_close) lab l;
    basin_optimizer adamw;
    basin_optimizer_config config = BASIN_OPTIMIZER_DEFAULT;
    lab_open(&l, "ref", 1);
    basin_expr loss = basin_input(l.graph, "x", BASIN_SCALAR);
    assert_failure(basin_optimizer_new(&adamw, &l.params, loss, &config, &failure), BASIN_BAD_VALUE,
                   "no parameter");
    basin_expr p = lab_state(&l, "p", BASIN_SHAPE(2, 3));
    assert_failure(basin_optimizer_new(&adamw, &l.params, NULL, &config, &failure), BASIN_BAD_VALUE,
                   "no loss");
    assert_null(adamw.update);
    loss = basin_sum(basin_square(p), 1, 1);
    assert_says(basin_optimizer_new(&adamw, &l.params, loss, &config, &failure), BASIN_BAD_SHAPE,
                "the loss has shape [2], expected []: the sum or the mean of it");
    assert_null(adamw.update);
    loss = basin_matmul(p, p); /* does not fit: the graph's own message comes through */
    assert_failure(basin_optimizer_new(&adamw, &l.params, loss, &config, &failure), BASIN_BAD_SHAPE,
                   "[2, 3]");
    basin_optimizer_free(&adamw);
}
